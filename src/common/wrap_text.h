/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The text of WRAP: functions to wrap, with the types that their arguments are recorded by.
 *
 *   list     = item { ";" item }
 *   item     = [ type ] library ":" function [ "(" [ type { "," type } ] [ "..." ] ")" ]
 *   library  = "*" | the beginning of a file name, as in libm.so
 *   type     = a C type of numbers or a pointer, as in int, unsigned long, double, const char *
 *
 * A type before the library is that of the result. `const char *` is recorded as text, other
 * pointers as addresses. Without parentheses no arguments are recorded.
 *
 * Header-only; no state, no allocation, no libc: the command checks with it what the profiled
 * process reads with it.
 */
#ifndef KYMO_COMMON_WRAP_TEXT_H
#define KYMO_COMMON_WRAP_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "common/array.h"
#include "common/settings_value.h"

#define WRAP_ARGUMENTS_MAX 32 /* of one function */
#define WRAP_FUNCTIONS_MAX 256

enum wrapped_value_type_kind {
	WRAP_TYPE_NONE, /* void, or not said */
	WRAP_TYPE_SIGNED,
	WRAP_TYPE_UNSIGNED,
	WRAP_TYPE_ADDRESS,
	WRAP_TYPE_TEXT,
	WRAP_TYPE_REAL,
	WRAP_TYPE_LONG_DOUBLE /* passed in memory, returned on the x87 stack; not recorded */
};

struct wrapped_value_type {
	uint8_t kind, bytes;
};

struct wrap_spec_function {
	struct text_slice library; /* empty: any */
	struct text_slice function;
	struct wrapped_value_type result, argument[WRAP_ARGUMENTS_MAX];
	uint32_t argument_count;
	bool has_parameter_list; /* there were parentheses */
	bool variadic;           /* there may be more arguments */
};

struct wrap_spec_problem {
	const char *where; /* in the text */
	const char *what;
};

/* ---- types ---- */

static inline bool wrap_spec_is_word_character(char c)
{
	return setting_is_letter(c) || setting_is_digit(c) || c == '_';
}

static inline bool wrap_spec_word_equals(struct text_slice word, const char *name)
{
	for (size_t i = 0; i < word.length; i++) {
		if (!name[i] || name[i] != word.text[i])
			return false;
	}
	return !name[word.length];
}

/* What the words of a type add up to. */
struct wrap_spec_type_parse_state {
	struct wrapped_value_type base;
	unsigned long_count, star_count;
	bool named; /* the base is known: one more word is the argument's name */
	bool is_char, is_unsigned, is_signed, is_struct_or_union;
	const char *unknown; /* first word that is no type */
};

static inline bool wrap_spec_apply_if_base_type(struct wrap_spec_type_parse_state *words,
						struct text_slice word)
{
	static const struct {
		const char *name;
		struct wrapped_value_type type;
	} bases[] = {
		{"void", {WRAP_TYPE_NONE, 0}},       {"char", {WRAP_TYPE_SIGNED, 1}},
		{"short", {WRAP_TYPE_SIGNED, 2}},    {"int", {WRAP_TYPE_SIGNED, 4}},
		{"bool", {WRAP_TYPE_UNSIGNED, 1}},   {"_Bool", {WRAP_TYPE_UNSIGNED, 1}},
		{"float", {WRAP_TYPE_REAL, 4}},      {"double", {WRAP_TYPE_REAL, 8}},
		{"int8_t", {WRAP_TYPE_SIGNED, 1}},   {"uint8_t", {WRAP_TYPE_UNSIGNED, 1}},
		{"int16_t", {WRAP_TYPE_SIGNED, 2}},  {"uint16_t", {WRAP_TYPE_UNSIGNED, 2}},
		{"int32_t", {WRAP_TYPE_SIGNED, 4}},  {"uint32_t", {WRAP_TYPE_UNSIGNED, 4}},
		{"int64_t", {WRAP_TYPE_SIGNED, 8}},  {"uint64_t", {WRAP_TYPE_UNSIGNED, 8}},
		{"intptr_t", {WRAP_TYPE_SIGNED, 8}}, {"uintptr_t", {WRAP_TYPE_UNSIGNED, 8}},
		{"size_t", {WRAP_TYPE_UNSIGNED, 8}}, {"ssize_t", {WRAP_TYPE_SIGNED, 8}},
		{"off_t", {WRAP_TYPE_SIGNED, 8}},    {"time_t", {WRAP_TYPE_SIGNED, 8}},
		{"pid_t", {WRAP_TYPE_SIGNED, 4}},    {"mode_t", {WRAP_TYPE_UNSIGNED, 4}},
	};

	for (size_t i = 0; i < ARRAY_SIZE(bases); i++) {
		if (!wrap_spec_word_equals(word, bases[i].name))
			continue;
		/* "short int" and "long int" are their first words */
		if (!words->named || bases[i].type.kind != WRAP_TYPE_SIGNED ||
		    bases[i].type.bytes != 4)
			words->base = bases[i].type;
		words->is_char = wrap_spec_word_equals(word, "char");
		words->named = true;
		return true;
	}
	return false;
}

static inline void wrap_spec_apply_type_word(struct wrap_spec_type_parse_state *words,
					     struct text_slice word)
{
	if (wrap_spec_word_equals(word, "const") || wrap_spec_word_equals(word, "volatile") ||
	    wrap_spec_word_equals(word, "restrict"))
		return;
	if (wrap_spec_word_equals(word, "unsigned") || wrap_spec_word_equals(word, "signed")) {
		words->is_unsigned |= word.text[0] == 'u';
		words->is_signed |= word.text[0] == 's';
	} else if (wrap_spec_word_equals(word, "long")) {
		words->long_count++;
	} else if (wrap_spec_word_equals(word, "struct") || wrap_spec_word_equals(word, "union")) {
		words->is_struct_or_union = true;
	} else if (wrap_spec_word_equals(word, "enum")) {
		words->base = (struct wrapped_value_type){WRAP_TYPE_SIGNED, 4};
		words->named = true;
	} else if (!wrap_spec_apply_if_base_type(words, word) && !words->named &&
		   !words->long_count && !words->is_unsigned && !words->is_signed &&
		   !words->star_count && !words->unknown) {
		words->unknown = word.text;
	}
}

static inline bool wrap_spec_words_to_type(const struct wrap_spec_type_parse_state *words,
					   struct wrapped_value_type *ret)
{
	*ret = words->base;
	if (words->star_count) {
		bool text = words->star_count == 1 && words->is_char && !words->is_unsigned;
		*ret = (struct wrapped_value_type){text ? WRAP_TYPE_TEXT : WRAP_TYPE_ADDRESS, 8};
		return true;
	}
	if (words->unknown || words->is_struct_or_union)
		return false;
	if (words->long_count && words->base.kind == WRAP_TYPE_REAL)
		*ret = (struct wrapped_value_type){WRAP_TYPE_LONG_DOUBLE, 16};
	else if (words->long_count)
		*ret = (struct wrapped_value_type){WRAP_TYPE_SIGNED, 8};
	else if (!words->named && (words->is_unsigned || words->is_signed))
		*ret = (struct wrapped_value_type){WRAP_TYPE_SIGNED, 4};
	else if (!words->named)
		return false;
	if (words->is_unsigned && ret->kind == WRAP_TYPE_SIGNED)
		ret->kind = WRAP_TYPE_UNSIGNED;
	return true;
}

static inline bool wrap_spec_parse_type(struct text_slice text, struct wrapped_value_type *ret,
					struct wrap_spec_problem *problem)
{
	struct wrap_spec_type_parse_state words = {
		{WRAP_TYPE_NONE, 0}, 0, 0, false, false, false, false, false, NULL};
	struct text_slice word;
	size_t at = 0;

	while (at < text.length) {
		if (setting_is_blank_character(text.text[at])) {
			at++;
		} else if (text.text[at] == '*') {
			words.star_count++;
			at++;
		} else if (wrap_spec_is_word_character(text.text[at])) {
			word = (struct text_slice){text.text + at, 0};
			while (at < text.length && wrap_spec_is_word_character(text.text[at])) {
				at++;
				word.length++;
			}
			wrap_spec_apply_type_word(&words, word);
		} else {
			*problem =
				(struct wrap_spec_problem){text.text + at, "is not part of a type"};
			return false;
		}
	}
	if (wrap_spec_words_to_type(&words, ret))
		return true;
	*problem = (struct wrap_spec_problem){
		words.unknown ? words.unknown : text.text,
		"is not a type of numbers or a pointer, such as int, double or const char *"};
	return false;
}

/* ---- items ---- */

/* Cuts *rest at the first `separator`; all of it when there is none. */
static inline bool wrap_spec_split_at(struct text_slice *rest, char separator,
				      struct text_slice *ret)
{
	size_t length = 0;

	while (length < rest->length && rest->text[length] != separator)
		length++;
	*ret = (struct text_slice){rest->text, length};
	if (length == rest->length) {
		rest->text += length;
		rest->length = 0;
		return false;
	}
	rest->text += length + 1;
	rest->length -= length + 1;
	return true;
}

/* "const char *libx.so" and "libx.so": a result type and a library. */
static inline bool wrap_spec_parse_result_and_library(struct text_slice text,
						      struct wrap_spec_function *item,
						      struct wrap_spec_problem *problem)
{
	size_t start = text.length;

	while (start && !setting_is_blank_character(text.text[start - 1]) &&
	       text.text[start - 1] != '*')
		start--;
	if (start == text.length && start && text.text[start - 1] == '*')
		start--;
	item->library = (struct text_slice){text.text + start, text.length - start};
	if (!item->library.length) {
		*problem = (struct wrap_spec_problem){text.text,
						      "needs a library (or *) before the ':'"};
		return false;
	}
	if (item->library.text[0] == '*')
		item->library.length = 0;
	text = setting_trim_blanks((struct text_slice){text.text, start});
	return !text.length || wrap_spec_parse_type(text, &item->result, problem);
}

/* Functions that look at the frame that called them, or return twice into it. */
static inline bool wrap_spec_is_unwrappable_function(struct text_slice function)
{
	static const char *const names[] = {
		"setjmp",     "_setjmp",     "sigsetjmp",   "__sigsetjmp",   "vfork",
		"getcontext", "swapcontext", "makecontext", "setcontext",    "dlopen",
		"dlsym",      "dlvsym",      "dlmopen",     "__tls_get_addr"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (wrap_spec_word_equals(function, names[i]))
			return true;
	}
	return false;
}

static inline bool wrap_spec_parse_function_name(struct text_slice text,
						 struct wrap_spec_function *item,
						 struct wrap_spec_problem *problem)
{
	item->function = setting_trim_blanks(text);
	for (size_t i = 0; i < item->function.length; i++) {
		char c = item->function.text[i];
		if (!wrap_spec_is_word_character(c) && c != '.' && c != '$') {
			*problem = (struct wrap_spec_problem){
				item->function.text + i, "cannot be part of a function's name"};
			return false;
		}
	}
	*problem = (struct wrap_spec_problem){item->function.text, "needs the name of a function"};
	if (!item->function.length)
		return false;
	problem->what = "depends on the frame of its caller and cannot be wrapped";
	return !wrap_spec_is_unwrappable_function(item->function);
}

static inline bool wrap_spec_parse_arguments(struct text_slice text,
					     struct wrap_spec_function *item,
					     struct wrap_spec_problem *problem)
{
	struct text_slice argument, rest = text;
	bool more = true;

	item->has_parameter_list = true;
	if (!setting_trim_blanks(text).length ||
	    wrap_spec_word_equals(setting_trim_blanks(text), "void"))
		return true;
	while (more) {
		more = wrap_spec_split_at(&rest, ',', &argument);
		argument = setting_trim_blanks(argument);
		if (!more && wrap_spec_word_equals(argument, "...")) {
			item->variadic = true;
			return true;
		}
		if (item->argument_count == WRAP_ARGUMENTS_MAX) {
			*problem = (struct wrap_spec_problem){argument.text,
							      "is one argument too many"};
			return false;
		}
		if (!argument.length) {
			*problem = (struct wrap_spec_problem){argument.text, "needs a type"};
			return false;
		}
		if (!wrap_spec_parse_type(argument, &item->argument[item->argument_count], problem))
			return false;
		if (item->argument[item->argument_count++].kind == WRAP_TYPE_NONE) {
			*problem = (struct wrap_spec_problem){argument.text,
							      "is not the type of an argument"};
			return false;
		}
	}
	return true;
}

static inline bool wrap_spec_parse_item(struct text_slice text, struct wrap_spec_function *item,
					struct wrap_spec_problem *problem)
{
	struct text_slice rest = text, library, function, arguments;

	if (!wrap_spec_split_at(&rest, ':', &library)) {
		*problem = (struct wrap_spec_problem){text.text,
						      "needs a ':' between library and function"};
		return false;
	}
	if (!wrap_spec_parse_result_and_library(setting_trim_blanks(library), item, problem))
		return false;
	if (!wrap_spec_split_at(&rest, '(', &function))
		return wrap_spec_parse_function_name(function, item, problem);
	if (!wrap_spec_parse_function_name(function, item, problem))
		return false;
	if (!wrap_spec_split_at(&rest, ')', &arguments)) {
		*problem = (struct wrap_spec_problem){function.text + function.length,
						      "is never closed"};
		return false;
	}
	rest = setting_trim_blanks(rest);
	if (rest.length) {
		*problem = (struct wrap_spec_problem){rest.text,
						      "is too much; ';' separates functions"};
		return false;
	}
	return wrap_spec_parse_arguments(arguments, item, problem);
}

/* Takes the next item off *rest: 1; 0 at the end; -1 when it is wrong, and says why. */
static inline int wrap_spec_parse_next(struct text_slice *rest, struct wrap_spec_function *ret,
				       struct wrap_spec_problem *problem)
{
	struct text_slice item;

	while (rest->length) {
		struct wrap_spec_function empty = {{NULL, 0}, {NULL, 0}, {0, 0}, {{0, 0}},
						   0,         false,     false};
		wrap_spec_split_at(rest, ';', &item);
		item = setting_trim_blanks(item);
		if (!item.length)
			continue;
		*ret = empty;
		return wrap_spec_parse_item(item, ret, problem) ? 1 : -1;
	}
	return 0;
}

/* Is all of the text right? */
static inline bool wrap_spec_check(const char *text, struct wrap_spec_problem *problem)
{
	struct text_slice rest = setting_slice_from_text(text);
	struct wrap_spec_function item;
	unsigned count = 0;
	int result;

	while ((result = wrap_spec_parse_next(&rest, &item, problem)) > 0) {
		if (++count > WRAP_FUNCTIONS_MAX) {
			*problem = (struct wrap_spec_problem){item.function.text,
							      "is one function too many (256)"};
			return false;
		}
	}
	return !result;
}

#endif

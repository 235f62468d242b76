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

#include "common/settings_value.h"

#define WRAP_ARGUMENTS 32 /* of one function */
#define WRAP_FUNCTIONS 256

enum wrap_kind {
	WRAP_NONE, /* void, or not said */
	WRAP_SIGNED,
	WRAP_UNSIGNED,
	WRAP_ADDRESS,
	WRAP_TEXT,
	WRAP_REAL,
	WRAP_LONG_DOUBLE /* passed in memory, returned on the x87 stack; not recorded */
};

struct wrap_type {
	uint8_t kind, bytes;
};

struct wrap_item {
	struct setting_slice library; /* empty: any */
	struct setting_slice function;
	struct wrap_type result, argument[WRAP_ARGUMENTS];
	uint32_t arguments;
	bool typed;    /* there were parentheses */
	bool variadic; /* there may be more arguments */
};

struct wrap_problem {
	const char *where; /* in the text */
	const char *what;
};

/* ---- types ---- */

static inline bool wrap_is_word(char c)
{
	return setting_is_letter(c) || setting_is_digit(c) || c == '_';
}

static inline bool wrap_equal(struct setting_slice word, const char *name)
{
	for (size_t i = 0; i < word.length; i++) {
		if (!name[i] || name[i] != word.text[i])
			return false;
	}
	return !name[word.length];
}

/* What the words of a type add up to. */
struct wrap_words {
	struct wrap_type base;
	unsigned longs, stars;
	bool named; /* the base is known: one more word is the argument's name */
	bool is_char, is_unsigned, is_signed, is_tagged;
	const char *unknown; /* first word that is no type */
};

static inline bool wrap_base(struct wrap_words *words, struct setting_slice word)
{
	static const struct {
		const char *name;
		struct wrap_type type;
	} bases[] = {
		{"void", {WRAP_NONE, 0}},       {"char", {WRAP_SIGNED, 1}},
		{"short", {WRAP_SIGNED, 2}},    {"int", {WRAP_SIGNED, 4}},
		{"bool", {WRAP_UNSIGNED, 1}},   {"_Bool", {WRAP_UNSIGNED, 1}},
		{"float", {WRAP_REAL, 4}},      {"double", {WRAP_REAL, 8}},
		{"int8_t", {WRAP_SIGNED, 1}},   {"uint8_t", {WRAP_UNSIGNED, 1}},
		{"int16_t", {WRAP_SIGNED, 2}},  {"uint16_t", {WRAP_UNSIGNED, 2}},
		{"int32_t", {WRAP_SIGNED, 4}},  {"uint32_t", {WRAP_UNSIGNED, 4}},
		{"int64_t", {WRAP_SIGNED, 8}},  {"uint64_t", {WRAP_UNSIGNED, 8}},
		{"intptr_t", {WRAP_SIGNED, 8}}, {"uintptr_t", {WRAP_UNSIGNED, 8}},
		{"size_t", {WRAP_UNSIGNED, 8}}, {"ssize_t", {WRAP_SIGNED, 8}},
		{"off_t", {WRAP_SIGNED, 8}},    {"time_t", {WRAP_SIGNED, 8}},
		{"pid_t", {WRAP_SIGNED, 4}},    {"mode_t", {WRAP_UNSIGNED, 4}},
	};

	for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
		if (!wrap_equal(word, bases[i].name))
			continue;
		/* "short int" and "long int" are their first words */
		if (!words->named || bases[i].type.kind != WRAP_SIGNED || bases[i].type.bytes != 4)
			words->base = bases[i].type;
		words->is_char = wrap_equal(word, "char");
		words->named = true;
		return true;
	}
	return false;
}

static inline void wrap_word(struct wrap_words *words, struct setting_slice word)
{
	if (wrap_equal(word, "const") || wrap_equal(word, "volatile") ||
	    wrap_equal(word, "restrict"))
		return;
	if (wrap_equal(word, "unsigned") || wrap_equal(word, "signed")) {
		words->is_unsigned |= word.text[0] == 'u';
		words->is_signed |= word.text[0] == 's';
	} else if (wrap_equal(word, "long")) {
		words->longs++;
	} else if (wrap_equal(word, "struct") || wrap_equal(word, "union")) {
		words->is_tagged = true;
	} else if (wrap_equal(word, "enum")) {
		words->base = (struct wrap_type){WRAP_SIGNED, 4};
		words->named = true;
	} else if (!wrap_base(words, word) && !words->named && !words->longs &&
		   !words->is_unsigned && !words->is_signed && !words->stars && !words->unknown) {
		words->unknown = word.text;
	}
}

static inline bool wrap_sum_up(const struct wrap_words *words, struct wrap_type *ret)
{
	*ret = words->base;
	if (words->stars) {
		bool text = words->stars == 1 && words->is_char && !words->is_unsigned;
		*ret = (struct wrap_type){text ? WRAP_TEXT : WRAP_ADDRESS, 8};
		return true;
	}
	if (words->unknown || words->is_tagged)
		return false;
	if (words->longs && words->base.kind == WRAP_REAL)
		*ret = (struct wrap_type){WRAP_LONG_DOUBLE, 16};
	else if (words->longs)
		*ret = (struct wrap_type){WRAP_SIGNED, 8};
	else if (!words->named && (words->is_unsigned || words->is_signed))
		*ret = (struct wrap_type){WRAP_SIGNED, 4};
	else if (!words->named)
		return false;
	if (words->is_unsigned && ret->kind == WRAP_SIGNED)
		ret->kind = WRAP_UNSIGNED;
	return true;
}

static inline bool wrap_parse_type(struct setting_slice text, struct wrap_type *ret,
				   struct wrap_problem *problem)
{
	struct wrap_words words = {{WRAP_NONE, 0}, 0, 0, false, false, false, false, false, NULL};
	struct setting_slice word;
	size_t at = 0;

	while (at < text.length) {
		if (setting_is_blank(text.text[at])) {
			at++;
		} else if (text.text[at] == '*') {
			words.stars++;
			at++;
		} else if (wrap_is_word(text.text[at])) {
			word = (struct setting_slice){text.text + at, 0};
			while (at < text.length && wrap_is_word(text.text[at])) {
				at++;
				word.length++;
			}
			wrap_word(&words, word);
		} else {
			*problem = (struct wrap_problem){text.text + at, "is no part of a type"};
			return false;
		}
	}
	if (wrap_sum_up(&words, ret))
		return true;
	*problem = (struct wrap_problem){
		words.unknown ? words.unknown : text.text,
		"is not a type of numbers or a pointer, such as int, double or const char *"};
	return false;
}

/* ---- items ---- */

/* Cuts *rest at the first `separator`; all of it when there is none. */
static inline bool wrap_cut(struct setting_slice *rest, char separator, struct setting_slice *ret)
{
	size_t length = 0;

	while (length < rest->length && rest->text[length] != separator)
		length++;
	*ret = (struct setting_slice){rest->text, length};
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
static inline bool wrap_parse_library(struct setting_slice text, struct wrap_item *item,
				      struct wrap_problem *problem)
{
	size_t start = text.length;

	while (start && !setting_is_blank(text.text[start - 1]) && text.text[start - 1] != '*')
		start--;
	if (start == text.length && start && text.text[start - 1] == '*')
		start--;
	item->library = (struct setting_slice){text.text + start, text.length - start};
	if (!item->library.length) {
		*problem =
			(struct wrap_problem){text.text, "needs a library (or *) before the ':'"};
		return false;
	}
	if (item->library.text[0] == '*')
		item->library.length = 0;
	text = setting_trim((struct setting_slice){text.text, start});
	return !text.length || wrap_parse_type(text, &item->result, problem);
}

/* Functions that look at the frame that called them, or return twice into it. */
static inline bool wrap_needs_its_caller(struct setting_slice function)
{
	static const char *const names[] = {
		"setjmp",     "_setjmp",     "sigsetjmp",   "__sigsetjmp",   "vfork",
		"getcontext", "swapcontext", "makecontext", "setcontext",    "dlopen",
		"dlsym",      "dlvsym",      "dlmopen",     "__tls_get_addr"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (wrap_equal(function, names[i]))
			return true;
	}
	return false;
}

static inline bool wrap_parse_function(struct setting_slice text, struct wrap_item *item,
				       struct wrap_problem *problem)
{
	item->function = setting_trim(text);
	for (size_t i = 0; i < item->function.length; i++) {
		char c = item->function.text[i];
		if (!wrap_is_word(c) && c != '.' && c != '$') {
			*problem = (struct wrap_problem){item->function.text + i,
							 "cannot be part of a function's name"};
			return false;
		}
	}
	*problem = (struct wrap_problem){item->function.text, "needs the name of a function"};
	if (!item->function.length)
		return false;
	problem->what = "depends on the frame of its caller and cannot be wrapped";
	return !wrap_needs_its_caller(item->function);
}

static inline bool wrap_parse_arguments(struct setting_slice text, struct wrap_item *item,
					struct wrap_problem *problem)
{
	struct setting_slice argument, rest = text;
	bool more = true;

	item->typed = true;
	if (!setting_trim(text).length || wrap_equal(setting_trim(text), "void"))
		return true;
	while (more) {
		more = wrap_cut(&rest, ',', &argument);
		argument = setting_trim(argument);
		if (!more && wrap_equal(argument, "...")) {
			item->variadic = true;
			return true;
		}
		if (item->arguments == WRAP_ARGUMENTS) {
			*problem = (struct wrap_problem){argument.text, "is one argument too many"};
			return false;
		}
		if (!argument.length) {
			*problem = (struct wrap_problem){argument.text, "needs a type"};
			return false;
		}
		if (!wrap_parse_type(argument, &item->argument[item->arguments], problem))
			return false;
		if (item->argument[item->arguments++].kind == WRAP_NONE) {
			*problem =
				(struct wrap_problem){argument.text, "is no type of an argument"};
			return false;
		}
	}
	return true;
}

static inline bool wrap_parse_item(struct setting_slice text, struct wrap_item *item,
				   struct wrap_problem *problem)
{
	struct setting_slice rest = text, library, function, arguments;

	if (!wrap_cut(&rest, ':', &library)) {
		*problem = (struct wrap_problem){text.text,
						 "needs a ':' between library and function"};
		return false;
	}
	if (!wrap_parse_library(setting_trim(library), item, problem))
		return false;
	if (!wrap_cut(&rest, '(', &function))
		return wrap_parse_function(function, item, problem);
	if (!wrap_parse_function(function, item, problem))
		return false;
	if (!wrap_cut(&rest, ')', &arguments)) {
		*problem =
			(struct wrap_problem){function.text + function.length, "is never closed"};
		return false;
	}
	rest = setting_trim(rest);
	if (rest.length) {
		*problem = (struct wrap_problem){rest.text, "is too much; ';' separates functions"};
		return false;
	}
	return wrap_parse_arguments(arguments, item, problem);
}

/* Takes the next item off *rest: 1; 0 at the end; -1 when it is wrong, and says why. */
static inline int wrap_next(struct setting_slice *rest, struct wrap_item *ret,
			    struct wrap_problem *problem)
{
	struct setting_slice item;

	while (rest->length) {
		struct wrap_item empty = {{NULL, 0}, {NULL, 0}, {0, 0}, {{0, 0}}, 0, false, false};
		wrap_cut(rest, ';', &item);
		item = setting_trim(item);
		if (!item.length)
			continue;
		*ret = empty;
		return wrap_parse_item(item, ret, problem) ? 1 : -1;
	}
	return 0;
}

/* Is all of the text right? */
static inline bool wrap_check(const char *text, struct wrap_problem *problem)
{
	struct setting_slice rest = setting_slice(text);
	struct wrap_item item;
	unsigned count = 0;
	int result;

	while ((result = wrap_next(&rest, &item, problem)) > 0) {
		if (++count > WRAP_FUNCTIONS) {
			*problem = (struct wrap_problem){item.function.text,
							 "is one function too many (256)"};
			return false;
		}
	}
	return !result;
}

#endif

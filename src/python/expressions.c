/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See expressions.h. The expressions are libc's, which allocates when it matches: that is done
 * where the interpreter allocates itself, once a function.
 */
#include "python/expressions.h"

#include "common/pattern.h"

enum expression_kind {
	EXPRESSION_INCLUDE,
	EXPRESSION_EXCLUDE,
	EXPRESSION_RESTRICT,
	EXPRESSION_KIND_COUNT
};

struct expression {
	regex_t compiled;
	bool is_set;
};

static struct {
	struct expression functions[EXPRESSION_KIND_COUNT], files[EXPRESSION_KIND_COUNT];
	bool are_compiled;
} expressions;

/* The command has checked them. */
static void compile_expression(struct expression *ret, const char *text)
{
	const char *excess;

	ret->is_set = *text && !pattern_compile_silently(&ret->compiled, text, 0, &excess);
}

void python_expressions_compile(const struct python_call_options *options)
{
	if (expressions.are_compiled)
		return;
	compile_expression(&expressions.functions[EXPRESSION_INCLUDE], options->function_include);
	compile_expression(&expressions.functions[EXPRESSION_EXCLUDE], options->function_exclude);
	compile_expression(&expressions.functions[EXPRESSION_RESTRICT], options->function_restrict);
	compile_expression(&expressions.files[EXPRESSION_INCLUDE], options->file_include);
	compile_expression(&expressions.files[EXPRESSION_EXCLUDE], options->file_exclude);
	compile_expression(&expressions.files[EXPRESSION_RESTRICT], options->file_restrict);
	expressions.are_compiled = true;
}

static bool expression_matches(const struct expression *expression, const char *text)
{
	return expression->is_set && !regexec(&expression->compiled, text, 0, NULL, 0);
}

static bool any_matches(enum expression_kind kind, const char *name, const char *file)
{
	return expression_matches(&expressions.functions[kind], name) ||
	       expression_matches(&expressions.files[kind], file);
}

bool python_expressions_select(const char *name, const char *file)
{
	if (any_matches(EXPRESSION_EXCLUDE, name, file))
		return false;
	if (any_matches(EXPRESSION_INCLUDE, name, file))
		return true;
	return (!expressions.functions[EXPRESSION_RESTRICT].is_set &&
		!expressions.files[EXPRESSION_RESTRICT].is_set) ||
	       any_matches(EXPRESSION_RESTRICT, name, file);
}

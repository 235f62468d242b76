/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Expressions of derived counters, as text and as a tree:
 *
 *   sum      product { ("+" | "-") product }
 *   product  unary { ("*" | "/") unary }
 *   unary    "-" unary | NUMBER | NAME | "(" sum ")"
 *            | "reduce" "(" sum "," ("sum" | "avr" | "min" | "max") [ "," "[" DIMENSION {","
 * DIMENSION} "]" ] ")" | "select" "(" sum "," "[" DIMENSION "=" "[" RANGE {"," RANGE} "]" {"," ...}
 * "]" ")" | "accumulate" "(" NAME "," ("HIGH_RES" | "LOW_RES" | "NONE") ")" RANGE    INTEGER [":"
 * INTEGER]     both ends are in it
 *
 * Blanks and ends of lines may stand between any two; "//" begins a comment.
 */
#ifndef KYMO_COUNTERS_EXPRESSION_H
#define KYMO_COUNTERS_EXPRESSION_H

#include "counters/memory.h"

#define EXPRESSION_HEIGHT_MAX        500u
#define EXPRESSION_PROBLEM_TEXT_SIZE 400

enum expression_kind {
	EXPRESSION_NUMBER,
	EXPRESSION_NAME,
	EXPRESSION_NEGATE, /* left */
	EXPRESSION_ADD,
	EXPRESSION_SUBTRACT,
	EXPRESSION_MULTIPLY,
	EXPRESSION_DIVIDE,
	EXPRESSION_REDUCE,    /* left, detail, dimensions: 0 stands for all */
	EXPRESSION_SELECT,    /* left, picks */
	EXPRESSION_ACCUMULATE /* name, detail */
};

enum expression_reduction { REDUCE_SUM, REDUCE_AVERAGE, REDUCE_MIN, REDUCE_MAX };

struct expression_position_range {
	uint32_t first, last;
};

/* Positions of one dimension that are kept. */
struct expression_dimension_selection {
	struct expression_dimension_selection *next;
	uint32_t dimension;
	uint32_t count;
	struct expression_position_range *ranges;
};

struct counter;

struct expression {
	enum expression_kind kind;
	uint32_t offset; /* where it begins in the text; of an operator, where that stands */
	uint32_t tree_height;
	uint32_t detail; /* enum expression_reduction, or enum counting_accumulation_resolution */
	uint32_t dimensions; /* bits, by number */
	double number;
	const char *name;
	const struct counter
		*referenced_counter; /* what the name stands for; the catalogue puts it here */
	struct expression_dimension_selection *dimension_selections;
	struct expression *left, *right;
};

struct expression_problem {
	uint32_t offset; /* in the text */
	char text[EXPRESSION_PROBLEM_TEXT_SIZE];
};

/* NULL: it is none, and problem says why. */
struct expression *expression_parse(struct memory_pool *memory, const char *text, size_t length,
				    struct expression_problem *problem);
/* "XCC", ...; 0: there is no such dimension. The names are DIMENSION_XCC and so on. */
uint32_t expression_dimension_name_to_number(const char *name, size_t length);
const char *expression_get_dimension_name(uint32_t dimension);

#endif

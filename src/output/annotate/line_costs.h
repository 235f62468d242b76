/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Source lines with what was spent in them, of all functions or of one. Self is what was spent in
 * the line itself, total has what it called as well; a line counts once a stack.
 */
#ifndef KYMO_OUTPUT_ANNOTATE_LINE_COSTS_H
#define KYMO_OUTPUT_ANNOTATE_LINE_COSTS_H

#include "analysis/id_map.h"
#include "analysis/session.h"
#include "output/strings.h"

struct line_cost {
	uint32_t path, number;
	uint32_t seen_in; /* the stack that counted it last; 0: none */
	uint64_t self[MODEL_SOURCE_COUNT], total[MODEL_SOURCE_COUNT];
};

struct line_costs {
	const struct session *session;
	uint32_t function_id; /* of the one function; MODEL_ENTRY_INDEX_NONE: of all */
	struct string_table paths;
	struct line_cost *lines; /* by path, then number, once sorted */
	uint32_t count;
	uint64_t self_without_line[MODEL_SOURCE_COUNT]; /* of the one function */

	struct id_map line_of_place; /* by path and number */
	uint32_t *line_of_frame;     /* MODEL_ENTRY_INDEX_NONE: no place is known */
	uint32_t capacity;
};

/* 0 or -ENOMEM; deinit is needed after either. In the lines of all functions, what a thread did in
 * a frame (waiting for a CPU) has the frame's line; of one function it is left out of self, since
 * it is a function of its own in all tables. */
int line_costs_init(struct line_costs *costs, const struct session *session, uint32_t function_id);
void line_costs_sort_by_place(struct line_costs *costs);
void line_costs_deinit(struct line_costs *costs);

#endif

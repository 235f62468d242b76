/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Reading experiments from a stream, and finding things in them; see causal.h.
 */
#ifndef KYMO_ANALYSIS_CAUSAL_DATA_H
#define KYMO_ANALYSIS_CAUSAL_DATA_H

#include <stdio.h>

#include "analysis/causal/causal.h"

/* Line by line to the end. What is no line of ours is counted in bad_lines. 0, -ENOMEM, or the
 * stream's error. */
int causal_data_read_stream(struct causal_data *data, FILE *stream, const char *name,
			    struct problem *problem);
/* One line. 0, -ENOMEM, or -EINVAL: not one of ours. */
int causal_data_read_line(struct causal_data *data, const char *line, size_t size);

/* NULL where there is none. */
const struct causal_data_target *causal_data_find_target(const struct causal_data *data,
							 uint32_t id);
const struct causal_data_progress_point *causal_data_find_point(const struct causal_data *data,
								uint32_t id);
const struct causal_data_program_run *causal_data_find_run(const struct causal_data *data,
							   uint32_t number);

#endif

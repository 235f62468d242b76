/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The regions' part of profile.txt: a table a component, or a timeline. Nothing where there are no
 * regions.
 */
#ifndef KYMO_OUTPUT_TEXT_REGIONS_H
#define KYMO_OUTPUT_TEXT_REGIONS_H

#include "analysis/regions/regions.h"
#include "output/output.h"

/* 0 or a negative errno; problem is set unless it is -ENOMEM. */
int text_write_regions(struct session *session, const struct output_options *options, FILE *stream,
		       struct problem *problem);
int text_write_timeline(struct session *session, FILE *stream, struct problem *problem);

/* The columns that all these tables share. */
#define TEXT_REGION_LABEL_WIDTH_MIN 40
#define TEXT_REGION_LABEL_WIDTH_MAX 110
#define TEXT_REGION_INDENT_LEVELS_MAX                                                              \
	40 /* deeper rows keep this indentation; DEPTH says the truth */

struct text_region_row {
	char label[512];
	uint32_t depth;
	uint64_t count;
	bool has_sum, has_self_percent, has_call_statistics; /* else "-" */
	double sum, mean, minimum, maximum, standard_deviation, self_percent;
};

/* Indented by depth. */
void text_set_region_row_label(struct text_region_row *row, const char *name);
void text_write_region_column_titles(FILE *stream, size_t label_width, size_t metric_width);
void text_write_region_row(FILE *stream, const struct model_region_component *component,
			   const struct text_region_row *row, size_t label_width,
			   size_t metric_width);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The values that follow a region event, gathered until it is complete. Their texts move while
 * more are added, so nothing points to them before region_values_settle().
 */
#ifndef KYMO_ANALYSIS_REGION_VALUES_H
#define KYMO_ANALYSIS_REGION_VALUES_H

#include "analysis/regions.h"
#include "analysis/spool_reader.h"

struct region_values {
	struct model_value *items;
	size_t *names, *texts; /* where they begin in `bytes` */
	uint32_t count;
	size_t capacity, name_capacity, text_capacity;
	char *bytes;
	size_t size, bytes_capacity;
};

static inline void region_values_clear(struct region_values *values)
{
	values->count = 0;
	values->size = 0;
}

/* An ANNOTATION record. 0, -EBADMSG or -ENOMEM. */
int region_values_add(struct region_values *values, struct spool_payload *payload);
void region_values_settle(struct region_values *values);
void region_values_deinit(struct region_values *values);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The values that follow a region event, gathered until it is complete. Their texts move while
 * more are added, so nothing points to them before region_values_set_text_pointers().
 */
#ifndef KYMO_ANALYSIS_REGIONS_VALUES_H
#define KYMO_ANALYSIS_REGIONS_VALUES_H

#include "analysis/regions/regions.h"
#include "analysis/spool_reader.h"

struct region_event_value_list {
	struct model_event_value *items;
	size_t *name_offsets, *text_offsets; /* where they begin in `bytes` */
	uint32_t count;
	size_t capacity, name_offset_capacity, text_offset_capacity;
	char *bytes;
	size_t size, bytes_capacity;
};

static inline void region_values_clear(struct region_event_value_list *values)
{
	values->count = 0;
	values->size = 0;
}

/* An ANNOTATION record. 0, -EBADMSG or -ENOMEM. */
int region_values_read_annotation(const struct session *session, uint32_t process,
				  struct region_event_value_list *values,
				  struct spool_record_payload_cursor *payload);
void region_values_set_text_pointers(struct region_event_value_list *values);
void region_values_deinit(struct region_event_value_list *values);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The functions of the kinds of this room, as analysis/session_kind.h says. kinds.c has the tables.
 */
#ifndef KYMO_ANALYSIS_REGIONS_KINDS_H
#define KYMO_ANALYSIS_REGIONS_KINDS_H

#include "analysis/regions/private.h"
#include "analysis/session_private.h"

/* records.c */
int regions_kind_scan_one_record(const struct spool_record_position *place,
				 struct spool_record_payload_cursor *payload);
int regions_kind_count_run_of_events(const struct spool_record_position *place,
				     struct spool_chunk_record_cursor *cursor);
void regions_kind_end_chunk(const struct spool_record_position *place);
int regions_kind_finish_records(struct session *session, uint32_t process, uint64_t *last_tick);
/* regions.c */
int regions_kind_build_trees(struct session *session, struct problem *problem);
void regions_kind_free_data_of_session(struct session *session);
/* region_names.c */
size_t regions_kind_count_function_addresses(const struct session *session);
void regions_kind_gather_function_addresses(struct address_references *references,
					    struct session *session, uint32_t first);
int regions_kind_set_all_names_by_symbol(const struct symbol_resolution *resolution,
					 uint32_t first);

/* call_records.c */
int calls_kind_scan_one_record(const struct spool_record_position *place,
			       struct spool_record_payload_cursor *payload);
int calls_kind_raise_last_tick(struct session *session, uint32_t process, uint64_t *last_tick);
int calls_kind_finish_process(struct session *session, uint32_t process);
/* instrumented.c */
void calls_kind_sort_counted_functions(struct session *session);
void calls_kind_free_data_of_session(struct session *session);

#endif

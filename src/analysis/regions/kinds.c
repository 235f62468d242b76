/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Regions and the calls of instrumented functions as kinds of data.
 */
#include "analysis/regions/kinds.h"

#include "analysis/regions/calls_private.h"

static const uint8_t wanted_region_record_kinds[] = {
	SPOOL_RECORD_REGION,         SPOOL_RECORD_REGION_SPAN,
	SPOOL_RECORD_COMPONENTS,     SPOOL_RECORD_PROFILE,
	SPOOL_RECORD_PROFILE_SHARED, SPOOL_RECORD_RANK,
	SPOOL_RECORD_REGION_WINDOW,  0};
static const uint8_t wanted_region_event_record_kinds[] = {
	SPOOL_RECORD_REGION_BEGIN, SPOOL_RECORD_REGION_END,   SPOOL_RECORD_REGION_END_OTHER,
	SPOOL_RECORD_ANNOTATION,   SPOOL_RECORD_MARK,         SPOOL_RECORD_COUNTER,
	SPOOL_RECORD_PROGRESS,     SPOOL_RECORD_REGION_WHOLE, 0};

const struct session_data_kind_operations regions_data_kind_operations = {
	.name = REGIONS_DATA_KIND_NAME,
	.session_data_bytes = sizeof(struct session_regions_storage),
	.process_data_bytes = sizeof(struct process_regions_data),
	.wanted_record_kinds = wanted_region_record_kinds,
	.run_record_kinds = wanted_region_event_record_kinds,
	.record = regions_kind_scan_one_record,
	.events = regions_kind_count_run_of_events,
	.end_chunk = regions_kind_end_chunk,
	.end_records = regions_kind_finish_records,
	.open = regions_kind_build_trees,
	.address_count = regions_kind_count_function_addresses,
	.gather_addresses = regions_kind_gather_function_addresses,
	.take_symbol_names = regions_kind_set_all_names_by_symbol,
	.free = regions_kind_free_data_of_session,
};

static const uint8_t wanted_call_record_kinds[] = {SPOOL_RECORD_INSTRUMENTED, SPOOL_RECORD_CALLS,
						   SPOOL_RECORD_CALL_COUNTS,
						   SPOOL_RECORD_CALL_DEMOTED, 0};

const struct session_data_kind_operations calls_data_kind_operations = {
	.name = CALLS_DATA_KIND_NAME,
	.session_data_bytes = sizeof(struct session_calls_storage),
	.process_data_bytes = sizeof(struct calls_of_process),
	.wanted_record_kinds = wanted_call_record_kinds,
	.record = calls_kind_scan_one_record,
	.end_records = calls_kind_raise_last_tick,
	.end_process = calls_kind_finish_process,
	.after_scan = calls_kind_sort_counted_functions,
	.free = calls_kind_free_data_of_session,
};

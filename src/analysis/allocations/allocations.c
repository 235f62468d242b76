/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See allocations.h. Sums are cumulative, so the last record of a site counts; with a window of
 * time, the last one before its end, less the last one before its begin (window.c).
 */
#include "analysis/allocations/allocations.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/allocations/window.h"
#include "analysis/profiler_code.h"
#include "analysis/session_kind.h"
#include "analysis/session_private.h"
#include "analysis/symbols/resolve.h"

#define CALL_SITE_FRAMES_MAX 1024 /* more than any process records */

static struct process_allocation_scan_state *
process_get_allocation_scan_state(const struct session *session, uint32_t process)
{
	return (struct process_allocation_scan_state *)session_find_kind_data_of_processes(
		       session, ALLOCATIONS_DATA_KIND_NAME) +
	       process;
}

const struct model_process_allocations *
session_get_process_allocations(const struct session *session, uint32_t process)
{
	if (!session_find_kind_data_of_processes(session, ALLOCATIONS_DATA_KIND_NAME))
		return NULL;
	return &process_get_allocation_scan_state(session, process)->model;
}

/* The site with this id, made if it is new; NULL: out of memory. */
static struct model_allocation_site *find_or_add_allocation_site(struct session *session,
								 uint32_t process, uint64_t id)
{
	struct id_map *ids = &process_get_allocation_scan_state(session, process)->site_index_by_id;
	struct model_allocations *allocations = session_get_allocations(session);
	uint32_t index = id_map_get(ids, id);

	if (index != ID_MAP_NONE)
		return &allocations->sites[index];
	index = allocations->count;
	if (array_reserve_one_more((void **)&allocations->sites, &allocations->capacity, index,
				   sizeof(*allocations->sites)) < 0 ||
	    id_map_set(ids, id, index) < 0)
		return NULL;
	allocations->count++;
	allocations->sites[index] = (struct model_allocation_site){.process = process};
	return &allocations->sites[index];
}

static int read_call_site_entry(struct session *session, uint32_t process,
				struct spool_record_payload_cursor *payload)
{
	uint64_t id = spool_read_unsigned(payload), count = spool_read_unsigned(payload);
	struct model_allocation_site *site;
	uint64_t *addresses;

	if (payload->bad || count > CALL_SITE_FRAMES_MAX ||
	    count * sizeof(*addresses) > (size_t)(payload->end - payload->at))
		return -EBADMSG;
	site = find_or_add_allocation_site(session, process, id);
	addresses = arena_allocate(&session_get_private(session)->arena,
				   (size_t)(count + 1) * sizeof(*addresses));
	if (!site || !addresses)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++)
		addresses[i] = spool_read_fixed_u64(payload);
	if (payload->at < payload->end)
		site->first_ns = spool_read_fixed_u64(payload);
	site->addresses = addresses;
	site->address_count = (uint32_t)count;
	return 0;
}

static int read_call_sites_record(struct session *session, uint32_t process,
				  struct spool_record_payload_cursor *payload)
{
	uint64_t count = spool_read_unsigned(payload);
	int result = payload->bad ? -EBADMSG : 0;

	for (uint64_t i = 0; result == 0 && i < count; i++)
		result = read_call_site_entry(session, process, payload);
	return result;
}

/* Records may stand in any order in the file. */
static int keep_sums_of_site(struct process_allocation_scan_state *scan, uint32_t index,
			     const struct allocation_site_sums *sums)
{
	if (array_reserve_one_more((void **)&scan->site_sums, &scan->site_sums_capacity,
				   scan->site_sums_count, sizeof(*scan->site_sums)) < 0)
		return -ENOMEM;
	scan->site_sums[scan->site_sums_count] = *sums;
	scan->site_sums[scan->site_sums_count++].site = index;
	return 0;
}

static int read_allocations_record(struct session *session, uint32_t process,
				   struct spool_record_payload_cursor *payload)
{
	struct process_allocation_scan_state *scan =
		process_get_allocation_scan_state(session, process);
	struct allocation_site_sums sums = {0};
	uint64_t id = spool_read_unsigned(payload);
	struct model_allocation_site *site;

	sums.allocations = spool_read_unsigned(payload);
	sums.frees = spool_read_unsigned(payload);
	sums.allocated_bytes = spool_read_unsigned(payload);
	sums.freed_bytes = spool_read_unsigned(payload);
	sums.peak_bytes = spool_read_unsigned(payload);
	if (!payload->bad && payload->at < payload->end) {
		sums.time = spool_read_fixed_u64(payload);
		sums.temporary_allocations = spool_read_unsigned(payload);
	}
	if (payload->bad)
		return -EBADMSG;
	site = find_or_add_allocation_site(session, process, id);
	if (!site)
		return -ENOMEM;
	if (allocations_have_window(session))
		return keep_sums_of_site(
			scan, (uint32_t)(site - session_get_allocations(session)->sites), &sums);
	/* Sums never fall: the largest are the last. */
	if (sums.allocations + sums.frees >= site->allocations + site->frees)
		allocation_site_set_sums(site, &sums);
	return 0;
}

static int read_totals_record(struct session *session, uint32_t process,
			      struct spool_record_payload_cursor *payload)
{
	struct process_allocation_scan_state *scan =
		process_get_allocation_scan_state(session, process);
	struct allocation_totals *totals;
	uint64_t class_count;

	if (array_reserve_one_more((void **)&scan->totals, &scan->totals_capacity,
				   scan->totals_count, sizeof(*scan->totals)) < 0)
		return -ENOMEM;
	totals = &scan->totals[scan->totals_count];
	*totals = (struct allocation_totals){.point.time_ns = spool_read_fixed_u64(payload)};
	totals->is_complete = spool_read_unsigned(payload) != 0;
	totals->point.allocations = spool_read_unsigned(payload);
	totals->point.frees = spool_read_unsigned(payload);
	totals->point.live_bytes = spool_read_unsigned(payload);
	totals->peak_bytes = spool_read_unsigned(payload);
	class_count = spool_read_unsigned(payload);
	if (class_count > MODEL_ALLOCATION_SIZE_CLASS_COUNT)
		return -EBADMSG;
	for (uint64_t i = 0; i < class_count; i++)
		totals->size_classes[i] = spool_read_unsigned(payload);
	if (payload->bad)
		return -EBADMSG;
	scan->totals_count++;
	return 0;
}

static void forget_earlier_peak(struct session *session, uint32_t process)
{
	struct model_allocations *allocations = session_get_allocations(session);

	for (uint32_t i = allocations->count; i-- > 0 && allocations->sites[i].process == process;)
		allocations->sites[i].bytes_at_process_peak = 0;
}

static int read_peak_record(struct session *session, uint32_t process,
			    struct spool_record_payload_cursor *payload)
{
	struct process_allocation_scan_state *scan =
		process_get_allocation_scan_state(session, process);
	uint64_t ticks = spool_read_fixed_u64(payload), number = spool_read_unsigned(payload);
	uint64_t bytes = spool_read_unsigned(payload), count = spool_read_unsigned(payload);

	if (payload->bad)
		return -EBADMSG;
	if (number < scan->peak_number)
		return 0;
	if (number > scan->peak_number)
		forget_earlier_peak(session, process);
	scan->peak_number = number;
	scan->peak_bytes = bytes;
	scan->peak_ticks = ticks;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t id = spool_read_unsigned(payload), held = spool_read_unsigned(payload);
		struct model_allocation_site *site;

		if (payload->bad)
			return -EBADMSG;
		site = find_or_add_allocation_site(session, process, id);
		if (!site)
			return -ENOMEM;
		site->bytes_at_process_peak = held;
	}
	return 0;
}

static int allocations_kind_scan_one_record(const struct spool_record_position *place,
					    struct spool_record_payload_cursor *payload)
{
	place->session->processes[place->process].region_record_bytes +=
		(uint64_t)(payload->end - place->record);
	switch (payload->kind) {
	case SPOOL_RECORD_CALL_SITE:
		return read_call_sites_record(place->session, place->process, payload);
	case SPOOL_RECORD_ALLOCATION_TOTALS:
		return read_totals_record(place->session, place->process, payload);
	case SPOOL_RECORD_ALLOCATION_PEAK:
		return read_peak_record(place->session, place->process, payload);
	default:
		return read_allocations_record(place->session, place->process, payload);
	}
}

static int compare_sites_by_process(const void *left, const void *right)
{
	const struct model_allocation_site *a = left, *b = right;

	if (a->process != b->process)
		return a->process < b->process ? -1 : 1;
	if (a->allocated_bytes != b->allocated_bytes)
		return a->allocated_bytes > b->allocated_bytes ? -1 : 1;
	return a->addresses < b->addresses ? -1 : a->addresses > b->addresses;
}

static int allocations_kind_convert_process_times(struct session *session, uint32_t process)
{
	struct clock_map *clock = &session_get_private(session)->processes[process].clock;
	struct process_allocation_scan_state *scan =
		process_get_allocation_scan_state(session, process);
	struct model_allocations *allocations = session_get_allocations(session);

	for (uint32_t i = allocations->count;
	     i-- > 0 && allocations->sites[i].process == process;) {
		struct model_allocation_site *site = &allocations->sites[i];

		if (site->first_ns)
			site->first_ns = clock_map_ticks_to_boottime(clock, site->first_ns);
	}
	allocation_scan_convert_times(scan, clock);
	return 0;
}

/* The session's first moment, from which windows count, is known now. */
static void allocations_kind_finish_processes(struct session *session)
{
	struct model_allocations *allocations = session_get_allocations(session);

	for (uint32_t i = 0; i < session->process_count; i++)
		allocation_scan_finish_process(session,
					       process_get_allocation_scan_state(session, i));
	if (allocations_have_window(session))
		allocations_drop_sites_without_sums(allocations);
	if (allocations->count > 1)
		qsort(allocations->sites, allocations->count, sizeof(*allocations->sites),
		      compare_sites_by_process);
}

static size_t allocations_kind_count_return_addresses(const struct session *session)
{
	size_t count = 0;

	for (uint32_t i = 0; i < session_get_allocations(session)->count; i++)
		count += session_get_allocations(session)->sites[i].address_count;
	return count;
}

/* Return addresses: the call is before them. Frames of interpreted code are none. */
static void allocations_kind_gather_return_addresses(struct address_references *references,
						     struct session *session, uint32_t first)
{
	const struct model_allocations *allocations = session_get_allocations(session);

	for (uint32_t i = 0; i < allocations->count; i++) {
		const struct model_allocation_site *site = &allocations->sites[i];

		for (uint32_t j = 0; j < site->address_count; j++) {
			uint64_t address = site->addresses[j];

			address -= !spool_frame_is_interpreted(address);
			address_references_add_address_at(references, site->process, address,
							  site->first_ns, first++);
		}
	}
}

static const struct code_location_chain *
find_resolved_chain(const struct symbol_resolution *resolution, size_t index)
{
	uint32_t chain = resolution->chain_by_reference_number[index];

	return chain == MODEL_ENTRY_INDEX_NONE ? NULL : &resolution->chains[chain];
}

/* NULL: none. */
static const struct model_module *find_module_of_address(const struct session *session,
							 const struct model_allocation_site *site,
							 uint64_t address)
{
	struct process_private *process = &session_get_private(session)->processes[site->process];
	uint32_t module = MODULE_MAP_NO_MODULE;

	if (spool_frame_is_interpreted(address))
		return NULL;
	if (site->first_ns)
		module = module_map_find_module(&process->module_map, address - 1, site->first_ns);
	if (module == MODULE_MAP_NO_MODULE)
		module = module_map_find_module(&process->module_map, address - 1,
						session->processes[site->process].end_ns);
	return module == MODULE_MAP_NO_MODULE ? NULL : &session->modules[module];
}

static bool is_profiler_code(const struct model_module *module, const struct code_location *place)
{
	return module ? module_is_profiler_library(module)
		      : place->kind == FRAME_INTERPRETED &&
				source_file_is_profiler_module(place->file);
}

static int fill_site_frames(const struct symbol_resolution *resolution,
			    struct model_allocation_site *site, size_t first)
{
	struct session *session = resolution->session;
	uint32_t count = 0;

	for (uint32_t i = 0; i < site->address_count; i++) {
		const struct code_location_chain *chain =
			find_resolved_chain(resolution, first + i);

		count += chain ? chain->count : 0;
	}
	site->frames = arena_allocate(&session_get_private(session)->arena,
				      (count + 1) * sizeof(*site->frames));
	if (!site->frames)
		return -ENOMEM;
	for (uint32_t i = 0; i < site->address_count; i++) {
		const struct code_location_chain *chain =
			find_resolved_chain(resolution, first + i);
		const struct model_module *module =
			find_module_of_address(session, site, site->addresses[i]);

		for (uint32_t j = 0; chain && j < chain->count; j++) {
			const struct code_location *place =
				&resolution->places[resolution->chain_place_indexes[chain->first +
										    j]];

			if (is_profiler_code(module, place))
				continue;
			site->frames[site->frame_count++] = (struct model_allocation_frame){
				.function = place->function,
				.file = place->file,
				.line = place->line,
				.module = module ? module->name : NULL,
				.inlined = place->kind == FRAME_INLINE,
				.interpreted = place->kind == FRAME_INTERPRETED};
		}
	}
	return 0;
}

static int allocations_kind_fill_all_site_frames(const struct symbol_resolution *resolution,
						 uint32_t first)
{
	const struct model_allocations *allocations = session_get_allocations(resolution->session);
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < allocations->count; i++) {
		result = fill_site_frames(resolution, &allocations->sites[i], first);
		first += allocations->sites[i].address_count;
	}
	return result;
}

static void allocations_kind_free_data_of_session(struct session *session)
{
	for (uint32_t i = 0; i < session->process_count; i++)
		allocation_scan_deinit(process_get_allocation_scan_state(session, i));
	free(session_get_allocations(session)->sites);
}

static const uint8_t wanted_record_kinds[] = {SPOOL_RECORD_CALL_SITE, SPOOL_RECORD_ALLOCATIONS,
					      SPOOL_RECORD_ALLOCATION_TOTALS,
					      SPOOL_RECORD_ALLOCATION_PEAK, 0};

const struct session_data_kind_operations allocations_data_kind_operations = {
	.name = ALLOCATIONS_DATA_KIND_NAME,
	.session_data_bytes = sizeof(struct model_allocations),
	.process_data_bytes = sizeof(struct process_allocation_scan_state),
	.wanted_record_kinds = wanted_record_kinds,
	.record = allocations_kind_scan_one_record,
	.end_process = allocations_kind_convert_process_times,
	.after_scan = allocations_kind_finish_processes,
	.address_count = allocations_kind_count_return_addresses,
	.gather_addresses = allocations_kind_gather_return_addresses,
	.take_symbol_names = allocations_kind_fill_all_site_frames,
	.free = allocations_kind_free_data_of_session,
};

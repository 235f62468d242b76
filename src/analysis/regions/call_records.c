/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The records of instrumented functions. Words are looked at once here, for the functions that they
 * name and the latest time, so that both are known before anything else is made of them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/regions/calls_private.h"
#include "analysis/regions/kinds.h"

#define CALL_WORD_BYTES sizeof(uint64_t)

struct call_record_scan_state {
	struct session *session;
	struct calls_of_process *process_calls;
	uint32_t process;
};

static int allocate_used_id_bits_if_missing(struct call_record_scan_state *scan)
{
	if (!scan->process_calls->used)
		scan->process_calls->used =
			calloc(CALL_FUNCTION_ID_COUNT / 64, sizeof(*scan->process_calls->used));
	return scan->process_calls->used ? 0 : -ENOMEM;
}

static inline void mark_function_id_used(struct call_record_scan_state *scan, uint32_t id)
{
	scan->process_calls->used[id / 64] |= (uint64_t)1 << id % 64;
}

/* ---- modules ---- */

static const char *read_path_text(struct call_record_scan_state *scan,
				  struct spool_record_payload_cursor *payload)
{
	size_t size;
	const uint8_t *bytes = spool_read_length_prefixed_bytes(payload, &size);

	return arena_copy_bytes(&session_get_private(scan->session)->arena, bytes, size);
}

static int scan_and_add_instrumented_module(struct call_record_scan_state *scan,
					    struct spool_record_payload_cursor *payload)
{
	struct model_instrumented_calls *calls = session_get_calls(scan->session);
	size_t *capacity = &calls_get_array_capacities(scan->session)->module_capacity;
	struct model_instrumented_module module = {.process = scan->process};
	uint64_t first, count;

	module.time_ns = spool_read_fixed_u64(payload);
	first = spool_read_unsigned(payload);
	count = spool_read_unsigned(payload);
	module.bias = spool_read_fixed_u64(payload);
	module.arena = spool_read_fixed_u64(payload);
	module.arena_size = spool_read_fixed_u64(payload);
	module.plan = read_path_text(scan, payload);
	module.module = read_path_text(scan, payload);
	if (!module.plan || !module.module)
		return -ENOMEM;
	if (payload->bad || first == 0 || first >= CALL_FUNCTION_ID_COUNT ||
	    count > CALL_FUNCTION_ID_COUNT - first)
		return -EBADMSG;
	module.first_id = (uint32_t)first;
	module.count = (uint32_t)count;
	if (array_reserve_one_more((void **)&calls->modules, capacity, calls->module_count,
				   sizeof(*calls->modules)) < 0)
		return -ENOMEM;
	calls->modules[calls->module_count++] = module;
	return 0;
}

/* ---- words ---- */

static inline uint64_t read_call_word(const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

static void scan_call_words_of_part(struct call_record_scan_state *scan, const uint8_t *at,
				    const uint8_t *end, uint64_t ticks)
{
	struct model_process *model = &scan->session->processes[scan->process];
	uint64_t words = 0, entries = 0, last = scan->process_calls->last;

	for (; at < end; at += CALL_WORD_BYTES) {
		uint64_t word = read_call_word(at);
		uint32_t id = call_word_to_function_id(word);

		if (word == 0)
			continue;
		ticks = call_word_to_ticks(word, ticks);
		last = ticks > last && ticks < UINT64_MAX ? ticks : last;
		mark_function_id_used(scan, id);
		entries += (word & SPOOL_CALL_EXIT) == 0;
		words++;
	}
	scan->process_calls->last = last;
	session_get_calls(scan->session)->words += words;
	session_get_calls(scan->session)->recorded += entries;
	session_get_regions(scan->session)->events += words;
	model->region_events += words;
	model->region_record_bytes += words * CALL_WORD_BYTES;
}

static int append_call_part(struct call_record_scan_state *scan,
			    const struct call_record_part *part)
{
	struct calls_of_process *calls = scan->process_calls;

	if (array_reserve_one_more((void **)&calls->parts, &calls->part_capacity, calls->part_count,
				   sizeof(*calls->parts)) < 0)
		return -ENOMEM;
	calls->parts[calls->part_count++] = *part;
	return 0;
}

static int scan_calls_record(struct call_record_scan_state *scan,
			     const struct spool_record_position *place,
			     const struct spool_record_payload_cursor *payload)
{
	const uint8_t *at = payload->at + sizeof(struct spool_calls), *end = payload->end;
	struct spool_calls head;
	uint64_t list;
	uint32_t thread;
	int result = 0;

	if ((size_t)(payload->end - payload->at) < sizeof(head))
		return -EBADMSG;
	memcpy(&head, payload->at, sizeof(head));
	thread = session_find_or_add_thread(scan->session, scan->process, head.internal_id,
					    head.tid, &result);
	if (result < 0)
		return result;
	list = ((uint64_t)head.open_count * 4 + 7) / 8 * 8;
	if (list > (uint64_t)(end - at))
		return -EBADMSG;
	if (thread == MODEL_ENTRY_INDEX_NONE)
		return 0;
	if (allocate_used_id_bits_if_missing(scan) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < head.open_count; i++) {
		uint32_t id;

		memcpy(&id, at + (size_t)i * 4, sizeof(id));
		if (id < CALL_FUNCTION_ID_COUNT)
			mark_function_id_used(scan, id);
	}
	at += list;
	end -= (size_t)(end - at) % CALL_WORD_BYTES;
	while (end > at && read_call_word(end - CALL_WORD_BYTES) == 0)
		end -= CALL_WORD_BYTES;
	scan_call_words_of_part(scan, at, end, head.ticks);
	if (head.ticks > scan->process_calls->last && head.ticks < UINT64_MAX)
		scan->process_calls->last = head.ticks;
	return append_call_part(
		scan, &(struct call_record_part){.thread = thread,
						 .chunk = place->chunk,
						 .from = (uint32_t)(payload->at - place->records),
						 .size = (uint32_t)(end - payload->at),
						 .ticks = head.ticks});
}

/* ---- what was not recorded call by call ---- */

static int set_thread_call_count_of_function(struct calls_of_process *calls, uint64_t internal_id,
					     uint32_t id, uint64_t count)
{
	uint64_t key = internal_id << SPOOL_CALL_ID_BITS | id;
	uint32_t index = id_map_get(&calls->call_count_index_by_function, key);

	if (index == ID_MAP_NONE) {
		index = (uint32_t)calls->call_count_entry_count;
		if (index >= MODEL_ENTRY_INDEX_NONE / 2 ||
		    array_reserve_one_more((void **)&calls->call_count_entries,
					   &calls->call_count_entry_capacity, index,
					   sizeof(*calls->call_count_entries)) < 0 ||
		    id_map_set(&calls->call_count_index_by_function, key, index) < 0)
			return -ENOMEM;
		calls->call_count_entry_count++;
	}
	calls->call_count_entries[index] =
		(struct function_call_count_entry){.id = id, .calls = count};
	return 0;
}

static int scan_call_counts_record(struct call_record_scan_state *scan,
				   struct spool_record_payload_cursor *payload)
{
	uint64_t internal_id = spool_read_unsigned(payload), count = spool_read_unsigned(payload);

	if (payload->bad || internal_id > UINT32_MAX)
		return -EBADMSG;
	if (allocate_used_id_bits_if_missing(scan) < 0)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t id = spool_read_unsigned(payload), calls = spool_read_unsigned(payload);

		if (payload->bad || id == 0 || id >= CALL_FUNCTION_ID_COUNT)
			return -EBADMSG;
		mark_function_id_used(scan, (uint32_t)id);
		if (set_thread_call_count_of_function(scan->process_calls, internal_id,
						      (uint32_t)id, calls) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int scan_call_demoted_record(struct call_record_scan_state *scan,
				    struct spool_record_payload_cursor *payload)
{
	struct model_instrumented_calls *calls = session_get_calls(scan->session);
	size_t *capacity = &calls_get_array_capacities(scan->session)->demoted_function_capacity;
	uint64_t id = spool_read_unsigned(payload), mode = spool_read_unsigned(payload);
	uint64_t ticks = spool_read_fixed_u64(payload);

	if (payload->bad || id == 0 || id >= CALL_FUNCTION_ID_COUNT || mode > PLAN_MODE_ARGUMENTS)
		return -EBADMSG;
	if (allocate_used_id_bits_if_missing(scan) < 0 ||
	    array_reserve_one_more((void **)&calls->demoted_functions, capacity,
				   calls->demoted_function_count,
				   sizeof(*calls->demoted_functions)) < 0)
		return -ENOMEM;
	mark_function_id_used(scan, (uint32_t)id);
	calls->demoted_functions[calls->demoted_function_count++] =
		(struct model_demoted_function){.process = scan->process,
						.id = (uint32_t)id,
						.region = MODEL_ENTRY_INDEX_NONE,
						.time_ns = ticks,
						.mode = (enum plan_mode)mode};
	return 0;
}

int calls_add_defined_function_region(struct session *session, uint32_t process, uint32_t id,
				      uint32_t region)
{
	struct calls_of_process *calls = process_get_calls(session, process);
	struct call_record_scan_state scan = {
		.session = session, .process_calls = calls, .process = process};

	if (id == 0 || id >= CALL_FUNCTION_ID_COUNT)
		return -EBADMSG;
	if (allocate_used_id_bits_if_missing(&scan) < 0 ||
	    array_reserve_one_more((void **)&calls->defined_regions,
				   &calls->defined_region_capacity, calls->defined_region_count,
				   sizeof(*calls->defined_regions)) < 0)
		return -ENOMEM;
	mark_function_id_used(&scan, id);
	calls->defined_regions[calls->defined_region_count++] =
		(struct defined_function_region){id, region};
	return 0;
}

/* ---- the end ---- */

/* Those of one thread stay in the order in which they were handed out. */
static int compare_parts_by_thread(const void *left, const void *right)
{
	const struct call_record_part *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->chunk != b->chunk)
		return a->chunk < b->chunk ? -1 : 1;
	return a->from < b->from ? -1 : a->from > b->from;
}

int calls_kind_finish_process(struct session *session, uint32_t process)
{
	struct clock_map *clock = &session_get_private(session)->processes[process].clock;
	struct calls_of_process *own = process_get_calls(session, process);
	struct model_instrumented_calls *calls = session_get_calls(session);

	if (own->part_count > 1)
		qsort(own->parts, own->part_count, sizeof(*own->parts), compare_parts_by_thread);
	for (uint32_t i = 0; i < calls->module_count; i++) {
		if (calls->modules[i].process == process)
			calls->modules[i].time_ns =
				clock_map_ticks_to_boottime(clock, calls->modules[i].time_ns);
	}
	for (uint32_t i = 0; i < calls->demoted_function_count; i++) {
		if (calls->demoted_functions[i].process == process)
			calls->demoted_functions[i].time_ns = clock_map_ticks_to_boottime(
				clock, calls->demoted_functions[i].time_ns);
	}
	return instrumented_make_process_regions(session, process);
}

int calls_kind_raise_last_tick(struct session *session, uint32_t process, uint64_t *last_tick)
{
	const struct calls_of_process *calls = process_get_calls(session, process);

	if (calls->last > *last_tick)
		*last_tick = calls->last;
	return 0;
}

int calls_kind_scan_one_record(const struct spool_record_position *place,
			       struct spool_record_payload_cursor *payload)
{
	struct call_record_scan_state scan = {
		.session = place->session,
		.process_calls = process_get_calls(place->session, place->process),
		.process = place->process};

	switch (payload->kind) {
	case SPOOL_RECORD_INSTRUMENTED:
		return scan_and_add_instrumented_module(&scan, payload);
	case SPOOL_RECORD_CALLS:
		return scan_calls_record(&scan, place, payload);
	case SPOOL_RECORD_CALL_COUNTS:
		return scan_call_counts_record(&scan, payload);
	default:
		return scan_call_demoted_record(&scan, payload);
	}
}

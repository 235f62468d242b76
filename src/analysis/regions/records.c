/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The records of regions: names, components, and where spans and profiles lie. Events are counted,
 * and their last time and the regions they name are noted; regions that were never defined are then
 * known before anything refers to them.
 */
#include "analysis/regions/calls_private.h"
#include "analysis/regions/kinds.h"
#include "analysis/regions/windows.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Ids are dense, so a bit each is enough for those that a process really gives. */
#define USED_ID_BITS_MAX ((uint64_t)1 << 24)

static struct region_record_scan_state *
get_region_scan_state_for_position(const struct spool_record_position *place)
{
	struct process_regions_data *regions = process_get_regions(place->session, place->process);
	struct region_record_scan_state *scan = &regions->scan;

	scan->session = place->session;
	scan->process = place->process;
	scan->regions = regions;
	scan->chunk = place->chunk;
	scan->records = place->records;
	return scan;
}

static inline bool is_region_event_record_kind(uint8_t kind)
{
	return kind >= SPOOL_RECORD_REGION_BEGIN && kind <= SPOOL_RECORD_REGION_WHOLE;
}

static const char *read_and_intern_text(struct region_record_scan_state *scan,
					struct spool_record_payload_cursor *payload)
{
	struct arena *arena = &session_get_private(scan->session)->arena;
	char text[4097];
	size_t size;
	const uint8_t *bytes = spool_read_length_prefixed_bytes(payload, &size);

	if (size >= sizeof(text))
		size = sizeof(text) - 1;
	memcpy(text, bytes, size);
	text[size] = 0;
	return arena_intern_string(arena, text);
}

static int scan_region_record(struct region_record_scan_state *scan,
			      struct spool_record_payload_cursor *payload)
{
	struct model_region region = {.process = scan->process};
	uint64_t id = spool_read_unsigned(payload), kind = spool_read_unsigned(payload),
		 function = 0;
	int result;

	region.category = read_and_intern_text(scan, payload);
	if (kind == SPOOL_REGION_FUNCTION) {
		region.kind = SPOOL_REGION_FUNCTION;
		region.address = spool_read_fixed_u64(payload);
		region.name = arena_format_text(&session_get_private(scan->session)->arena,
						"[0x%" PRIx64 "]", region.address);
		if (payload->at < payload->end)
			function = spool_read_unsigned(payload);
	} else {
		region.name = read_and_intern_text(scan, payload);
	}
	if (!region.category || !region.name)
		return -ENOMEM;
	if (payload->bad || id == 0 || kind > SPOOL_REGION_FUNCTION)
		return -EBADMSG;
	result = region_define_by_id(scan->session, id, &region);
	if (result || !function || function >= CALL_FUNCTION_ID_COUNT)
		return result;
	return calls_add_defined_function_region(
		scan->session, scan->process, (uint32_t)function,
		region_find_or_add_by_id(scan->session, scan->process, id));
}

static int scan_component_definitions_record(struct region_record_scan_state *scan,
					     struct spool_record_payload_cursor *payload)
{
	struct process_regions_data *regions = scan->regions;
	uint64_t count = spool_read_unsigned(payload);
	struct region_component_definition *list;

	if (payload->bad || count == 0 || count > REGION_COMPONENTS_MAX)
		return -EBADMSG;
	if (regions->components)
		return 0;
	list = calloc((size_t)count, sizeof(*list));
	if (!list)
		return -ENOMEM;
	regions->components = list;
	for (uint64_t i = 0; i < count; i++) {
		list[i].model.name = read_and_intern_text(scan, payload);
		list[i].model.unit = read_and_intern_text(scan, payload);
		list[i].model.description = read_and_intern_text(scan, payload);
		list[i].model.kind = (enum spool_component_kind)(spool_read_unsigned(payload) & 3);
		list[i].model.numerator_component = list[i].model.denominator_component =
			MODEL_ENTRY_INDEX_NONE;
		list[i].scale = spool_read_unsigned(payload);
		if (!list[i].model.name || !list[i].model.unit || !list[i].model.description)
			return -ENOMEM;
	}
	if (payload->bad)
		return -EBADMSG;
	regions->component_count = (uint32_t)count;
	return 0;
}

static int scan_rank_record(struct region_record_scan_state *scan,
			    struct spool_record_payload_cursor *payload)
{
	struct model_process *model = &scan->session->processes[scan->process];
	uint64_t rank = spool_read_unsigned(payload), count = spool_read_unsigned(payload);
	const char *source = read_and_intern_text(scan, payload);

	if (!source)
		return -ENOMEM;
	if (payload->bad || (count && rank >= count) || count > UINT32_MAX)
		return -EBADMSG;
	if (!count) /* the launcher has not said of how many it is one */
		return 0;
	model->rank = (uint32_t)rank;
	model->rank_count = (uint32_t)count;
	model->rank_source = source;
	return 0;
}

static int scan_profile_record(struct region_record_scan_state *scan,
			       const struct spool_record_payload_cursor *payload)
{
	struct process_regions_data *regions = scan->regions;
	struct spool_profile_part part;
	uint32_t thread;
	int result = 0;

	if ((size_t)(payload->end - payload->at) < sizeof(part))
		return -EBADMSG;
	memcpy(&part, payload->at, sizeof(part));
	if (part.node_count == 0)
		return 0;
	thread = session_find_or_add_thread(scan->session, scan->process, part.internal_id,
					    part.tid, &result);
	if (thread == MODEL_ENTRY_INDEX_NONE)
		return result;
	if (array_reserve_one_more((void **)&regions->parts, &regions->part_capacity,
				   regions->part_count, sizeof(*regions->parts)) < 0)
		return -ENOMEM;
	regions->parts[regions->part_count++] =
		(struct region_profile_part){.thread = thread,
					     .tree = part.tree,
					     .first_node = part.first_node,
					     .chunk = scan->chunk,
					     .from = (uint32_t)(payload->at - scan->records),
					     .size = (uint32_t)(payload->end - payload->at)};
	return 0;
}

/* ---- events ---- */

static void close_region_records_range(struct region_record_scan_state *scan, const uint8_t *end)
{
	struct process_regions_data *regions = scan->regions;

	if (!scan->in_span)
		return;
	if (!scan->is_thread_filtered_out)
		regions->record_ranges[regions->record_range_count - 1].to =
			(uint32_t)(end - scan->records);
	if (scan->ticks > scan->last && scan->ticks < UINT64_MAX)
		scan->last = scan->ticks;
	scan->in_span = false;
}

void regions_kind_end_chunk(const struct spool_record_position *place)
{
	close_region_records_range(get_region_scan_state_for_position(place), place->record);
}

static int grow_used_bits_and_mark(struct region_record_scan_state *scan, uint64_t id)
{
	size_t words = scan->used_id_bitmap_word_count ? scan->used_id_bitmap_word_count : 64;
	uint64_t *used;

	if (id >= USED_ID_BITS_MAX)
		return region_find_or_add_by_id(scan->session, scan->process, id) ==
				       MODEL_ENTRY_INDEX_NONE
			       ? -ENOMEM
			       : 0;
	while (words <= id / 64)
		words *= 2;
	used = realloc(scan->used, words * sizeof(*used));
	if (!used)
		return -ENOMEM;
	memset(used + scan->used_id_bitmap_word_count, 0,
	       (words - scan->used_id_bitmap_word_count) * sizeof(*used));
	scan->used = used;
	scan->used_id_bitmap_word_count = words;
	used[id / 64] |= (uint64_t)1 << id % 64;
	return 0;
}

static inline int mark_region_used(struct region_record_scan_state *scan, uint64_t id)
{
	if (id / 64 >= scan->used_id_bitmap_word_count)
		return grow_used_bits_and_mark(scan, id);
	scan->used[id / 64] |= (uint64_t)1 << id % 64;
	return 0;
}

static int scan_region_span_record(struct region_record_scan_state *scan,
				   struct spool_record_payload_cursor *payload,
				   const uint8_t *record)
{
	struct process_regions_data *regions = scan->regions;
	uint64_t internal_id = spool_read_unsigned(payload), tid = spool_read_unsigned(payload);
	uint64_t ticks, open;
	uint32_t thread;
	int result = 0;

	if (payload->bad)
		return -EBADMSG;
	thread =
		session_find_or_add_thread(scan->session, scan->process, internal_id, tid, &result);
	if (result < 0)
		return result;
	ticks = spool_read_fixed_u64(payload);
	open = spool_read_unsigned(payload);
	close_region_records_range(scan, record);
	if (payload->bad || open > (uint64_t)(payload->end - payload->at) / 2)
		return -EBADMSG;
	for (uint64_t i = 0; i < open; i++) {
		if (mark_region_used(scan, spool_read_unsigned(payload)) < 0)
			return -ENOMEM;
		(void)spool_read_unsigned(payload);
	}
	if (payload->bad)
		return -EBADMSG;
	scan->in_span = true;
	scan->is_thread_filtered_out = thread == MODEL_ENTRY_INDEX_NONE;
	scan->ticks = ticks;
	if (scan->is_thread_filtered_out)
		return 0;
	if (array_reserve_one_more((void **)&regions->record_ranges,
				   &regions->record_range_capacity, regions->record_range_count,
				   sizeof(*regions->record_ranges)) < 0)
		return -ENOMEM;
	regions->record_ranges[regions->record_range_count++] =
		(struct thread_region_records_range){.thread = thread,
						     .ticks = ticks,
						     .chunk = scan->chunk,
						     .from = (uint32_t)(record - scan->records)};
	return 0;
}

/* The region that an event names, 0 where it names none. */
static inline uint64_t read_event_region_id(struct spool_record_payload_cursor *payload,
					    uint64_t *ticks, bool *has_left_regions)
{
	*ticks += spool_read_unsigned(payload);
	switch (payload->kind) {
	case SPOOL_RECORD_REGION_END:
		return 0;
	case SPOOL_RECORD_PROGRESS:
	case SPOOL_RECORD_REGION_WHOLE:
		(void)spool_read_unsigned(payload);
		break;
	case SPOOL_RECORD_REGION_END_OTHER: {
		uint64_t id = spool_read_unsigned(payload);

		*has_left_regions |= spool_read_unsigned(payload) == SPOOL_REGION_END_ALONE;
		return id;
	}
	default:
		break;
	}
	return spool_read_unsigned(payload);
}

int regions_kind_count_run_of_events(const struct spool_record_position *place,
				     struct spool_chunk_record_cursor *cursor)
{
	struct region_record_scan_state *scan = get_region_scan_state_for_position(place);
	struct model_process *model = &scan->session->processes[scan->process];
	struct spool_chunk_record_cursor at = *cursor;
	struct spool_record_payload_cursor payload;
	uint64_t ticks = scan->ticks, events = 0;
	int result = 0;

	while (result == 0 && at.at < at.end && is_region_event_record_kind(*at.at) &&
	       spool_read_next_record(&at, &payload)) {
		const uint8_t *data = payload.at;
		uint64_t id = 0;

		if (payload.kind != SPOOL_RECORD_ANNOTATION) {
			id = read_event_region_id(&payload, &ticks,
						  &scan->regions->has_left_regions);
			events++;
		}
		if (payload.bad || !scan->in_span)
			model->torn_bytes += (uint64_t)(payload.end - data);
		else
			result = mark_region_used(scan, id);
	}
	model->region_record_bytes += (uint64_t)(at.at - cursor->at);
	scan->ticks = ticks;
	if (scan->in_span && !scan->is_thread_filtered_out)
		scan->events += events;
	*cursor = at;
	return result;
}

/* By thread; those of one thread in the order of time. That need not be the order of the file:
 * chunks are made in advance, and threads take whichever is free. */
static int compare_record_ranges_by_thread(const void *left, const void *right)
{
	const struct thread_region_records_range *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->ticks != b->ticks)
		return a->ticks < b->ticks ? -1 : 1;
	if (a->chunk != b->chunk)
		return a->chunk < b->chunk ? -1 : 1;
	return a->from < b->from ? -1 : a->from > b->from;
}

/* Events name dense ids millions of times; hashing them would take most of the time. */
static int build_direct_table_of_small_ids(struct region_record_scan_state *scan)
{
	struct process_regions_data *regions = scan->regions;

	regions->index_by_small_id = calloc(scan->used_id_bitmap_word_count * 64 + 1,
					    sizeof(*regions->index_by_small_id));
	if (!regions->index_by_small_id)
		return -ENOMEM;
	regions->small_id_count = scan->used_id_bitmap_word_count * 64;
	for (size_t id = 0; id < regions->small_id_count; id++)
		regions->index_by_small_id[id] = id_map_get(&regions->ids, id);
	return 0;
}

int regions_kind_finish_records(struct session *session, uint32_t process, uint64_t *last_tick)
{
	struct process_regions_data *regions = process_get_regions(session, process);
	struct region_record_scan_state *scan = &regions->scan;
	int result = 0;

	scan->regions = regions;
	session_get_regions(session)->events += scan->events;
	session->processes[process].region_events += scan->events;
	if (regions->record_range_count > 1)
		qsort(regions->record_ranges, regions->record_range_count,
		      sizeof(*regions->record_ranges), compare_record_ranges_by_thread);
	for (size_t word = 0; result == 0 && word < scan->used_id_bitmap_word_count; word++) {
		for (uint64_t bits = scan->used[word]; bits; bits &= bits - 1) {
			uint64_t id = word * 64 + (uint64_t)__builtin_ctzll(bits);

			if (id && region_find_or_add_by_id(session, process, id) ==
					  MODEL_ENTRY_INDEX_NONE)
				result = -ENOMEM;
		}
	}
	if (result == 0)
		result = build_direct_table_of_small_ids(scan);
	if (scan->last > *last_tick)
		*last_tick = scan->last;
	free(scan->used);
	scan->used = NULL;
	return result;
}

int regions_kind_scan_one_record(const struct spool_record_position *place,
				 struct spool_record_payload_cursor *payload)
{
	struct region_record_scan_state *scan = get_region_scan_state_for_position(place);

	place->session->processes[place->process].region_record_bytes +=
		(uint64_t)(payload->end - place->record);
	switch (payload->kind) {
	case SPOOL_RECORD_REGION:
		return scan_region_record(scan, payload);
	case SPOOL_RECORD_REGION_SPAN:
		return scan_region_span_record(scan, payload, place->record);
	case SPOOL_RECORD_COMPONENTS:
		return scan_component_definitions_record(scan, payload);
	case SPOOL_RECORD_PROFILE:
		return scan_profile_record(scan, payload);
	case SPOOL_RECORD_RANK:
		return scan_rank_record(scan, payload);
	case SPOOL_RECORD_REGION_WINDOW:
		return region_windows_scan_record(scan->regions, payload);
	default: /* PROFILE_SHARED */
		return 0;
	}
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See scan_regions.h.
 */
#include "analysis/scan_regions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Ids are dense, so a bit each is enough for those that a process really gives. */
#define USED_IDS ((uint64_t)1 << 24)

void scan_regions_init(struct scan_regions *scan, struct session *session, uint32_t process)
{
	*scan = (struct scan_regions){
		.session = session,
		.process = process,
		.regions = &session_private(session)->processes[process].regions};
}

void scan_regions_deinit(struct scan_regions *scan)
{
	free(scan->used);
}

static const char *take_interned(struct scan_regions *scan, struct spool_payload *payload)
{
	struct arena *arena = &session_private(scan->session)->arena;
	char text[4097];
	size_t size;
	const uint8_t *bytes = spool_bytes(payload, &size);

	if (size >= sizeof(text))
		size = sizeof(text) - 1;
	memcpy(text, bytes, size);
	text[size] = 0;
	return arena_intern(arena, text);
}

int scan_region(struct scan_regions *scan, struct spool_payload *payload)
{
	struct model_region region = {.process = scan->process};
	uint64_t id = spool_unsigned(payload), kind = spool_unsigned(payload);

	region.category = take_interned(scan, payload);
	if (kind == SPOOL_REGION_FUNCTION) {
		region.kind = SPOOL_REGION_FUNCTION;
		region.address = spool_fixed(payload);
		region.name = arena_format(&session_private(scan->session)->arena,
					   "[0x%" PRIx64 "]", region.address);
	} else {
		region.name = take_interned(scan, payload);
	}
	if (!region.category || !region.name)
		return -ENOMEM;
	if (payload->bad || id == 0 || kind > SPOOL_REGION_FUNCTION)
		return -EBADMSG;
	return region_define(scan->session, id, &region);
}

int scan_components(struct scan_regions *scan, struct spool_payload *payload)
{
	struct process_regions *regions = scan->regions;
	uint64_t count = spool_unsigned(payload);
	struct region_component *list;

	if (payload->bad || count == 0 || count > REGION_COMPONENTS_MAX)
		return -EBADMSG;
	if (regions->components)
		return 0;
	list = calloc((size_t)count, sizeof(*list));
	if (!list)
		return -ENOMEM;
	regions->components = list;
	for (uint64_t i = 0; i < count; i++) {
		list[i].model.name = take_interned(scan, payload);
		list[i].model.unit = take_interned(scan, payload);
		list[i].model.description = take_interned(scan, payload);
		list[i].model.kind = (enum spool_component_kind)(spool_unsigned(payload) & 3);
		list[i].model.numerator = list[i].model.denominator = MODEL_NONE;
		list[i].scale = spool_unsigned(payload);
		if (!list[i].model.name || !list[i].model.unit || !list[i].model.description)
			return -ENOMEM;
	}
	if (payload->bad)
		return -EBADMSG;
	regions->component_count = (uint32_t)count;
	return 0;
}

int scan_rank(struct scan_regions *scan, struct spool_payload *payload)
{
	struct model_process *model = &scan->session->processes[scan->process];
	uint64_t rank = spool_unsigned(payload), count = spool_unsigned(payload);
	const char *source = take_interned(scan, payload);

	if (!source)
		return -ENOMEM;
	if (payload->bad || rank >= count || count > UINT32_MAX)
		return -EBADMSG;
	model->rank = (uint32_t)rank;
	model->rank_count = (uint32_t)count;
	model->rank_source = source;
	return 0;
}

int scan_profile_part(struct scan_regions *scan, const struct spool_payload *payload,
		      const struct spool_profile_part *part, uint32_t thread)
{
	struct process_regions *regions = scan->regions;

	if (thread == MODEL_NONE)
		return 0;
	if (array_reserve((void **)&regions->parts, &regions->part_capacity, regions->part_count,
			  sizeof(*regions->parts)) < 0)
		return -ENOMEM;
	regions->parts[regions->part_count++] =
		(struct region_part){.thread = thread,
				     .tree = part->tree,
				     .first_node = part->first_node,
				     .chunk = scan->chunk,
				     .from = (uint32_t)(payload->at - scan->records),
				     .size = (uint32_t)(payload->end - payload->at)};
	return 0;
}

/* ---- events ---- */

void scan_regions_begin_chunk(struct scan_regions *scan, uint32_t chunk, const uint8_t *records)
{
	scan->chunk = chunk;
	scan->records = records;
	scan->in_span = false;
}

static void end_span(struct scan_regions *scan, const uint8_t *end)
{
	struct process_regions *regions = scan->regions;

	if (!scan->in_span)
		return;
	if (!scan->skipped)
		regions->spans[regions->span_count - 1].to = (uint32_t)(end - scan->records);
	if (scan->ticks > scan->last && scan->ticks < UINT64_MAX)
		scan->last = scan->ticks;
	scan->in_span = false;
}

void scan_regions_end_chunk(struct scan_regions *scan, const uint8_t *end)
{
	end_span(scan, end);
}

static int use_rare(struct scan_regions *scan, uint64_t id)
{
	size_t words = scan->used_words ? scan->used_words : 64;
	uint64_t *used;

	if (id >= USED_IDS)
		return region_index(scan->session, scan->process, id) == MODEL_NONE ? -ENOMEM : 0;
	while (words <= id / 64)
		words *= 2;
	used = realloc(scan->used, words * sizeof(*used));
	if (!used)
		return -ENOMEM;
	memset(used + scan->used_words, 0, (words - scan->used_words) * sizeof(*used));
	scan->used = used;
	scan->used_words = words;
	used[id / 64] |= (uint64_t)1 << id % 64;
	return 0;
}

static inline int use(struct scan_regions *scan, uint64_t id)
{
	if (id / 64 >= scan->used_words)
		return use_rare(scan, id);
	scan->used[id / 64] |= (uint64_t)1 << id % 64;
	return 0;
}

int scan_region_span(struct scan_regions *scan, struct spool_payload *payload,
		     const uint8_t *record, uint32_t thread)
{
	struct process_regions *regions = scan->regions;
	uint64_t ticks = spool_fixed(payload), open = spool_unsigned(payload);

	end_span(scan, record);
	if (payload->bad || open > (uint64_t)(payload->end - payload->at) / 2)
		return -EBADMSG;
	for (uint64_t i = 0; i < open; i++) {
		if (use(scan, spool_unsigned(payload)) < 0)
			return -ENOMEM;
		(void)spool_unsigned(payload);
	}
	if (payload->bad)
		return -EBADMSG;
	scan->in_span = true;
	scan->skipped = thread == MODEL_NONE;
	scan->ticks = ticks;
	if (scan->skipped)
		return 0;
	if (array_reserve((void **)&regions->spans, &regions->span_capacity, regions->span_count,
			  sizeof(*regions->spans)) < 0)
		return -ENOMEM;
	regions->spans[regions->span_count++] = (struct region_span){
		.thread = thread, .chunk = scan->chunk, .from = (uint32_t)(record - scan->records)};
	return 0;
}

/* The region that an event names, 0 where it names none. */
static inline uint64_t read_event(struct spool_payload *payload, uint64_t *ticks)
{
	*ticks += spool_unsigned(payload);
	switch (payload->kind) {
	case SPOOL_RECORD_REGION_END:
		return 0;
	case SPOOL_RECORD_PROGRESS:
	case SPOOL_RECORD_REGION_WHOLE:
		(void)spool_unsigned(payload);
		break;
	default:
		break;
	}
	return spool_unsigned(payload);
}

int scan_region_events(struct scan_regions *scan, struct spool_cursor *cursor)
{
	struct model_process *model = &scan->session->processes[scan->process];
	struct spool_cursor at = *cursor;
	struct spool_payload payload;
	uint64_t ticks = scan->ticks, events = 0;
	int result = 0;

	while (result == 0 && at.at < at.end && scan_is_region_event(*at.at) &&
	       spool_next(&at, &payload)) {
		const uint8_t *data = payload.at;
		uint64_t id = 0;

		if (payload.kind != SPOOL_RECORD_ANNOTATION) {
			id = read_event(&payload, &ticks);
			events++;
		}
		if (payload.bad || !scan->in_span)
			model->torn_bytes += (uint64_t)(payload.end - data);
		else
			result = use(scan, id);
	}
	model->region_bytes += (uint64_t)(at.at - cursor->at);
	scan->ticks = ticks;
	if (scan->in_span && !scan->skipped)
		scan->events += events;
	*cursor = at;
	return result;
}

/* By thread; those of one thread stay in the order of the file. */
static int by_thread(const void *left, const void *right)
{
	const struct region_span *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->chunk != b->chunk)
		return a->chunk < b->chunk ? -1 : 1;
	return a->from < b->from ? -1 : a->from > b->from;
}

/* Events name dense ids millions of times; hashing them would take most of the time. */
static int index_small_ids(struct scan_regions *scan)
{
	struct process_regions *regions = scan->regions;

	regions->small_ids = calloc(scan->used_words * 64 + 1, sizeof(*regions->small_ids));
	if (!regions->small_ids)
		return -ENOMEM;
	regions->small_count = scan->used_words * 64;
	for (size_t id = 0; id < regions->small_count; id++)
		regions->small_ids[id] = id_map_get(&regions->ids, id);
	return 0;
}

int scan_regions_finish(struct scan_regions *scan)
{
	struct process_regions *regions = scan->regions;

	scan->session->regions->events += scan->events;
	scan->session->processes[scan->process].region_events += scan->events;
	if (regions->span_count > 1)
		qsort(regions->spans, regions->span_count, sizeof(*regions->spans), by_thread);
	for (size_t word = 0; word < scan->used_words; word++) {
		for (uint64_t bits = scan->used[word]; bits; bits &= bits - 1) {
			uint64_t id = word * 64 + (uint64_t)__builtin_ctzll(bits);

			if (id && region_index(scan->session, scan->process, id) == MODEL_NONE)
				return -ENOMEM;
		}
	}
	return index_small_ids(scan);
}

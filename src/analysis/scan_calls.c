/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See scan_calls.h. Words are looked at once here, for the functions that they name and the latest
 * time, so that both are known before anything else is made of them.
 */
#include "analysis/scan_calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORD sizeof(uint64_t)

void scan_calls_init(struct scan_calls *scan, struct session *session, uint32_t process)
{
	*scan = (struct scan_calls){.session = session,
				    .process = process,
				    .calls = &session_private(session)->processes[process].calls};
}

static int reserve_used(struct scan_calls *scan)
{
	if (!scan->calls->used)
		scan->calls->used = calloc(CALL_IDS / 64, sizeof(*scan->calls->used));
	return scan->calls->used ? 0 : -ENOMEM;
}

static inline void use(struct scan_calls *scan, uint32_t id)
{
	scan->calls->used[id / 64] |= (uint64_t)1 << id % 64;
}

/* ---- modules ---- */

static const char *take_path(struct scan_calls *scan, struct spool_payload *payload)
{
	size_t size;
	const uint8_t *bytes = spool_bytes(payload, &size);

	return arena_copy(&session_private(scan->session)->arena, bytes, size);
}

int scan_instrumented(struct scan_calls *scan, struct spool_payload *payload)
{
	struct model_calls *calls = scan->session->calls;
	size_t *capacity = &session_private(scan->session)->calls_capacity.modules;
	struct model_instrumented module = {.process = scan->process};
	uint64_t first, count;

	module.time_ns = spool_fixed(payload);
	first = spool_unsigned(payload);
	count = spool_unsigned(payload);
	module.bias = spool_fixed(payload);
	module.arena = spool_fixed(payload);
	module.arena_size = spool_fixed(payload);
	module.plan = take_path(scan, payload);
	module.module = take_path(scan, payload);
	if (!module.plan || !module.module)
		return -ENOMEM;
	if (payload->bad || first == 0 || first >= CALL_IDS || count > CALL_IDS - first)
		return -EBADMSG;
	module.first_id = (uint32_t)first;
	module.count = (uint32_t)count;
	if (array_reserve((void **)&calls->modules, capacity, calls->module_count,
			  sizeof(*calls->modules)) < 0)
		return -ENOMEM;
	calls->modules[calls->module_count++] = module;
	return 0;
}

/* ---- words ---- */

static inline uint64_t word_at(const uint8_t *at)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	return word;
}

static void scan_words(struct scan_calls *scan, const uint8_t *at, const uint8_t *end,
		       uint64_t ticks)
{
	struct model_process *model = &scan->session->processes[scan->process];
	uint64_t words = 0, entries = 0, last = scan->last;

	for (; at < end; at += WORD) {
		uint64_t word = word_at(at);
		uint32_t id = call_word_id(word);

		if (word == 0)
			continue;
		ticks = call_word_ticks(word, ticks);
		last = ticks > last && ticks < UINT64_MAX ? ticks : last;
		use(scan, id);
		entries += (word & SPOOL_CALL_EXIT) == 0;
		words++;
	}
	scan->last = last;
	scan->session->calls->words += words;
	scan->session->calls->recorded += entries;
	scan->session->regions->events += words;
	model->region_events += words;
	model->region_bytes += words * WORD;
}

static int add_part(struct scan_calls *scan, const struct call_part *part)
{
	struct process_calls *calls = scan->calls;

	if (array_reserve((void **)&calls->parts, &calls->part_capacity, calls->part_count,
			  sizeof(*calls->parts)) < 0)
		return -ENOMEM;
	calls->parts[calls->part_count++] = *part;
	return 0;
}

int scan_call_words(struct scan_calls *scan, const struct spool_payload *payload,
		    const struct spool_calls *head, uint32_t thread, uint32_t chunk,
		    const uint8_t *records)
{
	const uint8_t *at = payload->at + sizeof(*head), *end = payload->end;
	uint64_t list = ((uint64_t)head->open_count * 4 + 7) / 8 * 8;

	if (list > (uint64_t)(end - at))
		return -EBADMSG;
	if (thread == MODEL_NONE)
		return 0;
	if (reserve_used(scan) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < head->open_count; i++) {
		uint32_t id;

		memcpy(&id, at + (size_t)i * 4, sizeof(id));
		if (id < CALL_IDS)
			use(scan, id);
	}
	at += list;
	end -= (size_t)(end - at) % WORD;
	while (end > at && word_at(end - WORD) == 0)
		end -= WORD;
	scan_words(scan, at, end, head->ticks);
	if (head->ticks > scan->last && head->ticks < UINT64_MAX)
		scan->last = head->ticks;
	return add_part(scan, &(struct call_part){.thread = thread,
						  .chunk = chunk,
						  .from = (uint32_t)(payload->at - records),
						  .size = (uint32_t)(end - payload->at),
						  .ticks = head->ticks});
}

/* ---- what was not recorded call by call ---- */

static int set_count(struct process_calls *calls, uint64_t internal_id, uint32_t id, uint64_t count)
{
	uint64_t key = internal_id << SPOOL_CALL_ID_BITS | id;
	uint32_t index = id_map_get(&calls->count_of, key);

	if (index == ID_MAP_NONE) {
		index = (uint32_t)calls->count_count;
		if (index >= MODEL_NONE / 2 ||
		    array_reserve((void **)&calls->counts, &calls->count_capacity, index,
				  sizeof(*calls->counts)) < 0 ||
		    id_map_set(&calls->count_of, key, index) < 0)
			return -ENOMEM;
		calls->count_count++;
	}
	calls->counts[index] = (struct call_count){.id = id, .calls = count};
	return 0;
}

int scan_call_counts(struct scan_calls *scan, struct spool_payload *payload)
{
	uint64_t internal_id = spool_unsigned(payload), count = spool_unsigned(payload);

	if (payload->bad || internal_id > UINT32_MAX)
		return -EBADMSG;
	if (reserve_used(scan) < 0)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++) {
		uint64_t id = spool_unsigned(payload), calls = spool_unsigned(payload);

		if (payload->bad || id == 0 || id >= CALL_IDS)
			return -EBADMSG;
		use(scan, (uint32_t)id);
		if (set_count(scan->calls, internal_id, (uint32_t)id, calls) < 0)
			return -ENOMEM;
	}
	return 0;
}

int scan_call_demoted(struct scan_calls *scan, struct spool_payload *payload)
{
	struct model_calls *calls = scan->session->calls;
	size_t *capacity = &session_private(scan->session)->calls_capacity.demoted;
	uint64_t id = spool_unsigned(payload), mode = spool_unsigned(payload);
	uint64_t ticks = spool_fixed(payload);

	if (payload->bad || id == 0 || id >= CALL_IDS || mode > PLAN_MODE_ARGUMENTS)
		return -EBADMSG;
	if (reserve_used(scan) < 0 ||
	    array_reserve((void **)&calls->demoted, capacity, calls->demoted_count,
			  sizeof(*calls->demoted)) < 0)
		return -ENOMEM;
	use(scan, (uint32_t)id);
	calls->demoted[calls->demoted_count++] =
		(struct model_demoted){.process = scan->process,
				       .id = (uint32_t)id,
				       .region = MODEL_NONE,
				       .time_ns = ticks,
				       .mode = (enum plan_mode)mode};
	return 0;
}

/* ---- the end ---- */

/* Those of one thread stay in the order in which they were handed out. */
static int by_thread(const void *left, const void *right)
{
	const struct call_part *a = left, *b = right;

	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	if (a->chunk != b->chunk)
		return a->chunk < b->chunk ? -1 : 1;
	return a->from < b->from ? -1 : a->from > b->from;
}

int scan_calls_finish(struct scan_calls *scan)
{
	struct process_private *process = &session_private(scan->session)->processes[scan->process];
	struct model_calls *calls = scan->session->calls;

	if (scan->calls->part_count > 1)
		qsort(scan->calls->parts, scan->calls->part_count, sizeof(*scan->calls->parts),
		      by_thread);
	for (uint32_t i = 0; i < calls->module_count; i++) {
		if (calls->modules[i].process == scan->process)
			calls->modules[i].time_ns =
				clock_map_boottime(&process->clock, calls->modules[i].time_ns);
	}
	for (uint32_t i = 0; i < calls->demoted_count; i++) {
		if (calls->demoted[i].process == scan->process)
			calls->demoted[i].time_ns =
				clock_map_boottime(&process->clock, calls->demoted[i].time_ns);
	}
	return instrumented_resolve(scan->session, scan->process);
}

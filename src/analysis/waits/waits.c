/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See waits.h.
 */
#include "analysis/waits/waits.h"

#include <errno.h>
#include <stdlib.h>

#include "analysis/session_private.h"
#include "analysis/symbols/resolve.h"

#define FRAMES_MAX 4096u

const struct model_waits *session_get_waits(const struct session *session)
{
	static const struct model_waits none;
	const struct model_waits *waits = session_find_kind_data(session, WAITS_DATA_KIND_NAME);

	return waits ? waits : &none;
}

const char *spool_waker_get_name(enum spool_waker waker)
{
	static const char *const names[SPOOL_WAKER_COUNT] = {"unknown", "thread", "interrupt",
							     "nobody"};

	return waker < SPOOL_WAKER_COUNT ? names[waker] : "unknown";
}

/* ---- records ---- */

static int read_stack(struct session *session, struct spool_record_payload_cursor *payload,
		      struct model_wait_stack *ret)
{
	uint64_t count = spool_read_unsigned(payload), frame = 0, *addresses;

	if (payload->bad || count > FRAMES_MAX || count > (uint64_t)(payload->end - payload->at))
		return -EBADMSG;
	addresses = arena_allocate(&session_get_private(session)->arena,
				   (size_t)(count + 1) * sizeof(*addresses));
	if (!addresses)
		return -ENOMEM;
	for (uint64_t i = 0; i < count; i++) {
		frame += (uint64_t)spool_read_signed(payload);
		addresses[i] = frame;
	}
	ret->addresses = addresses;
	ret->address_count = (uint32_t)count;
	return payload->bad ? -EBADMSG : 0;
}

static int read_waits_record(const struct spool_record_position *place,
			     struct spool_record_payload_cursor *payload)
{
	struct model_waits *waits = session_find_kind_data(place->session, WAITS_DATA_KIND_NAME);
	struct arena *arena = &session_get_private(place->session)->arena;
	struct model_wait wait = {.process = place->process, .thread = MODEL_ENTRY_INDEX_NONE};
	const uint8_t *name;
	uint64_t end, waker;
	size_t size;
	int error;

	wait.internal_id = (uint32_t)spool_read_unsigned(payload);
	wait.tid = (uint32_t)spool_read_unsigned(payload);
	wait.waits = spool_read_unsigned(payload);
	wait.ns = spool_read_unsigned(payload);
	wait.longest_ns = spool_read_unsigned(payload);
	end = spool_read_unsigned(payload);
	wait.stack.process = place->process;
	wait.stack.end =
		end < SPOOL_STACK_END_COUNT ? (enum spool_stack_end)end : SPOOL_STACK_NOT_WALKED;
	error = read_stack(place->session, payload, &wait.stack);
	if (error)
		return error;
	waker = spool_read_unsigned(payload);
	wait.waker = waker < SPOOL_WAKER_COUNT ? (enum spool_waker)waker : SPOOL_WAKER_UNKNOWN;
	wait.waker_pid = (uint32_t)spool_read_unsigned(payload);
	wait.waker_image = (uint32_t)spool_read_unsigned(payload);
	wait.waker_tid = (uint32_t)spool_read_unsigned(payload);
	name = spool_read_length_prefixed_bytes(payload, &size);
	wait.waker_name = arena_copy_bytes(arena, name, size);
	error = wait.waker_name ? read_stack(place->session, payload, &wait.waker_stack) : -ENOMEM;
	if (error)
		return error;
	if (array_reserve_one_more((void **)&waits->list, &waits->capacity, waits->count,
				   sizeof(*waits->list)) < 0)
		return -ENOMEM;
	waits->list[waits->count++] = wait;
	return 0;
}

/* ---- after the scan ---- */

static uint32_t find_process(const struct session *session, uint32_t pid, uint32_t image)
{
	for (uint32_t i = 0; i < session->process_count; i++) {
		if (session->processes[i].pid == pid && session->processes[i].image == image)
			return i;
	}
	return MODEL_ENTRY_INDEX_NONE;
}

static uint32_t find_thread(const struct session *session, const struct model_wait *wait)
{
	const struct model_process *process = &session->processes[wait->process];

	for (uint32_t i = 0; wait->tid && i < process->thread_count; i++) {
		if (session->threads[process->first_thread + i].internal_id == wait->internal_id)
			return process->first_thread + i;
	}
	return MODEL_ENTRY_INDEX_NONE;
}

static int compare_by_time(const void *left, const void *right)
{
	const struct model_wait *a = left, *b = right;

	return a->ns > b->ns ? -1 : a->ns < b->ns ? 1 : 0;
}

/* Sums are of the whole run: there are none of a part of its time. */
static void finish_waits(struct session *session)
{
	const struct session_options *options = &session_get_private(session)->options;
	struct model_waits *waits = session_find_kind_data(session, WAITS_DATA_KIND_NAME);
	size_t kept = 0;

	for (size_t i = 0; i < waits->count; i++) {
		struct model_wait wait = waits->list[i];

		if (options->from_ns || options->to_ns ||
		    (options->filter_thread_tid && options->filter_thread_tid != wait.tid) ||
		    (options->filter_process_pid &&
		     options->filter_process_pid != session->processes[wait.process].pid))
			continue;
		wait.thread = find_thread(session, &wait);
		wait.waker_stack.process = find_process(session, wait.waker_pid, wait.waker_image);
		waits->ns += wait.ns;
		waits->list[kept++] = wait;
	}
	waits->count = kept;
	if (kept)
		qsort(waits->list, kept, sizeof(*waits->list), compare_by_time);
}

/* ---- names ---- */

static size_t count_addresses(const struct session *session)
{
	const struct model_waits *waits = session_get_waits(session);
	size_t count = 0;

	for (size_t i = 0; i < waits->count; i++)
		count += waits->list[i].stack.address_count +
			 waits->list[i].waker_stack.address_count;
	return count;
}

/* The innermost frame is exact, others are return addresses. */
static uint32_t gather_stack(struct address_references *references,
			     const struct model_wait_stack *stack, uint32_t number)
{
	for (uint32_t i = 0; i < stack->address_count; i++, number++) {
		uint64_t address = stack->addresses[i];

		if (stack->process != MODEL_ENTRY_INDEX_NONE && address >= SPOOL_NO_STACK_LIMIT)
			address_references_add_address(references, stack->process,
						       address - (i > 0), number);
	}
	return number;
}

static void gather_addresses(struct address_references *references, struct session *session,
			     uint32_t first)
{
	const struct model_waits *waits = session_get_waits(session);

	for (size_t i = 0; i < waits->count; i++) {
		first = gather_stack(references, &waits->list[i].stack, first);
		first = gather_stack(references, &waits->list[i].waker_stack, first);
	}
}

static const struct code_location_chain *find_chain(const struct symbol_resolution *resolution,
						    const struct model_wait_stack *stack,
						    uint32_t index, uint32_t first)
{
	uint32_t chain;

	if (stack->process == MODEL_ENTRY_INDEX_NONE ||
	    stack->addresses[index] < SPOOL_NO_STACK_LIMIT)
		return NULL;
	chain = resolution->chain_by_reference_number[first + index];
	return chain == MODEL_ENTRY_INDEX_NONE ? NULL : &resolution->chains[chain];
}

static const char *find_module_name(const struct session *session,
				    const struct model_wait_stack *stack, uint32_t index)
{
	struct module_map *map =
		&session_get_private(session)->processes[stack->process].module_map;
	uint32_t module = module_map_find_module(map, stack->addresses[index] - (index > 0),
						 session->processes[stack->process].end_ns);

	return module == MODULE_MAP_NO_MODULE ? NULL : session->modules[module].name;
}

static int name_stack(const struct symbol_resolution *resolution, struct model_wait_stack *stack,
		      uint32_t first)
{
	struct model_wait_frame *frames;
	uint32_t count = 0;

	for (uint32_t i = 0; i < stack->address_count; i++) {
		const struct code_location_chain *chain = find_chain(resolution, stack, i, first);

		count += chain ? chain->count : 0;
	}
	frames = arena_allocate(&session_get_private(resolution->session)->arena,
				(count + 1) * sizeof(*frames));
	if (!frames)
		return -ENOMEM;
	stack->frames = frames;
	for (uint32_t i = 0; i < stack->address_count; i++) {
		const struct code_location_chain *chain = find_chain(resolution, stack, i, first);

		for (uint32_t k = 0; chain && k < chain->count; k++) {
			const struct code_location *place =
				&resolution->places[resolution->chain_place_indexes[chain->first +
										    k]];

			frames[stack->frame_count++] = (struct model_wait_frame){
				place->function, place->file,
				find_module_name(resolution->session, stack, i), place->line};
		}
	}
	return 0;
}

static int take_names(const struct symbol_resolution *resolution, uint32_t first)
{
	const struct model_waits *waits = session_get_waits(resolution->session);
	int result = 0;

	for (size_t i = 0; result == 0 && i < waits->count; i++) {
		struct model_wait *wait = &waits->list[i];

		result = name_stack(resolution, &wait->stack, first);
		first += wait->stack.address_count;
		if (result == 0)
			result = name_stack(resolution, &wait->waker_stack, first);
		first += wait->waker_stack.address_count;
	}
	return result;
}

static void free_waits(struct session *session)
{
	free(session_get_waits(session)->list);
}

static const uint8_t wanted_record_kinds[] = {SPOOL_RECORD_WAITS, 0};

const struct session_data_kind_operations waits_data_kind_operations = {
	.name = WAITS_DATA_KIND_NAME,
	.session_data_bytes = sizeof(struct model_waits),
	.wanted_record_kinds = wanted_record_kinds,
	.record = read_waits_record,
	.after_scan = finish_waits,
	.address_count = count_addresses,
	.gather_addresses = gather_addresses,
	.take_symbol_names = take_names,
	.free = free_waits,
};

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions that look at who called them, and code whose frames are found by calculation.
 *
 * A function that ends in a jump hands its return address on. If that is a stub's, and the function
 * jumped to looks at it, it sees kymo's code instead of its caller. So who jumps to such a function
 * is one as well, on through any number of jumps.
 *
 * A personality routine that asks for its frame's address (_Unwind_GetCFA) gets that of the frame
 * inside it, which is a stub's where the function that was called is hooked, and a stub's is not
 * where the frame is (kymo/plan.h). Such code calls functions unhooked.
 */
#include <errno.h>
#include <stdlib.h>

#include "binary/functions/private.h"

int finder_add_tail_jump(struct function_finder *finder, uint32_t from, uint32_t to)
{
	int error = 0;

	if (finder->tail_jump_lock)
		pthread_mutex_lock(finder->tail_jump_lock);
	if (finder->tail_jump_count == finder->tail_jump_capacity) {
		size_t wanted = finder->tail_jump_capacity ? 2 * finder->tail_jump_capacity : 256;
		void *list = realloc(finder->tail_jumps, wanted * sizeof(*finder->tail_jumps));

		if (list) {
			finder->tail_jumps = list;
			finder->tail_jump_capacity = wanted;
		} else {
			error = -ENOMEM;
		}
	}
	if (!error)
		finder->tail_jumps[finder->tail_jump_count++] = (struct finder_tail_jump){from, to};
	if (finder->tail_jump_lock)
		pthread_mutex_unlock(finder->tail_jump_lock);
	return error;
}

static bool function_looks_at_caller(const struct function_finder *finder, uint32_t index)
{
	const struct function *function = &finder->functions->list[index];

	return finder->function_facts[index].looks_at_caller ||
	       (function->name &&
		finder_get_import_kind_by_name(function->name) == IMPORT_READS_CALLER);
}

/* Functions found to look at their caller whose own jumpers are still to be asked. */
struct caller_reader_search {
	struct function_finder *finder;
	uint32_t *first_jump; /* by function: where its jumpers begin in `jumpers`; one more at the
				 end */
	uint32_t *jumpers;
	uint32_t *waiting; /* a stack */
	size_t waiting_count;
};

static void search_deinit(struct caller_reader_search *search)
{
	free(search->first_jump);
	free(search->jumpers);
	free(search->waiting);
}

/* Sorts the jumps by where they lead, so that each is looked at once: chains are as long as files
 * are large. */
static int search_init(struct caller_reader_search *search, struct function_finder *finder)
{
	size_t functions = finder->functions->count, jumps = finder->tail_jump_count;

	*search = (struct caller_reader_search){
		.finder = finder,
		.first_jump = calloc(functions + 2, sizeof(uint32_t)),
		.jumpers = calloc(jumps + 1, sizeof(uint32_t)),
		.waiting = calloc(functions + 1, sizeof(uint32_t)),
	};
	if (!search->first_jump || !search->jumpers || !search->waiting) {
		search_deinit(search);
		return -ENOMEM;
	}
	for (size_t i = 0; i < jumps; i++)
		search->first_jump[finder->tail_jumps[i].to + 2]++;
	for (size_t i = 2; i < functions + 2; i++)
		search->first_jump[i] += search->first_jump[i - 1];
	for (size_t i = 0; i < jumps; i++) {
		const struct finder_tail_jump *jump = &finder->tail_jumps[i];

		search->jumpers[search->first_jump[jump->to + 1]++] = jump->from;
	}
	return 0;
}

static void search_visit_jumpers(struct caller_reader_search *search, uint32_t function)
{
	struct finder_function_facts *facts = search->finder->function_facts;

	if (search->finder->functions->list[function].reason == PLAN_FRAGMENT)
		return;
	for (uint32_t i = search->first_jump[function]; i < search->first_jump[function + 1]; i++) {
		uint32_t jumper = search->jumpers[i];

		if (facts[jumper].looks_at_caller)
			continue;
		facts[jumper].looks_at_caller = true;
		search->waiting[search->waiting_count++] = jumper;
	}
}

int finder_set_reason_of_jumps_to_caller_readers(struct function_finder *finder)
{
	struct function *list = finder->functions->list;
	struct caller_reader_search search;
	int error = search_init(&search, finder);

	if (error)
		return error;
	for (size_t i = 0; i < finder->functions->count; i++) {
		if (function_looks_at_caller(finder, (uint32_t)i))
			search_visit_jumpers(&search, (uint32_t)i);
		while (search.waiting_count)
			search_visit_jumpers(&search, search.waiting[--search.waiting_count]);
	}
	for (size_t i = 0; i < finder->functions->count; i++) {
		if (finder->function_facts[i].looks_at_caller && list[i].reason == PLAN_PATCHABLE)
			list[i].reason = PLAN_READS_RETURN;
	}
	search_deinit(&search);
	return 0;
}

static bool personality_asks_frame_address(const struct function_finder *finder, uint64_t vaddr)
{
	const struct function *function =
		vaddr ? functions_find_at_address(finder->functions, vaddr) : NULL;

	return function &&
	       finder->function_facts[function - finder->functions->list].asks_frame_address;
}

void finder_set_foreign_range_of_frame_address_users(struct function_finder *finder)
{
	struct functions *functions = finder->functions;
	const struct eh_frame_table *frames = &finder->frames;
	uint64_t low = UINT64_MAX, high = 0, asked = 0;
	bool asks = false;

	if (functions->v8_set_resolver_vaddr)
		return;
	for (size_t i = 0; i < frames->count; i++) {
		const struct eh_frame_fde *frame = &frames->list[i];
		uint64_t personality = frames->cies[frame->cie_index].personality_vaddr;

		/* Most frames of a file have one routine. */
		if (personality != asked)
			asks = personality_asks_frame_address(finder, personality);
		asked = personality;
		if (!asks)
			continue;
		if (frame->vaddr < low)
			low = frame->vaddr;
		if (frame->vaddr + frame->size > high)
			high = frame->vaddr + frame->size;
	}
	if (low >= high)
		return;
	functions->asks_frame_addresses = true;
	functions->foreign_code_low = low;
	functions->foreign_code_high = high;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Loops and blocks of functions as places that are counted.
 *
 * A block is counted where five bytes of it can become a jump. Blocks that are too short for that
 * are counted with another one that is executed as often, if there is any (plan_flow.h), and so is
 * a function's first block with the function. What remains is listed and not measured.
 *
 * Functions whose jumps are not all understood, or that hold data, have no places: a jump might
 * arrive in the middle of a patch. They are gone through twice: where parts of functions jump to
 * (cold code back into its function) has to be known beforehand.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/blocks.h"
#include "binary/blocks_internal.h"
#include "binary/plan_flow.h"
#include "binary/plan_internal.h"

#define SAME_MAX 64u /* blocks that are looked at for one that stands for another */

/* A block of the function that is being looked at. */
struct place_block {
	struct plan_window window;
	uint32_t loop, block; /* numbers of its places; BLOCKS_NONE: none */
	uint32_t counted;     /* the function or place that is patched in it; BLOCKS_NONE */
	bool loop_counted;    /* the loop is patched, here or in a block executed as often */
};

struct labelled {
	uint64_t label;
	uint32_t block;
};

struct placing {
	const struct functions *functions;
	const struct plan_options *options;
	struct plan_places *places;
	const struct function *function; /* that is being looked at */
	const uint8_t *code;
	uint32_t size;
	bool holds_data, gathers;
	uint64_t *arrivals; /* addresses in functions that others jump to, sorted */
	size_t arrival_count, arrival_capacity;
	struct blocks blocks;
	struct blocks_image image;
	struct plan_flow flow;
	uint8_t *kinds;
	struct place_block *list;
	struct labelled *labelled; /* by label */
	size_t kind_capacity, list_capacity, labelled_capacity;
	int error;
};

/* ---- one function ---- */

static void each_instruction(void *context, uint64_t vaddr, const struct instruction *instruction)
{
	struct placing *placing = context;
	uint64_t into = instruction->target - placing->function->vaddr;

	(void)vaddr;
	if (instruction->rip_relative && into && into < placing->size)
		placing->holds_data = true;
	if (!placing->gathers ||
	    (instruction->flow != INSTRUCTION_JUMP && instruction->flow != INSTRUCTION_BRANCH) ||
	    into < placing->size || placing->error)
		return;
	placing->error = blocks_reserve(&placing->arrivals, &placing->arrival_capacity,
					placing->arrival_count + 1, sizeof(*placing->arrivals));
	if (!placing->error)
		placing->arrivals[placing->arrival_count++] = instruction->target;
}

/* Functions that overlap are looked at up to the next one. */
static int look_at(struct placing *placing, size_t index)
{
	const struct functions *functions = placing->functions;
	const struct function *function = &functions->list[index];
	uint64_t size = function->size;
	size_t left;
	int error;

	if (index + 1 < functions->count && function[1].vaddr - function->vaddr < size)
		size = function[1].vaddr - function->vaddr;
	placing->function = function;
	placing->size = (uint32_t)size;
	placing->holds_data = false;
	placing->code = functions_bytes(functions, function->vaddr, &left);
	if (!placing->code || left < size)
		placing->size = 0;
	error = blocks_find(&placing->blocks, &placing->image, placing->code, function->vaddr,
			    placing->size);
	return error ? error : placing->error;
}

static int note_tables(struct placing *placing)
{
	const struct blocks *blocks = &placing->blocks;
	int error = blocks_reserve(&placing->arrivals, &placing->arrival_capacity,
				   placing->arrival_count + blocks->table_target_count,
				   sizeof(*placing->arrivals));

	for (uint32_t i = 0; !error && i < blocks->table_target_count; i++) {
		if (blocks->table_targets[i] - placing->function->vaddr >= placing->size)
			placing->arrivals[placing->arrival_count++] = blocks->table_targets[i];
	}
	return error;
}

static int compare_addresses(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

static int find_arrivals(struct placing *placing)
{
	int error = 0;

	placing->gathers = true;
	for (size_t i = 0; !error && i < placing->functions->count; i++) {
		error = look_at(placing, i);
		if (!error)
			error = note_tables(placing);
	}
	placing->gathers = false;
	if (!error && placing->arrival_count)
		qsort(placing->arrivals, placing->arrival_count, sizeof(*placing->arrivals),
		      compare_addresses);
	return error;
}

static bool is_fit(const struct placing *placing)
{
	const struct blocks *blocks = &placing->blocks;
	const struct function *function = placing->function;

	switch (function->reason) {
	case PLAN_PATCHABLE:
	case PLAN_TARGET_IN_WINDOW:
	case PLAN_TOO_SHORT:
	case PLAN_UNRELOCATABLE:
	case PLAN_FRAGMENT:
	case PLAN_READS_RETURN:
		return placing->size && function->instructions && !placing->holds_data &&
		       blocks->decoded == placing->size && !blocks->unknown_jumps &&
		       !blocks->has_middle_target &&
		       !(function->flags & PLAN_FUNCTION_BRANCHES_OUT);
	default:
		return false;
	}
}

/* ---- what is known of blocks ---- */

struct block_survey {
	bool padding; /* nothing else */
	bool calls, ends_in_call;
};

/* A call of what lies in other files, or has no return, may be the last thing done. */
static bool may_not_return(const struct placing *placing, const struct instruction *instruction)
{
	const struct function *to;

	if (instruction->flow != INSTRUCTION_CALL)
		return true;
	to = functions_at(placing->functions, instruction->target);
	return !to || to->reason == PLAN_LINKER_CODE || to->flags & PLAN_FUNCTION_RETURNS_NOT;
}

static struct block_survey survey(const struct placing *placing, const struct block *block)
{
	struct block_survey ret = {.padding = true};
	struct instruction instruction;

	for (uint32_t at = block->start; at < block->start + block->size;
	     at += instruction.length) {
		const uint8_t *bytes = placing->code + at;

		if (!instruction_decode(bytes, placing->size - at, placing->function->vaddr + at,
					&instruction))
			break;
		if (plan_window_is_padding(bytes, &instruction))
			continue;
		ret.padding = ret.ends_in_call = false;
		if (instruction.flow == INSTRUCTION_CALL ||
		    instruction.flow == INSTRUCTION_CALL_INDIRECT) {
			ret.calls = true;
			ret.ends_in_call = may_not_return(placing, &instruction);
		}
	}
	return ret;
}

static bool arrives(const struct placing *placing, uint64_t vaddr)
{
	return placing->arrival_count && bsearch(&vaddr, placing->arrivals, placing->arrival_count,
						 sizeof(*placing->arrivals), compare_addresses);
}

static bool has_way_out(const struct block *block)
{
	switch (block->flow) {
	case INSTRUCTION_RETURN:
	case INSTRUCTION_STOP:
	case INSTRUCTION_JUMP_INDIRECT:
		return true;
	case INSTRUCTION_BRANCH:
		return block->successor_count < 2;
	default:
		return block->successor_count == 0;
	}
}

static void mark_branched(const struct blocks *blocks, bool *branched)
{
	for (uint32_t i = 0; i < blocks->count; i++) {
		const struct block *block = &blocks->list[i];

		for (uint32_t k = 0; k < block->successor_count; k++) {
			uint32_t to = blocks->successors[block->first_successor + k];
			if (to != i + 1)
				branched[to] = true;
		}
	}
}

/* Nobody sees what leads to a landing pad; and where there are any, all calls may lead there. */
static int find_kinds(struct placing *placing)
{
	const struct blocks *blocks = &placing->blocks;
	bool *branched = calloc(blocks->count + 1, sizeof(*branched)), pads = false;

	if (!branched)
		return -ENOMEM;
	mark_branched(blocks, branched);
	for (uint32_t i = 0; i < blocks->count; i++) {
		uint64_t vaddr = placing->function->vaddr + blocks->list[i].start;
		bool target = functions_is_target(placing->functions, vaddr);

		placing->kinds[i] = 0;
		if (i == 0 || arrives(placing, vaddr) || (target && !branched[i]))
			placing->kinds[i] |= PLAN_FLOW_ENTERED;
		else if (blocks->list[i].is_root)
			placing->kinds[i] |= PLAN_FLOW_NOWHERE;
		pads |= i && target && !branched[i];
	}
	free(branched);
	for (uint32_t i = 0; i < blocks->count; i++) {
		struct block_survey found = survey(placing, &blocks->list[i]);

		if (found.padding && blocks->list[i].is_root && i)
			placing->kinds[i] = PLAN_FLOW_NOWHERE;
		if (has_way_out(&blocks->list[i]) || found.ends_in_call || (pads && found.calls))
			placing->kinds[i] |= PLAN_FLOW_LEAVES;
	}
	return 0;
}

/* ---- where each is counted ---- */

/* The function's own patch counts its first block, and the rest of the bytes that it takes cannot
 * be patched again. */
static void find_windows(struct placing *placing)
{
	const struct function *function = placing->function;
	uint64_t taken = function->vaddr;
	struct plan_window own = {.reason = PLAN_TOO_SHORT};

	if (!function->reason)
		plan_window_find(placing->functions, function, &own);
	if (!own.reason && !plan_window_moves(placing->functions, &own))
		own.reason = PLAN_UNRELOCATABLE;
	if (!own.reason)
		taken = own.at + (own.size > JUMP_SIZE ? own.size : JUMP_SIZE);
	for (uint32_t i = 0; i < placing->blocks.count; i++) {
		const struct block *block = &placing->blocks.list[i];
		struct place_block *place = &placing->list[i];
		uint64_t at = function->vaddr + block->start, end = at + block->size;

		*place = (struct place_block){.loop = BLOCKS_NONE,
					      .block = BLOCKS_NONE,
					      .counted = BLOCKS_NONE,
					      .window.reason = PLAN_OVERLAPS};
		at = at < taken ? taken : at;
		if (at < end && !(placing->kinds[i] & PLAN_FLOW_NOWHERE))
			plan_window_find_place(placing->functions, at, (uint32_t)(end - at),
					       (uint32_t)(function->vaddr + function->space - at),
					       &place->window);
	}
	if (!own.reason)
		placing->list[0].counted = (uint32_t)(function - placing->functions->list);
}

static int compare_labels(const void *left, const void *right)
{
	const struct labelled *a = left, *b = right;

	if (a->label != b->label)
		return a->label < b->label ? -1 : 1;
	return a->block < b->block ? -1 : a->block > b->block;
}

static void sort_labels(struct placing *placing)
{
	for (uint32_t i = 0; i < placing->blocks.count; i++)
		placing->labelled[i] =
			(struct labelled){.label = placing->flow.labels[i], .block = i};
	qsort(placing->labelled, placing->blocks.count, sizeof(*placing->labelled), compare_labels);
}

/* Another block that is executed as often: one that is counted, or one that can be. */
static uint32_t find_same(const struct placing *placing, uint32_t block, bool counted)
{
	uint64_t label = placing->flow.labels[block];
	uint32_t low = 0, high = placing->blocks.count;

	while (label && low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (placing->labelled[middle].label < label)
			low = middle + 1;
		else
			high = middle;
	}
	for (uint32_t i = low; label && i < placing->blocks.count && i - low < SAME_MAX; i++) {
		const struct place_block *other = &placing->list[placing->labelled[i].block];

		if (placing->labelled[i].label != label)
			break;
		if (counted ? other->counted != BLOCKS_NONE
			    : other->counted == BLOCKS_NONE && !other->window.reason)
			return placing->labelled[i].block;
	}
	return BLOCKS_NONE;
}

static void number_places(struct placing *placing)
{
	uint32_t next = (uint32_t)(placing->functions->count + placing->places->count);

	for (uint32_t i = 0; i < placing->blocks.count; i++) {
		if (placing->kinds[i] & PLAN_FLOW_NOWHERE)
			continue;
		if (placing->options->loops && placing->blocks.list[i].is_loop_head)
			placing->list[i].loop = next++;
		if (placing->options->blocks)
			placing->list[i].block = next++;
	}
}

/* Loops first: each wants a count of its own. */
static void choose(struct placing *placing)
{
	for (uint32_t i = 0; i < placing->blocks.count; i++) {
		struct place_block *place = &placing->list[i];
		uint32_t at = i;

		if (place->loop == BLOCKS_NONE)
			continue;
		if (place->window.reason || place->counted != BLOCKS_NONE)
			at = find_same(placing, i, false);
		place->loop_counted = at != BLOCKS_NONE;
		if (place->loop_counted)
			placing->list[at].counted = place->loop;
	}
	for (uint32_t i = 0; i < placing->blocks.count; i++) {
		struct place_block *place = &placing->list[i];

		if (place->block != BLOCKS_NONE && place->counted == BLOCKS_NONE &&
		    !place->window.reason)
			place->counted = place->block;
	}
}

/* ---- what comes of it ---- */

static void add_place(struct placing *placing, uint32_t index, uint32_t number, uint16_t flag)
{
	const struct block *block = &placing->blocks.list[index];
	const struct place_block *place = &placing->list[index];
	struct plan_function *ret = &placing->places->list[placing->places->count++];
	uint32_t counted = place->counted;

	*ret = (struct plan_function){.vaddr = placing->function->vaddr + block->start,
				      .size = block->size,
				      .instructions = block->instructions,
				      .reason = place->window.reason,
				      .flags = flag};
	if (counted == BLOCKS_NONE) {
		uint32_t same = find_same(placing, index, true);
		if (same != BLOCKS_NONE)
			counted = placing->list[same].counted;
	}
	if (counted == number || (number == place->loop && place->loop_counted)) {
		ret->reason = PLAN_PATCHABLE;
	} else if (counted != BLOCKS_NONE) {
		ret->reason = PLAN_COUNTED_ELSEWHERE;
		ret->site = counted;
	}
}

static int add_places(struct placing *placing)
{
	struct plan_places *places = placing->places;
	size_t first = placing->functions->count + places->count;
	int error;

	error = blocks_reserve(&places->list, &places->capacity,
			       places->count + 2 * (size_t)placing->blocks.count,
			       sizeof(*places->list));
	if (!error)
		error = blocks_reserve(&places->patches, &places->patch_capacity,
				       places->patch_count + placing->blocks.count,
				       sizeof(*places->patches));
	for (uint32_t i = 0; !error && i < placing->blocks.count; i++) {
		const struct place_block *place = &placing->list[i];

		if (place->loop != BLOCKS_NONE)
			add_place(placing, i, place->loop, PLAN_FUNCTION_IS_LOOP);
		if (place->block != BLOCKS_NONE)
			add_place(placing, i, place->block, PLAN_FUNCTION_IS_BLOCK);
		if (place->counted != BLOCKS_NONE && place->counted >= first)
			places->patches[places->patch_count++] = (struct plan_patch){
				.window = place->window, .function = place->counted};
	}
	return error;
}

static int make_room(struct placing *placing)
{
	size_t count = placing->blocks.count;

	return blocks_reserve(&placing->kinds, &placing->kind_capacity, count,
			      sizeof(*placing->kinds)) ||
			       blocks_reserve(&placing->list, &placing->list_capacity, count,
					      sizeof(*placing->list)) ||
			       blocks_reserve(&placing->labelled, &placing->labelled_capacity,
					      count, sizeof(*placing->labelled))
		       ? -ENOMEM
		       : 0;
}

static int place_function(struct placing *placing, size_t index)
{
	int error = look_at(placing, index);

	if (error || !is_fit(placing) || (!placing->options->blocks && !placing->blocks.loops))
		return error;
	/* Ids are not without end: what comes behind them is not measured. */
	if (placing->functions->count + placing->places->count + 2 * (size_t)placing->blocks.count >
	    PLAN_ID_MAX)
		return 0;
	error = make_room(placing);
	if (!error)
		error = find_kinds(placing);
	if (!error)
		error = plan_flow_find(&placing->flow, &placing->blocks, placing->kinds);
	if (error)
		return error;
	find_windows(placing);
	sort_labels(placing);
	number_places(placing);
	choose(placing);
	return add_places(placing);
}

static int place_functions(struct placing *placing)
{
	int error = find_arrivals(placing);

	for (size_t i = 0; !error && i < placing->functions->count; i++)
		error = place_function(placing, i);
	return error;
}

int plan_places_find(const struct functions *functions, const struct plan_options *options,
		     struct plan_places *ret)
{
	struct placing placing = {.functions = functions,
				  .options = options,
				  .places = ret,
				  .image = {.ranges = functions->loaded,
					    .range_count = functions->loaded_count,
					    .code_low = functions->targets_low,
					    .code_high = functions->targets_high,
					    .splits = functions,
					    .each = each_instruction}};
	int error;

	memset(ret, 0, sizeof(*ret));
	if ((!options->loops && !options->blocks) || functions->count > PLAN_ID_MAX)
		return 0;
	placing.image.context = &placing;
	error = blocks_init(&placing.blocks);
	if (!error)
		error = place_functions(&placing);
	blocks_deinit(&placing.blocks);
	plan_flow_deinit(&placing.flow);
	free(placing.arrivals);
	free(placing.kinds);
	free(placing.list);
	free(placing.labelled);
	if (error)
		plan_places_deinit(ret);
	return error;
}

void plan_places_deinit(struct plan_places *places)
{
	free(places->list);
	free(places->patches);
	memset(places, 0, sizeof(*places));
}

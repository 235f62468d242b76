/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Loops and blocks of functions as places that are counted.
 *
 * A block is counted where five bytes of it can become a jump. Blocks that are too short for that
 * are counted with another one that is executed as often, if there is any (flow.h), and so is
 * a function's first block with the function. What remains is listed and not measured.
 *
 * Functions whose jumps are not all understood, or that hold data, have no places: a jump might
 * arrive in the middle of a patch. They are gone through twice: where parts of functions jump to
 * (cold code back into its function) has to be known beforehand.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/functions/blocks.h"
#include "binary/functions/blocks_private.h"
#include "binary/plan/flow.h"
#include "binary/plan/private.h"

#define EQUAL_BLOCKS_TRIED_MAX 64u /* blocks that are looked at for one that stands for another */

/* A block of the function that is being looked at. */
struct block_counting_state {
	struct plan_patch_window_info window;
	uint32_t loop_place_index,
		block_place_index;       /* numbers of its places; BLOCKS_INDEX_NONE: none */
	uint32_t patched_function_index; /* the function or place that is patched in it;
					    BLOCKS_INDEX_NONE */
	bool is_loop_patched; /* the loop is patched, here or in a block executed as often */
};

struct block_label_entry {
	uint64_t flow_label;
	uint32_t block_index;
};

struct counted_block_finder {
	const struct functions *functions;
	const struct plan_options *options;
	struct plan_loop_and_block_lists *places;
	const struct function *function; /* that is being looked at */
	const uint8_t *code;
	uint32_t size;
	bool has_embedded_data, is_gathering_targets;
	uint64_t *cross_function_targets; /* addresses in functions that others jump to, sorted */
	size_t cross_function_target_count, cross_function_target_capacity;
	struct basic_blocks blocks;
	struct blocks_analysis_input blocks_input;
	struct plan_block_flow_labels flow_labels;
	uint8_t *block_flow_flags;
	struct block_counting_state *list;
	struct block_label_entry *blocks_by_label; /* by label */
	size_t block_flow_flag_capacity, list_capacity, blocks_by_label_capacity;
	int error;
};

/* ---- one function ---- */

static void note_embedded_data_and_outward_jumps(void *context, uint64_t vaddr,
						 const struct instruction *instruction)
{
	struct counted_block_finder *placing = context;
	uint64_t into = instruction->target - placing->function->vaddr;

	(void)vaddr;
	if (instruction->is_rip_relative && into && into < placing->size)
		placing->has_embedded_data = true;
	if (!placing->is_gathering_targets ||
	    (instruction->flow != INSTRUCTION_JUMP && instruction->flow != INSTRUCTION_BRANCH) ||
	    into < placing->size || placing->error)
		return;
	placing->error = blocks_grow_any_array(
		&placing->cross_function_targets, &placing->cross_function_target_capacity,
		placing->cross_function_target_count + 1, sizeof(*placing->cross_function_targets));
	if (!placing->error)
		placing->cross_function_targets[placing->cross_function_target_count++] =
			instruction->target;
}

/* Functions that overlap are looked at up to the next one. */
static int find_blocks_of_function(struct counted_block_finder *placing, size_t index)
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
	placing->has_embedded_data = false;
	placing->code = functions_get_code_bytes_at(functions, function->vaddr, &left);
	if (!placing->code || left < size)
		placing->size = 0;
	error = blocks_find_in_function(&placing->blocks, &placing->blocks_input, placing->code,
					function->vaddr, placing->size);
	return error ? error : placing->error;
}

static int collect_outside_table_targets(struct counted_block_finder *placing)
{
	const struct basic_blocks *blocks = &placing->blocks;
	int error = blocks_grow_any_array(
		&placing->cross_function_targets, &placing->cross_function_target_capacity,
		placing->cross_function_target_count + blocks->table_target_count,
		sizeof(*placing->cross_function_targets));

	for (uint32_t i = 0; !error && i < blocks->table_target_count; i++) {
		if (blocks->table_targets[i] - placing->function->vaddr >= placing->size)
			placing->cross_function_targets[placing->cross_function_target_count++] =
				blocks->table_targets[i];
	}
	return error;
}

static int compare_jump_target_address(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

static int collect_targets_of_jumps_between_functions(struct counted_block_finder *placing)
{
	int error = 0;

	placing->is_gathering_targets = true;
	for (size_t i = 0; !error && i < placing->functions->count; i++) {
		error = find_blocks_of_function(placing, i);
		if (!error)
			error = collect_outside_table_targets(placing);
	}
	placing->is_gathering_targets = false;
	if (!error && placing->cross_function_target_count)
		qsort(placing->cross_function_targets, placing->cross_function_target_count,
		      sizeof(*placing->cross_function_targets), compare_jump_target_address);
	return error;
}

static bool function_blocks_can_be_counted(const struct counted_block_finder *placing)
{
	const struct basic_blocks *blocks = &placing->blocks;
	const struct function *function = placing->function;

	switch (function->reason) {
	case PLAN_PATCHABLE:
	case PLAN_TARGET_IN_WINDOW:
	case PLAN_TOO_SHORT:
	case PLAN_UNRELOCATABLE:
	case PLAN_FRAGMENT:
	case PLAN_READS_RETURN:
		return placing->size && function->instruction_count &&
		       !placing->has_embedded_data && blocks->decoded_bytes == placing->size &&
		       !blocks->unknown_table_jump_count &&
		       !blocks->has_target_inside_instruction &&
		       !(function->flags & PLAN_FUNCTION_BRANCHES_OUT);
	default:
		return false;
	}
}

/* ---- what is known of blocks ---- */

struct block_content_facts {
	bool is_only_padding; /* nothing else */
	bool calls, may_end_in_noreturn_call;
};

/* A call of what lies in other files, or has no return, may be the last thing done. */
static bool call_may_not_return(const struct counted_block_finder *placing,
				const struct instruction *instruction)
{
	const struct function *to;

	if (instruction->flow != INSTRUCTION_CALL)
		return true;
	to = functions_find_at_address(placing->functions, instruction->target);
	return !to || to->reason == PLAN_LINKER_CODE || to->flags & PLAN_FUNCTION_RETURNS_NOT;
}

static struct block_content_facts
collect_block_content_facts(const struct counted_block_finder *placing,
			    const struct basic_block *block)
{
	struct block_content_facts ret = {.is_only_padding = true};
	struct instruction instruction;

	for (uint32_t at = block->start; at < block->start + block->size;
	     at += instruction.length) {
		const uint8_t *bytes = placing->code + at;

		if (!instruction_decode(bytes, placing->size - at, placing->function->vaddr + at,
					&instruction))
			break;
		if (plan_is_padding_instruction(bytes, &instruction))
			continue;
		ret.is_only_padding = ret.may_end_in_noreturn_call = false;
		if (instruction.flow == INSTRUCTION_CALL ||
		    instruction.flow == INSTRUCTION_CALL_INDIRECT) {
			ret.calls = true;
			ret.may_end_in_noreturn_call = call_may_not_return(placing, &instruction);
		}
	}
	return ret;
}

static bool is_jumped_to_from_other_function(const struct counted_block_finder *placing,
					     uint64_t vaddr)
{
	return placing->cross_function_target_count &&
	       bsearch(&vaddr, placing->cross_function_targets,
		       placing->cross_function_target_count,
		       sizeof(*placing->cross_function_targets), compare_jump_target_address);
}

static bool block_may_leave_function(const struct basic_block *block)
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

static void mark_blocks_reached_by_branch(const struct basic_blocks *blocks, bool *branched)
{
	for (uint32_t i = 0; i < blocks->count; i++) {
		const struct basic_block *block = &blocks->list[i];

		for (uint32_t k = 0; k < block->successor_count; k++) {
			uint32_t to = blocks->successors[block->first_successor + k];
			if (to != i + 1)
				branched[to] = true;
		}
	}
}

/* Nobody sees what leads to a landing pad; and where there are any, all calls may lead there. */
static int compute_block_flow_flags(struct counted_block_finder *placing)
{
	const struct basic_blocks *blocks = &placing->blocks;
	bool *branched = calloc(blocks->count + 1, sizeof(*branched)), pads = false;

	if (!branched)
		return -ENOMEM;
	mark_blocks_reached_by_branch(blocks, branched);
	for (uint32_t i = 0; i < blocks->count; i++) {
		uint64_t vaddr = placing->function->vaddr + blocks->list[i].start;
		bool target = functions_address_is_control_target(placing->functions, vaddr);

		placing->block_flow_flags[i] = 0;
		if (i == 0 || is_jumped_to_from_other_function(placing, vaddr) ||
		    (target && !branched[i]))
			placing->block_flow_flags[i] |= PLAN_FLOW_ENTERS_GRAPH;
		else if (blocks->list[i].is_root)
			placing->block_flow_flags[i] |= PLAN_FLOW_NEVER_EXECUTED;
		pads |= i && target && !branched[i];
	}
	free(branched);
	for (uint32_t i = 0; i < blocks->count; i++) {
		struct block_content_facts found =
			collect_block_content_facts(placing, &blocks->list[i]);

		if (found.is_only_padding && blocks->list[i].is_root && i)
			placing->block_flow_flags[i] = PLAN_FLOW_NEVER_EXECUTED;
		if (block_may_leave_function(&blocks->list[i]) || found.may_end_in_noreturn_call ||
		    (pads && found.calls))
			placing->block_flow_flags[i] |= PLAN_FLOW_LEAVES_GRAPH;
	}
	return 0;
}

/* ---- where each is counted ---- */

/* The function's own patch counts its first block, and the rest of the bytes that it takes cannot
 * be patched again. */
static void find_patch_windows_of_blocks(struct counted_block_finder *placing)
{
	const struct function *function = placing->function;
	uint64_t taken = function->vaddr;
	struct plan_patch_window_info own = {.reason = PLAN_TOO_SHORT};

	if (!function->reason)
		plan_patch_window_find_at_entry(placing->functions, function, &own);
	if (!own.reason && !plan_patch_window_can_move(placing->functions, &own))
		own.reason = PLAN_UNRELOCATABLE;
	if (!own.reason)
		taken = own.at +
			(own.size > JUMP_INSTRUCTION_BYTES ? own.size : JUMP_INSTRUCTION_BYTES);
	for (uint32_t i = 0; i < placing->blocks.count; i++) {
		const struct basic_block *block = &placing->blocks.list[i];
		struct block_counting_state *place = &placing->list[i];
		uint64_t at = function->vaddr + block->start, end = at + block->size;

		*place = (struct block_counting_state){.loop_place_index = BLOCKS_INDEX_NONE,
						       .block_place_index = BLOCKS_INDEX_NONE,
						       .patched_function_index = BLOCKS_INDEX_NONE,
						       .window.reason = PLAN_OVERLAPS};
		at = at < taken ? taken : at;
		if (at < end && !(placing->block_flow_flags[i] & PLAN_FLOW_NEVER_EXECUTED))
			plan_patch_window_find_in_block(
				placing->functions, at, (uint32_t)(end - at),
				(uint32_t)(function->vaddr + function->space - at), &place->window);
	}
	if (!own.reason)
		placing->list[0].patched_function_index =
			(uint32_t)(function - placing->functions->list);
}

static int compare_block_by_label(const void *left, const void *right)
{
	const struct block_label_entry *a = left, *b = right;

	if (a->flow_label != b->flow_label)
		return a->flow_label < b->flow_label ? -1 : 1;
	return a->block_index < b->block_index ? -1 : a->block_index > b->block_index;
}

static void sort_blocks_by_label(struct counted_block_finder *placing)
{
	for (uint32_t i = 0; i < placing->blocks.count; i++)
		placing->blocks_by_label[i] = (struct block_label_entry){
			.flow_label = placing->flow_labels.labels[i], .block_index = i};
	qsort(placing->blocks_by_label, placing->blocks.count, sizeof(*placing->blocks_by_label),
	      compare_block_by_label);
}

/* Another block that is executed as often: one that is counted, or one that can be. */
static uint32_t find_equally_executed_block(const struct counted_block_finder *placing,
					    uint32_t block, bool counted)
{
	uint64_t label = placing->flow_labels.labels[block];
	uint32_t low = 0, high = placing->blocks.count;

	while (label && low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (placing->blocks_by_label[middle].flow_label < label)
			low = middle + 1;
		else
			high = middle;
	}
	for (uint32_t i = low;
	     label && i < placing->blocks.count && i - low < EQUAL_BLOCKS_TRIED_MAX; i++) {
		const struct block_counting_state *other =
			&placing->list[placing->blocks_by_label[i].block_index];

		if (placing->blocks_by_label[i].flow_label != label)
			break;
		if (counted ? other->patched_function_index != BLOCKS_INDEX_NONE
			    : other->patched_function_index == BLOCKS_INDEX_NONE &&
				      !other->window.reason)
			return placing->blocks_by_label[i].block_index;
	}
	return BLOCKS_INDEX_NONE;
}

static void assign_loop_and_block_numbers(struct counted_block_finder *placing)
{
	uint32_t next = (uint32_t)(placing->functions->count + placing->places->count);

	for (uint32_t i = 0; i < placing->blocks.count; i++) {
		if (placing->block_flow_flags[i] & PLAN_FLOW_NEVER_EXECUTED)
			continue;
		if (placing->options->has_loop_places && placing->blocks.list[i].is_loop_head)
			placing->list[i].loop_place_index = next++;
		if (placing->options->has_block_places)
			placing->list[i].block_place_index = next++;
	}
}

/* Loops first: each wants a count of its own. */
static void choose_counted_blocks(struct counted_block_finder *placing)
{
	for (uint32_t i = 0; i < placing->blocks.count; i++) {
		struct block_counting_state *place = &placing->list[i];
		uint32_t at = i;

		if (place->loop_place_index == BLOCKS_INDEX_NONE)
			continue;
		if (place->window.reason || place->patched_function_index != BLOCKS_INDEX_NONE)
			at = find_equally_executed_block(placing, i, false);
		place->is_loop_patched = at != BLOCKS_INDEX_NONE;
		if (place->is_loop_patched)
			placing->list[at].patched_function_index = place->loop_place_index;
	}
	for (uint32_t i = 0; i < placing->blocks.count; i++) {
		struct block_counting_state *place = &placing->list[i];

		if (place->block_place_index != BLOCKS_INDEX_NONE &&
		    place->patched_function_index == BLOCKS_INDEX_NONE && !place->window.reason)
			place->patched_function_index = place->block_place_index;
	}
}

/* ---- what comes of it ---- */

static void add_plan_loop_or_block(struct counted_block_finder *placing, uint32_t index,
				   uint32_t number, uint16_t flag)
{
	const struct basic_block *block = &placing->blocks.list[index];
	const struct block_counting_state *place = &placing->list[index];
	struct plan_function *ret = &placing->places->list[placing->places->count++];
	uint32_t counted = place->patched_function_index;

	*ret = (struct plan_function){.vaddr = placing->function->vaddr + block->start,
				      .size = block->size,
				      .instructions = block->instructions,
				      .reason = place->window.reason,
				      .flags = flag};
	if (counted == BLOCKS_INDEX_NONE) {
		uint32_t same = find_equally_executed_block(placing, index, true);
		if (same != BLOCKS_INDEX_NONE)
			counted = placing->list[same].patched_function_index;
	}
	if (counted == number || (number == place->loop_place_index && place->is_loop_patched)) {
		ret->reason = PLAN_PATCHABLE;
	} else if (counted != BLOCKS_INDEX_NONE) {
		ret->reason = PLAN_COUNTED_ELSEWHERE;
		ret->site = counted;
	}
}

static int add_loops_and_blocks_of_function(struct counted_block_finder *placing)
{
	struct plan_loop_and_block_lists *places = placing->places;
	size_t first = placing->functions->count + places->count;
	int error;

	error = blocks_grow_any_array(&places->list, &places->capacity,
				      places->count + 2 * (size_t)placing->blocks.count,
				      sizeof(*places->list));
	if (!error)
		error = blocks_grow_any_array(&places->block_patches, &places->block_patch_capacity,
					      places->block_patch_count + placing->blocks.count,
					      sizeof(*places->block_patches));
	for (uint32_t i = 0; !error && i < placing->blocks.count; i++) {
		const struct block_counting_state *place = &placing->list[i];

		if (place->loop_place_index != BLOCKS_INDEX_NONE)
			add_plan_loop_or_block(placing, i, place->loop_place_index,
					       PLAN_FUNCTION_IS_LOOP);
		if (place->block_place_index != BLOCKS_INDEX_NONE)
			add_plan_loop_or_block(placing, i, place->block_place_index,
					       PLAN_FUNCTION_IS_BLOCK);
		if (place->patched_function_index != BLOCKS_INDEX_NONE &&
		    place->patched_function_index >= first)
			places->block_patches[places->block_patch_count++] =
				(struct plan_block_patch){.window = place->window,
							  .function =
								  place->patched_function_index};
	}
	return error;
}

static int reserve_block_arrays(struct counted_block_finder *placing)
{
	size_t count = placing->blocks.count;

	return blocks_grow_any_array(&placing->block_flow_flags, &placing->block_flow_flag_capacity,
				     count, sizeof(*placing->block_flow_flags)) ||
			       blocks_grow_any_array(&placing->list, &placing->list_capacity, count,
						     sizeof(*placing->list)) ||
			       blocks_grow_any_array(&placing->blocks_by_label,
						     &placing->blocks_by_label_capacity, count,
						     sizeof(*placing->blocks_by_label))
		       ? -ENOMEM
		       : 0;
}

static int find_loops_and_blocks_of_function(struct counted_block_finder *placing, size_t index)
{
	int error = find_blocks_of_function(placing, index);

	if (error || !function_blocks_can_be_counted(placing) ||
	    (!placing->options->has_block_places && !placing->blocks.loops))
		return error;
	/* Ids are not without end: what comes behind them is not measured. */
	if (placing->functions->count + placing->places->count + 2 * (size_t)placing->blocks.count >
	    PLAN_ID_MAX)
		return 0;
	error = reserve_block_arrays(placing);
	if (!error)
		error = compute_block_flow_flags(placing);
	if (!error)
		error = plan_label_equally_executed_blocks(&placing->flow_labels, &placing->blocks,
							   placing->block_flow_flags);
	if (error)
		return error;
	find_patch_windows_of_blocks(placing);
	sort_blocks_by_label(placing);
	assign_loop_and_block_numbers(placing);
	choose_counted_blocks(placing);
	return add_loops_and_blocks_of_function(placing);
}

static int find_all_loops_and_blocks(struct counted_block_finder *placing)
{
	int error = collect_targets_of_jumps_between_functions(placing);

	for (size_t i = 0; !error && i < placing->functions->count; i++)
		error = find_loops_and_blocks_of_function(placing, i);
	return error;
}

int plan_loop_and_block_lists_init(const struct functions *functions,
				   const struct plan_options *options,
				   struct plan_loop_and_block_lists *ret)
{
	struct counted_block_finder placing = {
		.functions = functions,
		.options = options,
		.places = ret,
		.blocks_input = {.ranges = functions->loaded_ranges,
				 .range_count = functions->loaded_range_count,
				 .code_low = functions->targets_low,
				 .code_high = functions->targets_high,
				 .split_at_targets_of = functions,
				 .each = note_embedded_data_and_outward_jumps}};
	int error;

	memset(ret, 0, sizeof(*ret));
	if ((!options->has_loop_places && !options->has_block_places) ||
	    functions->count > PLAN_ID_MAX)
		return 0;
	placing.blocks_input.context = &placing;
	error = blocks_init(&placing.blocks);
	if (!error)
		error = find_all_loops_and_blocks(&placing);
	blocks_deinit(&placing.blocks);
	plan_block_flow_labels_deinit(&placing.flow_labels);
	free(placing.cross_function_targets);
	free(placing.block_flow_flags);
	free(placing.list);
	free(placing.blocks_by_label);
	if (error)
		plan_loop_and_block_lists_deinit(ret);
	return error;
}

void plan_loop_and_block_lists_deinit(struct plan_loop_and_block_lists *places)
{
	free(places->list);
	free(places->block_patches);
	memset(places, 0, sizeof(*places));
}

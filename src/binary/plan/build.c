/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * From functions to a plan: the window of each, its stub, its patch, and all of it laid out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/plan/private.h"

/* What a function's stub and unwind tables take at most, on average. */
#define STUB_AND_UNWIND_BYTES_ESTIMATE 320u

struct plan_builder {
	const struct elf_file *file;
	const struct functions *functions;
	struct stubs stubs;
	struct plan_loop_and_block_lists places;
	struct plan_function *list;
	struct plan_site *sites;
	size_t count, site_count;
	struct plan_table frames; /* offset in the arena */
};

static void write_jump_to_stub(const struct plan_builder *building, struct plan_site *site,
			       uint32_t stub)
{
	uint64_t to = building->stubs.arena_vaddr + stub;
	uint32_t distance = (uint32_t)(to - (site->vaddr + JUMP_INSTRUCTION_BYTES));

	site->patched[0] = 0xe9; /* jmp rel32 */
	memcpy(site->patched + 1, &distance, sizeof(distance));
}

static int add_stub_and_patch_site(struct plan_builder *building, enum stub_kind kind,
				   size_t number, const struct plan_patch_window_info *window)
{
	struct plan_function *function = &building->list[number];
	struct plan_site *site = &building->sites[building->site_count];
	size_t left;
	const uint8_t *bytes = functions_get_code_bytes_at(building->functions, window->at, &left);
	int64_t stub;

	memset(site, 0, sizeof(*site));
	site->vaddr = window->at;
	site->function = (uint32_t)number;
	site->length = JUMP_INSTRUCTION_BYTES;
	site->window = (uint8_t)window->size;
	memcpy(site->original, bytes, JUMP_INSTRUCTION_BYTES);
	stub = stubs_append_stub(&building->stubs, kind, (uint32_t)number, bytes, window->at,
				 window->size, site);
	if (stub == -ENOTSUP || stub == -ERANGE) {
		function->reason = stub == -ENOTSUP ? PLAN_UNRELOCATABLE : PLAN_NO_SPACE;
		return 0;
	}
	if (stub < 0)
		return (int)stub;
	write_jump_to_stub(building, site,
			   (uint32_t)stub + (kind == STUB_KIND_FUNCTION ? PLAN_STUB_ENTRY : 0));
	function->stub = (uint32_t)stub;
	function->site = (uint32_t)building->site_count++;
	function->how = window->patch_how;
	return 0;
}

static int add_all_functions_to_plan(struct plan_builder *building)
{
	const struct functions *functions = building->functions;
	int error = 0;

	for (size_t i = 0; !error && i < functions->count; i++) {
		const struct function *function = &functions->list[i];
		struct plan_patch_window_info window;
		building->list[i] =
			(struct plan_function){.vaddr = function->vaddr,
					       .size = function->size,
					       .instructions = function->instruction_count,
					       .reason = function->reason,
					       .flags = function->flags,
					       .loops = function->loops,
					       .blocks = function->blocks};
		if (function->reason)
			continue;
		plan_patch_window_find_at_entry(functions, function, &window);
		building->list[i].reason = window.reason;
		if (!window.reason)
			error = add_stub_and_patch_site(building, STUB_KIND_FUNCTION, i, &window);
	}
	building->count = functions->count;
	return error;
}

/* What was to be counted with something that could not be patched after all is not measured. */
static void mark_blocks_whose_counting_patch_failed(struct plan_builder *building)
{
	for (size_t i = building->functions->count; i < building->count; i++) {
		struct plan_function *place = &building->list[i];

		if (place->reason == PLAN_COUNTED_ELSEWHERE && !building->list[place->site].stub)
			place->reason = PLAN_NO_SPACE;
	}
}

static int add_all_loops_and_blocks_to_plan(struct plan_builder *building)
{
	const struct plan_loop_and_block_lists *places = &building->places;
	int error = 0;

	if (places->count)
		memcpy(building->list + building->count, places->list,
		       places->count * sizeof(*places->list));
	building->count += places->count;
	for (size_t i = 0; !error && i < places->block_patch_count; i++)
		error = add_stub_and_patch_site(building, STUB_KIND_LOOP_OR_BLOCK,
						places->block_patches[i].function,
						&places->block_patches[i].window);
	mark_blocks_whose_counting_patch_failed(building);
	return error;
}

static uint64_t align_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) & ~(to - 1);
}

static void fill_plan_header(const struct plan_builder *building,
			     const struct plan_options *options, struct plan_header *header)
{
	const struct elf_file *file = building->file;
	const struct stubs *stubs = &building->stubs;
	uint64_t at = align_up(sizeof(*header), 64);

	*header = (struct plan_header){
		.magic = PLAN_MAGIC,
		.version = PLAN_VERSION,
		.header_size = sizeof(*header),
		.build_id_size = file->build_id_size,
		.variant = plan_options_to_variant_number(options),
		.file_size = file->size,
		.low = building->functions->low,
		.high = building->functions->high,
		.foreign_low = building->functions->foreign_code_low,
		.foreign_high = building->functions->foreign_code_high,
		.set_resolver = building->functions->v8_set_resolver_vaddr,
		.module_flags =
			(building->functions->shifts_frames ? PLAN_MODULE_COPIES_STACKS : 0) |
			(building->functions->unwinds_by_itself ? PLAN_MODULE_UNWINDS_BY_ITSELF
								: 0) |
			(building->functions->asks_frame_addresses
				 ? PLAN_MODULE_ASKS_FRAME_ADDRESSES
				 : 0),
		.arena_vaddr = stubs->arena_vaddr,
		.arena_size = align_up(PLAN_STUBS + stubs->size, PLAN_PAGE),
	};
	memcpy(header->build_id, file->build_id, file->build_id_size);
	header->functions = (struct plan_table){at, building->count};
	at += building->count * sizeof(struct plan_function);
	header->sites = (struct plan_table){at, building->site_count};
	at += building->site_count * sizeof(struct plan_site);
	header->moves = (struct plan_table){at, stubs->move_count};
	at = align_up(at + stubs->move_count * sizeof(struct plan_move), PLAN_PAGE);
	header->stubs = (struct plan_table){at, stubs->size};
	if (building->frames.count)
		header->frames = (struct plan_table){at + building->frames.offset - PLAN_STUBS,
						     building->frames.count};
	/* Whole pages, so that mapping the last one gives zeros and no surprise. */
	header->plan_size = align_up(at + stubs->size, PLAN_PAGE);
}

static void copy_if_not_empty(uint8_t *to, const void *from, size_t size)
{
	if (size)
		memcpy(to, from, size);
}

static int serialize_plan(const struct plan_builder *building, const struct plan_options *options,
			  struct plan *ret)
{
	struct plan_header header;
	uint8_t *bytes;

	fill_plan_header(building, options, &header);
	bytes = calloc(1, header.plan_size);
	if (!bytes)
		return -ENOMEM;
	copy_if_not_empty(bytes + header.functions.offset, building->list,
			  building->count * sizeof(struct plan_function));
	copy_if_not_empty(bytes + header.sites.offset, building->sites,
			  building->site_count * sizeof(struct plan_site));
	copy_if_not_empty(bytes + header.moves.offset, building->stubs.moves,
			  building->stubs.move_count * sizeof(struct plan_move));
	copy_if_not_empty(bytes + header.stubs.offset, building->stubs.bytes, building->stubs.size);
	memcpy(bytes, &header, sizeof(header));
	header.checksum = plan_compute_checksum((const void *)bytes);
	memcpy(bytes, &header, sizeof(header));
	ret->header = (const void *)bytes;
	ret->size = header.plan_size;
	return 0;
}

static int build_parts_and_serialize_plan(struct plan_builder *building,
					  const struct plan_options *options, struct plan *ret)
{
	const struct functions *functions = building->functions;
	uint64_t room, place;
	size_t count;
	int error;

	if (functions->count > PLAN_ID_MAX)
		return -E2BIG;
	error = plan_loop_and_block_lists_init(functions, options, &building->places);
	if (error)
		return error;
	count = functions->count + building->places.count;
	room = PLAN_STUBS + 64 * (uint64_t)PLAN_PAGE + count * STUB_AND_UNWIND_BYTES_ESTIMATE;
	error = plan_choose_arena_address(building->file, functions, options->arena_placement, room,
					  &place);
	if (error)
		return error;
	building->list = calloc(count + 1, sizeof(*building->list));
	building->sites = calloc(count + 1, sizeof(*building->sites));
	if (!building->list || !building->sites)
		return -ENOMEM;
	error = stubs_init(&building->stubs, place);
	if (!error)
		error = add_all_functions_to_plan(building);
	if (!error)
		error = add_all_loops_and_blocks_to_plan(building);
	if (!error)
		error = stubs_append_unwind_tables(&building->stubs, &functions->frames,
						   building->list, building->count, building->sites,
						   &building->frames);
	if (!error && PLAN_STUBS + building->stubs.size > room)
		error = -ENOSPC;
	return error ? error : serialize_plan(building, options, ret);
}

int plan_build(const struct elf_file *file, const struct functions *functions,
	       const struct plan_options *options, struct plan *ret, struct problem *problem)
{
	struct plan_builder building = {.file = file, .functions = functions};
	int error;

	memset(ret, 0, sizeof(*ret));
	error = build_parts_and_serialize_plan(&building, options, ret);
	stubs_deinit(&building.stubs);
	plan_loop_and_block_lists_deinit(&building.places);
	free(building.list);
	free(building.sites);
	if (error == -ENOSPC)
		return problem_set(problem, error, "%s: too large: no room for stubs within reach",
				   file->path);
	if (error)
		return problem_set(problem, error, "%s: no plan can be made: %s", file->path,
				   strerror(-error));
	return 0;
}

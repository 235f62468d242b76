/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * From functions to a plan: the window of each, its stub, its patch, and all of it laid out.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/plan_internal.h"

/* What a function's stub and unwind tables take at most, on average. */
#define STUB_ROOM 320u

struct building {
	const struct elf_file *file;
	const struct functions *functions;
	struct stubs stubs;
	struct plan_places places;
	struct plan_function *list;
	struct plan_site *sites;
	size_t count, site_count;
	struct plan_table frames; /* offset in the arena */
};

static void put_jump(const struct building *building, struct plan_site *site, uint32_t stub)
{
	uint64_t to = building->stubs.arena_vaddr + stub;
	uint32_t distance = (uint32_t)(to - (site->vaddr + JUMP_SIZE));

	site->patched[0] = 0xe9; /* jmp rel32 */
	memcpy(site->patched + 1, &distance, sizeof(distance));
}

static int add_site(struct building *building, enum stub_kind kind, size_t number,
		    const struct plan_window *window)
{
	struct plan_function *function = &building->list[number];
	struct plan_site *site = &building->sites[building->site_count];
	size_t left;
	const uint8_t *bytes = functions_bytes(building->functions, window->at, &left);
	int64_t stub;

	memset(site, 0, sizeof(*site));
	site->vaddr = window->at;
	site->function = (uint32_t)number;
	site->length = JUMP_SIZE;
	site->window = (uint8_t)window->size;
	memcpy(site->original, bytes, JUMP_SIZE);
	stub = stubs_add(&building->stubs, kind, (uint32_t)number, bytes, window->at, window->size,
			 site);
	if (stub == -ENOTSUP || stub == -ERANGE) {
		function->reason = stub == -ENOTSUP ? PLAN_UNRELOCATABLE : PLAN_NO_SPACE;
		return 0;
	}
	if (stub < 0)
		return (int)stub;
	put_jump(building, site, (uint32_t)stub + (kind == STUB_FUNCTION ? PLAN_STUB_ENTRY : 0));
	function->stub = (uint32_t)stub;
	function->site = (uint32_t)building->site_count++;
	function->how = window->how;
	return 0;
}

static int add_functions(struct building *building)
{
	const struct functions *functions = building->functions;
	int error = 0;

	for (size_t i = 0; !error && i < functions->count; i++) {
		const struct function *function = &functions->list[i];
		struct plan_window window;
		building->list[i] = (struct plan_function){.vaddr = function->vaddr,
							   .size = function->size,
							   .instructions = function->instructions,
							   .reason = function->reason,
							   .flags = function->flags,
							   .loops = function->loops,
							   .blocks = function->blocks};
		if (function->reason)
			continue;
		plan_window_find(functions, function, &window);
		building->list[i].reason = window.reason;
		if (!window.reason)
			error = add_site(building, STUB_FUNCTION, i, &window);
	}
	building->count = functions->count;
	return error;
}

/* What was to be counted with something that could not be patched after all is not measured. */
static void check_elsewhere(struct building *building)
{
	for (size_t i = building->functions->count; i < building->count; i++) {
		struct plan_function *place = &building->list[i];

		if (place->reason == PLAN_COUNTED_ELSEWHERE && !building->list[place->site].stub)
			place->reason = PLAN_NO_SPACE;
	}
}

static int add_places(struct building *building)
{
	const struct plan_places *places = &building->places;
	int error = 0;

	if (places->count)
		memcpy(building->list + building->count, places->list,
		       places->count * sizeof(*places->list));
	building->count += places->count;
	for (size_t i = 0; !error && i < places->patch_count; i++)
		error = add_site(building, STUB_PLACE, places->patches[i].function,
				 &places->patches[i].window);
	check_elsewhere(building);
	return error;
}

static uint64_t aligned(uint64_t value, uint64_t to)
{
	return (value + to - 1) & ~(to - 1);
}

static void fill_header(const struct building *building, const struct plan_options *options,
			struct plan_header *header)
{
	const struct elf_file *file = building->file;
	const struct stubs *stubs = &building->stubs;
	uint64_t at = aligned(sizeof(*header), 64);

	*header = (struct plan_header){
		.magic = PLAN_MAGIC,
		.version = PLAN_VERSION,
		.header_size = sizeof(*header),
		.build_id_size = file->build_id_size,
		.variant = plan_variant(options),
		.file_size = file->size,
		.low = building->functions->low,
		.high = building->functions->high,
		.foreign_low = building->functions->foreign_low,
		.foreign_high = building->functions->foreign_high,
		.set_resolver = building->functions->set_resolver,
		.arena_vaddr = stubs->arena_vaddr,
		.arena_size = aligned(PLAN_STUBS + stubs->size, PLAN_PAGE),
	};
	memcpy(header->build_id, file->build_id, file->build_id_size);
	header->functions = (struct plan_table){at, building->count};
	at += building->count * sizeof(struct plan_function);
	header->sites = (struct plan_table){at, building->site_count};
	at += building->site_count * sizeof(struct plan_site);
	header->moves = (struct plan_table){at, stubs->move_count};
	at = aligned(at + stubs->move_count * sizeof(struct plan_move), PLAN_PAGE);
	header->stubs = (struct plan_table){at, stubs->size};
	if (building->frames.count)
		header->frames = (struct plan_table){at + building->frames.offset - PLAN_STUBS,
						     building->frames.count};
	/* Whole pages, so that mapping the last one gives zeros and no surprise. */
	header->plan_size = aligned(at + stubs->size, PLAN_PAGE);
}

static void copy(uint8_t *to, const void *from, size_t size)
{
	if (size)
		memcpy(to, from, size);
}

static int lay_out(const struct building *building, const struct plan_options *options,
		   struct plan *ret)
{
	struct plan_header header;
	uint8_t *bytes;

	fill_header(building, options, &header);
	bytes = calloc(1, header.plan_size);
	if (!bytes)
		return -ENOMEM;
	copy(bytes + header.functions.offset, building->list,
	     building->count * sizeof(struct plan_function));
	copy(bytes + header.sites.offset, building->sites,
	     building->site_count * sizeof(struct plan_site));
	copy(bytes + header.moves.offset, building->stubs.moves,
	     building->stubs.move_count * sizeof(struct plan_move));
	copy(bytes + header.stubs.offset, building->stubs.bytes, building->stubs.size);
	memcpy(bytes, &header, sizeof(header));
	header.checksum = plan_checksum((const void *)bytes);
	memcpy(bytes, &header, sizeof(header));
	ret->header = (const void *)bytes;
	ret->size = header.plan_size;
	return 0;
}

static int build(struct building *building, const struct plan_options *options, struct plan *ret)
{
	const struct functions *functions = building->functions;
	uint64_t room, place;
	size_t count;
	int error;

	if (functions->count > PLAN_ID_MAX)
		return -E2BIG;
	error = plan_places_find(functions, options, &building->places);
	if (error)
		return error;
	count = functions->count + building->places.count;
	room = PLAN_STUBS + 64 * (uint64_t)PLAN_PAGE + count * STUB_ROOM;
	error = plan_place(building->file, functions, options->placement, room, &place);
	if (error)
		return error;
	building->list = calloc(count + 1, sizeof(*building->list));
	building->sites = calloc(count + 1, sizeof(*building->sites));
	if (!building->list || !building->sites)
		return -ENOMEM;
	error = stubs_init(&building->stubs, place);
	if (!error)
		error = add_functions(building);
	if (!error)
		error = add_places(building);
	if (!error)
		error = stubs_add_frames(&building->stubs, &functions->frames, building->list,
					 building->count, building->sites, &building->frames);
	if (!error && PLAN_STUBS + building->stubs.size > room)
		error = -ENOSPC;
	return error ? error : lay_out(building, options, ret);
}

int plan_build(const struct elf_file *file, const struct functions *functions,
	       const struct plan_options *options, struct plan *ret, struct problem *problem)
{
	struct building building = {.file = file, .functions = functions};
	int error;

	memset(ret, 0, sizeof(*ret));
	error = build(&building, options, ret);
	stubs_deinit(&building.stubs);
	plan_places_deinit(&building.places);
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

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Reading plans. What comes from a file is checked before anything relies on it: its structure by
 * plan_valid(), its contents by a checksum of the tables and of a piece of each page of stubs,
 * which is against files that a crash left with holes, not against malice (whoever can write to the
 * cache of a user can run code as that user anyway).
 */
#include "binary/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PLAN_SIZE_MAX ((uint64_t)1 << 31)
#define REACH_MAX     ((uint64_t)1 << 31)
#define SAMPLE_SIZE   64u

static bool table_valid(const struct plan_header *header, const struct plan_table *table,
			size_t element)
{
	return table->offset % 8 == 0 && table->offset >= header->header_size &&
	       table->offset <= header->plan_size &&
	       table->count <= (header->plan_size - table->offset) / element;
}

static bool header_valid(const struct plan_header *header, size_t size)
{
	const struct plan_table *stubs = &header->stubs, *frames = &header->frames;

	if (size < sizeof(*header) || memcmp(header->magic, PLAN_MAGIC, sizeof(header->magic)) ||
	    header->version != PLAN_VERSION || header->header_size != sizeof(*header) ||
	    header->plan_size > size || header->plan_size > PLAN_SIZE_MAX ||
	    header->build_id_size > sizeof(header->build_id))
		return false;
	if (header->low > header->high || header->arena_vaddr % PLAN_PAGE ||
	    header->arena_size % PLAN_PAGE || header->arena_size < PLAN_STUBS ||
	    header->arena_size > REACH_MAX || header->high - header->low > REACH_MAX)
		return false;
	if (header->set_resolver &&
	    (header->set_resolver < header->low || header->set_resolver >= header->high))
		return false;
	if (!table_valid(header, stubs, 1) || stubs->offset % PLAN_PAGE ||
	    stubs->count > header->arena_size - PLAN_STUBS ||
	    !table_valid(header, &header->functions, sizeof(struct plan_function)) ||
	    !table_valid(header, &header->sites, sizeof(struct plan_site)) ||
	    !table_valid(header, &header->moves, sizeof(struct plan_move)))
		return false;
	return frames->count == 0 ||
	       (frames->offset >= stubs->offset && frames->offset - stubs->offset <= stubs->count &&
		frames->count <= stubs->count - (frames->offset - stubs->offset));
}

static bool function_valid(const struct plan_header *header, const struct plan_function *function)
{
	if (function->reason >= PLAN_REASON_COUNT || function->how > PLAN_HOW_ISLAND ||
	    function->vaddr < header->low || function->vaddr >= header->high)
		return false;
	if (function->stub == 0)
		return function->reason != PLAN_PATCHABLE &&
		       (function->reason != PLAN_COUNTED_ELSEWHERE ||
			function->site < header->functions.count);
	return function->reason == PLAN_PATCHABLE && function->stub >= PLAN_STUBS &&
	       function->stub % PLAN_STUB_ALIGN == 0 &&
	       function->stub - PLAN_STUBS < header->stubs.count &&
	       header->stubs.count - (function->stub - PLAN_STUBS) > PLAN_STUB_EXIT &&
	       function->site < header->sites.count;
}

static bool functions_valid(const struct plan *plan)
{
	const struct plan_function *functions = plan_functions(plan);

	for (uint64_t i = 0; i < plan->header->functions.count; i++) {
		if (!function_valid(plan->header, &functions[i]))
			return false;
	}
	return true;
}

static bool moves_valid(const struct plan *plan, const struct plan_site *site)
{
	const struct plan_header *header = plan->header;
	const struct plan_move *moves = plan_moves(plan) + site->first_move;

	if (site->first_move > header->moves.count ||
	    site->move_count > header->moves.count - site->first_move)
		return false;
	for (uint32_t i = 0; i < site->move_count; i++) {
		if (moves[i].from >= site->window || moves[i].to < PLAN_STUBS ||
		    moves[i].to - PLAN_STUBS >= header->stubs.count)
			return false;
	}
	return true;
}

static bool is_place(const struct plan *plan, const struct plan_site *site)
{
	return plan_functions(plan)[site->function].flags & PLAN_PLACES;
}

static bool sites_valid(const struct plan *plan)
{
	const struct plan_header *header = plan->header;
	const struct plan_site *sites = plan_sites(plan);

	for (uint64_t i = 0; i < header->sites.count; i++) {
		const struct plan_site *site = &sites[i];
		if (site->vaddr < header->low || site->vaddr >= header->high ||
		    header->high - site->vaddr < site->length || site->length == 0 ||
		    site->length > sizeof(site->original) ||
		    site->function >= header->functions.count ||
		    site->island > header->sites.count || !moves_valid(plan, site))
			return false;
		/* In the order of addresses and apart: nobody writes a byte twice. Those of places
		 * begin anew. */
		if (i && is_place(plan, site) == is_place(plan, &sites[i - 1]) &&
		    !sites[i].island && sites[i - 1].vaddr >= site->vaddr)
			return false;
		if (i && is_place(plan, &sites[i - 1]) > is_place(plan, site))
			return false;
	}
	return true;
}

bool plan_valid(const void *bytes, size_t size)
{
	struct plan plan = {.header = bytes, .size = size};

	return (uintptr_t)bytes % 8 == 0 && header_valid(plan.header, size) &&
	       functions_valid(&plan) && sites_valid(&plan);
}

/* Four lanes of multiply and rotate, as fast as memory is read. */
static void add_bytes(uint64_t lanes[4], const uint8_t *bytes, size_t size)
{
	const uint64_t factor = 0x9e3779b97f4a7c15;
	uint64_t words[4] = {0};

	for (size_t at = 0; at < size; at += sizeof(words)) {
		size_t left = size - at;
		memcpy(words, bytes + at, left < sizeof(words) ? left : sizeof(words));
		for (unsigned i = 0; i < 4; i++) {
			uint64_t sum = (lanes[i] ^ words[i]) * factor;
			lanes[i] = sum ^ sum >> 32;
		}
	}
}

uint64_t plan_checksum(const struct plan_header *plan)
{
	const uint8_t *bytes = (const uint8_t *)plan;
	uint64_t lanes[4] = {1, 2, 3, 4};

	add_bytes(lanes, bytes + sizeof(*plan), plan->stubs.offset - sizeof(*plan));
	for (size_t at = plan->stubs.offset; plan->plan_size - at >= PLAN_PAGE; at += PLAN_PAGE)
		add_bytes(lanes, bytes + at, SAMPLE_SIZE);
	return lanes[0] ^ (lanes[1] << 1) ^ (lanes[2] << 2) ^ (lanes[3] << 3);
}

static int check(struct plan *plan, const char *path, struct problem *problem)
{
	if (!plan_valid(plan->header, plan->size) ||
	    plan_checksum(plan->header) != plan->header->checksum)
		return problem_set(problem, -EBADMSG, "%s: the patch plan is damaged", path);
	return 0;
}

static int map_file(int file, struct plan *ret)
{
	struct stat status;
	void *bytes;

	if (fstat(file, &status))
		return -errno;
	if ((uint64_t)status.st_size < sizeof(*ret->header) ||
	    (uint64_t)status.st_size > PLAN_SIZE_MAX)
		return -EBADMSG;
	bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	ret->header = bytes;
	ret->size = (size_t)status.st_size;
	ret->mapped = true;
	return 0;
}

/* The plan that is a part of a rewritten file. */
static int read_embedded(const char *path, struct plan *ret, struct problem *problem)
{
	const struct elf_section *section;
	struct elf_data data;
	struct elf_file *file;
	int error = elf_open(path, &file, problem);

	if (error)
		return error;
	section = elf_section_find(file, ".kymo.plan");
	error = section ? elf_section_read(file, section, &data) : -ENOEXEC;
	elf_close(file);
	if (error)
		return problem_set(problem, error == -ENOMEM ? error : -ENOEXEC,
				   "%s: holds no patch plan", path);
	ret->header = (const void *)data.bytes;
	ret->size = data.size;
	return 0;
}

int plan_open(const char *path, struct plan *ret, struct problem *problem)
{
	char magic[sizeof(PLAN_MAGIC)] = "";
	int file = open(path, O_RDONLY | O_CLOEXEC), error;

	memset(ret, 0, sizeof(*ret));
	if (file < 0)
		return problem_set(problem, -errno, "cannot open '%s': %s", path, strerror(errno));
	if (pread(file, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
	    !memcmp(magic, PLAN_MAGIC, sizeof(magic))) {
		error = map_file(file, ret);
		if (error)
			problem_set(problem, error, "%s: the patch plan cannot be read: %s", path,
				    strerror(-error));
	} else {
		error = read_embedded(path, ret, problem);
	}
	close(file);
	if (!error)
		error = check(ret, path, problem);
	if (error)
		plan_close(ret);
	else
		snprintf(ret->path, sizeof(ret->path), "%s", ret->mapped ? path : "");
	return error;
}

void plan_close(struct plan *plan)
{
	if (plan->mapped)
		munmap((void *)(uintptr_t)plan->header, plan->size);
	else
		free((void *)(uintptr_t)plan->header);
	memset(plan, 0, sizeof(*plan));
}

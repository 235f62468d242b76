/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Reading plans. What comes from a file is checked before anything relies on it: its structure by
 * plan_is_valid(), its contents by a checksum of all bytes. That is against damage; a plan's stubs
 * become code of the program, so one from the cache must also be the user's own (load.c).
 */
#include "binary/plan/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/checksum.h"
#include "common/foreign_file.h"

#define PLAN_BYTES_MAX   ((uint64_t)1 << 31)
#define ARENA_BYTES_MAX  ((uint64_t)1 << 31)
#define MODULE_BYTES_MAX ((uint64_t)1 << 46) /* with its data */

static bool is_plan_table_valid(const struct plan_header *header, const struct plan_table *table,
				size_t element)
{
	return table->offset % 8 == 0 && table->offset >= header->header_size &&
	       table->offset <= header->plan_size &&
	       table->count <= (header->plan_size - table->offset) / element;
}

static bool is_plan_header_valid(const struct plan_header *header, size_t size)
{
	const struct plan_table *stubs = &header->stubs, *frames = &header->frames;

	if (size < sizeof(*header) || memcmp(header->magic, PLAN_MAGIC, sizeof(header->magic)) ||
	    header->version != PLAN_VERSION || header->header_size != sizeof(*header) ||
	    header->plan_size > size || header->plan_size > PLAN_BYTES_MAX ||
	    header->build_id_size > sizeof(header->build_id))
		return false;
	if (header->low > header->high || header->arena_vaddr % PLAN_PAGE ||
	    header->arena_size % PLAN_PAGE || header->arena_size < PLAN_STUBS ||
	    header->arena_size > ARENA_BYTES_MAX || header->high - header->low > MODULE_BYTES_MAX)
		return false;
	if (header->set_resolver &&
	    (header->set_resolver < header->low || header->set_resolver >= header->high))
		return false;
	if (!is_plan_table_valid(header, stubs, 1) || stubs->offset % PLAN_PAGE ||
	    stubs->count > header->arena_size - PLAN_STUBS ||
	    !is_plan_table_valid(header, &header->functions, sizeof(struct plan_function)) ||
	    !is_plan_table_valid(header, &header->sites, sizeof(struct plan_site)) ||
	    !is_plan_table_valid(header, &header->moves, sizeof(struct plan_move)))
		return false;
	return frames->count == 0 ||
	       (frames->offset >= stubs->offset && frames->offset - stubs->offset <= stubs->count &&
		frames->count <= stubs->count - (frames->offset - stubs->offset));
}

static bool is_plan_function_valid(const struct plan_header *header,
				   const struct plan_function *function)
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

static bool are_plan_functions_valid(const struct plan *plan)
{
	const struct plan_function *functions = plan_get_functions(plan);

	for (uint64_t i = 0; i < plan->header->functions.count; i++) {
		if (!is_plan_function_valid(plan->header, &functions[i]))
			return false;
	}
	return true;
}

static bool are_site_moves_valid(const struct plan *plan, const struct plan_site *site)
{
	const struct plan_header *header = plan->header;
	const struct plan_move *moves = plan_get_moves(plan) + site->first_move;

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

static bool site_is_loop_or_block(const struct plan *plan, const struct plan_site *site)
{
	return plan_get_functions(plan)[site->function].flags & PLAN_PLACES;
}

static bool are_plan_sites_valid(const struct plan *plan)
{
	const struct plan_header *header = plan->header;
	const struct plan_site *sites = plan_get_sites(plan);

	for (uint64_t i = 0; i < header->sites.count; i++) {
		const struct plan_site *site = &sites[i];
		if (site->vaddr < header->low || site->vaddr >= header->high ||
		    header->high - site->vaddr < site->length || site->length == 0 ||
		    site->length > sizeof(site->original) ||
		    site->function >= header->functions.count ||
		    site->island > header->sites.count || !are_site_moves_valid(plan, site))
			return false;
		/* In the order of addresses and apart: nobody writes a byte twice. Those of places
		 * begin again. */
		if (i &&
		    site_is_loop_or_block(plan, site) ==
			    site_is_loop_or_block(plan, &sites[i - 1]) &&
		    !sites[i].island && sites[i - 1].vaddr >= site->vaddr)
			return false;
		if (i &&
		    site_is_loop_or_block(plan, &sites[i - 1]) > site_is_loop_or_block(plan, site))
			return false;
	}
	return true;
}

bool plan_is_valid(const void *bytes, size_t size)
{
	struct plan plan = {.header = bytes, .size = size};

	return (uintptr_t)bytes % 8 == 0 && is_plan_header_valid(plan.header, size) &&
	       are_plan_functions_valid(&plan) && are_plan_sites_valid(&plan);
}

uint64_t plan_compute_checksum(const struct plan_header *plan)
{
	struct plan_header header = *plan;
	struct checksum_state sum = checksum_get_initial_state();

	header.checksum = 0;
	checksum_add_bytes(&sum, &header, sizeof(header));
	checksum_add_bytes(&sum, plan + 1, plan->plan_size - sizeof(header));
	return checksum_compute_final_value(&sum);
}

static int check_plan_integrity(struct plan *plan, const char *path, struct problem *problem)
{
	if (!plan_is_valid(plan->header, plan->size) ||
	    plan_compute_checksum(plan->header) != plan->header->checksum)
		return problem_set(problem, -EBADMSG, "%s: the patch plan is damaged", path);
	return 0;
}

/* Not mapped: who changes the file then would change what was checked, and who shortens it would
 * end us by SIGBUS. */
static int read_plan_file(int file, struct plan *ret)
{
	struct stat status;
	uint8_t *bytes;
	size_t size, done = 0;

	if (fstat(file, &status))
		return -errno;
	if ((uint64_t)status.st_size < sizeof(*ret->header) ||
	    (uint64_t)status.st_size > PLAN_BYTES_MAX)
		return -EBADMSG;
	size = (size_t)status.st_size;
	bytes = malloc(size);
	if (!bytes)
		return -ENOMEM;
	while (done < size) {
		ssize_t got = pread(file, bytes + done, size - done, (off_t)done);

		if (got <= 0) {
			free(bytes);
			return got < 0 ? -errno : -EBADMSG;
		}
		done += (size_t)got;
	}
	ret->header = (const void *)bytes;
	ret->size = size;
	ret->has_own_file = true;
	return 0;
}

/* The plan that is a part of a rewritten file. */
static int read_embedded_plan(const char *path, struct plan *ret, struct problem *problem)
{
	const struct elf_section *section;
	struct elf_section_data data;
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

static int open_standalone_or_embedded_plan(const char *path, unsigned trust, struct plan *ret,
					    struct problem *problem)
{
	const struct foreign_open_policy how = {.directory = AT_FDCWD, .trust_flags = trust};
	char magic[sizeof(PLAN_MAGIC)] = "";
	int file = foreign_open_file(&how, path, NULL), error;

	memset(ret, 0, sizeof(*ret));
	if (file < 0)
		return problem_set(problem, file, "cannot open '%s': %s", path,
				   foreign_error_to_text(file));
	if (pread(file, magic, sizeof(magic), 0) == (ssize_t)sizeof(magic) &&
	    !memcmp(magic, PLAN_MAGIC, sizeof(magic))) {
		error = read_plan_file(file, ret);
		if (error)
			problem_set(problem, error, "%s: the patch plan cannot be read: %s", path,
				    strerror(-error));
	} else {
		error = read_embedded_plan(path, ret, problem);
	}
	close(file);
	if (!error)
		error = check_plan_integrity(ret, path, problem);
	if (error)
		plan_close(ret);
	else
		snprintf(ret->path, sizeof(ret->path), "%s", ret->has_own_file ? path : "");
	return error;
}

int plan_open(const char *path, struct plan *ret, struct problem *problem)
{
	return open_standalone_or_embedded_plan(path, FOREIGN_TRUST_ANY, ret, problem);
}

int plan_open_if_owner_trusted(const char *path, struct plan *ret)
{
	return open_standalone_or_embedded_plan(path, FOREIGN_REFUSE_LINKS | FOREIGN_ONLY_OWN_FILES,
						ret, NULL);
}

void plan_close(struct plan *plan)
{
	free((void *)(uintptr_t)plan->header);
	memset(plan, 0, sizeof(*plan));
}

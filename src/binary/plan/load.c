/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Plans from the cache, and into it.
 *
 * A plan depends on the file's code alone, so the build-id names it; and on the variant: what was
 * asked for, and the planner itself.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "binary/plan/private.h"
#include "common/trusted_path.h"
#include "files/atomic_file.h"

uint32_t plan_options_to_variant_number(const struct plan_options *options)
{
	return PLANNER_REVISION << 8 | (uint32_t)options->arena_placement << 2 |
	       (uint32_t)options->has_block_places << 1 | (uint32_t)options->has_loop_places;
}

/* Files without a build-id are distinguished by what they are on this machine. */
static bool format_plan_cache_name(const struct elf_file *file, char *ret, size_t size)
{
	struct stat status;

	if (file->build_id_size) {
		for (uint32_t i = 0; i < file->build_id_size && 2 * i + 2 < size; i++)
			snprintf(ret + 2 * i, size - 2 * i, "%02x", file->build_id[i]);
		return true;
	}
	if (file->descriptor < 0 || fstat(file->descriptor, &status))
		return false;
	snprintf(ret, size, "%jx-%jx-%jx-%jx.%lx", (uintmax_t)status.st_dev,
		 (uintmax_t)status.st_ino, (uintmax_t)status.st_size,
		 (uintmax_t)status.st_ctim.tv_sec, status.st_ctim.tv_nsec);
	return true;
}

static bool prepare_plan_cache_path(const struct elf_file *file, const char *directory,
				    const struct plan_options *options, char *ret, size_t size)
{
	char name[128], resolved[PATH_MAX];

	/* A directory that somebody else can change is no cache: stubs become code. */
	return directory && *directory && format_plan_cache_name(file, name, sizeof(name)) &&
	       !trusted_path_make_directories(directory, 0755, resolved, NULL) &&
	       snprintf(ret, size, "%s/%s-%x.plan", resolved, name,
			plan_options_to_variant_number(options)) < (int)size;
}

static bool plan_matches_file(const struct plan *plan, const struct elf_file *file,
			      const struct plan_options *options)
{
	const struct plan_header *header = plan->header;

	return header->variant == plan_options_to_variant_number(options) &&
	       header->file_size == file->size && header->build_id_size == file->build_id_size &&
	       !memcmp(header->build_id, file->build_id, file->build_id_size);
}

/* A cache that cannot be written is no error. */
static void store_plan_in_cache(struct plan *plan, const char *path)
{
	const struct atomic_file_part whole = {plan->header, plan->size};

	if (atomic_file_write_parts(path, 0644, &whole, 1) == 0)
		snprintf(plan->path, sizeof(plan->path), "%s", path);
}

int plan_load_or_build(const struct elf_file *file, const char *directory,
		       const struct plan_options *options, struct plan *ret,
		       struct problem *problem)
{
	struct functions *functions;
	char path[4096];
	bool cacheable = prepare_plan_cache_path(file, directory, options, path, sizeof(path));
	int error;

	memset(ret, 0, sizeof(*ret));
	if (options->arena_placement >= PLAN_ARENA_PLACEMENT_COUNT)
		return problem_set(problem, -EINVAL, "%s: no further place for stubs", file->path);
	if (cacheable && plan_open_if_owner_trusted(path, ret) == 0) {
		ret->was_cached = true;
		if (plan_matches_file(ret, file, options))
			return 0;
		plan_close(ret);
	}
	error = functions_find_in_file(file, NULL, &functions, problem);
	if (error)
		return error;
	error = plan_build(file, functions, options, ret, problem);
	functions_destroy(functions);
	if (!error && cacheable)
		store_plan_in_cache(ret, path);
	return error;
}

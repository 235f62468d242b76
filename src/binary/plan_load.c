/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Plans from the cache, and into it.
 *
 * A plan depends on the file's code alone, so the build-id names it; and on the variant: what was
 * asked for, and the planner itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "binary/plan_internal.h"

uint32_t plan_variant(const struct plan_options *options)
{
	return PLANNER_REVISION << 8 | (uint32_t)options->placement << 2 |
	       (uint32_t)options->blocks << 1 | (uint32_t)options->loops;
}

/* Files without a build-id are told apart by what they are on this machine. */
static bool name_of(const struct elf_file *file, char *ret, size_t size)
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

static bool path_of(const struct elf_file *file, const char *directory,
		    const struct plan_options *options, char *ret, size_t size)
{
	char name[128];

	return directory && *directory && name_of(file, name, sizeof(name)) &&
	       snprintf(ret, size, "%s/%s-%x.plan", directory, name, plan_variant(options)) <
		       (int)size;
}

static bool is_for(const struct plan *plan, const struct elf_file *file,
		   const struct plan_options *options)
{
	const struct plan_header *header = plan->header;

	return header->variant == plan_variant(options) && header->file_size == file->size &&
	       header->build_id_size == file->build_id_size &&
	       !memcmp(header->build_id, file->build_id, file->build_id_size);
}

static void make_directory(const char *directory)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s", directory);
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(path, 0777);
		*slash = '/';
	}
	mkdir(path, 0777);
}

static bool write_all(int file, const void *bytes, size_t size)
{
	for (size_t done = 0; done < size;) {
		ssize_t written = write(file, (const char *)bytes + done, size - done);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return false;
		done += (size_t)written;
	}
	return true;
}

/* Under another name first: whoever finds a plan finds all of it. A cache that cannot be written is
 * no error. */
static void store(struct plan *plan, const char *directory, const char *path)
{
	char temporary[4200];
	int file;
	bool stored;

	make_directory(directory);
	snprintf(temporary, sizeof(temporary), "%s.XXXXXX", path);
	file = mkostemp(temporary, O_CLOEXEC);
	if (file < 0)
		return;
	stored = write_all(file, plan->header, plan->size) && fchmod(file, 0644) == 0;
	if (close(file) == 0 && stored && rename(temporary, path) == 0)
		snprintf(plan->path, sizeof(plan->path), "%s", path);
	else
		unlink(temporary);
}

int plan_load(const struct elf_file *file, const char *directory,
	      const struct plan_options *options, struct plan *ret, struct problem *problem)
{
	struct functions *functions;
	char path[4096];
	bool cacheable = path_of(file, directory, options, path, sizeof(path));
	int error;

	memset(ret, 0, sizeof(*ret));
	if (options->placement >= PLAN_PLACEMENT_COUNT)
		return problem_set(problem, -EINVAL, "%s: no further place for stubs", file->path);
	if (cacheable && plan_open(path, ret, NULL) == 0) {
		ret->cached = true;
		if (is_for(ret, file, options))
			return 0;
		plan_close(ret);
	}
	error = functions_find(file, NULL, &functions, problem);
	if (error)
		return error;
	error = plan_build(file, functions, options, ret, problem);
	functions_destroy(functions);
	if (!error && cacheable)
		store(ret, directory, path);
	return error;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See module.h.
 */
#include "planning/module.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files of the session ---- */

static int write_all_bytes(int file, const void *bytes, size_t size)
{
	const char *at = bytes;

	while (size) {
		ssize_t written = write(file, at, size);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		at += written;
		size -= (size_t)written;
	}
	return 0;
}

/* A new file each time: a program of another session may have mapped what is there. */
static int create_file_with_bytes(const char *path, const void *bytes, size_t size,
				  struct problem *problem)
{
	int file, error;

	unlink(path);
	file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	error = file < 0 ? -errno : write_all_bytes(file, bytes, size);
	/* The process that maps it may be another user's; the directory says who may look. */
	if (!error && fchmod(file, 0644))
		error = -errno;
	if (file >= 0 && close(file) && !error)
		error = -errno;
	return error ? problem_set(problem, error, "cannot write '%s': %s", path, strerror(-error))
		     : 0;
}

/* "libfoo.so.1-<build-id>" or, without one, "libfoo.so.1-<device>-<inode>"; and "-1" or "-2" when
 * it is for another place than the first. */
static void module_format_file_stem(const struct planned_module *module, unsigned placement,
				    char *ret, size_t size)
{
	const struct plan_header *header = module->plan.header;
	const char *name = strrchr(module->path, '/');
	char id[2 * sizeof(header->build_id) + 1], place[sizeof("-4294967295")] = "";

	name = name ? name + 1 : module->path;
	for (uint32_t i = 0; i < header->build_id_size && i < sizeof(header->build_id); i++)
		snprintf(id + 2 * i, 3, "%02x", header->build_id[i]);
	if (!header->build_id_size)
		snprintf(id, sizeof(id), "%jx-%jx", (uintmax_t)module->device,
			 (uintmax_t)module->inode);
	if (placement != PLAN_ARENA_PLACEMENT_FIRST)
		snprintf(place, sizeof(place), "-%u", placement);
	snprintf(ret, size, "%.128s-%s%s", name, id, place);
}

/* The plan is a link to that of the cache where that is possible, else a copy. */
static int module_write_plan_files(const struct instrumentation_setup *setup,
				   struct planned_module *module)
{
	char stem[256];
	int error = 0;

	module_format_file_stem(module, setup->plan.arena_placement, stem, sizeof(stem));
	snprintf(module->plan_file_path, sizeof(module->plan_file_path), "%s/%s.plan",
		 setup->directory, stem);
	snprintf(module->modes_file_path, sizeof(module->modes_file_path), "%s/%s.modes",
		 setup->directory, stem);
	unlink(module->plan_file_path);
	if (!module->plan.path[0] || link(module->plan.path, module->plan_file_path))
		error = create_file_with_bytes(module->plan_file_path, module->plan.header,
					       module->plan.size, &module->problem);
	if (!error)
		error = create_file_with_bytes(module->modes_file_path, module->selection.modes,
					       module->selection.count, &module->problem);
	return error;
}

/* ---- */

static int module_select_functions(const struct instrumentation_setup *setup,
				   const struct elf_file *file, struct planned_module *module)
{
	struct selection_module selected = {.path = module->path,
					    .file = file,
					    .plan = &module->plan,
					    .is_program = module->is_program};
	int error = selection_symbol_names_load(file, setup->debug_search_path, &module->names);

	if (!error &&
	    setup->signature_part_flags & (SELECTION_SIGNATURE_FILE | SELECTION_SIGNATURE_LINE))
		error = selection_source_lines_load(file, setup->debug_search_path, &module->plan,
						    &module->sources);
	if (error)
		return problem_set(&module->problem, error, "%s: out of memory", module->path);
	selected.sources = module->sources;
	return selection_choose_functions(setup->rules, &selected, module->names,
					  &module->selection, &module->problem);
}

/* Does the loader change the code? Then it is not what the file has, and is written to by others.
 */
static bool module_has_text_relocations(const struct elf_file *file)
{
	for (size_t i = 0; i < file->segment_count; i++) {
		const Elf64_Phdr *segment = &file->segments[i];
		Elf64_Dyn entry;

		if (segment->p_type != PT_DYNAMIC)
			continue;
		for (uint64_t at = 0; at + sizeof(entry) <= segment->p_filesz;
		     at += sizeof(entry)) {
			if (elf_read_bytes(file, segment->p_offset + at, &entry, sizeof(entry)) ||
			    entry.d_tag == DT_NULL)
				break;
			if (entry.d_tag == DT_TEXTREL ||
			    (entry.d_tag == DT_FLAGS && entry.d_un.d_val & DF_TEXTREL))
				return true;
		}
	}
	return false;
}

static int module_load_plan_and_select(const struct instrumentation_setup *setup, const char *path,
				       struct planned_module *module)
{
	struct elf_file *file;
	int error = elf_open(path, &file, &module->problem);

	if (error)
		return error;
	if (module_has_text_relocations(file))
		error = problem_set(
			&module->problem, -ENOTSUP,
			"%s: the loader changes its code (text relocations); build it with -fPIC",
			module->path);
	else
		error = plan_load_or_build(file, setup->cache, &setup->plan, &module->plan,
					   &module->problem);
	if (!error)
		error = module_select_functions(setup, file, module);
	if (!error && setup->directory && module->selection.chosen_count)
		error = module_write_plan_files(setup, module);
	elf_close(file);
	return error;
}

void planned_module_load_from_path(const struct instrumentation_setup *setup, const char *path,
				   const char *shown, bool is_program, struct planned_module *ret)
{
	struct stat status;

	memset(ret, 0, sizeof(*ret));
	ret->is_program = is_program;
	ret->path = strdup(shown);
	if (!ret->path) {
		ret->status = problem_set(&ret->problem, -ENOMEM, "out of memory");
		return;
	}
	if (stat(path, &status)) {
		ret->status = problem_set(&ret->problem, -errno, "cannot read '%s': %s", shown,
					  strerror(errno));
		return;
	}
	ret->device = status.st_dev;
	ret->inode = status.st_ino;
	ret->changed = status.st_mtim;
	ret->verdict = selection_judge_module(setup->rules, shown);
	if (ret->verdict == SELECTION_VERDICT_CHOSEN)
		ret->status = module_load_plan_and_select(setup, path, ret);
}

void planned_module_deinit(struct planned_module *module)
{
	if (module->plan.header)
		plan_close(&module->plan);
	selection_symbol_names_destroy(module->names);
	selection_source_lines_destroy(module->sources);
	selection_deinit(&module->selection);
	free(module->path);
	memset(module, 0, sizeof(*module));
}

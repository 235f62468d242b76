/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See instrument_module.h.
 */
#include "cmd/instrument_module.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- files of the session ---- */

static int module_write_all(int file, const void *bytes, size_t size)
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
static int module_store_bytes(const char *path, const void *bytes, size_t size,
			      struct problem *problem)
{
	int file, error;

	unlink(path);
	file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	error = file < 0 ? -errno : module_write_all(file, bytes, size);
	if (file >= 0 && close(file) && !error)
		error = -errno;
	return error ? problem_set(problem, error, "cannot write '%s': %s", path, strerror(-error))
		     : 0;
}

/* "libfoo.so.1-<build-id>" or, without one, "libfoo.so.1-<device>-<inode>"; and "-1" or "-2" when
 * it is for another place than the first. */
static void module_stem(const struct instrument_module *module, unsigned placement, char *ret,
			size_t size)
{
	const struct plan_header *header = module->plan.header;
	const char *name = strrchr(module->path, '/');
	char id[2 * sizeof(header->build_id) + 1], place[8] = "";

	name = name ? name + 1 : module->path;
	for (uint32_t i = 0; i < header->build_id_size && i < sizeof(header->build_id); i++)
		snprintf(id + 2 * i, 3, "%02x", header->build_id[i]);
	if (!header->build_id_size)
		snprintf(id, sizeof(id), "%jx-%jx", (uintmax_t)module->device,
			 (uintmax_t)module->inode);
	if (placement != PLAN_PLACEMENT_FIRST)
		snprintf(place, sizeof(place), "-%u", placement);
	snprintf(ret, size, "%.128s-%s%s", name, id, place);
}

/* The plan is a link to that of the cache where that is possible, else a copy. */
static int module_store(const struct instrument_setup *setup, struct instrument_module *module)
{
	char stem[256];
	int error = 0;

	module_stem(module, setup->plan.placement, stem, sizeof(stem));
	snprintf(module->plan_file, sizeof(module->plan_file), "%s/%s.plan", setup->directory,
		 stem);
	snprintf(module->modes_file, sizeof(module->modes_file), "%s/%s.modes", setup->directory,
		 stem);
	unlink(module->plan_file);
	if (!module->plan.path[0] || link(module->plan.path, module->plan_file))
		error = module_store_bytes(module->plan_file, module->plan.header,
					   module->plan.size, &module->problem);
	if (!error)
		error = module_store_bytes(module->modes_file, module->selection.modes,
					   module->selection.count, &module->problem);
	return error;
}

/* ---- */

static int module_select(const struct instrument_setup *setup, const struct elf_file *file,
			 struct instrument_module *module)
{
	struct selection_module selected = {.path = module->path,
					    .file = file,
					    .plan = &module->plan,
					    .is_program = module->is_program};
	int error = selection_names_load(file, setup->debug_path, &module->names);

	if (!error && setup->labels & (SELECTION_LABEL_FILE | SELECTION_LABEL_LINE))
		error = selection_sources_load(file, setup->debug_path, &module->plan,
					       &module->sources);
	if (error)
		return problem_set(&module->problem, error, "%s: out of memory", module->path);
	selected.sources = module->sources;
	return selection_make(setup->rules, &selected, module->names, &module->selection,
			      &module->problem);
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
			if (elf_read(file, segment->p_offset + at, &entry, sizeof(entry)) ||
			    entry.d_tag == DT_NULL)
				break;
			if (entry.d_tag == DT_TEXTREL ||
			    (entry.d_tag == DT_FLAGS && entry.d_un.d_val & DF_TEXTREL))
				return true;
		}
	}
	return false;
}

static int module_plan(const struct instrument_setup *setup, const char *path,
		       struct instrument_module *module)
{
	struct elf_file *file;
	int error = elf_open(path, &file, &module->problem);

	if (error)
		return error;
	if (module_has_text_relocations(file))
		error = problem_set(&module->problem, -ENOTSUP,
				    "%s: its code is changed by the loader (text relocations); "
				    "build it with -fPIC",
				    module->path);
	else
		error = plan_load(file, setup->cache, &setup->plan, &module->plan,
				  &module->problem);
	if (!error)
		error = module_select(setup, file, module);
	if (!error && setup->directory && module->selection.chosen)
		error = module_store(setup, module);
	elf_close(file);
	return error;
}

void instrument_module_load(const struct instrument_setup *setup, const char *path,
			    const char *shown, bool is_program, struct instrument_module *ret)
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
	ret->verdict = selection_of_module(setup->rules, shown);
	if (ret->verdict == SELECTION_CHOSEN)
		ret->status = module_plan(setup, path, ret);
}

void instrument_module_deinit(struct instrument_module *module)
{
	if (module->plan.header)
		plan_close(&module->plan);
	selection_names_destroy(module->names);
	selection_sources_destroy(module->sources);
	selection_deinit(&module->selection);
	free(module->path);
	memset(module, 0, sizeof(*module));
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The executable mappings of a process. The kernel reports what is mapped, not what is unmapped,
 * nor what becomes executable later (mprotect(2)): a new mapping drops what lay there before, and
 * /proc/PID/maps is read where a sample meets an address that nothing is known of.
 */
#include <stdlib.h>
#include <string.h>

#include "core/process/maps.h"
#include "outside/process.h"

#include <stdio.h>

#define MODULES_MAX 65536u

static void write_module_gone(struct outside_process *process, const struct outside_module *module,
			      uint64_t time_ns)
{
	if (!process->spool || !module->is_recorded)
		return;
	outside_record_begin(process->spool);
	outside_record_fixed64(process->spool, time_ns);
	outside_record_unsigned(process->spool, module->id);
	outside_record_end(process->spool, SPOOL_RECORD_MODULE_GONE);
}

static void write_module(struct outside_process *process, const struct outside_module *module)
{
	const struct outside_mapping *mapping = &module->mapping;
	const struct outside_image *image = module->image;
	struct outside_spool *spool = process->spool;

	outside_record_begin(spool);
	outside_record_fixed64(spool, module->time_ns);
	outside_record_unsigned(spool, module->id);
	outside_record_unsigned(spool, mapping->start);
	outside_record_unsigned(spool, mapping->end);
	outside_record_unsigned(spool, mapping->offset);
	outside_record_unsigned(spool, mapping->device);
	outside_record_unsigned(spool, mapping->inode);
	outside_record_bytes(spool, image ? image->build_id : NULL,
			     image ? image->build_id_size : 0);
	outside_record_text(spool, *mapping->path ? mapping->path : "[jit]");
	outside_record_end(spool, SPOOL_RECORD_MODULE);
}

void outside_modules_write_kernel(const struct outside_world *world,
				  struct outside_process *process)
{
	struct outside_module kernel = {
		.mapping = {.start = world->kernel_start & ~SPOOL_KERNEL_FRAME_LOST_BIT,
			    .end = SPOOL_KERNEL_FRAME_LOST_BIT - 1,
			    .path = SPOOL_KERNEL_MODULE_PATH},
		.time_ns = process->start_ns,
		.id = UINT32_MAX};

	if (world->kernel_start)
		write_module(process, &kernel);
}

static void drop_module(struct outside_process *process, uint32_t index, uint64_t time_ns)
{
	write_module_gone(process, &process->modules[index], time_ns);
	free((char *)process->modules[index].mapping.path);
	memmove(&process->modules[index], &process->modules[index + 1],
		(process->module_count - index - 1) * sizeof(*process->modules));
	process->module_count--;
	process->is_view_stale = true;
}

static bool insert_module(struct outside_process *process, const struct outside_mapping *mapping,
			  uint64_t time_ns)
{
	uint32_t at = process->module_count;
	char *path = strdup(mapping->path);

	if (process->module_count == process->module_capacity) {
		uint32_t capacity = 2 * process->module_capacity + 8;
		void *more = capacity <= MODULES_MAX ? realloc(process->modules,
							       capacity * sizeof(*process->modules))
						     : NULL;

		if (!more) {
			free(path);
			return false;
		}
		process->modules = more;
		process->module_capacity = capacity;
	}
	if (!path)
		return false;
	for (; at && process->modules[at - 1].mapping.start > mapping->start; at--)
		process->modules[at] = process->modules[at - 1];
	process->modules[at] = (struct outside_module){.mapping = *mapping,
						       .time_ns = time_ns,
						       .id = process->next_module_id++,
						       .is_seen = true};
	process->modules[at].mapping.path = path;
	process->module_count++;
	process->is_view_stale = true;
	return true;
}

/* The parts of an older mapping that a new one leaves get another id. */
static void cut_module(struct outside_process *process, uint32_t index, uint64_t start,
		       uint64_t end, uint64_t time_ns)
{
	struct outside_mapping whole = process->modules[index].mapping, part;
	char *path = strdup(whole.path);

	drop_module(process, index, time_ns);
	if (!path)
		return;
	part = whole;
	part.path = path;
	part.end = start;
	if (part.end > part.start)
		insert_module(process, &part, time_ns);
	part.start = end;
	part.end = whole.end;
	part.offset = whole.offset + (end - whole.start);
	if (part.end > part.start)
		insert_module(process, &part, time_ns);
	free(path);
}

static bool mappings_are_equal(const struct outside_mapping *a, const struct outside_mapping *b)
{
	return a->start == b->start && a->end == b->end && a->offset == b->offset &&
	       a->inode == b->inode && !strcmp(a->path, b->path);
}

bool outside_modules_add(struct outside_process *process, const struct outside_mapping *mapping,
			 uint64_t time_ns)
{
	uint32_t i = 0;

	while (i < process->module_count) {
		const struct outside_mapping *other = &process->modules[i].mapping;

		if (other->end <= mapping->start || other->start >= mapping->end) {
			i++;
		} else if (mappings_are_equal(other, mapping)) {
			process->modules[i].is_seen = true;
			return true;
		} else {
			cut_module(process, i, mapping->start, mapping->end, time_ns);
			i = 0;
		}
	}
	return insert_module(process, mapping, time_ns);
}

void outside_modules_copy(struct outside_process *to, const struct outside_process *from)
{
	for (uint32_t i = 0; i < from->module_count; i++)
		insert_module(to, &from->modules[i].mapping, to->start_ns);
}

void outside_modules_free(struct outside_process *process)
{
	for (uint32_t i = 0; i < process->module_count; i++)
		free((char *)process->modules[i].mapping.path);
	free(process->modules);
	free(process->view);
	process->modules = NULL;
	process->view = NULL;
	process->module_count = process->module_capacity = process->next_module_id = 0;
}

void outside_modules_read_maps(struct outside_process *process, uint64_t time_ns)
{
	char path[32], *buffer = NULL, *text;
	uint64_t size = 0;
	struct maps_line line;

	snprintf(path, sizeof(path), "/proc/%u/maps", process->pid);
	if (maps_read_whole_file(path, &buffer, &size) > 0) {
		for (uint32_t i = 0; i < process->module_count; i++)
			process->modules[i].is_seen = false;
		text = buffer;
		while (maps_parse_next_line(&text, &line)) {
			struct outside_mapping mapping = {line.start,  line.end,   line.offset,
							  line.device, line.inode, line.path};

			if (line.executable && strcmp(line.path, "[vsyscall]"))
				outside_modules_add(process, &mapping, time_ns);
		}
		for (uint32_t i = process->module_count; i-- > 0;) {
			if (!process->modules[i].is_seen)
				drop_module(process, i, time_ns);
		}
	}
	maps_free_buffer(&buffer, size);
}

const struct outside_module *outside_modules_find(const struct outside_process *process,
						  uint64_t address)
{
	uint32_t low = 0, high = process->module_count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (process->modules[middle].mapping.start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address >= process->modules[low - 1].mapping.end)
		return NULL;
	return &process->modules[low - 1];
}

#define GENERATIONS 8192u /* that the cache of rules tells apart; see unwind/cache.h */

const struct unwind_all_modules_view *outside_modules_get_view(struct outside_world *world,
							       struct outside_process *process)
{
	struct unwind_all_modules_view *view;

	if (process->view && !process->is_view_stale)
		return process->view;
	view = malloc(sizeof(*view) + process->module_count * sizeof(view->modules[0]));
	if (!view)
		return NULL;
	view->generation = ++world->view_generation;
	view->count = process->module_count;
	if (world->view_generation % GENERATIONS == 0)
		unwind_cache_clear(world->cache);
	for (uint32_t i = 0; i < process->module_count; i++) {
		struct outside_module *module = &process->modules[i];

		if (!module->is_inspected)
			module->image = outside_images_find(&world->images, (pid_t)process->pid,
							    &module->mapping);
		module->is_inspected = true;
		if (!module->is_recorded)
			write_module(process, module);
		module->is_recorded = true;
		view->modules[i] = (struct unwind_module){
			.start = module->mapping.start,
			.end = module->mapping.end,
			.bias = module->mapping.start - module->mapping.offset,
			.table = module->image ? module->image->table : NULL,
			.id = module->id};
	}
	free(process->view);
	process->view = view;
	process->is_view_stale = false;
	return view;
}

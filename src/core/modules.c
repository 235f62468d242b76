/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See modules.h.
 */
#include "core/modules.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "common/syscalls.h"
#include "core/maps.h"
#include "core/module_file.h"
#include "core/ticks.h"

#define MODULES_MAX (1u << 16)

int modules_init(struct modules *modules, const char *cache_directory, struct unwind_cache *cache)
{
	void *list = sys_mmap(NULL, MODULES_MAX * sizeof(struct module), PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (sys_failed(list))
		return -ENOMEM;
	modules->list = list;
	modules->cache = cache;
	modules->cache_directory = *cache_directory ? cache_directory : NULL;
	return 0;
}

/* The parent's background thread may have been in the middle of a change: start over; the published
 * view is whole and serves until the next one. */
void modules_forget_records(struct modules *modules)
{
	modules->count = 0;
	modules->next_id = 0;
	modules->retired = NULL;
	modules->maps = NULL;
	modules->maps_size = 0;
	modules->stale = 0;
	modules->refresh_wanted = 1;
}

void modules_let_go(struct modules *modules)
{
	if (modules->maps)
		sys_munmap(modules->maps, modules->maps_size);
	modules->maps = NULL;
	modules->maps_size = 0;
}

static void write_module(struct track *track, struct module *module, const struct module_file *file,
			 const char *path)
{
	track_begin(track, SPOOL_RECORD_MODULE);
	track_fixed(track, ticks_now());
	track_unsigned(track, module->id);
	track_unsigned(track, module->start);
	track_unsigned(track, module->end);
	track_unsigned(track, module->offset);
	track_unsigned(track, module->device);
	track_unsigned(track, module->inode);
	track_bytes(track, file ? file->build_id : NULL, file ? file->build_id_size : 0);
	track_string(track, *path ? path : "[jit]");
	track_end(track);
}

static struct module *find(struct modules *modules, const struct maps_line *line)
{
	for (uint32_t i = 0; i < modules->count; i++) {
		struct module *module = &modules->list[i];
		if (module->start == line->start && module->end == line->end &&
		    module->offset == line->offset && module->inode == line->inode &&
		    module->device == line->device)
			return module;
	}
	return NULL;
}

/* Keeps the list sorted by start. */
static struct module *insert(struct modules *modules, const struct maps_line *line)
{
	uint32_t i = modules->count;

	if (modules->count == MODULES_MAX)
		return NULL;
	for (; i && modules->list[i - 1].start > line->start; i--)
		modules->list[i] = modules->list[i - 1];
	modules->count++;
	modules->list[i] = (struct module){.start = line->start,
					   .end = line->end,
					   .offset = line->offset,
					   .device = line->device,
					   .inode = line->inode,
					   .id = modules->next_id++};
	return &modules->list[i];
}

/* A mapping as one that may hold code. Device memory and the legacy vsyscall page are left out. */
static bool is_code(const struct maps_line *line)
{
	return line->executable && strcmp(line->path, "[vsyscall]");
}

static void look_at(struct modules *modules, struct track *track, const struct maps_line *line)
{
	struct module *module = find(modules, line);
	const struct module_file *file = NULL;

	if (module) {
		module->seen = true;
		return;
	}
	module = insert(modules, line);
	if (!module)
		return;
	module->seen = true;
	file = module_file_get(line, modules->cache_directory);
	if (file) {
		module->table = file->table;
		module->bias = line->start - line->offset; /* tables count in file offsets */
		if (!file->table && line->path[0] == '/')
			spool_count_loss(track->spool, SPOOL_LOSS_MODULE_TABLE);
	}
	write_module(track, module, file, line->path);
}

static bool drop_unseen(struct modules *modules, struct track *track)
{
	uint32_t kept = 0, before = modules->count;

	for (uint32_t i = 0; i < before; i++) {
		struct module *module = &modules->list[i];
		if (module->seen) {
			modules->list[kept++] = *module;
			continue;
		}
		track_begin(track, SPOOL_RECORD_MODULE_GONE);
		track_fixed(track, ticks_now());
		track_unsigned(track, module->id);
		track_end(track);
	}
	modules->count = kept;
	return kept != before;
}

static size_t view_size(uint32_t count)
{
	return (sizeof(struct unwind_view) + count * sizeof(struct unwind_module) + 4095) &
	       ~(size_t)4095;
}

static void publish(struct modules *modules)
{
	struct unwind_view *old = modules->view;
	struct unwind_view *view = sys_mmap(NULL, view_size(modules->count), PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (sys_failed(view))
		return;
	view->generation = ++modules->generation;
	view->count = modules->count;
	for (uint32_t i = 0; i < modules->count; i++) {
		const struct module *module = &modules->list[i];
		view->modules[i] = (struct unwind_module){.start = module->start,
							  .end = module->end,
							  .bias = module->bias,
							  .table = module->table,
							  .id = module->id};
	}
	if (!(modules->generation & UNWIND_GENERATION_MASK))
		unwind_cache_clear(modules->cache);
	atomic_store_explicit(&modules->view, view, memory_order_seq_cst);
	modules->retired = old;
}

void modules_refresh(struct modules *modules, struct track *track, bool quiescent)
{
	uint32_t next_id = modules->next_id;
	struct maps_line line;
	char *text;

	if (modules->retired) {
		if (!quiescent)
			return;
		sys_munmap(modules->retired, view_size(modules->retired->count));
		modules->retired = NULL;
	}
	atomic_store_explicit(&modules->refresh_wanted, 0, memory_order_relaxed);
	modules->last_refresh_ns = ticks_clock_ns(CLOCK_MONOTONIC);
	if (maps_read("/proc/self/maps", &modules->maps, &modules->maps_size) <= 0)
		return;
	for (uint32_t i = 0; i < modules->count; i++)
		modules->list[i].seen = false;
	text = modules->maps;
	while (maps_next(&text, &line)) {
		if (is_code(&line))
			look_at(modules, track, &line);
	}
	if (drop_unseen(modules, track) || modules->next_id != next_id || !modules->view)
		publish(modules);
	atomic_store_explicit(&modules->stale, 0, memory_order_relaxed);
}

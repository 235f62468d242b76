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
#include "core/base/ticks.h"
#include "core/interpreters/interpreters.h"
#include "core/module_file.h"
#include "core/process/maps.h"

#define MODULES_MAX                         (1u << 16)
#define MODULES_REFRESH_INTERVAL_LEAST_NS   5000000ull
#define UNKNOWN_ADDRESS_REFRESH_WAIT_MAX_NS 1000000000ull

int modules_init(struct loaded_modules *modules, const char *cache_directory,
		 struct unwind_cache *cache)
{
	void *list = sys_mmap(NULL, MODULES_MAX * sizeof(struct module), PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (sys_mmap_failed(list))
		return -ENOMEM;
	modules->list = list;
	modules->cache = cache;
	modules->cache_directory = *cache_directory ? cache_directory : NULL;
	return 0;
}

/* The parent's background thread may have been in the middle of a change: start over; the published
 * view is whole and serves until the next one. What a pointer leads to is mapped in a child as
 * well: pointers are cleared before their memory is unmapped. It is used again, or each generation
 * of children would have more mappings. */
void modules_reset_for_new_run(struct loaded_modules *modules)
{
	interpreters_reset_for_new_run();
	modules->count = 0;
	modules->next_id = 0;
	modules->stale = 0;
	modules->refresh_wanted = 1;
}

void modules_free_maps_buffer(struct loaded_modules *modules)
{
	maps_free_buffer(&modules->maps_buffer, modules->maps_buffer_size);
	modules->maps_buffer_size = 0;
}

/* The kernel marks paths of files that are deleted. */
static size_t get_path_length_without_deleted_mark(const char *path)
{
	static const char mark[] = " (deleted)";
	size_t length = strlen(path);

	if (length >= sizeof(mark) && !strcmp(path + length - (sizeof(mark) - 1), mark))
		length -= sizeof(mark) - 1;
	return length;
}

static void write_module_record(struct process_records *track, struct module *module,
				const struct module_file *file, const char *path)
{
	process_record_begin(track, SPOOL_RECORD_MODULE);
	process_record_append_fixed64(track, ticks_now());
	process_record_append_unsigned(track, module->id);
	process_record_append_unsigned(track, module->start);
	process_record_append_unsigned(track, module->end);
	process_record_append_unsigned(track, module->offset);
	process_record_append_unsigned(track, module->device);
	process_record_append_unsigned(track, module->inode);
	process_record_append_bytes(track, file ? file->build_id : NULL,
				    file ? file->build_id_size : 0);
	if (file && file->build_id_size) /* known by that, wherever it is found */
		process_record_append_bytes(track, path,
					    get_path_length_without_deleted_mark(path));
	else
		process_record_append_string(track, *path ? path : "[jit]");
	process_record_end_and_commit(track);
}

static struct module *find_module_of_maps_line(struct loaded_modules *modules,
					       const struct maps_line *line)
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
static struct module *insert_module_of_maps_line(struct loaded_modules *modules,
						 const struct maps_line *line)
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
static bool maps_line_may_hold_code(const struct maps_line *line)
{
	return line->executable && strcmp(line->path, "[vsyscall]");
}

static void note_interpreter(struct process_records *track, const struct module *module,
			     const struct interpreter_file *file)
{
	const char *refusal = interpreters_note_module(file, module->start, module->offset);

	if (refusal)
		process_record_write_notice(track, SPOOL_NOTICE_FALLBACK, file->version, refusal);
}

static void find_or_add_module_of_maps_line(struct loaded_modules *modules,
					    struct process_records *track,
					    const struct maps_line *line)
{
	struct module *module = find_module_of_maps_line(modules, line);
	const struct module_file *file = NULL;

	if (module) {
		module->seen = true;
		return;
	}
	module = insert_module_of_maps_line(modules, line);
	if (!module)
		return;
	module->seen = true;
	file = module_file_find_or_add(line, modules->cache_directory);
	if (file) {
		module->table = file->table;
		module->bias = line->start - line->offset; /* tables count in file offsets */
		if (!file->table && line->path[0] == '/')
			spool_count_loss(track->spool, SPOOL_LOSS_MODULE_TABLE);
	}
	write_module_record(track, module, file, line->path);
	if (file && file->interpreter.kind)
		note_interpreter(track, module, &file->interpreter);
}

static bool drop_unmapped_modules(struct loaded_modules *modules, struct process_records *track)
{
	uint32_t kept = 0, before = modules->count;

	for (uint32_t i = 0; i < before; i++) {
		struct module *module = &modules->list[i];
		if (module->seen) {
			modules->list[kept++] = *module;
			continue;
		}
		modules->unmapped[modules->unmapped_count++ % MODULES_UNMAPPED_KEPT] =
			(struct module_range){module->start, module->end};
		interpreters_note_module_gone(module->start);
		process_record_begin(track, SPOOL_RECORD_MODULE_GONE);
		process_record_append_fixed64(track, ticks_now());
		process_record_append_unsigned(track, module->id);
		process_record_end_and_commit(track);
	}
	modules->count = kept;
	return kept != before;
}

static size_t compute_view_bytes_for_module_count(uint32_t count)
{
	return (sizeof(struct unwind_all_modules_view) + count * sizeof(struct unwind_module) +
		4095) &
	       ~(size_t)4095;
}

static void publish_unwind_view(struct loaded_modules *modules)
{
	struct unwind_all_modules_view *old = modules->view;
	struct unwind_all_modules_view *view =
		sys_mmap(NULL, compute_view_bytes_for_module_count(modules->count),
			 PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (sys_mmap_failed(view))
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
	if (!(modules->generation & UNWIND_CACHE_CLEAR_GENERATION_MASK))
		unwind_cache_clear(modules->cache);
	atomic_store_explicit(&modules->view, view, memory_order_seq_cst);
	modules->retired = old;
}

uint64_t modules_get_refresh_due_ns(const struct loaded_modules *modules)
{
	if (atomic_load_explicit(&modules->refresh_wanted, memory_order_relaxed))
		return modules->last_refresh_ns + MODULES_REFRESH_INTERVAL_LEAST_NS;
	if (atomic_load_explicit(&modules->has_met_unknown_address, memory_order_relaxed))
		return modules->last_refresh_ns + MODULES_REFRESH_INTERVAL_LEAST_NS +
		       modules->unknown_address_wait_ns;
	return UINT64_MAX;
}

/* An address that stays unknown is no code, or a walk that went wrong: such are asked for ever more
 * seldom, until something comes of it again. */
static void adjust_unknown_address_refresh_wait(struct loaded_modules *modules, bool changed)
{
	bool met = atomic_exchange_explicit(&modules->has_met_unknown_address, 0,
					    memory_order_relaxed);

	if (changed)
		modules->unknown_address_wait_ns = 0;
	else if (met && modules->unknown_address_wait_ns < UNKNOWN_ADDRESS_REFRESH_WAIT_MAX_NS)
		modules->unknown_address_wait_ns =
			2 * modules->unknown_address_wait_ns + MODULES_REFRESH_INTERVAL_LEAST_NS;
}

void modules_refresh(struct loaded_modules *modules, struct process_records *track, bool quiescent)
{
	uint32_t next_id = modules->next_id;
	bool changed;
	struct maps_line line;
	char *text;

	if (modules->retired) {
		if (!quiescent)
			return;
		struct unwind_all_modules_view *retired = modules->retired;

		modules->retired = NULL;
		__asm__ volatile("" : : : "memory");
		sys_munmap(retired, compute_view_bytes_for_module_count(retired->count));
	}
	atomic_store_explicit(&modules->refresh_wanted, 0, memory_order_relaxed);
	modules->last_refresh_ns = read_posix_clock_ns(CLOCK_MONOTONIC);
	if (maps_read_whole_file("/proc/self/maps", &modules->maps_buffer,
				 &modules->maps_buffer_size) <= 0)
		return;
	for (uint32_t i = 0; i < modules->count; i++)
		modules->list[i].seen = false;
	text = modules->maps_buffer;
	while (maps_parse_next_line(&text, &line)) {
		if (maps_line_may_hold_code(&line))
			find_or_add_module_of_maps_line(modules, track, &line);
	}
	changed = drop_unmapped_modules(modules, track) || modules->next_id != next_id ||
		  !modules->view;
	if (changed)
		publish_unwind_view(modules);
	adjust_unknown_address_refresh_wait(modules, changed);
	atomic_store_explicit(&modules->stale, 0, memory_order_relaxed);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See text_pages.h. Pages are made writable for the moment, executable all the while: threads may
 * be in other functions of the same module.
 */
#include "instrument/text_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "common/syscalls.h"
#include "core/process/maps.h"
#include "instrument/state.h"

#define MAPS_PATH "/proc/self/maps"

static bool bytes_are_equal(const uint8_t *a, const uint8_t *b, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++) {
		if (a[i] != b[i])
			return false;
	}
	return true;
}

/* The sites that lie in [low, high). */
static void write_sites_in_range(const struct arena *arena, uint64_t low, uint64_t high, bool undo)
{
	const struct plan_site *sites =
		(const void *)((const char *)arena->plan + arena->plan->sites.offset);

	for (uint64_t i = 0; i < arena->plan->sites.count; i++) {
		const struct plan_site *site = &sites[i];
		uint64_t address = site->vaddr + arena->bias;
		const uint8_t *from = undo ? site->patched : site->original,
			      *to = undo ? site->original : site->patched;
		uint8_t *code = (uint8_t *)(uintptr_t)address;

		if (address < low || address >= high ||
		    (!undo && arena->modes[site->function] == PLAN_MODE_OFF))
			continue;
		if (!bytes_are_equal(code, from, site->length)) {
			if (!undo)
				spool_count_loss(kymo_instrument.spool, SPOOL_LOSS_INSTRUMENT);
			continue;
		}
		for (uint32_t j = 0; j < site->length; j++)
			code[j] = to[j];
	}
}

static int write_patches_in_mapping(const struct arena *arena, const struct maps_line *line,
				    bool undo)
{
	int protection = PROT_READ | PROT_EXEC | (line->writable ? PROT_WRITE : 0);
	long size = (long)(line->end - line->start), error;

	if (!line->executable || line->shared || line->end <= arena->low ||
	    line->start >= arena->high)
		return 0;
	error = sys_call3(SYS_mprotect, (long)line->start, size,
			  PROT_READ | PROT_WRITE | PROT_EXEC);
	if (error)
		return (int)error;
	write_sites_in_range(arena, line->start, line->end, undo);
	sys_call3(SYS_mprotect, (long)line->start, size, protection);
	return 0;
}

/* A program that loads hundreds of libraries has thousands of mappings: only the module's are asked
 * for. */
static int write_patches_in_module_mappings(const struct arena *arena, bool undo)
{
	long fd = sys_open(MAPS_PATH, O_RDONLY | O_CLOEXEC, 0);
	struct maps_line line = {.end = arena->low};
	int error = 0;

	if (fd < 0)
		return (int)fd;
	while (!error && line.end < arena->high) {
		error = maps_query_address((int)fd, line.end, NULL, 0, &line);
		if (!error)
			error = write_patches_in_mapping(arena, &line, undo);
	}
	sys_close((int)fd);
	return error == -ENOENT ? 0 : error;
}

int text_pages_write_patches(const struct arena *arena)
{
	return write_patches_in_module_mappings(arena, false);
}

int text_pages_restore_original(const struct arena *arena)
{
	return write_patches_in_module_mappings(arena, true);
}

bool text_pages_find_mapped_file(uint64_t address, char *path, size_t path_size, uint64_t *device,
				 uint64_t *inode)
{
	struct maps_line line;
	long fd = sys_open(MAPS_PATH, O_RDONLY | O_CLOEXEC, 0);
	int error;

	if (fd < 0)
		return false;
	error = maps_query_address((int)fd, address, path, (uint32_t)path_size, &line);
	sys_close((int)fd);
	if (error)
		return false;
	*device = line.device;
	*inode = line.inode;
	return line.start <= address && path[0] == '/';
}

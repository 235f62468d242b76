/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See text_pages.h. Pages are made writable for the moment, executable all the while: threads may
 * be in other functions of the same module.
 */
#include "instrument/text_pages.h"

#include <errno.h>
#include <sys/mman.h>

#include "common/syscalls.h"
#include "core/maps.h"
#include "core/runtime.h"
#include "core/text.h"

#define MAPS "/proc/self/maps"

struct site_bytes {
	const uint8_t *from, *to;
};

static bool same(const uint8_t *a, const uint8_t *b, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++) {
		if (a[i] != b[i])
			return false;
	}
	return true;
}

/* The sites that lie in [low, high). */
static void write_sites(const struct arena *arena, uint64_t low, uint64_t high, bool undo)
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
		if (!same(code, from, site->length)) {
			if (!undo)
				spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_INSTRUMENT);
			continue;
		}
		for (uint32_t j = 0; j < site->length; j++)
			code[j] = to[j];
	}
}

static int change(const struct arena *arena, bool undo)
{
	struct maps_line line;
	uint64_t size = 0;
	char *buffer = NULL, *text;
	long length = maps_read(MAPS, &buffer, &size), error = 0;

	if (length < 0)
		return (int)length;
	text = buffer;
	while (!error && maps_next(&text, &line)) {
		int protection = PROT_READ | PROT_EXEC | (line.writable ? PROT_WRITE : 0);

		if (!line.executable || line.shared || line.end <= arena->low ||
		    line.start >= arena->high)
			continue;
		error = sys_call3(SYS_mprotect, (long)line.start, (long)(line.end - line.start),
				  PROT_READ | PROT_WRITE | PROT_EXEC);
		if (error)
			break;
		write_sites(arena, line.start, line.end, undo);
		sys_call3(SYS_mprotect, (long)line.start, (long)(line.end - line.start),
			  protection);
	}
	sys_munmap(buffer, size);
	return (int)error;
}

int text_pages_patch(const struct arena *arena)
{
	return change(arena, false);
}

int text_pages_undo(const struct arena *arena)
{
	return change(arena, true);
}

bool text_pages_file(uint64_t address, char *path, size_t path_size, uint64_t *device,
		     uint64_t *inode)
{
	struct text to = text_on(path, path_size);
	struct maps_line line;
	uint64_t size = 0;
	char *buffer = NULL, *text;
	bool found = false;

	if (maps_read(MAPS, &buffer, &size) < 0)
		return false;
	text = buffer;
	while (!found && maps_next(&text, &line)) {
		found = address >= line.start && address < line.end && line.path[0] == '/';
		if (!found)
			continue;
		text_string(&to, line.path);
		*device = line.device;
		*inode = line.inode;
	}
	sys_munmap(buffer, size);
	return found;
}

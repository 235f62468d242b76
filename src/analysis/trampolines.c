/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Finds __restore_rt, the two instructions that a signal handler returns to. The frame outside it
 * was interrupted, so that its pc is exact and must not be moved into the instruction before, and
 * so is the pc of __restore_rt itself, which no call precedes. libc does not export the symbol, but
 * its bytes are fixed: gdb and the unwinder of gcc (MD_FALLBACK_FRAME_STATE_FOR) know it by them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/session_private.h"

#define TEXT_LIMIT ((uint64_t)16 << 20)

/* mov $15 (rt_sigreturn), %rax; syscall */
static const uint8_t restore_rt[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05};

static bool has_trampolines(const char *name)
{
	return strncmp(name, "libc.so", 7) == 0 || strncmp(name, "libc-2.", 7) == 0 ||
	       strncmp(name, "libpthread", 10) == 0;
}

static void search(struct process_private *process, const struct model_module *module,
		   const uint8_t *text, size_t size)
{
	const uint8_t *at = text;

	while (process->trampoline_count < TRAMPOLINES_MAX) {
		at = memmem(at, size - (size_t)(at - text), restore_rt, sizeof(restore_rt));
		if (!at)
			break;
		process->trampolines[process->trampoline_count++] =
			module->start + (uint64_t)(at - text);
		at++;
	}
}

void session_find_trampolines(struct process_private *process, const struct model_module *module)
{
	uint64_t size = module->end - module->start;
	struct stat status;
	uint8_t *text;
	ssize_t got;
	int file;

	if (!has_trampolines(module->name) || size == 0 || size > TEXT_LIMIT)
		return;
	file = open(module->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (file < 0)
		return;
	text = fstat(file, &status) == 0 && S_ISREG(status.st_mode) ? malloc((size_t)size) : NULL;
	got = text ? pread(file, text, (size_t)size, (off_t)module->file_offset) : -1;
	if (got > 0)
		search(process, module, text, (size_t)got);
	free(text);
	close(file);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See main_stack.h. The stack grows down from the end of [stack].
 */
#include "core/process/main_stack.h"

#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>

#include "common/syscalls.h"
#include "core/process/maps.h"

/* The kernel keeps mappings this far below the main stack (mmap_base). */
#define MAIN_STACK_GAP_LEAST (128ull << 20)

static struct main_stack main_stack_from_end(uint64_t end)
{
	struct main_stack stack = {.high = end};
	uint64_t gap = MAIN_STACK_GAP_LEAST;
	struct rlimit limit;

	if (!sys_call4(SYS_prlimit64, 0, RLIMIT_STACK, 0, (long)&limit) && limit.rlim_cur < end) {
		stack.floor = end - limit.rlim_cur;
		if (limit.rlim_cur > gap)
			gap = limit.rlim_cur;
	}
	stack.low = end > gap ? end - gap : 0;
	return stack;
}

struct main_stack main_stack_find(void)
{
	static char *buffer;
	static uint64_t size;
	struct main_stack stack = {0, 0, 0};
	struct maps_line line;
	char *text;

	if (maps_read_whole_file("/proc/self/maps", &buffer, &size) <= 0)
		return stack;
	for (text = buffer; maps_parse_next_line(&text, &line);) {
		if (!strcmp(line.path, "[stack]"))
			stack = main_stack_from_end(line.end);
	}
	maps_free_buffer(&buffer, size);
	size = 0;
	return stack;
}

/* The stack ends with the path that was executed (execve(2), AT_EXECFN), and 8 bytes. */
struct main_stack main_stack_find_without_proc(void)
{
	const char *path = (const char *)getauxval(AT_EXECFN);

	if (!path)
		return (struct main_stack){0, 0, 0};
	return main_stack_from_end(((uint64_t)(uintptr_t)path + strlen(path) + 1 + 8 + 4095) &
				   ~4095ull);
}

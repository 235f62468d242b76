/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See own_view.h. Tables that cannot be had (mappings without a file, files without .eh_frame) are
 * left NULL, as the sampler does.
 */
#include "own_view.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OWN_MODULES_MAX 256

struct own_line {
	uint64_t start, end, offset, inode;
	char flags[8];
	char path[4096];
};

static bool own_next(FILE *maps, struct own_line *ret)
{
	char line[4200];
	int at = 0;

	if (!fgets(line, sizeof(line), maps))
		return false;
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %" SCNu64 " %n", &ret->start,
		   &ret->end, ret->flags, &ret->offset, &ret->inode, &at) < 5) {
		fprintf(stderr, "own_view: cannot read '%s'\n", line);
		exit(99);
	}
	line[strcspn(line, "\n")] = 0;
	snprintf(ret->path, sizeof(ret->path), "%s", line + at);
	return true;
}

static FILE *own_open(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");

	if (!maps) {
		perror("own_view: /proc/self/maps");
		exit(99);
	}
	return maps;
}

struct unwind_all_modules_view *own_view_create(void)
{
	static uint64_t generation;
	struct unwind_all_modules_view *view =
		calloc(1, sizeof(*view) + OWN_MODULES_MAX * sizeof(struct unwind_module));
	FILE *maps = own_open();
	struct own_line line;

	if (!view)
		exit(99);
	view->generation = ++generation;
	while (own_next(maps, &line) && view->count < OWN_MODULES_MAX) {
		struct unwind_module *module = &view->modules[view->count];
		struct unwind_table *mapped;
		size_t size;
		bool cached;

		if (!strchr(line.flags, 'x') || strcmp(line.path, "[vsyscall]") == 0)
			continue;
		module->start = line.start;
		module->end = line.end;
		module->bias = line.start - line.offset;
		if (line.path[0] == '/') {
			unwind_table_load_or_compile(NULL, NULL, 0, line.path, 0, 0, &module->table,
						     &size, &cached);
		} else if (strcmp(line.path, "[vdso]") == 0 &&
			   unwind_compile_table_of_mapped_image(
				   (const uint8_t *)(uintptr_t)line.start, line.end - line.start,
				   &mapped, &size) == 0) {
			module->bias = line.start;
			module->table = mapped;
		}
		view->count++;
	}
	fclose(maps);
	return view;
}

struct unwind_stack_bounds own_bounds(const void *address)
{
	uint64_t wanted = (uint64_t)(uintptr_t)address;
	struct unwind_stack_bounds bounds = {0, 0};
	FILE *maps = own_open();
	struct own_line line;

	while (own_next(maps, &line)) {
		if (wanted >= line.start && wanted < line.end)
			bounds = (struct unwind_stack_bounds){line.start, line.end};
	}
	fclose(maps);
	return bounds;
}

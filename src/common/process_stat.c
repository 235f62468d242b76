/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See process_stat.h. A name may hold anything, spaces and parentheses as well: the numbers come
 * behind the last one.
 */
#include "common/process_stat.h"

#include <stdio.h>
#include <string.h>

bool process_stat_read(uint32_t pid, struct process_stat *ret)
{
	unsigned long long start = 0, stack = 0;
	char path[32], text[1024];
	unsigned parent = 0;
	char *open, *close;
	size_t length;
	FILE *file;

	*ret = (struct process_stat){.state = '\0'};
	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	length = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[length] = '\0';
	open = strchr(text, '(');
	close = strrchr(text, ')');
	/* Fields 3, 4, 22 and 28. */
	if (!open || !close || close < open ||
	    sscanf(close + 1,
		   " %c %u %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
		   "%llu "
		   "%*s %*s %*s %*s %*s %llu",
		   &ret->state, &parent, &start, &stack) < 3)
		return false;
	snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(close - open - 1), open + 1);
	ret->parent = parent;
	ret->start_ticks = start;
	ret->stack_start = stack;
	return true;
}

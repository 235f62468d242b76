/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a program sees of itself that a profiler in its process cannot hide; the test compares it
 * with what docs/reference/fidelity.md admits: LD_PRELOAD and KYMO_* in the environment,
 * descriptors at the top of the range, mappings of the library and the spool.
 *
 * usage: self_view env|fds|threads
 */
#include <dirent.h>
#include <stdlib.h>

#include "check.h"

extern char **environ;

static void print_threads(void)
{
	DIR *directory = opendir("/proc/self/task");
	struct dirent *entry;

	CHECK(directory);
	while ((entry = readdir(directory))) {
		char path[300], name[64] = "";
		FILE *file;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fgets(name, sizeof(name), file))
			fputs(name, stdout);
		fclose(file);
	}
	closedir(directory);
}

static void print_fds(void)
{
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;

	CHECK(directory);
	while ((entry = readdir(directory))) {
		char target[256];
		ssize_t length =
			readlinkat(dirfd(directory), entry->d_name, target, sizeof(target));

		if (entry->d_name[0] != '.' && atoi(entry->d_name) != dirfd(directory))
			printf("%s %.*s\n", entry->d_name, (int)length, target);
	}
	closedir(directory);
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	check_burn_ms(50);
	if (strcmp(mode, "env") == 0)
		for (char **entry = environ; *entry; entry++)
			puts(*entry);
	else if (strcmp(mode, "fds") == 0)
		print_fds();
	else
		print_threads();
	return 0;
}

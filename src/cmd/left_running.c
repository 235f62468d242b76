/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See left_running.h. A process is known by its pid and start time, as its spool file has them.
 */
#include "cmd/left_running.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kymo/spool.h"

/* Field 22 of /proc/PID/stat (proc(5)); 0 when there is no such process, or only its remains. */
static uint64_t start_time(uint32_t pid)
{
	char path[32], line[1024] = "", state = 'Z';
	unsigned long long start = 0;
	const char *after_name;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	after_name = fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
	fclose(file);
	if (!after_name ||
	    sscanf(after_name + 1,
		   " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
		   "%llu",
		   &state, &start) != 2 ||
	    state == 'Z' || state == 'X')
		return 0;
	return start;
}

static bool is_running(int directory, const char *name, pid_t *ret_pid)
{
	struct spool_file_header header;
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC);
	ssize_t size;

	if (fd < 0)
		return false;
	size = pread(fd, &header, sizeof(header), 0);
	close(fd);
	if (size != sizeof(header) || memcmp(header.magic, SPOOL_MAGIC, sizeof(header.magic)) ||
	    header.state != SPOOL_STATE_OPEN || !header.process_start ||
	    start_time(header.pid) != header.process_start)
		return false;
	*ret_pid = (pid_t)header.pid;
	return true;
}

size_t left_running_count(const char *session, pid_t *ret_pid)
{
	char path[PATH_MAX];
	struct dirent *entry;
	size_t count = 0;
	DIR *directory;

	snprintf(path, sizeof(path), "%s/spool", session);
	directory = opendir(path);
	if (!directory)
		return 0;
	while ((entry = readdir(directory)))
		count += is_running(dirfd(directory), entry->d_name, ret_pid);
	closedir(directory);
	return count;
}

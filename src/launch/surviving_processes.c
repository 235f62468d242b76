/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See surviving_processes.h. A process is known by its pid and start time, as its spool file has
 * them.
 */
#include "launch/surviving_processes.h"
#include "common/foreign_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/monotonic.h"
#include "common/process_stat.h"
#include "common/time_units.h"
#include "console/message.h"
#include "kymo/spool.h"

#define HELPER_WAIT_PAUSE_NS MILLISECOND_NS
#define HELPERS_WAIT_MAX_NS  (10 * SECOND_NS) /* of all together; beside others they are slow */

struct helpers_wait_state {
	uint64_t end_ns; /* of CLOCK_MONOTONIC */
	unsigned unfinished;
};

/* The helper of a process that was killed writes its last data: it holds the file until then. */
static void wait_for_helper_to_write(int file, struct helpers_wait_state *wait)
{
	for (;;) {
		struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
		struct timespec pause = {0, HELPER_WAIT_PAUSE_NS};

		if (fcntl(file, F_OFD_GETLK, &lock) || lock.l_type == F_UNLCK)
			return;
		if (monotonic_ns() >= wait->end_ns)
			break;
		nanosleep(&pause, NULL);
	}
	wait->unfinished++;
}

static bool read_spool_header(int file, struct spool_file_header *ret)
{
	return pread(file, ret, sizeof(*ret), 0) == sizeof(*ret) &&
	       !memcmp(ret->magic, SPOOL_MAGIC, sizeof(ret->magic));
}

static bool spool_process_is_running(int file, void *context)
{
	struct spool_file_header header;
	pid_t *ret_pid = context;

	if (!read_spool_header(file, &header) || header.state != SPOOL_STATE_OPEN ||
	    !header.process_start || process_read_start_of_live(header.pid) != header.process_start)
		return false;
	*ret_pid = (pid_t)header.pid;
	return true;
}

/* ---- processes that share a file (kymo/spool.h) ---- */

#define USER_HZ_CLOCK_TICK_NS UINT64_C(10000000) /* USER_HZ */

/* An entry is written shortly after the kernel has made the process or its parent's child. */
static bool is_process_of_header_alive(const struct spool_file_header *header)
{
	unsigned long long made = process_read_start_of_live(header->pid);

	return made && made <= header->start_boottime_ns / USER_HZ_CLOCK_TICK_NS + 1;
}

struct short_lived_process_list {
	struct spool_file_header *open; /* first entries of those whose end was not seen */
	size_t count, capacity;
};

static void update_short_lived_process_list(struct short_lived_process_list *all,
					    const struct spool_file_header *header)
{
	size_t i = 0;

	while (i < all->count &&
	       (all->open[i].pid != header->pid || all->open[i].start_ticks != header->start_ticks))
		i++;
	if (i < all->count && header->state != SPOOL_STATE_OPEN)
		all->open[i] = all->open[--all->count];
	if (i < all->count || header->state != SPOOL_STATE_OPEN)
		return;
	if (all->count == all->capacity) {
		size_t capacity = 2 * all->capacity + 16;
		void *more = realloc(all->open, capacity * sizeof(*all->open));

		if (!more)
			return;
		all->open = more;
		all->capacity = capacity;
	}
	all->open[all->count++] = *header;
}

static void read_running_short_lived_processes(int fd, struct short_lived_process_list *ret)
{
	off_t offset = sizeof(SPOOL_SHORT_MAGIC);
	struct spool_file_header header;

	for (;; offset += (off_t)header.file_size) {
		memset(&header, 0, sizeof(header));
		if (pread(fd, &header, SPOOL_SHORT_HEADER, offset) != (ssize_t)SPOOL_SHORT_HEADER ||
		    memcmp(header.magic, SPOOL_MAGIC, sizeof(header.magic)) ||
		    header.file_size < SPOOL_SHORT_HEADER ||
		    header.file_size > SPOOL_CHUNK_SIZE_MAX)
			return;
		update_short_lived_process_list(ret, &header);
	}
}

size_t surviving_processes_get_short_lived(const char *session, pid_t **ret)
{
	const struct foreign_open_policy how = {.directory = AT_FDCWD,
						.trust_flags = FOREIGN_REFUSE_LINKS};
	struct short_lived_process_list open = {NULL, 0, 0};
	char path[PATH_MAX];
	size_t count = 0;
	int fd;

	snprintf(path, sizeof(path), SPOOL_SHORT_PATH, session);
	fd = foreign_open_file(&how, path, NULL);
	*ret = NULL;
	if (fd < 0)
		return 0;
	read_running_short_lived_processes(fd, &open);
	close(fd);
	*ret = calloc(open.count + 1, sizeof(**ret));
	for (size_t i = 0; *ret && i < open.count; i++) {
		if (is_process_of_header_alive(&open.open[i]))
			(*ret)[count++] = (pid_t)open.open[i].pid;
	}
	free(open.open);
	return count;
}

static bool wait_for_helper_if_process_ended(int file, void *context)
{
	struct spool_file_header header;

	/* When a program is executed the process goes on, with another file. */
	if (!read_spool_header(file, &header) || header.state == SPOOL_STATE_EXEC ||
	    process_read_start_of_live(header.pid) != header.process_start)
		wait_for_helper_to_write(file, context);
	return false;
}

static size_t visit_spool_files_and_count(const char *session,
					  bool (*visit)(int file, void *context), void *context)
{
	char path[PATH_MAX];
	struct dirent *entry;
	size_t count = 0;
	DIR *directory;

	snprintf(path, sizeof(path), "%s/spool", session);
	directory = opendir(path);
	if (!directory)
		return 0;
	while ((entry = readdir(directory))) {
		const struct foreign_open_policy how = {.directory = dirfd(directory),
							.trust_flags = FOREIGN_REFUSE_LINKS};
		int file = strstr(entry->d_name, ".spool")
				   ? foreign_open_file(&how, entry->d_name, NULL)
				   : -ENOENT;

		if (file < 0)
			continue;
		count += visit(file, context);
		close(file);
	}
	closedir(directory);
	return count;
}

size_t surviving_processes_count(const char *session, pid_t *ret_pid)
{
	size_t count = visit_spool_files_and_count(session, spool_process_is_running, ret_pid);
	pid_t *pids;
	size_t short_count = surviving_processes_get_short_lived(session, &pids);

	if (short_count)
		*ret_pid = pids[0];
	free(pids);
	return count + short_count;
}

void wait_for_ended_processes_data(const char *session)
{
	struct helpers_wait_state wait = {monotonic_ns() + HELPERS_WAIT_MAX_NS, 0};

	visit_spool_files_and_count(session, wait_for_helper_if_process_ended, &wait);
	if (wait.unfinished)
		message_warning(
			"the last data of %u ended process%s %s not written after %u s: the "
			"results lack them (kymo report %s has them later)",
			wait.unfinished, wait.unfinished == 1 ? "" : "es",
			wait.unfinished == 1 ? "is" : "are",
			(unsigned)(HELPERS_WAIT_MAX_NS / SECOND_NS), session);
}

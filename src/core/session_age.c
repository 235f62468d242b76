/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See session_age.h.
 */
#include "core/session_age.h"

#include <fcntl.h>
#include <time.h>

#include "common/syscalls.h"
#include "core/options.h"
#include "core/text.h"
#include "core/ticks.h"

#define FILE_NAME "/collection_start"

uint64_t session_age_ns(const char *spool_directory)
{
	char path[OPTIONS_PATH_SIZE + sizeof(FILE_NAME)];
	struct text text = text_on(path, sizeof(path));
	uint64_t now = ticks_clock_ns(CLOCK_REALTIME), start = 0;
	long fd, size;

	text_string(&text, spool_directory);
	text_string(&text, FILE_NAME);
	fd = sys_open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0) {
		sys_write((int)fd, &now, sizeof(now));
		sys_close((int)fd);
		return 0;
	}
	fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return 0;
	size = sys_read((int)fd, &start, sizeof(start));
	sys_close((int)fd);
	return size == (long)sizeof(start) && start < now ? now - start : 0;
}

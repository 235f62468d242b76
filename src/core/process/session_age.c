/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See session_age.h.
 */
#include "core/process/session_age.h"

#include <fcntl.h>
#include <time.h>

#include "common/syscalls.h"
#include "core/base/options.h"
#include "core/base/text.h"
#include "core/base/ticks.h"

#define COLLECTION_START_FILE_NAME "/collection_start"

uint64_t session_age_get_or_begin_ns(const char *spool_directory)
{
	char path[OPTIONS_PATH_SIZE + sizeof(COLLECTION_START_FILE_NAME)];
	struct text_buffer text = text_buffer_init(path, sizeof(path));
	uint64_t now = read_posix_clock_ns(CLOCK_REALTIME), start = 0;
	long fd, size;

	text_append_string(&text, spool_directory);
	text_append_string(&text, COLLECTION_START_FILE_NAME);
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

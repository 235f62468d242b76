/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include "unit/core/spool_test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/ticks.h"
#include "unit/core/core_test.h"

static struct spool_writer *opened[8];

static void remember(struct spool_writer *spool)
{
	for (size_t i = 0; i < LENGTH(opened); i++) {
		if (opened[i] == spool)
			return;
		if (!opened[i]) {
			opened[i] = spool;
			return;
		}
	}
}

/* As the helper does in each of its rounds. */
static void write_out_opened(void)
{
	for (size_t i = 0; i < LENGTH(opened) && opened[i]; i++) {
		if (opened[i]->header && opened[i]->profiled_process_mark_page)
			spool_write_new_records(opened[i], opened[i]->fd, true);
	}
}

int spool_test_open(struct spool_writer *spool, const char *directory, uint64_t limit, bool ring)
{
	static struct options options;

	memset(spool, 0, sizeof(*spool));
	memset(&options, 0, sizeof(options));
	options.spool_limit_bytes = limit;
	options.ring = ring;
	snprintf(options.spool_directory, sizeof(options.spool_directory), "%s/spool", directory);
	assert_true(mkdir(options.spool_directory, 0700) == 0 || errno == EEXIST);
	kymo_ticks_are_ns = kymo_ticks_are_by_clock = true;
	return spool_open(spool, &options, (uint32_t)getpid());
}

void spool_test_start(struct spool_writer *spool, const char *directory, uint64_t limit, bool ring)
{
	struct spool_file_header *header;

	assert_int_equal(spool_test_open(spool, directory, limit, ring), 0);
	remember(spool);
	header = spool->header;
	header->version_major = SPOOL_VERSION_MAJOR;
	header->version_minor = SPOOL_VERSION_MINOR;
	header->header_size = SPOOL_ALIGNMENT;
	header->pid = (uint32_t)getpid();
	header->tick_clock = 1;
	header->tick_hz = 1000000000;
	header->start_ticks = header->start_monotonic_ns = read_posix_clock_ns(CLOCK_MONOTONIC);
	header->start_boottime_ns = read_posix_clock_ns(CLOCK_BOOTTIME);
	header->start_realtime_ns = read_posix_clock_ns(CLOCK_REALTIME);
	header->state = SPOOL_STATE_OPEN;
	header->exit_status = -1;
	memcpy(header->magic, SPOOL_MAGIC, sizeof(header->magic));
}

const char *spool_test_path(const char *directory, unsigned image)
{
	static char path[4096];

	write_out_opened();
	snprintf(path, sizeof(path), "%s/spool/%d-%u.spool", directory, (int)getpid(), image);
	return path;
}

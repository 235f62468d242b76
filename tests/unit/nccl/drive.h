/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The plugin, driven as NCCL drives it: found by its exported tables, opened with RTLD_NOW and
 * RTLD_LOCAL where there is no sanitizer (a program with one cannot open a library without), and
 * called through the structures of each version.
 *
 * A plugin records once a process, so each test runs its part in a forked child, whose file the
 * parent then reads.
 */
#ifndef KYMO_TESTS_NCCL_DRIVE_H
#define KYMO_TESTS_NCCL_DRIVE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nccl/event.h"
#include "nccl/versions/objects.h"

#define VERSIONS 7

/* ---- calls ---- */

struct driver {
	unsigned version;
	const void *table; /* struct nccl_profiler_vN */
	int mask;          /* what init asked for */
};

/* The table of a version; version 0: the newest, as NCCL looks for it. */
struct driver drive_open(unsigned version);
struct drive_identity {
	const char *name;
	uint64_t hash;
	int nodes, ranks, rank;
};
void *drive_init(struct driver *driver, const struct drive_identity *identity);
/* *handle is what it was before where the plugin does not write it. */
void drive_start(const struct driver *driver, void *context, void **handle,
		 const struct plugin_event_start_arguments *event);
void drive_stop(const struct driver *driver, void *handle);
/* `arguments` NULL: NCCL gives none. */
void drive_state(const struct driver *driver, void *handle, int state,
		 const struct event_state_arguments *arguments);
void drive_finalize(const struct driver *driver, void *context);

/* ---- usual events ---- */

void *drive_collective(const struct driver *driver, void *context, void *parent,
		       const char *function, uint64_t sequence, unsigned channels);
void *drive_p2p(const struct driver *driver, void *context, void *parent, const char *function,
		int peer);
void *drive_channel(const struct driver *driver, void *context, void *parent, unsigned channel,
		    uint64_t gpu_start);
void drive_channel_stop(const struct driver *driver, void *handle, uint64_t gpu_stop);
void *drive_proxy_op(const struct driver *driver, void *context, void *parent, unsigned channel,
		     int peer, int pid);
void *drive_proxy_step(const struct driver *driver, void *context, void *parent, int step);
void *drive_simple(const struct driver *driver, void *context, void *parent, unsigned kind);

/* ---- children and their files ---- */

/* Makes an empty directory for this test and sets the environment that leads the plugin there. */
void drive_directory(void);
const char *drive_path(void);
void drive_setenv(const char *name, const char *value);
/* Runs `body` in a child; returns its wait status. What it writes to standard error is kept. */
int drive_child(void (*body)(void));
const char *drive_error_output(void);

#define assert_child(body) assert_int_equal(drive_child(body), 0)

/* In a child, where cmocka cannot be told. */
#define require(condition)                                                                         \
	do {                                                                                       \
		if (!(condition))                                                                  \
			drive_fail(__FILE__, __LINE__, #condition);                                \
	} while (0)
_Noreturn void drive_fail(const char *file, int line, const char *condition);

struct recording {
	const struct nccl_file_header *header;
	const uint8_t *data;
	uint64_t size;
	unsigned files;
	size_t operations, events, communicators, totals;
	const struct nccl_operation *operation[65536];
	const struct nccl_event *event[131072];
	const struct nccl_communicator_record *communicator[4096];
	const struct nccl_total *total[1024];
};

/* The file that was left in the directory; fails the test where there is none. */
const struct recording *drive_read(void);
/* In a child: waits until so many operations, less those that could not be recorded, are over. */
void drive_wait_finished(uint64_t operations);
/* In a child: waits until `is_so` says yes of the file; false after `seconds`. */
bool drive_wait(bool (*is_so)(const struct recording *recording), unsigned seconds);
const struct nccl_operation *drive_find(const struct recording *recording, const char *function,
					uint64_t sequence);
size_t drive_count(const struct recording *recording, unsigned kind);
const char *drive_name(const struct recording *recording, uint8_t name);

#endif

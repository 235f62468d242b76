/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Own work is what kymo does in the program's threads beside taking samples: at the start, at
 * forks, before exec and at the end of a process. Each piece is measured by the thread's CPU clock,
 * and the sum goes to the head of the process's spool file, so that the results can tell what kymo
 * costs. Signal-safe.
 */
#ifndef KYMO_CORE_BASE_OWN_WORK_H
#define KYMO_CORE_BASE_OWN_WORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/ticks.h"
#include "kymo/spool.h"

/* Of this process. */
struct own_work {
	_Atomic uint64_t ns;
	enum spool_image_origin origin;
};

extern struct own_work kymo_own_work;

/* The thread's CPU clock, for own_work_add_since(). A system call: not in a sandbox. */
static inline uint64_t own_work_read_clock_ns(void)
{
	return read_posix_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static inline void own_work_add_ns(uint64_t ns)
{
	atomic_fetch_add_explicit(&kymo_own_work.ns, ns, memory_order_relaxed);
}

static inline void own_work_add_since(uint64_t begun_ns)
{
	own_work_add_ns(own_work_read_clock_ns() - begun_ns);
}

/* In a forked child: what was done before was its parent's, which may have been a short process. */
static inline void own_work_reset_in_child(bool of_short_process)
{
	atomic_store_explicit(&kymo_own_work.ns, 0, memory_order_relaxed);
	kymo_own_work.origin = of_short_process && kymo_own_work.origin != SPOOL_IMAGE_FORKED
				       ? SPOOL_IMAGE_FORKED_SHORT
				       : SPOOL_IMAGE_FORKED;
}

static inline void own_work_write_to_header(struct spool_file_header *header)
{
	header->own_work_ns = atomic_load_explicit(&kymo_own_work.ns, memory_order_relaxed);
	header->origin = kymo_own_work.origin;
}

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A small session in memory, and the functions of session.h and views.h that writers call, answered
 * from it. Two processes: "work" (pid 1000, first image "sh") with threads "main" and "pool; 1",
 * and
 * "</script>" (pid 2000). Inlined, unresolved, synthetic and hostile names are all there.
 */
#ifndef KYMO_TESTS_SESSION_FIXTURE_H
#define KYMO_TESTS_SESSION_FIXTURE_H

#include "analysis/session.h"

enum {
	FIXTURE_CPU_SAMPLES = 9,
	FIXTURE_WALL_SAMPLES = 3, /* one of them RUNNABLE */
	FIXTURE_OVERFLOW_SAMPLES = 2,
	FIXTURE_DROPPED = 7,
};
#define FIXTURE_START_NS UINT64_C(5000000000)

struct session *fixture_session(void);
/* A session in which nothing could be read. */
struct session *fixture_empty_session(void);

/* The same session with `count` samples streamed instead, round robin over nodes and threads. */
void fixture_repeat_samples(uint64_t count);

#endif

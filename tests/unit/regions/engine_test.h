/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A process that records regions, and what the reader makes of its file.
 */
#ifndef KYMO_TESTS_REGIONS_ENGINE_TEST_H
#define KYMO_TESTS_REGIONS_ENGINE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "analysis/regions/regions.h"
#include "regions/regions.h"

/* Runs `body` in a child in which kymo records regions with these settings ("KYMO_NAME=value",
 * NULL ends them), then ends it by `finish`. Returns the session; fails the test where the child
 * does not end as it should. */
enum engine_finish { ENGINE_EXIT, ENGINE_KILL };
struct session *engine_run(const char *directory, const char *const *settings, void (*body)(void),
			   enum engine_finish finish);

/* "a;b;c 3+1": paths with calls ended + open, sorted, a line each, over all threads of all
 * processes, in a static buffer. */
const char *engine_profile(const struct session *session);
/* The node of a path over all threads; MODEL_ENTRY_INDEX_NONE when there is none. */
uint32_t engine_node(const struct session *session, const char *path);
uint64_t engine_loss(const struct session *session, enum spool_loss loss);

#endif

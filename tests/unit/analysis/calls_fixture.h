/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Calls of instrumented functions in spool files, and the plans that say where the functions are;
 * written from kymo/spool.h and kymo/plan.h, like spool_fixture.h.
 */
#ifndef KYMO_TESTS_CALLS_FIXTURE_H
#define KYMO_TESTS_CALLS_FIXTURE_H

#include "kymo/plan.h"
#include "unit/analysis/spool_fixture.h"

#define CALLS_OPEN_MAX 256

/* A CALLS record being made. */
struct calls_fixture {
	struct spool_calls head;
	uint32_t open[CALLS_OPEN_MAX];
	uint64_t *words;
	size_t count, capacity;
};

/* A plan of these functions and nothing else. */
void calls_fixture_plan(const char *path, const struct plan_function *functions, uint32_t count);
void calls_fixture_instrumented(struct spool_fixture *fixture, uint64_t ticks, uint64_t first,
				uint64_t count, uint64_t bias, const char *plan,
				const char *module);

void calls_fixture_begin(struct calls_fixture *calls, uint32_t internal_id, uint64_t ticks,
			 const uint32_t *open, uint32_t open_count);
void calls_fixture_word(struct calls_fixture *calls, uint64_t ticks, uint32_t function,
			unsigned exit);
void calls_fixture_raw(struct calls_fixture *calls, uint64_t word);
/* Writes the record, in a chunk of its own; and is empty again. */
void calls_fixture_end(struct calls_fixture *calls, struct spool_fixture *fixture);

/* `pairs`: function id and calls, `count` times. */
void calls_fixture_counts(struct spool_fixture *fixture, uint64_t internal_id,
			  const uint64_t *pairs, size_t count);
void calls_fixture_demoted(struct spool_fixture *fixture, uint64_t ticks, uint64_t id,
			   uint64_t mode);

#endif

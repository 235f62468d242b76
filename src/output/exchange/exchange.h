/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What formats of other profilers' viewers share. docs/reference/exchange.md says what each has.
 */
#ifndef KYMO_OUTPUT_EXCHANGE_EXCHANGE_H
#define KYMO_OUTPUT_EXCHANGE_EXCHANGE_H

#include "output/output.h"
#include "output/timed_samples.h"

static inline enum view_measure_kind exchange_get_measure(const struct session *session,
							  const struct output_options *options)
{
	return options->is_measure_given ? options->measure : view_choose_default_measure(session);
}

/* Nanoseconds since the epoch. */
static inline uint64_t exchange_get_start_realtime_ns(const struct session *session)
{
	return session->realtime_minus_boottime_ns == 0
		       ? 0
		       : session->start_ns + (uint64_t)session->realtime_minus_boottime_ns;
}

/* Ends a writer: the reason of a failure becomes a line for a person. */
int exchange_finish(FILE *stream, int error, const char *what, struct problem *problem);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A way to interrupt a thread each time that it has run for a period. To add one: its number in
 * kymo/spool.h, a row in common/sampling_sources.h, a file beside source_timer.c, and the test of
 * its signals in get_source_of_signal() (sampler.c), which is no function of the table because the
 * handler may have no stack left for a call.
 *
 * All functions run on the background thread, in whose descriptor table events are opened.
 */
#ifndef KYMO_CORE_SAMPLING_SOURCE_H
#define KYMO_CORE_SAMPLING_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/perf_events.h"
#include "common/sampling_sources.h"
#include "core/base/options.h"
#include "core/sampler.h"

struct sampling_source {
	const char *name; /* as notices say it */
	enum spool_cpu_source id;
	enum options_sampling_source_kind
		setting_value; /* the word of SAMPLING_SOURCE that asks for it */
	int signal;            /* the only one it can send; 0: the user's, or SIGURG */
	/* What it does not see, for the notice; "" for nothing. */
	const char *(*get_limits_text)(const struct sampler *sampler);
	/* Does it work here? 0 or an error number; notes what it found out. */
	int (*probe)(struct sampler *sampler);
	/* 0 or negative errno. Where the thread is armed already, the source is on at once. */
	int (*open)(const struct sampler *sampler, struct thread *thread, uint64_t first);
	/* On, with so much time to the first signal; or off. */
	void (*set_enabled)(struct thread *thread, bool on, uint64_t first);
	void (*set_period)(struct thread *thread, uint64_t period);
	void (*close)(struct thread *thread);
	bool restarts_period_on_change; /* what had passed of a period is lost when its length
					   changes */
};

#define SAMPLING_SOURCE_EXTERN_DECLARATION(identifier, number, text)                               \
	extern const struct sampling_source sampling_source_##identifier;
SAMPLING_SOURCE_LIST(SAMPLING_SOURCE_EXTERN_DECLARATION)
#undef SAMPLING_SOURCE_EXTERN_DECLARATION

/* A perf event of the thread, which sends the sampler's signal. Descriptor or negative errno. */
int source_perf_open_event(const struct sampler *sampler, const struct perf_event_code *event,
			   uint64_t period, uint32_t tid, bool on, uint64_t mark);
void source_perf_set_event_enabled(int fd, bool on);

#endif

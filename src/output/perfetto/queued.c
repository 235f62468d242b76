/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A counter for each thread that waited for a CPU: the share of each piece of time that it did. A
 * sample stands for the time before it, so its weight is spread backwards over pieces that are not
 * full yet.
 */
#include <errno.h>
#include <stdlib.h>

#include "output/perfetto/perfetto.h"

enum {
	CPU_WAIT_INTERVALS_MAX = 500,         /* of the whole trace, at most */
	CPU_WAIT_COUNTER_THREADS_MAX = 16384, /* with more, none has the counter */
};
#define CPU_WAIT_INTERVAL_NS_LEAST UINT64_C(10000000)

int perfetto_cpu_wait_init(struct perfetto_trace *trace)
{
	const struct session *session = trace->session;
	uint64_t length =
		session->end_ns > session->start_ns ? session->end_ns - session->start_ns : 0;

	trace->cpu_wait_interval_ns = length / CPU_WAIT_INTERVALS_MAX + 1;
	if (trace->cpu_wait_interval_ns < CPU_WAIT_INTERVAL_NS_LEAST)
		trace->cpu_wait_interval_ns = CPU_WAIT_INTERVAL_NS_LEAST;
	trace->cpu_wait_ns_of_thread =
		calloc((size_t)session->thread_count + 1, sizeof(*trace->cpu_wait_ns_of_thread));
	return trace->cpu_wait_ns_of_thread == NULL ? -ENOMEM : 0;
}

void perfetto_cpu_wait_deinit(struct perfetto_trace *trace)
{
	for (uint32_t thread = 0;
	     trace->cpu_wait_ns_of_thread && thread < trace->session->thread_count; thread++)
		free(trace->cpu_wait_ns_of_thread[thread]);
	free(trace->cpu_wait_ns_of_thread);
	trace->cpu_wait_ns_of_thread = NULL;
}

int perfetto_cpu_wait_add_sample(struct perfetto_trace *trace, const struct model_sample *sample)
{
	const struct session *session = trace->session;
	uint64_t **pieces = &trace->cpu_wait_ns_of_thread[sample->thread], rest = sample->weight;
	uint64_t at = sample->time_ns > session->start_ns ? sample->time_ns - session->start_ns : 0;

	if (session->thread_count > CPU_WAIT_COUNTER_THREADS_MAX)
		return 0;
	if (*pieces == NULL)
		*pieces = calloc(CPU_WAIT_INTERVALS_MAX + 1, sizeof(**pieces));
	if (*pieces == NULL)
		return -ENOMEM;
	at /= trace->cpu_wait_interval_ns;
	for (uint64_t i = at < CPU_WAIT_INTERVALS_MAX ? at : CPU_WAIT_INTERVALS_MAX; rest > 0;
	     i--) {
		uint64_t room = trace->cpu_wait_interval_ns - (*pieces)[i];
		uint64_t part = rest < room ? rest : room;

		(*pieces)[i] += part;
		rest -= part;
		if (i == 0)
			break;
	}
	return 0;
}

static void write_thread_cpu_wait_counter(struct perfetto_trace *trace, uint32_t thread,
					  const uint64_t *pieces)
{
	uint64_t parent = perfetto_get_thread_track_uuid(trace, thread);
	uint64_t track = parent + PERFETTO_CPU_WAIT_TRACK_OFFSET, last = 0;

	perfetto_write_counter_descriptor(trace, track, parent, "Waiting for a CPU", "%");
	for (uint64_t i = 0; i <= CPU_WAIT_INTERVALS_MAX; i++) {
		if (pieces[i] == last)
			continue;
		last = pieces[i];
		perfetto_write_counter_percent(
			trace, track, trace->session->start_ns + i * trace->cpu_wait_interval_ns,
			pieces[i], trace->cpu_wait_interval_ns);
	}
}

void perfetto_cpu_wait_write_counters(struct perfetto_trace *trace)
{
	for (uint32_t thread = 0; thread < trace->session->thread_count; thread++) {
		if (trace->cpu_wait_ns_of_thread[thread] != NULL)
			write_thread_cpu_wait_counter(trace, thread,
						      trace->cpu_wait_ns_of_thread[thread]);
	}
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Real time in the summary: how much of it threads ran, waited for a CPU, and were blocked; and
 * what a CPU limit had to do with it.
 */
#include "output/format.h"
#include "output/summary/private.h"

struct summary_time_parts summary_get_thread_time_parts(const struct model_thread *thread)
{
	struct summary_time_parts times = {
		.running_ns = thread->weight[SPOOL_SOURCE_CPU],
		.queued_ns = thread->weight[SPOOL_SOURCE_RUNNABLE],
		.blocked_ns = thread->weight[SPOOL_SOURCE_WALL],
	};

	if (thread->cpu_ns > times.running_ns) /* what no sample covers was running as well */
		times.running_ns = thread->cpu_ns;
	return times;
}

uint64_t summary_sum_time_parts(struct summary_time_parts times)
{
	return times.running_ns + times.queued_ns + times.blocked_ns;
}

void summary_add_time_parts(struct summary_time_parts *sum, struct summary_time_parts times)
{
	sum->running_ns += times.running_ns;
	sum->queued_ns += times.queued_ns;
	sum->blocked_ns += times.blocked_ns;
}

static void write_time_share_row(const struct summary_writer *summary, uint64_t part,
				 uint64_t whole, const char *text)
{
	fprintf(summary->stream, "  %8s %9s  %s\n", quantity_from_share(part, whole).text,
		quantity_from_ns(part).text, text);
}

/* What a metric of a process grew by. */
static uint64_t compute_metric_growth(const struct model_process *process, uint32_t metric,
				      uint64_t *last)
{
	uint64_t first = 0;
	bool known = false;

	*last = 0;
	for (size_t i = 0; i < process->metric_count; i++) {
		if (process->metrics[i].metric != metric)
			continue;
		if (!known)
			first = process->metrics[i].value;
		known = true;
		*last = process->metrics[i].value;
	}
	return *last > first ? *last - first : 0;
}

/* Processes are mostly in one control group: the one that saw the most of it tells. */
static void write_cpu_limit_of_cgroup(const struct summary_writer *summary)
{
	const struct session *session = summary->session;
	const struct model_process *process = NULL;
	uint64_t periods, throttled, ns, limit, most = 0, last;

	for (uint32_t i = 0; i < session->process_count; i++) {
		periods =
			compute_metric_growth(&session->processes[i], SPOOL_CGROUP_PERIODS, &last);
		if (periods >= most && last) {
			most = periods;
			process = &session->processes[i];
		}
	}
	if (!process)
		return;
	periods = compute_metric_growth(process, SPOOL_CGROUP_PERIODS, &last);
	throttled = compute_metric_growth(process, SPOOL_CGROUP_THROTTLED_PERIODS, &last);
	ns = compute_metric_growth(process, SPOOL_CGROUP_THROTTLED_NS, &last);
	compute_metric_growth(process, SPOOL_CGROUP_CPU_LIMIT, &limit);
	if (!throttled)
		summary_write_line(summary,
				   "the CPU limit of the control group (%.2f CPUs) did not stop it",
				   (double)limit / 1000);
	else
		summary_write_line(
			summary,
			"the CPU limit of the control group (%.2f CPUs) stopped it in %s of "
			"%s periods, for %s on all CPUs together",
			(double)limit / 1000, quantity_from_count(throttled).text,
			quantity_from_count(periods).text, quantity_from_ns(ns).text);
}

void summary_write_real_time(const struct summary_writer *summary)
{
	const struct session *session = summary->session;
	struct summary_time_parts sum = {0};
	uint64_t whole;

	if (summary->measure != VIEW_MEASURE_REAL_TIME)
		return;
	for (uint32_t i = 0; i < session->thread_count; i++) {
		if (session->threads[i].how != 3)
			summary_add_time_parts(&sum,
					       summary_get_thread_time_parts(&session->threads[i]));
	}
	whole = summary_sum_time_parts(sum);
	if (!whole)
		return;
	summary_write_heading(summary, "Real time of all threads");
	write_time_share_row(summary, sum.running_ns, whole, "running");
	write_time_share_row(summary, sum.queued_ns, whole, "waiting for a CPU");
	write_time_share_row(summary, sum.blocked_ns, whole, "blocked");
	write_cpu_limit_of_cgroup(summary);
}

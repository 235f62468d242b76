/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The head of the summary: how much CPU time there was and how much of it the samples stand for, or
 * why there are none.
 */
#include <inttypes.h>
#include <string.h>

#include "analysis/regions/calls.h"
#include "output/format.h"
#include "output/summary/private.h"

#define ATTACH_DELAY_NS_MAX  500000000u
#define KERNEL_CLOCK_TICK_NS 4000000u
#define LONG_UNSAMPLED_NS    50000000u

static uint64_t sum_thread_cpu_ns(const struct session *session)
{
	uint64_t cpu_ns = 0;

	for (uint32_t i = 0; i < session->thread_count; i++) {
		if (session->threads[i].how != 3)
			cpu_ns += session->threads[i].cpu_ns;
	}
	return cpu_ns;
}

static uint64_t sum_sampled_cpu_ns(const struct session *session)
{
	uint64_t covered_ns = 0;

	for (uint32_t i = 0; i < session->thread_count; i++) {
		if (session->threads[i].how != 3)
			covered_ns += session->threads[i].weight[SPOOL_SOURCE_CPU];
	}
	return covered_ns;
}

/* When collection was on in the process. */
enum collection_completeness { COLLECTED_ALWAYS, COLLECTED_IN_PART, COLLECTED_NEVER };

/* `kymo attach` starts collection when its library is in the process, and stops it before it takes
 * that out: no time is missing. */
static bool is_attach_delay(const struct session *session, uint64_t from_ns, uint64_t to_ns)
{
	return session->launch.attached && to_ns - from_ns < ATTACH_DELAY_NS_MAX;
}

static enum collection_completeness
get_process_collection_completeness(const struct session *session,
				    const struct model_process *process)
{
	uint64_t off_since_ns = 0;
	bool was_off = false, was_on = false, is_on = true;

	for (size_t k = 0; k < process->notice_count; k++) {
		const struct model_notice *notice = &process->notices[k];

		if (notice->kind != SPOOL_NOTICE_WINDOW)
			continue;
		if (!notice->argument && is_on)
			off_since_ns = notice->time_ns;
		else if (notice->argument && (!is_on || !was_on))
			was_off |= was_on ||
				   !is_attach_delay(session, process->start_ns, notice->time_ns);
		is_on = notice->argument != 0;
		was_on |= is_on;
	}
	if (!is_on)
		was_off |= !is_attach_delay(session, off_since_ns, process->end_ns);
	return !was_off ? COLLECTED_ALWAYS : was_on ? COLLECTED_IN_PART : COLLECTED_NEVER;
}

/* Was collection off for some of the time, by windows or somebody's stop? */
static bool was_collection_partly_off(const struct session *session)
{
	for (uint32_t i = 0; i < session->process_count; i++) {
		if (get_process_collection_completeness(session, &session->processes[i]) !=
		    COLLECTED_ALWAYS)
			return true;
	}
	return false;
}

static bool was_collection_never_on(const struct session *session)
{
	for (uint32_t i = 0; i < session->process_count; i++) {
		if (get_process_collection_completeness(session, &session->processes[i]) !=
		    COLLECTED_NEVER)
			return false;
	}
	return session->process_count != 0;
}

/* The kernel counts from fork to exit, kymo from when it is loaded: a little less is normal. */
static void write_cpu_time_of_run(const struct summary_writer *summary, uint64_t counted,
				  uint64_t covered)
{
	const struct model_program_launch *launch = &summary->session->launch;
	uint64_t kernel = launch->user_ns + launch->system_ns;

	/* Clocks differ by a tick at the start and at the end of each process. */
	if (counted >
	    kernel + kernel / 20 + KERNEL_CLOCK_TICK_NS * summary->session->process_count) {
		summary_write_line(summary,
				   "CPU time %s; samples cover %s (the kernel counted %s, without "
				   "processes that nobody waited for)",
				   quantity_from_ns(counted).text,
				   quantity_from_share(covered, counted).text,
				   quantity_from_ns(kernel).text);
		return;
	}
	summary_write_line(
		summary,
		"CPU time %s: %s of the %s that the kernel counted (user %s, system %s); "
		"samples cover %s",
		quantity_from_ns(counted).text, quantity_from_share(counted, kernel).text,
		quantity_from_ns(kernel).text, quantity_from_ns(launch->user_ns).text,
		quantity_from_ns(launch->system_ns).text,
		quantity_from_share(covered, counted).text);
	if (counted >= kernel - kernel / 10)
		return;
	if (was_collection_partly_off(summary->session))
		summary_write_line(summary, "(the rest: while collection was off)");
	else
		summary_write_line(
			summary, "(the rest: process startup and exit, processes and threads that "
				 "kymo could not profile, and processes that a signal killed)");
}

/* A sample that comes late says where the signal was let in, not where the time went. */
static void write_signals_blocked_time(const struct summary_writer *summary, uint64_t counted)
{
	const struct session *session = summary->session;
	uint64_t blocked_ns = 0;

	for (uint32_t i = 0; i < session->thread_count; i++)
		blocked_ns += session->threads[i].blocked_ns;
	if (blocked_ns)
		summary_write_line(
			summary,
			"%s of it (%s) was not sampled, because the program had all signals "
			"blocked",
			quantity_from_share(blocked_ns, counted).text,
			quantity_from_ns(blocked_ns).text);
}

/* Under a filter there is nothing that the kernel counted alike. */
void summary_write_cpu_time(const struct summary_writer *summary)
{
	const struct session *session = summary->session;
	const struct model_program_launch *launch = &session->launch;
	uint64_t counted = sum_thread_cpu_ns(session), covered = sum_sampled_cpu_ns(session);

	if (covered == 0) {
		write_signals_blocked_time(summary, counted);
		return;
	}
	if (session->has_only_part_of_time)
		summary_write_line(summary, "CPU time %s in the selected part of the run",
				   quantity_from_ns(covered).text);
	else if (session->has_only_part_of_threads || !launch->is_wait_status_known ||
		 launch->user_ns + launch->system_ns == 0)
		summary_write_line(summary, "CPU time %s, covered by samples: %s",
				   quantity_from_ns(counted).text,
				   quantity_from_share(covered, counted).text);
	else
		write_cpu_time_of_run(summary, counted, covered);
	write_signals_blocked_time(summary, counted);
}

/* ---- no samples ---- */

/* What the collectors say that turned themselves off or were never there. */
static const char *find_notice_of_missing_samples(const struct session *session)
{
	const char *text = NULL;

	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];

		for (size_t k = 0; k < process->notice_count; k++) {
			enum spool_notice kind = process->notices[k].kind;

			if (kind == SPOOL_NOTICE_DISABLED || kind == SPOOL_NOTICE_NOT_FOLLOWED)
				text = process->notices[k].text;
		}
	}
	return text;
}

static bool has_thread_left_alone(const struct session *session)
{
	for (uint32_t i = 0; i < session->process_count; i++) {
		if (session->processes[i].losses[SPOOL_LOSS_SECCOMP])
			return true;
	}
	return false;
}

/* Sampled threads were idle; was there another one? */
static void write_unsampled_cpu_time(const struct summary_writer *summary, uint64_t cpu)
{
	const struct session *session = summary->session;
	uint64_t kernel = session->launch.user_ns + session->launch.system_ns;

	if (has_thread_left_alone(session) ||
	    kernel > cpu + LONG_UNSAMPLED_NS + KERNEL_CLOCK_TICK_NS * session->process_count)
		summary_write_warning(summary,
				      "no samples: kymo could not sample the threads that used "
				      "CPU time (%s, as the kernel counted it)%s",
				      quantity_from_ns(kernel > cpu ? kernel : cpu).text,
				      has_thread_left_alone(session) ? "; see Lost or incomplete"
								     : "");
	else
		summary_write_warning(
			summary,
			"no samples: the program used %s of CPU time, less than a sample "
			"stands for; where it waits: --realtime",
			quantity_from_ns(cpu).text);
}

static uint64_t sum_missing_samples(const struct session *session)
{
	uint64_t missing = 0;

	for (uint32_t i = 0; i < session->process_count; i++)
		missing += session_get_missing_sample_count(session, i);
	return missing;
}

static bool is_cpu_time_sampled(const struct session *session)
{
	for (uint32_t i = 0; i < session->process_count; i++) {
		if (session->processes[i].cpu_source != SPOOL_CPU_SOURCE_NONE)
			return true;
	}
	return false;
}

/* The first line: whoever sees empty tables wants to know nothing else. */
void summary_write_no_samples_reason(const struct summary_writer *summary)
{
	const struct session *session = summary->session;
	const char *notice = find_notice_of_missing_samples(session);
	uint64_t cpu = sum_thread_cpu_ns(session), missing = sum_missing_samples(session);

	if (summary->samples || summary->measure != VIEW_MEASURE_CPU_TIME ||
	    !session->process_count || session_get_calls(session)->words ||
	    session_get_calls(session)->module_count || summary_has_counters(summary) ||
	    summary_was_told_not_to_sample(summary) || session->has_only_part_of_time ||
	    session->has_only_part_of_threads)
		return;
	if (was_collection_never_on(session))
		summary_write_warning(summary, "no samples: collection was never on (see kymo help "
					       "windows)");
	else if (missing)
		summary_write_warning(summary,
				      "no samples: %s were recorded, and none of them can be read",
				      quantity_from_count(missing).text);
	else if (notice)
		summary_write_warning(summary, "no samples: %s", notice);
	else if (!is_cpu_time_sampled(session))
		return; /* nobody asked for any */
	else if (was_collection_partly_off(session))
		summary_write_warning(summary,
				      "no samples: the program used no CPU time that makes a "
				      "sample while collection was on (see kymo help windows)");
	else
		write_unsampled_cpu_time(summary, cpu);
}

/* ---- overwritten records ---- */

/* Behind the first line as well: it holds for every number. */
void summary_write_overwritten_span(const struct summary_writer *summary)
{
	const struct session *session = summary->session;
	uint64_t bytes = 0, counted = 0, left = 0, first_ns = UINT64_MAX;
	uint32_t processes = 0;

	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];

		if (!process->losses[SPOOL_LOSS_RING_OVERWRITE])
			continue;
		processes++;
		bytes += process->overwritten_bytes;
		counted += process->header_sample_count;
		left += process->samples;
		if (process->first_sample_ns && process->first_sample_ns < first_ns)
			first_ns = process->first_sample_ns;
	}
	if (!processes)
		return;
	summary_write_warning(summary,
			      "the newest records only: in %s process%s the oldest %s were "
			      "overwritten at SPOOL_LIMIT (--spool-limit=0: no limit)",
			      quantity_from_count(processes).text, processes == 1 ? "" : "es",
			      quantity_from_bytes(bytes).text);
	if (counted > left && left && !session->has_only_part_of_time &&
	    !session->has_only_part_of_threads)
		summary_write_warning(
			summary,
			"%s samples were taken there, %s are left; the earliest is from %s after "
			"the start",
			quantity_from_count(counted).text, quantity_from_count(left).text,
			quantity_from_ns(first_ns > session->start_ns ? first_ns - session->start_ns
								      : 0)
				.text);
}

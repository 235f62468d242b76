/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The rest of the summary: what the host did, what could not be named, what was lost, and what kymo
 * itself took. Everything that makes the tables less than the whole truth is said here.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/format.h"
#include "output/summary.h"

/* ---- host ---- */

struct metric_range {
	uint64_t first, last, highest;
	bool known;
};

static struct metric_range metric_of(const struct model_process *process, uint32_t metric)
{
	struct metric_range range = {0};

	for (size_t i = 0; i < process->metric_count; i++) {
		const struct model_metric_sample *sample = &process->metrics[i];

		if (sample->metric != metric)
			continue;
		if (!range.known)
			range.first = sample->value;
		range.known = true;
		range.last = sample->value;
		if (sample->value > range.highest)
			range.highest = sample->value;
	}
	return range;
}

/* What cumulative counters of all processes grew to. */
static uint64_t sum_of(const struct session *session, uint32_t metric, bool *known)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < session->process_count; i++) {
		struct metric_range range = metric_of(&session->processes[i], metric);

		*known |= range.known;
		sum += range.last;
	}
	return sum;
}

static void write_memory(const struct summary *summary)
{
	const struct session *session = summary->session;
	const struct model_process *process = NULL;
	uint64_t highest = 0;
	bool known = false;

	for (uint32_t i = 0; i < session->process_count; i++) {
		struct metric_range peak =
			metric_of(&session->processes[i], SPOOL_PROCESS_PEAK_RSS_BYTES);

		if (!peak.known)
			peak = metric_of(&session->processes[i], SPOOL_PROCESS_RSS_BYTES);
		if (peak.highest > highest) {
			highest = peak.highest;
			process = &session->processes[i];
		}
	}
	if (!process)
		return;
	uint64_t major = sum_of(session, SPOOL_PROCESS_MAJOR_FAULTS, &known);
	uint64_t minor = sum_of(session, SPOOL_PROCESS_MINOR_FAULTS, &known);

	summary_line(summary, "memory: at most %s resident%s%s; page faults: %s minor, %s major",
		     quantity_bytes(highest).text, session->process_count > 1 ? " in " : "",
		     session->process_count > 1 ? process->name : "", quantity_count(minor).text,
		     quantity_count(major).text);
}

static void write_activity(const struct summary *summary)
{
	const struct session *session = summary->session;
	bool switches = false, io = false;
	uint64_t waits = sum_of(session, SPOOL_PROCESS_VOLUNTARY_SWITCHES, &switches);
	uint64_t preempted = sum_of(session, SPOOL_PROCESS_INVOLUNTARY_SWITCHES, &switches);
	uint64_t read = sum_of(session, SPOOL_PROCESS_READ_CHARS, &io);
	uint64_t written = sum_of(session, SPOOL_PROCESS_WRITTEN_CHARS, &io);

	if (switches)
		summary_line(summary, "context switches: %s to wait, %s pre-empted",
			     quantity_count(waits).text, quantity_count(preempted).text);
	if (io)
		summary_line(summary, "input and output: %s read, %s written",
			     quantity_bytes(read).text, quantity_bytes(written).text);
}

static void write_load(const struct summary *summary)
{
	const struct session *session = summary->session;

	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];
		struct metric_range busy = metric_of(process, SPOOL_HOST_CPU_BUSY_NS);
		struct metric_range whole = metric_of(process, SPOOL_HOST_CPU_TOTAL_NS);

		if (whole.last <= whole.first || busy.last < busy.first)
			continue;
		summary_line(summary, "CPU load of the machine, all programs together: %s",
			     quantity_share(busy.last - busy.first, whole.last - whole.first).text);
		return;
	}
}

void summary_host(const struct summary *summary)
{
	bool any = false;

	for (uint32_t i = 0; i < summary->session->process_count; i++)
		any |= summary->session->processes[i].metric_count > 0;
	if (!any)
		return;
	summary_heading(summary, "Program and machine");
	write_memory(summary);
	write_activity(summary);
	write_load(summary);
}

/* ---- unresolved code ---- */

struct unresolved {
	const char *path, *name, *advice;
	uint64_t samples;
};

static int by_path(const void *left, const void *right)
{
	return strcmp(((const struct unresolved *)left)->path,
		      ((const struct unresolved *)right)->path);
}

static int by_samples(const void *left, const void *right)
{
	const struct unresolved *a = left, *b = right;

	return a->samples > b->samples ? -1 : a->samples < b->samples;
}

/* One entry a file; the same library of several processes counts together. */
static size_t gather_unresolved(const struct session *session, struct unresolved *list)
{
	size_t count = 0, kept = 0;

	for (uint32_t i = 0; i < session->module_count; i++) {
		const struct model_module *module = &session->modules[i];

		if (module->samples_unresolved)
			list[count++] =
				(struct unresolved){module->path, module->name, module->advice,
						    module->samples_unresolved};
	}
	if (count > 1)
		qsort(list, count, sizeof(*list), by_path);
	for (size_t i = 0; i < count; i++) {
		if (kept && strcmp(list[kept - 1].path, list[i].path) == 0)
			list[kept - 1].samples += list[i].samples;
		else
			list[kept++] = list[i];
	}
	if (kept > 1)
		qsort(list, kept, sizeof(*list), by_samples);
	return kept;
}

void summary_unresolved(const struct summary *summary)
{
	const struct session *session = summary->session;
	struct unresolved *list = calloc((size_t)session->module_count + 1, sizeof(*list));
	uint64_t samples = 0, unresolved = 0;
	size_t count;

	if (!list)
		return;
	for (uint32_t i = 0; i < session->module_count; i++) {
		samples += session->modules[i].samples_total;
		unresolved += session->modules[i].samples_unresolved;
	}
	count = gather_unresolved(session, list);
	/* Less than one in a thousand changes nothing that the tables show. */
	if (unresolved * 1000 >= samples && count) {
		summary_heading(summary, "Code without names");
		summary_line(summary, "%s of the samples are in code that no symbol table names:",
			     quantity_share(unresolved, samples).text);
	} else {
		count = 0;
	}
	for (size_t i = 0; i < count && i < 5 && list[i].samples * 1000 >= samples; i++)
		summary_line(summary, "%s in %s%s%s", quantity_share(list[i].samples, samples).text,
			     list[i].name, list[i].advice ? ": " : "",
			     list[i].advice ? list[i].advice : "");
	free(list);
}

/* ---- losses ---- */

static const char *end_text(int end)
{
	static const char *const texts[SPOOL_STACK_END_COUNT] = {
		[SPOOL_STACK_NO_TABLE] = "code without unwind information",
		[SPOOL_STACK_BAD_READ] = "stack memory that cannot be read",
		[SPOOL_STACK_BAD_CFA] = "frames that make no sense",
		[SPOOL_STACK_UNSUPPORTED] = "an unwind rule that kymo does not know",
		[SPOOL_STACK_DEPTH] = "the depth limit (SAMPLING_MAX_DEPTH)",
		[SPOOL_STACK_BAD_PC] = "a return address outside all code",
		[SPOOL_STACK_NOT_WALKED] = "only the program counter being known",
	};
	return end < SPOOL_STACK_END_COUNT && texts[end] ? texts[end] : "an unknown reason";
}

/* Columns of the losses of all processes together. */
struct loss_sums {
	uint64_t losses[SPOOL_LOSS_COUNT], stacks[16];
	uint64_t torn_bytes, unknown_records, samples, any;
};

static struct loss_sums sum_losses(const struct session *session)
{
	struct loss_sums sums = {.any = session->unreadable_files};

	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];

		for (int loss = 0; loss < SPOOL_LOSS_COUNT; loss++) {
			sums.losses[loss] += process->losses[loss];
			sums.any += process->losses[loss];
		}
		for (int end = 0; end < 16; end++) {
			sums.stacks[end] += process->stacks[end];
			sums.any += end ? process->stacks[end] : 0;
			sums.samples += process->stacks[end];
		}
		sums.torn_bytes += process->torn_bytes;
		sums.unknown_records += process->unknown_records;
	}
	sums.any += sums.torn_bytes + sums.unknown_records;
	return sums;
}

void summary_losses(const struct summary *summary)
{
	struct loss_sums sums = sum_losses(summary->session);

	if (!sums.any)
		return;
	summary_heading(summary, "Lost or incomplete");
	for (int loss = 0; loss < SPOOL_LOSS_COUNT; loss++) {
		if (sums.losses[loss])
			summary_warning(summary, "%s %s", quantity_count(sums.losses[loss]).text,
					summary_loss_text(loss));
	}
	for (int end = 1; end < 16; end++) {
		if (sums.stacks[end])
			summary_line(summary, "%s stacks (%s) cut off by %s",
				     quantity_count(sums.stacks[end]).text,
				     quantity_share(sums.stacks[end], sums.samples).text,
				     end_text(end));
	}
	if (sums.torn_bytes)
		summary_warning(summary, "%s of the recording could not be read (torn)",
				quantity_bytes(sums.torn_bytes).text);
	if (sums.unknown_records)
		summary_warning(summary, "%s records of kinds that this kymo does not know",
				quantity_count(sums.unknown_records).text);
	if (summary->session->unreadable_files)
		summary_warning(summary, "%s files could not be read at all",
				quantity_count(summary->session->unreadable_files).text);
}

/* ---- kymo itself ---- */

static const char *source_text(enum spool_cpu_source source)
{
	switch (source) {
	case SPOOL_CPU_SOURCE_PERF_SIGTRAP:
		return "the kernel's task clock (perf event, SIGTRAP)";
	case SPOOL_CPU_SOURCE_PERF_SIGNAL:
		return "the kernel's task clock (perf event, signal)";
	case SPOOL_CPU_SOURCE_TIMER:
		return "CPU-time timers";
	default:
		return "none";
	}
}

/* The source of most processes of the tree, with its reason. */
static void write_source(const struct summary *summary)
{
	const struct session *session = summary->session;
	const struct model_process *shown = NULL;
	uint64_t most = 0;

	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];

		if (process->cpu_source != SPOOL_CPU_SOURCE_NONE && process->samples >= most) {
			most = process->samples;
			shown = process;
		}
	}
	if (!shown || (!shown->samples && summary_has_counters(summary)))
		return;
	const char *limit = strstr(shown->cpu_source_text, ": ");

	summary_line(summary, "CPU samples come from %s%s", source_text(shown->cpu_source),
		     limit ? limit : "");
	if (shown->cpu_source == SPOOL_CPU_SOURCE_TIMER)
		summary_line(
			summary,
			"timers fire with the kernel's tick (often 250 a second), whatever the "
			"rate asked for; weights keep the sums right. Programs in step with the "
			"tick need perf events: sysctl kernel.perf_event_paranoid=2");
}

void summary_overhead(const struct summary *summary)
{
	const struct session *session = summary->session;
	uint64_t handler = 0, helper = 0, cpu = 0, bytes = 0, signals = 0;

	for (uint32_t i = 0; i < session->process_count; i++) {
		handler += session->processes[i].handler_ns;
		helper += session->processes[i].helper_cpu_ns;
		bytes += session->processes[i].spool_bytes;
		signals += session->processes[i].signals;
	}
	for (uint32_t i = 0; i < session->thread_count; i++)
		cpu += session->threads[i].how == 3 ? 0 : session->threads[i].cpu_ns;
	if (!session->process_count)
		return;
	summary_heading(summary, "kymo itself");
	summary_line(summary,
		     "%s in %s signal handlers (%s of the program's CPU time), %s in a thread of "
		     "its own; %s recorded",
		     quantity_time(handler).text, quantity_count(signals).text,
		     quantity_share(handler, cpu).text, quantity_time(helper).text,
		     quantity_bytes(bytes).text);
	write_source(summary);
	summary_notices(summary);
}

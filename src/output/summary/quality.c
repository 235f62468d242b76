/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The rest of the summary: what the host did, what could not be named, what was lost, and what kymo
 * itself took. Everything that makes the tables less than the whole truth is said here.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/own_cost.h"
#include "common/array.h"
#include "common/sampling_sources.h"
#include "output/format.h"
#include "output/incomplete/incomplete.h"
#include "output/summary/private.h"

/* ---- host ---- */

struct process_metric_summary {
	uint64_t first, last, highest_value;
	bool known;
};

static struct process_metric_summary
summarize_metric_of_process(const struct model_process *process, uint32_t metric)
{
	struct process_metric_summary range = {0};

	for (size_t i = 0; i < process->metric_count; i++) {
		const struct model_metric_sample *sample = &process->metrics[i];

		if (sample->metric != metric)
			continue;
		if (!range.known)
			range.first = sample->value;
		range.known = true;
		range.last = sample->value;
		if (sample->value > range.highest_value)
			range.highest_value = sample->value;
	}
	return range;
}

/* What cumulative counters of all processes grew to. */
static uint64_t sum_cumulative_metric_of_processes(const struct session *session, uint32_t metric,
						   bool *known)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < session->process_count; i++) {
		struct process_metric_summary range =
			summarize_metric_of_process(&session->processes[i], metric);

		*known |= range.known;
		sum += range.last;
	}
	return sum;
}

static void write_highest_process_memory_peak(const struct summary_writer *summary)
{
	const struct session *session = summary->session;
	const struct model_process *process = NULL;
	uint64_t highest = 0;
	bool known = false;

	for (uint32_t i = 0; i < session->process_count; i++) {
		struct process_metric_summary peak = summarize_metric_of_process(
			&session->processes[i], SPOOL_PROCESS_PEAK_RSS_BYTES);

		if (!peak.known)
			peak = summarize_metric_of_process(&session->processes[i],
							   SPOOL_PROCESS_RSS_BYTES);
		if (peak.highest_value > highest) {
			highest = peak.highest_value;
			process = &session->processes[i];
		}
	}
	if (!process)
		return;
	uint64_t major =
		sum_cumulative_metric_of_processes(session, SPOOL_PROCESS_MAJOR_FAULTS, &known);
	uint64_t minor =
		sum_cumulative_metric_of_processes(session, SPOOL_PROCESS_MINOR_FAULTS, &known);

	summary_write_line(summary, "memory: peak %s resident%s%s; page faults: %s minor, %s major",
			   quantity_from_bytes(highest).text,
			   session->process_count > 1 ? " in " : "",
			   session->process_count > 1 ? process->name : "",
			   quantity_from_count(minor).text, quantity_from_count(major).text);
}

static void write_switches_and_io(const struct summary_writer *summary)
{
	const struct session *session = summary->session;
	bool switches = false, io = false;
	uint64_t waits = sum_cumulative_metric_of_processes(
		session, SPOOL_PROCESS_VOLUNTARY_SWITCHES, &switches);
	uint64_t preempted = sum_cumulative_metric_of_processes(
		session, SPOOL_PROCESS_INVOLUNTARY_SWITCHES, &switches);
	uint64_t read = sum_cumulative_metric_of_processes(session, SPOOL_PROCESS_READ_CHARS, &io);
	uint64_t written =
		sum_cumulative_metric_of_processes(session, SPOOL_PROCESS_WRITTEN_CHARS, &io);

	if (switches)
		summary_write_line(
			summary, "context switches: %s voluntary (blocked), %s involuntary",
			quantity_from_count(waits).text, quantity_from_count(preempted).text);
	if (io)
		summary_write_line(summary, "input and output: %s read, %s written",
				   quantity_from_bytes(read).text,
				   quantity_from_bytes(written).text);
}

static void write_host_load(const struct summary_writer *summary)
{
	const struct session *session = summary->session;

	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];
		struct process_metric_summary busy =
			summarize_metric_of_process(process, SPOOL_HOST_CPU_BUSY_NS);
		struct process_metric_summary whole =
			summarize_metric_of_process(process, SPOOL_HOST_CPU_TOTAL_NS);

		if (whole.last <= whole.first || busy.last < busy.first)
			continue;
		summary_write_line(
			summary, "CPU load of the machine, all programs: %s",
			quantity_from_share(busy.last - busy.first, whole.last - whole.first).text);
		return;
	}
}

void summary_write_program_and_machine(const struct summary_writer *summary)
{
	bool any = false;

	for (uint32_t i = 0; i < summary->session->process_count; i++)
		any |= summary->session->processes[i].metric_count > 0;
	if (!any)
		return;
	summary_write_heading(summary, "Program and machine");
	write_highest_process_memory_peak(summary);
	write_switches_and_io(summary);
	write_host_load(summary);
}

/* ---- unresolved code ---- */

/* Paths of the modules that stand for code in no file: memory that was seen mapped, and what was
 * gone, or not there yet, when the mappings were read. */
#define JIT_MODULE_PATH     "[jit]"
#define UNKNOWN_MODULE_PATH "[unknown]"

static bool is_path_of_code_in_no_file(const char *path)
{
	return !strcmp(path, JIT_MODULE_PATH) || !strcmp(path, UNKNOWN_MODULE_PATH);
}

struct unresolved_file {
	const char *path, *name, *advice;
	uint64_t samples;
};

static int compare_unresolved_by_path(const void *left, const void *right)
{
	return strcmp(((const struct unresolved_file *)left)->path,
		      ((const struct unresolved_file *)right)->path);
}

static int compare_unresolved_by_samples(const void *left, const void *right)
{
	const struct unresolved_file *a = left, *b = right;

	return a->samples > b->samples ? -1 : a->samples < b->samples;
}

/* One entry a file; the same library of several processes counts together. */
static size_t gather_unresolved_files(const struct session *session, struct unresolved_file *list)
{
	size_t count = 0, kept = 0;

	for (uint32_t i = 0; i < session->module_count; i++) {
		const struct model_module *module = &session->modules[i];

		if (module->samples_unresolved)
			list[count++] =
				(struct unresolved_file){module->path, module->name, module->advice,
							 module->samples_unresolved};
	}
	if (count > 1)
		qsort(list, count, sizeof(*list), compare_unresolved_by_path);
	for (size_t i = 0; i < count; i++) {
		if (kept && strcmp(list[kept - 1].path, list[i].path) == 0)
			list[kept - 1].samples += list[i].samples;
		else
			list[kept++] = list[i];
	}
	if (kept > 1)
		qsort(list, kept, sizeof(*list), compare_unresolved_by_samples);
	return kept;
}

/* How compilers at run time are made to say what their code is called. */
static const char *get_jit_symbols_advice(const struct session *session, const char *path)
{
	static const struct {
		const char *program, *advice;
	} known[] = {
		{"node", "start it with node --perf-basic-prof"},
		{"java", "start it with java -XX:+UnlockDiagnosticVMOptions "
			 "-XX:+DumpPerfMapAtExit, or with a perf map agent"},
		{"dotnet", "set DOTNET_PerfMapEnabled=1"},
		{"julia", "set ENABLE_JITPROFILING=1"},
		{"chrom", "start it with --js-flags=--perf-basic-prof --no-sandbox"},
	};

	for (uint32_t i = 0; i < session->module_count; i++) {
		const struct model_module *module = &session->modules[i];
		const char *name = session->processes[module->process].name;

		if (!module->samples_unresolved || strcmp(module->path, path) != 0)
			continue;
		for (size_t k = 0; k < sizeof(known) / sizeof(*known); k++) {
			if (!strncmp(name, known[k].program, strlen(known[k].program)))
				return known[k].advice;
		}
	}
	return !strcmp(path, JIT_MODULE_PATH)
		       ? "made while the program runs (JIT): it has names where the compiler "
			 "writes /tmp/perf-PID.map or a jitdump"
		       : "in no file; if a compiler makes it while the program runs (JIT), it "
			 "has names where that writes /tmp/perf-PID.map or a jitdump";
}

void summary_write_unresolved_code(const struct summary_writer *summary)
{
	const struct session *session = summary->session;
	struct unresolved_file *list = calloc((size_t)session->module_count + 1, sizeof(*list));
	uint64_t samples = 0, unresolved = 0;
	size_t count;

	if (!list)
		return;
	for (uint32_t i = 0; i < session->module_count; i++) {
		samples += session->modules[i].samples_total;
		unresolved += session->modules[i].samples_unresolved;
	}
	count = gather_unresolved_files(session, list);
	/* Less than one in a thousand changes nothing that the tables show. */
	if (unresolved * 1000 >= samples && count) {
		summary_write_heading(summary, "Code without names");
		summary_write_line(summary, "%s of the samples are in code without symbols:",
				   quantity_from_share(unresolved, samples).text);
	} else {
		count = 0;
	}
	for (size_t i = 0; i < count && i < 5 && list[i].samples * 1000 >= samples; i++) {
		const char *advice = is_path_of_code_in_no_file(list[i].path)
					     ? get_jit_symbols_advice(session, list[i].path)
					     : list[i].advice;

		summary_write_line(summary, "%s in %s%s%s",
				   quantity_from_share(list[i].samples, samples).text, list[i].name,
				   advice ? ": " : "", advice ? advice : "");
	}
	free(list);
}

/* ---- losses ---- */

/* What happened to the stacks that ended so, behind "12 samples (1.0 %)". */
static const char *get_stack_end_text(int end)
{
	static const char *const texts[SPOOL_STACK_END_COUNT] = {
		[SPOOL_STACK_NO_TABLE] = "have an incomplete stack: it leads through code without "
					 "unwind information",
		[SPOOL_STACK_BAD_READ] = "have an incomplete stack: its memory could not be read",
		[SPOOL_STACK_BAD_CFA] =
			"have an incomplete stack: the unwind information is wrong for a frame",
		[SPOOL_STACK_UNSUPPORTED] =
			"have an incomplete stack: kymo does not know an unwind rule",
		[SPOOL_STACK_DEPTH] =
			"have an incomplete stack: it is deeper than SAMPLING_MAX_DEPTH",
		[SPOOL_STACK_BAD_PC] =
			"have an incomplete stack: a return address lies outside all code",
		[SPOOL_STACK_NOT_WALKED] =
			"have no stack: kymo did not find the thread in a state that shows it "
			"(the frames [no stack: ...] say why)",
	};
	return end < SPOOL_STACK_END_COUNT && texts[end]
		       ? texts[end]
		       : "have an incomplete stack, for an unknown reason";
}

/* Columns of the losses of all processes together. */
struct loss_sums {
	uint64_t losses[SPOOL_LOSS_COUNT], stacks[16];
	uint64_t torn_bytes, unknown_records, samples, missing, all_losses_count;
};

static struct loss_sums sum_process_losses(const struct session *session)
{
	struct loss_sums sums = {.all_losses_count = session->unreadable_file_count};

	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];

		for (int loss = 0; loss < SPOOL_LOSS_COUNT; loss++) {
			sums.losses[loss] += process->losses[loss];
			sums.all_losses_count += process->losses[loss];
		}
		for (int end = 0; end < 16; end++) {
			sums.stacks[end] += process->stacks[end];
			sums.all_losses_count += end ? process->stacks[end] : 0;
			sums.samples += process->stacks[end];
		}
		sums.missing += session_get_missing_sample_count(session, i);
		sums.torn_bytes += process->torn_bytes;
		sums.unknown_records += process->unknown_records;
	}
	sums.all_losses_count += sums.torn_bytes + sums.unknown_records + sums.missing;
	return sums;
}

void summary_write_losses(const struct summary_writer *summary)
{
	struct loss_sums sums = sum_process_losses(summary->session);

	if (!sums.all_losses_count)
		return;
	summary_write_heading(summary, "Lost or incomplete");
	for (int loss = 0; loss < SPOOL_LOSS_COUNT; loss++) {
		if (sums.losses[loss])
			summary_write_warning(summary, "%s %s",
					      quantity_from_count(sums.losses[loss]).text,
					      incomplete_get_loss_text(loss));
	}
	for (int end = 1; end < 16; end++) {
		if (sums.stacks[end])
			summary_write_line(summary, "%s samples (%s) %s",
					   quantity_from_count(sums.stacks[end]).text,
					   quantity_from_share(sums.stacks[end], sums.samples).text,
					   get_stack_end_text(end));
	}
	if (sums.missing)
		summary_write_warning(summary, "%s " INCOMPLETE_MISSING_SAMPLES_TEXT,
				      quantity_from_count(sums.missing).text);
	if (sums.torn_bytes)
		summary_write_warning(summary,
				      "%s of the recording could not be read (incomplete records)",
				      quantity_from_bytes(sums.torn_bytes).text);
	if (sums.unknown_records)
		summary_write_warning(
			summary, "%s records of a kind that this version of kymo does not know",
			quantity_from_count(sums.unknown_records).text);
	if (summary->session->unreadable_file_count)
		summary_write_warning(
			summary, "%s files could not be read",
			quantity_from_count(summary->session->unreadable_file_count).text);
}

/* ---- overhead of kymo ---- */

/* The setting is the reason only where it is the one that forbids them. */
static const char *get_perf_paranoid_advice(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int level = 3;

	if (file) {
		if (fscanf(file, "%d", &level) != 1)
			level = 3;
		fclose(file);
	}
	return level > 2 ? "sysctl kernel.perf_event_paranoid=2"
			 : "kernel.perf_event_paranoid permits them already, so a seccomp filter "
			   "(of a container), or --sampling-source=timer, keeps them away";
}

static const char *get_cpu_source_text(enum spool_cpu_source source)
{
#define CPU_SOURCE_TEXT_ENTRY(identifier, number, text) [SPOOL_CPU_SOURCE_##number] = text,
	static const char *const texts[] = {
		[SPOOL_CPU_SOURCE_NONE] = "none",
		SAMPLING_SOURCE_LIST_WITH_OUTSIDE(CPU_SOURCE_TEXT_ENTRY)};
#undef CPU_SOURCE_TEXT_ENTRY

	return (unsigned)source < ARRAY_SIZE(texts) ? texts[source] : "none";
}

/* The source of most processes of the tree, with its reason. */
static void write_cpu_sampling_source(const struct summary_writer *summary)
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
	if (!shown || (!shown->samples &&
		       (summary_has_counters(summary) || summary_was_told_not_to_sample(summary))))
		return;
	const char *limit = strstr(shown->cpu_source_reason, ": ");

	summary_write_line(summary, "CPU samples come from %s%s",
			   get_cpu_source_text(shown->cpu_source), limit ? limit : "");
	if (shown->cpu_source == SPOOL_CPU_SOURCE_TIMER)
		summary_write_line(
			summary,
			"POSIX timers fire at most once per kernel tick (often 250 a second), "
			"whatever --freq says. Sums stay right, because each sample carries "
			"the CPU time since the last one. For a finer rate, allow perf "
			"events: %s",
			get_perf_paranoid_advice());
}

/* Threads whose samples come from another source, or whose events are costly, because they change
 * context often. */
static void write_sampling_source_change_note(const struct summary_writer *summary)
{
	const struct session *session = summary->session;
	uint64_t threads = 0, most = 0;

	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];

		for (size_t k = 0; k < process->notice_count; k++) {
			if (process->notices[k].kind != SPOOL_NOTICE_SOURCE_CHANGED)
				continue;
			threads++;
			if (process->notices[k].argument > most)
				most = process->notices[k].argument;
		}
	}
	if (threads)
		summary_write_line(
			summary,
			"sampling source: CPU-time timers in %s thread%s that changed context "
			"up to %s times a second, where perf events would cost much more than "
			"5 %% of the CPU time. Timers take at most one sample per kernel tick "
			"(often 250 a second); sums stay right.",
			quantity_from_count(threads).text, threads == 1 ? "" : "s",
			quantity_from_count(most).text);
}

/* Nothing of zeroes: of a part that is not there nobody has to read. */
static void append_cost_part(char *text, size_t size, const char *what, uint64_t ns)
{
	size_t length = strlen(text);

	if (ns)
		snprintf(text + length, size - length, "%s%s in %s", *text ? ", " : "",
			 quantity_from_ns(ns).text, what);
}

static void write_own_cost(const struct summary_writer *summary)
{
	struct own_cost cost = compute_profiler_own_cost(summary->session);
	char text[400] = "", signals[80];
	const struct session *session = summary->session;

	snprintf(signals, sizeof(signals), "%s signal handlers",
		 quantity_from_count(cost.signal_count).text);
	if (session->has_only_part_of_time || session->has_only_part_of_threads)
		summary_write_line(summary,
				   "kymo itself: about %s of CPU time in the whole run (the kymo "
				   "command left out)",
				   quantity_from_ns(cost.total_ns).text);
	else
		summary_write_line(
			summary,
			"kymo itself: about %s of CPU time (%s of the tree's %s; the kymo "
			"command left out)",
			quantity_from_ns(cost.total_ns).text,
			quantity_from_share(cost.total_ns, cost.process_tree_cpu_ns).text,
			quantity_from_ns(cost.process_tree_cpu_ns).text);
	append_cost_part(text, sizeof(text), signals, cost.handler_ns);
	append_cost_part(text, sizeof(text), "kymo's own thread", cost.helper_process_ns);
	append_cost_part(text, sizeof(text), "start, fork, exec and end of processes",
			 cost.start_fork_exec_end_ns);
	if (*text)
		summary_write_line(summary, "measured: %s", text);
	*text = 0;
	append_cost_part(text, sizeof(text), "the loader", cost.load_ns);
	append_cost_part(text, sizeof(text), "the kernel's signals, events and forks",
			 cost.kernel_overhead_ns);
	if (*text)
		summary_write_line(summary, "estimated: %s", text);
}

void summary_write_overhead(const struct summary_writer *summary)
{
	const struct session *session = summary->session;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < session->process_count; i++)
		bytes += session->processes[i].spool_file_bytes;
	if (!session->process_count)
		return;
	summary_write_heading(summary, "Overhead of kymo");
	write_own_cost(summary);
	summary_write_line(summary, "%s recorded", quantity_from_bytes(bytes).text);
	write_cpu_sampling_source(summary);
	write_sampling_source_change_note(summary);
	summary_write_notices(summary);
}

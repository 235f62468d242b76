/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where the whole machine was sampled: CPU time by control group (containers have one each) and by
 * CPU.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/format.h"
#include "output/summary/private.h"

/* A control group or a CPU. */
struct machine_part {
	const char *cgroup;
	uint32_t cpu, processes;
	uint64_t ns;
};

bool summary_is_of_machine(const struct summary_writer *summary)
{
	for (uint32_t i = 0; i < summary->session->process_count; i++) {
		if (summary->session->processes[i].times_by_cpu_count)
			return true;
	}
	return false;
}

static uint64_t sum_times(const struct model_process *process)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < process->times_by_cpu_count; i++)
		ns += process->times_by_cpu[i].ns;
	return ns;
}

static int compare_by_cgroup(const void *left, const void *right)
{
	const struct machine_part *a = left, *b = right;

	return strcmp(a->cgroup, b->cgroup);
}

static int compare_by_cpu(const void *left, const void *right)
{
	const struct machine_part *a = left, *b = right;

	return a->cpu < b->cpu ? -1 : a->cpu > b->cpu;
}

static int compare_by_time(const void *left, const void *right)
{
	const struct machine_part *a = left, *b = right;

	return a->ns > b->ns ? -1 : a->ns < b->ns ? 1 : 0;
}

/* Adds up those that are equal; returns how many are left. */
static size_t merge_parts(struct machine_part *parts, size_t count,
			  int (*compare)(const void *left, const void *right))
{
	size_t kept = 0;

	qsort(parts, count, sizeof(*parts), compare);
	for (size_t i = 0; i < count; i++) {
		if (kept && !compare(&parts[kept - 1], &parts[i])) {
			parts[kept - 1].ns += parts[i].ns;
			parts[kept - 1].processes += parts[i].processes;
		} else {
			parts[kept++] = parts[i];
		}
	}
	return kept;
}

static void write_heading(const struct summary_writer *summary, const char *title, const char *name)
{
	summary_write_heading(summary, title);
	summary_write_row(summary,
			  (const struct summary_cell[]){
				  {"share", 10, 0}, {"CPU time", 10, 1}, {"processes", 11, 2}},
			  3, name);
}

static void write_part(const struct summary_writer *summary, const struct machine_part *part,
		       uint64_t total, const char *name)
{
	summary_write_row(
		summary,
		(const struct summary_cell[]){{quantity_from_share(part->ns, total).text, 10, 0},
					      {quantity_from_ns(part->ns).text, 10, 1},
					      {quantity_from_count(part->processes).text, 11, 2}},
		3, name);
}

static void write_groups(const struct summary_writer *summary, struct machine_part *parts,
			 uint64_t total)
{
	const struct session *session = summary->session;
	size_t count = 0;

	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];

		if (process->times_by_cpu_count)
			parts[count++] = (struct machine_part){
				.cgroup = process->cgroup ? process->cgroup : "[not known]",
				.processes = 1,
				.ns = sum_times(process)};
	}
	count = merge_parts(parts, count, compare_by_cgroup);
	if (count < 2)
		return;
	qsort(parts, count, sizeof(*parts), compare_by_time);
	write_heading(summary, "Control groups", "group");
	for (size_t i = 0; i < count && i < summary->top; i++)
		write_part(summary, &parts[i], total, parts[i].cgroup);
	if (count > summary->top)
		summary_write_line(summary, "... and %s more",
				   quantity_from_count(count - summary->top).text);
}

static void write_cpus(const struct summary_writer *summary, struct machine_part *parts,
		       uint64_t total)
{
	const struct session *session = summary->session;
	size_t count = 0;

	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];

		for (uint32_t k = 0; k < process->times_by_cpu_count; k++)
			parts[count++] = (struct machine_part){.cpu = process->times_by_cpu[k].cpu,
							       .processes = 1,
							       .ns = process->times_by_cpu[k].ns};
	}
	count = merge_parts(parts, count, compare_by_cpu);
	write_heading(summary, "CPUs", "CPU");
	for (size_t i = 0; i < count; i++) {
		char name[24];

		snprintf(name, sizeof(name), "%" PRIu32, parts[i].cpu);
		write_part(summary, &parts[i], total, name);
	}
}

int summary_write_machine(const struct summary_writer *summary)
{
	const struct session *session = summary->session;
	size_t room = session->process_count;
	struct machine_part *parts;
	uint64_t total = 0;

	for (uint32_t i = 0; i < session->process_count; i++) {
		room += session->processes[i].times_by_cpu_count;
		total += sum_times(&session->processes[i]);
	}
	parts = calloc(room + 1, sizeof(*parts));
	if (!parts)
		return -ENOMEM;
	write_groups(summary, parts, total);
	write_cpus(summary, parts, total);
	free(parts);
	return 0;
}

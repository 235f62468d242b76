/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * How a rank fared: how it ended, how long it ran, and what of its data is missing.
 */
#include <sys/wait.h>

#include "job/ranks/private.h"
#include "output/incomplete/incomplete.h"

/* The process that stands for the rank: the launched one, else the first that has the rank from
 * MPI, else the first one. In its last image. */
static const struct model_process *find_main_process(const struct rank_collector *collector)
{
	const struct session *session = collector->session;
	const struct model_process *best = NULL;
	int best_score = -1;

	for (uint32_t i = 0; i < session->process_count; i++) {
		const struct model_process *process = &session->processes[i];
		int score = process->rank_count ? 1 : 0;

		if (!collector_wants_process(collector, i))
			continue;
		if (process->pid == session->launch.pid)
			score = 2;
		if (score > best_score ||
		    (best && process->pid == best->pid && process->image > best->image)) {
			best = process;
			best_score = score > best_score ? score : best_score;
		}
	}
	return best;
}

static void describe_end(struct rank_collector *collector, const struct model_process *process)
{
	struct job_rank *rank = &collector->rank;
	int status = process->wait_status;

	if (status == -1) {
		if (process->state == SPOOL_STATE_OPEN)
			rank->flags |= JOB_RANK_UNFINISHED;
		return;
	}
	if (WIFSIGNALED(status))
		rank->flags |= JOB_RANK_KILLED;
	else if (status)
		rank->flags |= JOB_RANK_FAILED;
	rank->wait_status = status;
}

static bool was_collection_stopped(const struct model_process *process)
{
	for (size_t i = 0; i < process->notice_count; i++) {
		if (process->notices[i].kind == SPOOL_NOTICE_WINDOW &&
		    !process->notices[i].argument)
			return true;
	}
	return false;
}

static void add_process(struct rank_collector *collector, uint32_t index, uint64_t *start_ns,
			uint64_t *end_ns)
{
	const struct session *session = collector->session;
	const struct model_process *process = &session->processes[index];
	struct job_rank *rank = &collector->rank;

	rank->processes++;
	rank->samples += process->samples;
	rank->lost += incomplete_count_lost_records(session, index);
	if (process->torn_bytes || process->torn_chunks)
		rank->flags |= JOB_RANK_UNREADABLE;
	if (process->losses[SPOOL_LOSS_RING_OVERWRITE] || process->overwritten_bytes)
		rank->flags |= JOB_RANK_OVERWRITTEN;
	if (process->losses[SPOOL_LOSS_REGION_THROTTLED] ||
	    process->losses[SPOOL_LOSS_REGION_DEPTH])
		rank->flags |= JOB_RANK_CALLS_LEFT_OUT;
	if (was_collection_stopped(process))
		rank->flags |= JOB_RANK_COLLECTED_PART;
	if (process->start_ns < *start_ns)
		*start_ns = process->start_ns;
	if (process->end_ns > *end_ns)
		*end_ns = process->end_ns;
	if (process->rank_count > rank->size)
		rank->size = process->rank_count;
	for (uint32_t i = 0; i < process->thread_count; i++) {
		const struct model_thread *thread = &session->threads[process->first_thread + i];

		if (thread->how != 3) /* kymo's own */
			rank->cpu_ns += thread->cpu_ns;
	}
}

void collector_describe_processes(struct rank_collector *collector)
{
	const struct session *session = collector->session;
	struct job_rank *rank = &collector->rank;
	const struct model_process *process = find_main_process(collector);
	uint64_t start_ns = UINT64_MAX, end_ns = 0;

	for (uint32_t i = 0; i < session->process_count; i++) {
		if (collector_wants_process(collector, i))
			add_process(collector, i, &start_ns, &end_ns);
	}
	rank->wall_ns = end_ns > start_ns ? end_ns - start_ns : 0;
	if (rank->wall_ns > JOB_VALUE_MAX)
		rank->wall_ns = JOB_VALUE_MAX;
	if (rank->cpu_ns > JOB_VALUE_MAX)
		rank->cpu_ns = JOB_VALUE_MAX;
	if (rank->lost)
		rank->flags |= JOB_RANK_LOST_RECORDS;
	if (session->unreadable_file_count)
		rank->flags |= JOB_RANK_UNREADABLE;
	if (rank->samples)
		rank->flags |= JOB_RANK_HAS_SAMPLES;
	rank->host = process->host ? process->host : "";
	rank->command = process->command_line ? process->command_line : "";
	rank->pid = process->pid;
	describe_end(collector, process);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See parts.h.
 */
#include "output/json/parts.h"

#include <string.h>
#include <sys/wait.h>

#include "analysis/own_cost.h"
#include "output/format.h"
#include "output/json/regions.h"

const char *json_get_thread_origin_name(int how)
{
	static const char *const names[] = {"main", "created", "found_running", "kymo"};

	return how >= 0 && how < 4 ? names[how] : "unknown";
}

static void json_put_command_line(struct json_writer *json, const struct session *session)
{
	const struct model_program_launch *launch = &session->launch;
	const char *const *words = launch->command;
	uint32_t count = launch->command_argument_count;

	if (!count && session->process_count) {
		words = session->processes[0].arguments;
		count = session->processes[0].argument_count;
	}
	json_array_begin(json, "command");
	for (uint32_t i = 0; i < count; i++)
		json_put_text(json, NULL, words[i]);
	json_array_end(json);
	json_put_text(json, "command_line", session->command_line);
}

static void json_put_wait_status(struct json_writer *json, const char *key, bool known,
				 int wait_status)
{
	char text[64];

	if (!known) {
		json_put_null(json, key);
		return;
	}
	json_object_begin(json, key);
	json_put_signed_integer(json, "wait_status", wait_status);
	if (WIFEXITED(wait_status))
		json_put_signed_integer(json, "status", WEXITSTATUS(wait_status));
	if (WIFSIGNALED(wait_status))
		json_put_signed_integer(json, "signal", WTERMSIG(wait_status));
	format_wait_status(text, sizeof(text), wait_status);
	json_put_text(json, "text", text);
	json_object_end(json);
}

void json_put_run(struct json_writer *json, const struct session *session)
{
	const struct model_program_launch *launch = &session->launch;
	const struct model_process *first = session->process_count ? session->processes : NULL;
	const char *host = launch->host, *directory = launch->working_directory;

	if (!*host && first)
		host = first->host;
	if (!*directory && first)
		directory = first->working_directory;
	json_put_command_line(json, session);
	json_put_text(json, "working_directory", directory);
	json_put_text(json, "host", host);
	json_put_text(json, "kymo_version", launch->kymo_version);
	json_put_count(json, "start_ns", session->start_ns);
	json_put_count(json, "end_ns", session->end_ns);
	json_put_count(json, "duration_ns", session->end_ns - session->start_ns);
	if (session->has_only_part_of_time)
		json_put_boolean(json, "only_part_of_time", true);
	if (session->has_only_part_of_threads)
		json_put_boolean(json, "only_part_of_threads", true);
	json_put_count(json, "start_realtime_ns",
		       launch->start_realtime_ns
			       ? launch->start_realtime_ns
			       : session->start_ns + (uint64_t)session->realtime_minus_boottime_ns);
	if (!launch->is_wait_status_known)
		return;
	json_object_begin(json, "launched");
	json_put_count(json, "pid", launch->pid);
	json_put_wait_status(json, "exit", true, launch->wait_status);
	json_put_count(json, "user_ns", launch->user_ns);
	json_put_count(json, "system_ns", launch->system_ns);
	json_put_count(json, "cpu_ns", launch->user_ns + launch->system_ns);
	json_object_end(json);
}

static const char *get_process_state_name(uint32_t state)
{
	switch (state) {
	case SPOOL_STATE_LEFT:
		return "left";
	case SPOOL_STATE_EXITED:
		return "exited";
	case SPOOL_STATE_EXEC:
		return "replaced_by_exec";
	default:
		return "open";
	}
}

static void json_put_process_losses(struct json_writer *json, const struct model_process *process)
{
	json_object_begin(json, "losses");
	for (int loss = 0; loss < SPOOL_LOSS_COUNT; loss++) {
		if (loss <= SPOOL_LOSS_RING_OVERWRITE || process->losses[loss])
			json_put_count(json, spool_loss_name((enum spool_loss)loss),
				       process->losses[loss]);
	}
	json_put_count(json, "torn_bytes", process->torn_bytes);
	json_put_count(json, "torn_chunks", process->torn_chunks);
	json_put_count(json, "unknown_records", process->unknown_records);
	json_object_end(json);
}

static void json_put_stack_end_counts(struct json_writer *json, const struct model_process *process)
{
	json_object_begin(json, "stacks");
	for (int end = 0; end < SPOOL_STACK_END_COUNT; end++)
		json_put_count(json, spool_stack_end_get_name((enum spool_stack_end)end),
			       process->stacks[end]);
	json_object_end(json);
}

static void json_put_notices(struct json_writer *json, const struct model_process *process)
{
	json_array_begin(json, "notices");
	for (size_t i = 0; i < process->notice_count; i++) {
		const struct model_notice *notice = &process->notices[i];

		json_object_begin(json, NULL);
		json_put_count(json, "time_ns", notice->time_ns);
		json_put_text(json, "kind", spool_notice_get_name(notice->kind));
		json_put_count(json, "argument", notice->argument);
		json_put_text(json, "text", notice->text);
		json_object_end(json);
	}
	json_array_end(json);
}

static uint64_t count_application_threads(const struct session *session,
					  const struct model_process *process)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < process->thread_count; i++)
		count += session->threads[process->first_thread + i].how != 3;
	return count;
}

/* Sums over the program's threads; `running` counts what no sample covers as well. */
static void json_put_process_real_time(struct json_writer *json, const struct session *session,
				       const struct model_process *process)
{
	uint64_t running = 0, queued = 0, blocked = 0;

	for (uint32_t i = 0; i < process->thread_count; i++) {
		const struct model_thread *thread = &session->threads[process->first_thread + i];

		if (thread->how == 3)
			continue;
		running += thread->cpu_ns > thread->weight[SPOOL_SOURCE_CPU]
				   ? thread->cpu_ns
				   : thread->weight[SPOOL_SOURCE_CPU];
		queued += thread->weight[SPOOL_SOURCE_RUNNABLE];
		blocked += thread->weight[SPOOL_SOURCE_WALL];
	}
	if (!queued && !blocked)
		return;
	json_object_begin(json, "real_time");
	json_put_count(json, "running_ns", running);
	json_put_count(json, "runnable_ns", queued);
	json_put_count(json, "blocked_ns", blocked);
	json_object_end(json);
}

static void json_put_times_by_cpu(struct json_writer *json, const struct model_process *process)
{
	if (process->cgroup)
		json_put_text(json, "cgroup", process->cgroup);
	if (!process->times_by_cpu_count)
		return;
	json_array_begin(json, "cpus");
	for (uint32_t i = 0; i < process->times_by_cpu_count; i++) {
		json_object_begin(json, NULL);
		json_put_count(json, "cpu", process->times_by_cpu[i].cpu);
		json_put_count(json, "cpu_ns", process->times_by_cpu[i].ns);
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_put_process(struct json_writer *json, const struct session *session,
			     uint32_t index)
{
	const struct model_process *process = &session->processes[index];

	json_object_begin(json, NULL);
	json_put_count(json, "id", index);
	json_put_count(json, "pid", process->pid);
	json_put_count(json, "parent_pid", process->parent_pid);
	json_put_count(json, "image", process->image);
	json_put_text(json, "executable", process->executable);
	json_put_text(json, "command_line", process->command_line);
	json_put_count(json, "start_ns", process->start_ns);
	json_put_count(json, "end_ns", process->end_ns);
	json_put_text(json, "state", get_process_state_name(process->state));
	json_put_wait_status(json, "exit", process->wait_status != -1, process->wait_status);
	json_put_count(json, "threads_total", count_application_threads(session, process));
	json_put_count(json, "samples", process->samples);
	json_put_count(json, "samples_counted_by_process", process->header_sample_count);
	json_put_count(json, "signals", process->signals);
	json_put_text(json, "cpu_source", spool_cpu_source_get_name(process->cpu_source));
	json_put_text(json, "cpu_source_reason", process->cpu_source_reason);
	json_put_count(json, "covered_cpu_ns", process->cpu_covered_ns);
	json_put_times_by_cpu(json, process);
	json_put_process_real_time(json, session, process);
	json_put_count(json, "handler_ns", process->handler_ns);
	json_put_count(json, "helper_cpu_ns", process->helper_cpu_ns);
	json_put_count(json, "own_work_ns", process->kymo_work_ns);
	json_object_begin(json, "records");
	json_put_count(json, "samples", process->samples);
	json_put_count(json, "threads", process->thread_count);
	json_put_count(json, "modules", process->module_count);
	json_put_count(json, "process_metrics", process->metric_count);
	json_put_count(json, "notices", process->notice_count);
	json_put_count(json, "sample_bytes", process->sample_record_bytes);
	json_put_count(json, "spool_bytes", process->spool_file_bytes);
	json_put_count(json, "overwritten_bytes", process->overwritten_bytes);
	json_object_end(json);
	json_put_process_rank_and_regions(json, session, index);
	json_put_stack_end_counts(json, process);
	json_put_process_losses(json, process);
	json_put_notices(json, process);
	json_object_end(json);
}

void json_put_own_cost(struct json_writer *json, const struct session *session)
{
	struct own_cost cost = compute_profiler_own_cost(session);

	json_object_begin(json, "kymo_itself");
	json_put_count(json, "total_ns", cost.total_ns);
	json_put_count(json, "tree_cpu_ns", cost.process_tree_cpu_ns);
	json_put_count(json, "handler_ns", cost.handler_ns);
	json_put_count(json, "helper_ns", cost.helper_process_ns);
	json_put_count(json, "start_fork_exec_end_ns", cost.start_fork_exec_end_ns);
	json_put_count(json, "loader_ns_estimated", cost.load_ns);
	json_put_count(json, "kernel_ns_estimated", cost.kernel_overhead_ns);
	json_put_count(json, "signals", cost.signal_count);
	json_put_count(json, "loaded_images", cost.executed_image_count);
	json_put_count(json, "forks_with_memory", cost.fork_count);
	json_object_end(json);
}

void json_put_session_processes(struct json_writer *json, const struct session *session)
{
	json_array_begin(json, "processes");
	for (uint32_t i = 0; i < session->process_count; i++)
		json_put_process(json, session, i);
	json_array_end(json);
}

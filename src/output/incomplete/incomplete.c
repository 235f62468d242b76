/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See incomplete.h. What a limit that the user can set, or the program itself, keeps out of a
 * result (depth, throttling, the ring, blocked signals) is no such loss, nor a sample whose time
 * the next one carries.
 */
#include "output/incomplete/incomplete.h"

#include <stdio.h>

#include "analysis/gpu/gpu.h"
#include "common/array.h"
#include "output/format.h"

const char *incomplete_get_loss_text(int loss)
{
	static const char *const texts[SPOOL_LOSS_COUNT] = {
		[SPOOL_LOSS_NO_CHUNK] = "samples dropped because no buffer was ready",
		[SPOOL_LOSS_DISK_FULL] = "records dropped because the disk was full",
		[SPOOL_LOSS_MEMORY_LIMIT] =
			"records dropped at the spool's size limit (SPOOL_LIMIT)",
		[SPOOL_LOSS_REENTRY] = "samples dropped while a thread was inside kymo",
		[SPOOL_LOSS_NO_THREAD_BLOCK] = "samples dropped for lack of per-thread memory",
		[SPOOL_LOSS_UNARMED_THREAD] =
			("threads had no timer (a limit of pending signals or open "
			 "files, or a seccomp filter, forbids it); their "
			 "CPU time is shown as [unsampled]"),
		[SPOOL_LOSS_MODULE_TABLE] = "modules without usable unwind information",
		[SPOOL_LOSS_STALE_MODULES] = ("samples taken while libraries were loaded or "
					      "unloaded (kept; names may be wrong)"),
		[SPOOL_LOSS_OVERSIZED] = "records dropped because they were too large",
		[SPOOL_LOSS_SIGNAL_BLOCKED] = "times that the program blocked kymo's signal",
		[SPOOL_LOSS_SECCOMP] = ("threads not sampled because they have a seccomp filter "
					"or dispatch their own system calls"),
		[SPOOL_LOSS_THROTTLED] =
			"times the sampling rate was lowered to keep the overhead low",
		[SPOOL_LOSS_RING_OVERWRITE] =
			"chunks of the oldest records overwritten at the limit (SPOOL_LIMIT)",
		[SPOOL_LOSS_REGION_REENTRY] =
			("region events dropped because a signal handler made "
			 "them while kymo recorded another"),
		[SPOOL_LOSS_REGION_DEPTH] =
			"regions left out because they were nested too deeply (MAX_DEPTH)",
		[SPOOL_LOSS_REGION_NAMES] = "regions left out because their names found no room",
		[SPOOL_LOSS_REGION_EVENTS] =
			"region events left out of the trace because no buffer was ready",
		[SPOOL_LOSS_PROFILE_NODES] =
			"calls counted as (more) in their caller (PROFILE_MAX_NODES)",
		[SPOOL_LOSS_REGION_THROTTLED] =
			"calls of short regions left out (THROTTLE_COUNT, THROTTLE_VALUE)",
		[SPOOL_LOSS_REGION_UNBALANCED] =
			"regions that ended with an outer region, or without a beginning",
		[SPOOL_LOSS_WRAPPER] = "functions that could not be wrapped",
		[SPOOL_LOSS_CALL_EVENTS] =
			"entries and exits of functions dropped because no buffer was ready",
		[SPOOL_LOSS_CALL_DEPTH] = "calls left out because they were nested too deeply",
		[SPOOL_LOSS_CALL_REENTRY] = ("calls left out: a signal handler made them while "
					     "kymo recorded another, or their thread was "
					     "beginning or ending"),
		[SPOOL_LOSS_CALL_UNWOUND] = ("calls that did not return (longjmp, an exception); "
					     "their end time is that of the next outer call"),
		[SPOOL_LOSS_INSTRUMENT] = "modules that could not be instrumented",
		[SPOOL_LOSS_INTERPRETED_FRAMES] =
			"samples whose frames of Python could not be read, or not all",
		[SPOOL_LOSS_INTERPRETERS] =
			("further interpreters of Python (sub-interpreters), whose calls are not "
			 "recorded in this version of Python"),
		[SPOOL_LOSS_INTERPRETED_CODE] = "frames of Python functions without a name",
		[SPOOL_LOSS_PERF_RING] =
			"records dropped because the kernel's buffer of perf events was full",
		[SPOOL_LOSS_MPI_REQUESTS] =
			("requests of MPI not followed to their end because too many were open at "
			 "once"),
	};
	return texts[loss] ? texts[loss]
			   : "losses of a kind that this version of kymo does not know";
}

static const enum spool_loss missing_data_losses[] = {
	SPOOL_LOSS_NO_CHUNK,        SPOOL_LOSS_DISK_FULL,     SPOOL_LOSS_MEMORY_LIMIT,
	SPOOL_LOSS_NO_THREAD_BLOCK, SPOOL_LOSS_OVERSIZED,     SPOOL_LOSS_REGION_REENTRY,
	SPOOL_LOSS_REGION_NAMES,    SPOOL_LOSS_REGION_EVENTS, SPOOL_LOSS_CALL_EVENTS,
	SPOOL_LOSS_CALL_REENTRY,
};

static const unsigned gpu_missing_data_losses[] = {
	GPU_LOSS_DISK_FULL,   GPU_LOSS_BUFFER,   GPU_LOSS_RUNTIME,
	GPU_LOSS_NOT_COUNTED, GPU_LOSS_READINGS, GPU_LOSS_SHORTENED,
};

uint64_t incomplete_count_lost_records(const struct session *session, uint32_t process)
{
	uint64_t count = session_get_missing_sample_count(session, process);

	for (size_t i = 0; i < ARRAY_SIZE(missing_data_losses); i++)
		count += session->processes[process].losses[missing_data_losses[i]];
	return count;
}

struct loss_visitor {
	void (*visit)(void *context, const char *text);
	void *context;
};

/* "12 records ...", "3 MiB of ...". */
static void visit_loss(const struct loss_visitor *visitor, struct quantity_text quantity,
		       const char *what)
{
	char text[256];

	snprintf(text, sizeof(text), "%s %s", quantity.text, what);
	visitor->visit(visitor->context, text);
}

static void visit_device_losses(const struct loss_visitor *visitor, const struct gpu_data *data)
{
	for (size_t i = 0; i < ARRAY_SIZE(gpu_missing_data_losses); i++) {
		uint64_t count = data->losses[gpu_missing_data_losses[i]];

		if (count)
			visit_loss(visitor, quantity_from_count(count),
				   gpu_get_loss_text(gpu_missing_data_losses[i]));
	}
	if (data->torn_bytes)
		visit_loss(visitor, quantity_from_bytes(data->torn_bytes),
			   "of device records could not be read");
}

void incomplete_visit_recording_losses(const struct session *session, bool is_growing,
				       void (*visit)(void *context, const char *text),
				       void *context)
{
	const struct loss_visitor visitor = {visit, context};
	uint64_t torn_bytes = 0, missing = 0;

	for (size_t i = 0; i < ARRAY_SIZE(missing_data_losses); i++) {
		uint64_t count = 0;

		for (uint32_t k = 0; k < session->process_count; k++)
			count += session->processes[k].losses[missing_data_losses[i]];
		if (count)
			visit_loss(&visitor, quantity_from_count(count),
				   incomplete_get_loss_text(missing_data_losses[i]));
	}
	for (uint32_t k = 0; k < session->process_count && !is_growing; k++) {
		torn_bytes += session->processes[k].torn_bytes;
		missing += session_get_missing_sample_count(session, k);
	}
	if (missing)
		visit_loss(&visitor, quantity_from_count(missing), INCOMPLETE_MISSING_SAMPLES_TEXT);
	if (torn_bytes)
		visit_loss(&visitor, quantity_from_bytes(torn_bytes),
			   "of the recording could not be read (incomplete records)");
	if (session_get_gpu_data(session) != NULL)
		visit_device_losses(&visitor, session_get_gpu_data(session));
}

void incomplete_visit(const struct session *session, bool is_growing,
		      void (*visit)(void *context, const char *text), void *context)
{
	for (size_t i = 0; i < session->problem_count; i++)
		visit(context, session->problems[i]);
	incomplete_visit_recording_losses(session, is_growing, visit, context);
}

static void keep_first(void *context, const char *text)
{
	struct incomplete_text *first = context;

	if (first->text[0] == 0)
		snprintf(first->text, sizeof(first->text), "%s", text);
}

struct incomplete_text incomplete_get_first(const struct session *session, bool is_growing)
{
	struct incomplete_text first = {""};

	incomplete_visit(session, is_growing, keep_first, &first);
	return first;
}

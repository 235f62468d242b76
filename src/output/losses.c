/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a result lacks, in words. The summary has all of it; who is shown none is told of data that
 * was to be there and is not. What a limit that the user can set, or the program itself, keeps out
 * of a result (depth, throttling, the ring, blocked signals) is no such loss, nor a sample whose
 * time the next one carries.
 */
#include "analysis/gpu.h"
#include "analysis/nccl.h"
#include "output/format.h"
#include "output/nccl_rows.h"
#include "output/output.h"
#include "output/summary.h"

const char *summary_loss_text(int loss)
{
	static const char *const texts[SPOOL_LOSS_COUNT] = {
		[SPOOL_LOSS_NO_CHUNK] = "samples dropped because no buffer was ready",
		[SPOOL_LOSS_DISK_FULL] = "records dropped because the disk was full",
		[SPOOL_LOSS_MEMORY_LIMIT] =
			"records dropped at the spool's size limit (SPOOL_LIMIT)",
		[SPOOL_LOSS_REENTRY] = "samples dropped while a thread was inside kymo",
		[SPOOL_LOSS_NO_THREAD_BLOCK] = "samples dropped for lack of per-thread memory",
		[SPOOL_LOSS_UNARMED_THREAD] =
			"threads without a timer (ulimit -i or -n); their CPU time is [unsampled]",
		[SPOOL_LOSS_MODULE_TABLE] = "modules without unwind information that can be used",
		[SPOOL_LOSS_STALE_MODULES] =
			"samples taken while libraries were loaded or unloaded (kept)",
		[SPOOL_LOSS_OVERSIZED] = "records too large",
		[SPOOL_LOSS_SIGNAL_BLOCKED] = "times that the program blocked kymo's signal",
		[SPOOL_LOSS_SECCOMP] = "threads left alone because of their seccomp filter",
		[SPOOL_LOSS_THROTTLED] =
			"times the sampling rate was lowered to keep the overhead low",
		[SPOOL_LOSS_RING_OVERWRITE] = "chunks overwritten in ring mode",
		[SPOOL_LOSS_REGION_REENTRY] =
			"region events dropped that came in the midst of another (signals)",
		[SPOOL_LOSS_REGION_DEPTH] = "regions left out that were too deep (MAX_DEPTH)",
		[SPOOL_LOSS_REGION_NAMES] = "regions left out because there was no room for names",
		[SPOOL_LOSS_REGION_EVENTS] =
			"region events left out of the trace because no buffer was ready",
		[SPOOL_LOSS_PROFILE_NODES] =
			"calls counted as (more) in their caller (PROFILE_MAX_NODES)",
		[SPOOL_LOSS_REGION_THROTTLED] =
			"calls of short regions left out (THROTTLE_COUNT, THROTTLE_VALUE)",
		[SPOOL_LOSS_REGION_UNBALANCED] =
			"regions ended by the end of an outer one, or never begun",
		[SPOOL_LOSS_WRAPPER] = "functions that could not be wrapped",
		[SPOOL_LOSS_CALL_EVENTS] =
			"entries and exits of functions dropped because no buffer was ready",
		[SPOOL_LOSS_CALL_DEPTH] = "calls of instrumented functions that were too deep",
		[SPOOL_LOSS_CALL_REENTRY] =
			"calls of instrumented functions in a signal handler amid another",
		[SPOOL_LOSS_CALL_UNWOUND] =
			"calls that did not return (longjmp, an exception): ended when noticed",
		[SPOOL_LOSS_INSTRUMENT] = "modules that could not be instrumented",
	};
	return texts[loss] ? texts[loss] : "losses of a kind that this kymo does not know";
}

static const enum spool_loss losses_of_data[] = {
	SPOOL_LOSS_NO_CHUNK,        SPOOL_LOSS_DISK_FULL,     SPOOL_LOSS_MEMORY_LIMIT,
	SPOOL_LOSS_NO_THREAD_BLOCK, SPOOL_LOSS_OVERSIZED,     SPOOL_LOSS_REGION_REENTRY,
	SPOOL_LOSS_REGION_NAMES,    SPOOL_LOSS_REGION_EVENTS, SPOOL_LOSS_CALL_EVENTS,
	SPOOL_LOSS_CALL_REENTRY,
};

static const unsigned gpu_losses_of_data[] = {
	GPU_LOSS_DISK_FULL,   GPU_LOSS_BUFFER,   GPU_LOSS_RUNTIME,
	GPU_LOSS_NOT_COUNTED, GPU_LOSS_READINGS,
};

struct telling {
	void (*tell)(void *context, const char *text);
	void *context;
};

/* "12 records ...", "3 MiB of ...". */
static void tell_one(const struct telling *telling, struct quantity quantity, const char *what)
{
	char text[256];

	snprintf(text, sizeof(text), "%s %s", quantity.text, what);
	telling->tell(telling->context, text);
}

static void tell_samples(const struct telling *telling, const struct session *session)
{
	uint64_t torn_bytes = 0;

	for (size_t i = 0; i < sizeof(losses_of_data) / sizeof(losses_of_data[0]); i++) {
		uint64_t count = 0;

		for (uint32_t k = 0; k < session->process_count; k++)
			count += session->processes[k].losses[losses_of_data[i]];
		if (count)
			tell_one(telling, quantity_count(count),
				 summary_loss_text(losses_of_data[i]));
	}
	for (uint32_t k = 0; k < session->process_count; k++)
		torn_bytes += session->processes[k].torn_bytes;
	if (torn_bytes)
		tell_one(telling, quantity_bytes(torn_bytes),
			 "of the recording could not be read (torn)");
	if (session->unreadable_files)
		tell_one(telling, quantity_count(session->unreadable_files),
			 "files could not be read at all");
}

static void tell_devices(const struct telling *telling, const struct gpu_data *data)
{
	for (size_t i = 0; i < sizeof(gpu_losses_of_data) / sizeof(gpu_losses_of_data[0]); i++) {
		uint64_t count = data->losses[gpu_losses_of_data[i]];

		if (count)
			tell_one(telling, quantity_count(count),
				 gpu_loss_explained(gpu_losses_of_data[i]));
	}
	if (data->torn_bytes)
		tell_one(telling, quantity_bytes(data->torn_bytes),
			 "of records of devices cannot be read");
}

static void tell_nccl(const struct telling *telling, const struct nccl_data *data)
{
	for (unsigned i = 0; i < NCCL_LOSS_COUNT; i++) {
		uint64_t count = nccl_loss_sum(data, (enum nccl_loss)i);

		if (count && nccl_loss_is_data((enum nccl_loss)i))
			tell_one(telling, quantity_count(count),
				 nccl_loss_explained((enum nccl_loss)i));
	}
}

void output_losses(const struct session *session, void (*tell)(void *context, const char *text),
		   void *context)
{
	struct telling telling = {tell, context};

	tell_samples(&telling, session);
	if (session->gpu)
		tell_devices(&telling, session->gpu);
	if (session->nccl)
		tell_nccl(&telling, session->nccl);
}

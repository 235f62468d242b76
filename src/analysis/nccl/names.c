/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What numbers in NCCL records are called: keys in JSON, and words for people.
 */
#include "analysis/nccl/nccl.h"
#include "common/array.h"

const char *nccl_get_operation_state_name(uint8_t state)
{
	static const char *const names[] = {"unknown", "started", "enqueued",
					    "running", "done",    "incomplete"};

	return names[state < ARRAY_SIZE(names) ? state : 0];
}

const char *nccl_get_timing_source_name(enum nccl_timing_source timing)
{
	static const char *const names[] = {"gpu", "kernel", "network", "none", "shared", "open"};

	return names[timing];
}

bool nccl_timing_source_is_of_one_operation(enum nccl_timing_source timing)
{
	return timing == NCCL_TIMING_BY_GPU || timing == NCCL_TIMING_BY_KERNEL_RECORD ||
	       timing == NCCL_TIMING_BY_NETWORK;
}

const char *nccl_get_process_end_state_name(enum nccl_process_end_state ended)
{
	static const char *const names[] = {"running", "exited", "ended_silently"};

	return names[ended];
}

const char *nccl_get_event_kind_name(uint8_t kind)
{
	static const char *const names[NCCL_KIND_COUNT] = {
		"group",      "collective", "p2p",       "proxy_op",
		"proxy_step", "proxy_ctrl", "kernel_ch", "net_plugin",
		"group_api",  "coll_api",   "p2p_api",   "kernel_launch",
		"ce_coll",    "ce_sync",    "ce_batch",  "kernel_phase"};

	return kind < NCCL_KIND_COUNT ? names[kind] : "unknown";
}

struct loss_description {
	const char *name, *description;
	bool is_data_lost, is_usual; /* usual: healthy jobs have it, and nothing follows from it */
};

static const struct loss_description loss_descriptions[NCCL_LOSS_COUNT] = {
	[NCCL_LOSS_OPERATIONS] = {.name = "operations",
				  .description =
					  "operations not recorded because no buffer was ready",
				  .is_data_lost = true},
	[NCCL_LOSS_EVENTS] = {.name = "events",
			      .description = "events not recorded because no buffer was ready",
			      .is_data_lost = true},
	[NCCL_LOSS_COMMUNICATORS] =
		{.name = "communicators",
		 .description = "communicators not recorded because the table was full",
		 .is_data_lost = true},
	[NCCL_LOSS_RING_OPERATIONS] =
		{.name = "ring_operations",
		 .description =
			 "older operations overwritten by newer ones, as the file could not grow"},
	[NCCL_LOSS_RING_EVENTS] = {.name = "ring_events",
				   .description = "older events overwritten by newer ones"},
	[NCCL_LOSS_NO_PARENT] = {.name = "no_parent",
				 .description = "events of operations that were not recorded",
				 .is_data_lost = true},
	[NCCL_LOSS_LATE] = {.name = "late",
			    .description = "events of operations that were taken for finished"},
	[NCCL_LOSS_FOREIGN_CONTEXT] =
		{.name = "foreign_context",
		 .description = "events of other processes (PXN) or of no communicator"},
	[NCCL_LOSS_FOREIGN_PARENT] = {.name = "foreign_parent",
				      .description =
					      "events of operations of other processes (PXN)"},
	[NCCL_LOSS_FOREIGN_HANDLE] = {.name = "foreign_handle",
				      .description = "stops of handles that are not kymo's"},
	[NCCL_LOSS_STALE_HANDLE] = {.name = "stale_handle",
				    .description = "stops of events that are overwritten"},
	[NCCL_LOSS_NULL_HANDLE] = {.name = "null_handle",
				   .description = "stops of NULL",
				   .is_usual = true},
	[NCCL_LOSS_DOUBLE_STOP] = {.name = "double_stop", .description = "events stopped twice"},
	[NCCL_LOSS_UNKNOWN_TYPE] = {.name = "unknown_type",
				    .description = "events of unknown types",
				    .is_data_lost = true},
	[NCCL_LOSS_UNKNOWN_STATE] = {.name = "unknown_state",
				     .description = "unknown states of events",
				     .is_data_lost = true},
	[NCCL_LOSS_NO_ARGUMENTS] = {.name = "no_arguments",
				    .description = "states without arguments"},
	[NCCL_LOSS_NAMES] = {.name = "names",
			     .description = "names not kept, the table is full",
			     .is_data_lost = true},
	[NCCL_LOSS_RESTARTED] = {.name = "restarted",
				 .description = "network steps started again by polling",
				 .is_usual = true},
	[NCCL_LOSS_FINALIZED] = {.name = "finalized",
				 .description = "events of communicators that were finalized"},
	[NCCL_LOSS_DISK_FULL] = {.name = "disk_full",
				 .description = "disk full",
				 .is_data_lost = true},
	[NCCL_LOSS_LIMIT] = {.name = "limit", .description = "size limit reached (NCCL_SIZE)"},
	[NCCL_LOSS_RING_COMMUNICATORS] =
		{.name = "ring_communicators",
		 .description = "older communicators overwritten by newer ones, after all "
				"of their operations"},
	[NCCL_LOSS_CALL_TRACE] = {.name = "call_trace",
				  .description = "calls not written to the call trace"},
};

static const struct loss_description *get_description_of_loss(enum nccl_loss loss)
{
	return &loss_descriptions[(unsigned)loss < NCCL_LOSS_COUNT ? (unsigned)loss
								   : NCCL_LOSS_COUNT - 1];
}

const char *nccl_get_loss_name(enum nccl_loss loss)
{
	return get_description_of_loss(loss)->name;
}

const char *nccl_get_loss_text(enum nccl_loss loss)
{
	return get_description_of_loss(loss)->description;
}

bool nccl_loss_means_missing_data(enum nccl_loss loss)
{
	return get_description_of_loss(loss)->is_data_lost;
}

bool nccl_loss_is_usual(enum nccl_loss loss)
{
	return get_description_of_loss(loss)->is_usual;
}

const char *nccl_get_interned_name(const struct nccl_data *data, uint32_t process, uint8_t name)
{
	return nccl_file_get_interned_name(&data->processes[process].file, name);
}

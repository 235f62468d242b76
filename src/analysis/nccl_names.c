/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What numbers in NCCL records are called: keys in JSON, and words for people.
 */
#include "analysis/nccl.h"

const char *nccl_state_name(uint8_t state)
{
	static const char *const names[] = {"unknown", "started", "enqueued",
					    "running", "done",    "incomplete"};

	return names[state < sizeof(names) / sizeof(*names) ? state : 0];
}

const char *nccl_timing_name(enum nccl_timing timing)
{
	static const char *const names[] = {"gpu", "kernel", "network", "none", "shared", "open"};

	return names[timing];
}

bool nccl_timing_is_own(enum nccl_timing timing)
{
	return timing == NCCL_TIMING_GPU || timing == NCCL_TIMING_KERNEL ||
	       timing == NCCL_TIMING_NETWORK;
}

const char *nccl_ended_name(enum nccl_ended ended)
{
	static const char *const names[] = {"running", "exited", "ended_silently"};

	return names[ended];
}

const char *nccl_kind_name(uint8_t kind)
{
	static const char *const names[NCCL_KIND_COUNT] = {
		"group",      "collective", "p2p",       "proxy_op",
		"proxy_step", "proxy_ctrl", "kernel_ch", "net_plugin",
		"group_api",  "coll_api",   "p2p_api",   "kernel_launch",
		"ce_coll",    "ce_sync",    "ce_batch",  "kernel_phase"};

	return kind < NCCL_KIND_COUNT ? names[kind] : "unknown";
}

struct loss_text {
	const char *name, *text;
	bool is_data;
};

static const struct loss_text losses[NCCL_LOSS_COUNT] = {
	[NCCL_LOSS_OPERATIONS] = {"operations", "operations not recorded, no room was ready", true},
	[NCCL_LOSS_EVENTS] = {"events", "events not recorded, no room was ready", true},
	[NCCL_LOSS_COMMUNICATORS] = {"communicators", "communicators not recorded, no room", true},
	[NCCL_LOSS_RING_OPERATIONS] =
		{"ring_operations",
		 "older operations overwritten by newer ones, as the file could not grow", false},
	[NCCL_LOSS_RING_EVENTS] = {"ring_events", "older events overwritten by newer ones", false},
	[NCCL_LOSS_NO_PARENT] = {"no_parent", "events of operations that were not recorded", true},
	[NCCL_LOSS_LATE] = {"late", "events of operations that were taken for finished", false},
	[NCCL_LOSS_FOREIGN_CONTEXT] = {"foreign_context",
				       "events of other processes (PXN) or of no communicator",
				       false},
	[NCCL_LOSS_FOREIGN_PARENT] = {"foreign_parent",
				      "events of operations of other processes (PXN)", false},
	[NCCL_LOSS_FOREIGN_HANDLE] = {"foreign_handle", "stops of handles that are not kymo's",
				      false},
	[NCCL_LOSS_STALE_HANDLE] = {"stale_handle", "stops of events that are overwritten", false},
	[NCCL_LOSS_NULL_HANDLE] = {"null_handle", "stops of events that were not recorded", false},
	[NCCL_LOSS_DOUBLE_STOP] = {"double_stop", "events stopped twice", false},
	[NCCL_LOSS_UNKNOWN_TYPE] = {"unknown_type", "events of unknown types", true},
	[NCCL_LOSS_UNKNOWN_STATE] = {"unknown_state", "unknown states of events", true},
	[NCCL_LOSS_NO_ARGUMENTS] = {"no_arguments", "states without arguments", false},
	[NCCL_LOSS_NAMES] = {"names", "names not kept, the table is full", true},
	[NCCL_LOSS_RESTARTED] = {"restarted", "network steps started again by polling", false},
	[NCCL_LOSS_FINALIZED] = {"finalized", "events of communicators that were finalized", false},
	[NCCL_LOSS_DISK_FULL] = {"disk_full", "disk full", true},
	[NCCL_LOSS_LIMIT] = {"limit", "size limit reached (NCCL_SIZE)", false},
	[NCCL_LOSS_CALL_TRACE] = {"call_trace", "calls not written to the call trace", false},
};

static const struct loss_text *loss_text(enum nccl_loss loss)
{
	return &losses[(unsigned)loss < NCCL_LOSS_COUNT ? (unsigned)loss : NCCL_LOSS_COUNT - 1];
}

const char *nccl_loss_name(enum nccl_loss loss)
{
	return loss_text(loss)->name;
}

const char *nccl_loss_explained(enum nccl_loss loss)
{
	return loss_text(loss)->text;
}

bool nccl_loss_is_data(enum nccl_loss loss)
{
	return loss_text(loss)->is_data;
}

const char *nccl_text_of(const struct nccl_data *data, uint32_t process, uint8_t name)
{
	return nccl_file_name(&data->processes[process].file, name);
}

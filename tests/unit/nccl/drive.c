/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See drive.h.
 */
#include "drive.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef NCCL_PLUGIN
extern struct nccl_profiler_v1 ncclProfiler_v1;
extern struct nccl_profiler_v2 ncclProfiler_v2;
extern struct nccl_profiler_v3 ncclProfiler_v3;
extern struct nccl_profiler_v4 ncclProfiler_v4;
extern struct nccl_profiler_v5 ncclProfiler_v5;
extern struct nccl_profiler_v6 ncclProfiler_v6;
extern struct nccl_profiler_v7 ncclProfiler_v7;

static const void *find_table(unsigned version)
{
	static const void *const tables[] = {
		NULL,
		&ncclProfiler_v1,
		&ncclProfiler_v2,
		&ncclProfiler_v3,
		&ncclProfiler_v4,
		&ncclProfiler_v5,
		&ncclProfiler_v6,
		&ncclProfiler_v7,
	};

	return tables[version];
}
#else
static const void *find_table(unsigned version)
{
	void *library = dlopen(NCCL_PLUGIN, RTLD_NOW | RTLD_LOCAL);
	char name[32];

	if (!library)
		fprintf(stderr, "%s\n", dlerror());
	snprintf(name, sizeof(name), "ncclProfiler_v%u", version);
	return library ? dlsym(library, name) : NULL;
}
#endif

_Noreturn void drive_fail(const char *file, int line, const char *condition)
{
	fprintf(stderr, "%s:%d: %s\n", file, line, condition);
	_exit(101);
}

struct driver drive_open(unsigned version)
{
	struct driver driver = {.version = version ? version : VERSIONS};

	driver.table = find_table(driver.version);
	require(driver.table);
	return driver;
}

void *drive_init(struct driver *driver, const struct drive_identity *identity)
{
	void *context = NULL;
	int result = -1;

	switch (driver->version) {
	case 1:
	case 2:
	case 3:
		result = ((const struct nccl_profiler_v1 *)driver->table)
				 ->init(&context, &driver->mask);
		break;
	case 4:
		result = ((const struct nccl_profiler_v4 *)driver->table)
				 ->init(&context, &driver->mask, identity->name, identity->hash,
					identity->nodes, identity->ranks, identity->rank, NULL);
		break;
	default:
		result = ((const struct nccl_profiler_v5 *)driver->table)
				 ->init(&context, identity->hash, &driver->mask, identity->name,
					identity->nodes, identity->ranks, identity->rank, NULL);
		break;
	}
	require(result == 0);
	require(context != NULL);
	return context;
}

/* ---- descriptors ---- */

#define BIT(kind_) NCCL_KIND_MASK(NCCL_KIND_##kind_)

static uint8_t index_of(const char *const *names, const char *name)
{
	for (uint8_t i = 0; names[i]; i++) {
		if (name && !strcmp(names[i], name))
			return i;
	}
	return 200;
}

static const char *const functions[] = {"Broadcast",     "Reduce",    "AllGather",
					"ReduceScatter", "AllReduce", "SendRecv",
					"Send",          "Recv",      NULL};
static const char *const algorithms[] = {"TREE", "RING", "COLLNET_DIRECT", NULL};
static const char *const protocols[] = {"LL", "LL128", "SIMPLE", NULL};
static const char *const data_types[] = {"ncclInt8",    "ncclUint8",  "ncclInt32",   "ncclUint32",
					 "ncclInt64",   "ncclUint64", "ncclFloat16", "ncclFloat32",
					 "ncclFloat64", NULL};

#define COMMON(to, event)                                                                          \
	memset(&to, 0xee, sizeof(to)); /* NCCL leaves what is not used as it was */                \
	to.type = (__typeof__(to.type))NCCL_KIND_MASK(event->kind);                                \
	to.parent = event->parent;                                                                 \
	to.rank = event->rank;                                                                     \
	if (event->kind == NCCL_KIND_PROXY_OP) {                                                   \
		to.proxy_op.pid = event->pid;                                                      \
		to.proxy_op.channel = event->channel;                                              \
		to.proxy_op.peer = event->root;                                                    \
		to.proxy_op.steps = event->steps;                                                  \
		to.proxy_op.chunk_size = event->chunk_bytes;                                       \
		to.proxy_op.is_send = event->is_send;                                              \
	} else if (event->kind == NCCL_KIND_PROXY_STEP) {                                          \
		to.proxy_step.step = event->step;                                                  \
	}

#define OPERATIONS(to, event)                                                                      \
	if (event->kind == NCCL_KIND_COLLECTIVE) {                                                 \
		to.collective.sequence = event->sequence;                                          \
		to.collective.function = event->function;                                          \
		to.collective.send_buffer = event->send_buffer;                                    \
		to.collective.receive_buffer = (void *)event->receive_buffer;                      \
		to.collective.count = event->count;                                                \
		to.collective.root = event->root;                                                  \
		to.collective.data_type = event->data_type;                                        \
		to.collective.channels = event->channel_count;                                     \
		to.collective.warps = event->warp_count;                                           \
		to.collective.algorithm = event->algorithm;                                        \
		to.collective.protocol = event->protocol;                                          \
	} else if (event->kind == NCCL_KIND_P2P) {                                                 \
		to.p2p.function = event->function;                                                 \
		to.p2p.buffer = (void *)event->send_buffer;                                        \
		to.p2p.data_type = event->data_type;                                               \
		to.p2p.count = event->count;                                                       \
		to.p2p.peer = event->root;                                                         \
	}

#define NAMED(to, event)                                                                           \
	if (event->kind == NCCL_KIND_COLLECTIVE) {                                                 \
		to.collective.name = event->communicator_name;                                     \
		to.collective.hash = event->communicator_hash;                                     \
	} else if (event->kind == NCCL_KIND_P2P) {                                                 \
		to.p2p.name = event->communicator_name;                                            \
		to.p2p.hash = event->communicator_hash;                                            \
	}

#define NETWORK(to, event)                                                                         \
	if (event->kind == NCCL_KIND_NET_PLUGIN) {                                                 \
		to.net_plugin.id = event->net_plugin_type_and_version;                             \
		to.net_plugin.data = (void *)event->net_plugin_data;                               \
	}

#define CHANNEL(to, event)                                                                         \
	if (event->kind == NCCL_KIND_KERNEL_CHANNEL) {                                             \
		to.kernel_channel.channel = event->channel;                                        \
		to.kernel_channel.gpu_time = event->gpu_timestamp;                                 \
	}

#define CALLS(to, event)                                                                           \
	if (event->kind == NCCL_KIND_COLLECTIVE) {                                                 \
		to.collective.group = event->group;                                                \
	} else if (event->kind == NCCL_KIND_P2P) {                                                 \
		to.p2p.group = event->group;                                                       \
	} else if (event->kind == NCCL_KIND_GROUP_API) {                                           \
		to.group_api.captured = event->is_captured;                                        \
		to.group_api.depth = event->depth;                                                 \
	} else if (event->kind == NCCL_KIND_COLLECTIVE_API) {                                      \
		to.collective_api.function = event->function;                                      \
		to.collective_api.count = event->count;                                            \
		to.collective_api.data_type = event->data_type;                                    \
		to.collective_api.root = event->root;                                              \
		to.collective_api.stream = event->stream;                                          \
		to.collective_api.captured = event->is_captured;                                   \
	} else if (event->kind == NCCL_KIND_P2P_API) {                                             \
		to.p2p_api.function = event->function;                                             \
		to.p2p_api.count = event->count;                                                   \
		to.p2p_api.data_type = event->data_type;                                           \
		to.p2p_api.stream = event->stream;                                                 \
		to.p2p_api.captured = event->is_captured;                                          \
	} else if (event->kind == NCCL_KIND_KERNEL_LAUNCH) {                                       \
		to.kernel_launch.stream = event->stream;                                           \
	}

#define COPY_ENGINE(to, event)                                                                     \
	if (event->kind == NCCL_KIND_CE_COLLECTIVE) {                                              \
		to.ce_collective.sequence = event->sequence;                                       \
		to.ce_collective.function = event->function;                                       \
		to.ce_collective.count = event->count;                                             \
		to.ce_collective.root = event->root;                                               \
		to.ce_collective.data_type = event->data_type;                                     \
		to.ce_collective.synchronisation = event->protocol;                                \
		to.ce_collective.send_buffer = event->send_buffer;                                 \
		to.ce_collective.receive_buffer = (void *)event->receive_buffer;                   \
	} else if (event->kind == NCCL_KIND_CE_SYNC) {                                             \
		to.ce_sync.complete = event->complete;                                             \
		to.ce_sync.ranks = event->ranks;                                                   \
	} else if (event->kind == NCCL_KIND_CE_BATCH) {                                            \
		to.ce_batch.operations = event->operations;                                        \
		to.ce_batch.bytes = event->bytes;                                                  \
		to.ce_batch.intra_batch = event->intra_batch;                                      \
	}

static void start_v1(const struct nccl_profiler_v1 *table, void *context, void **handle,
		     const struct plugin_event_start_arguments *event)
{
	struct nccl_event_v1 to;

	COMMON(to, event)
	if (event->kind == NCCL_KIND_COLLECTIVE) {
		to.collective.sequence = event->sequence;
		to.collective.function = index_of(functions, event->function);
		to.collective.send_buffer = event->send_buffer;
		to.collective.receive_buffer = (void *)event->receive_buffer;
		to.collective.count = event->count;
		to.collective.root = event->root;
		to.collective.data_type = index_of(data_types, event->data_type);
		to.collective.traffic_bytes = event->traffic_bytes;
		to.collective.channels = event->channel_count;
		to.collective.warps = event->warp_count;
		to.collective.algorithm = index_of(algorithms, event->algorithm);
		to.collective.protocol = index_of(protocols, event->protocol);
	} else if (event->kind == NCCL_KIND_P2P) {
		to.p2p.function = index_of(functions, event->function);
		to.p2p.buffer = (void *)event->send_buffer;
		to.p2p.data_type = index_of(data_types, event->data_type);
		to.p2p.count = event->count;
		to.p2p.peer = event->root;
	}
	NAMED(to, event)
	require(table->start(context, handle, &to) == 0);
}

#define START(version, ...)                                                                        \
	static void start_v##version(const struct nccl_profiler_v##version *table, void *context,  \
				     void **handle,                                                \
				     const struct plugin_event_start_arguments *event)             \
	{                                                                                          \
		struct nccl_event_v##version to;                                                   \
                                                                                                   \
		COMMON(to, event)                                                                  \
		OPERATIONS(to, event)                                                              \
		__VA_ARGS__                                                                        \
		require(table->start(context, handle, &to) == 0);                                  \
	}

START(
	2, NAMED(to, event) if (event->kind == NCCL_KIND_COLLECTIVE) {
		to.collective.traffic_bytes = event->traffic_bytes;
	})
START(
	3, NAMED(to, event) NETWORK(to, event) if (event->kind == NCCL_KIND_KERNEL_CHANNEL) {
		to.kernel_channel.channel = event->channel;
	})
START(4, NETWORK(to, event) CHANNEL(to, event))
START(5, NETWORK(to, event) CHANNEL(to, event) CALLS(to, event))
START(6, NETWORK(to, event) CHANNEL(to, event) CALLS(to, event) COPY_ENGINE(to, event))
START(
	7,
	NETWORK(to, event) CHANNEL(to, event) CALLS(to, event)
		COPY_ENGINE(to, event) if (event->kind == NCCL_KIND_COLLECTIVE) {
			to.collective.user_tag = event->user_tag;
			to.collective.is_symmetric = false;
			to.collective.kernel_variant = NULL;
		} else if (event->kind == NCCL_KIND_P2P) {
			to.p2p.user_tag = event->user_tag;
		} else if (event->kind == NCCL_KIND_KERNEL_PHASE) {
			to.kernel_phase.channel = event->channel;
			to.kernel_phase.phase = event->phase;
			to.kernel_phase.name = "compute";
			to.kernel_phase.gpu_time = event->gpu_timestamp;
		})

void drive_start(const struct driver *driver, void *context, void **handle,
		 const struct plugin_event_start_arguments *event)
{
	switch (driver->version) {
	case 1:
		start_v1(driver->table, context, handle, event);
		break;
	case 2:
		start_v2(driver->table, context, handle, event);
		break;
	case 3:
		start_v3(driver->table, context, handle, event);
		break;
	case 4:
		start_v4(driver->table, context, handle, event);
		break;
	case 5:
		start_v5(driver->table, context, handle, event);
		break;
	case 6:
		start_v6(driver->table, context, handle, event);
		break;
	default:
		start_v7(driver->table, context, handle, event);
		break;
	}
}

/* The functions behind start are the same ones in all tables but for the types of arguments. */
void drive_stop(const struct driver *driver, void *handle)
{
	require(((const struct nccl_profiler_v5 *)driver->table)->stop(handle) == 0);
}

void drive_finalize(const struct driver *driver, void *context)
{
	require(((const struct nccl_profiler_v5 *)driver->table)->finalize(context) == 0);
}

void drive_state(const struct driver *driver, void *handle, int state,
		 const struct event_state_arguments *arguments)
{
	union nccl_state_v1 old = {{0, 0}};
	union nccl_state_v4 new = {0};
	bool is_control =
		state >= NCCL_STATE_CONTROL_IDLE && state <= NCCL_STATE_CONTROL_APPEND_END;

	if (driver->version <= 3) {
		if (arguments && is_control) {
			old.proxy_control.appended = arguments->appended;
		} else if (arguments) {
			old.proxy_op.bytes = arguments->bytes;
			old.proxy_op.steps = arguments->steps;
		}
		require(((const struct nccl_profiler_v3 *)driver->table)
				->state(handle, state, arguments ? &old : NULL) == 0);
		return;
	}
	if (arguments && is_control)
		new.appended = arguments->appended;
	else if (arguments &&
		 (state == NCCL_STATE_KERNEL_CHANNEL_STOP || state == NCCL_STATE_KERNEL_PHASE_STOP))
		new.gpu_time = arguments->gpu_time;
	else if (arguments)
		new.bytes = arguments->bytes;
	require(((const struct nccl_profiler_v5 *)driver->table)
			->state(handle, state, arguments ? &new : NULL) == 0);
}

/* ---- usual events ---- */

static void *start(const struct driver *driver, void *context,
		   struct plugin_event_start_arguments *event)
{
	void *handle = (void *)0xdead; /* NCCL does not clear it */

	event->api = (uint8_t)driver->version;
	drive_start(driver, context, &handle, event);
	require(handle != (void *)0xdead);
	return handle;
}

void *drive_collective(const struct driver *driver, void *context, void *parent,
		       const char *function, uint64_t sequence, unsigned channels)
{
	struct plugin_event_start_arguments event = {
		.kind = NCCL_KIND_COLLECTIVE,
		.parent = parent,
		.function = function,
		.data_type = "ncclFloat32",
		.algorithm = "RING",
		.protocol = "SIMPLE",
		.communicator_name = "old \"name\"\n",
		.communicator_hash = 0xabcdef,
		.sequence = sequence,
		.count = 1000,
		.channel_count = (uint8_t)channels,
		.warp_count = 16,
		.root = 0,
		.user_tag = 77,
		.traffic_bytes = 8000,
	};

	return start(driver, context, &event);
}

void *drive_p2p(const struct driver *driver, void *context, void *parent, const char *function,
		int peer)
{
	struct plugin_event_start_arguments event = {
		.kind = NCCL_KIND_P2P,
		.parent = parent,
		.function = function,
		.data_type = "ncclInt8",
		.communicator_name = "p2p",
		.communicator_hash = 0xabcdef,
		.count = 4096,
		.root = peer,
	};

	return start(driver, context, &event);
}

void *drive_channel(const struct driver *driver, void *context, void *parent, unsigned channel,
		    uint64_t gpu_start)
{
	struct plugin_event_start_arguments event = {.kind = NCCL_KIND_KERNEL_CHANNEL,
						     .parent = parent,
						     .channel = (uint8_t)channel,
						     .gpu_timestamp = gpu_start};

	return start(driver, context, &event);
}

void drive_channel_stop(const struct driver *driver, void *handle, uint64_t gpu_stop)
{
	struct event_state_arguments state = {.known = true, .gpu_time = gpu_stop};

	drive_state(driver, handle, NCCL_STATE_KERNEL_CHANNEL_STOP, &state);
	drive_stop(driver, handle);
}

void *drive_proxy_op(const struct driver *driver, void *context, void *parent, unsigned channel,
		     int peer, int pid)
{
	struct plugin_event_start_arguments event = {.kind = NCCL_KIND_PROXY_OP,
						     .parent = parent,
						     .channel = (uint8_t)channel,
						     .root = peer,
						     .pid = pid,
						     .steps = 4,
						     .chunk_bytes = 131072,
						     .is_send = true};

	return start(driver, context, &event);
}

void *drive_proxy_step(const struct driver *driver, void *context, void *parent, int step)
{
	struct plugin_event_start_arguments event = {
		.kind = NCCL_KIND_PROXY_STEP, .parent = parent, .step = step};

	return start(driver, context, &event);
}

void *drive_simple(const struct driver *driver, void *context, void *parent, unsigned kind)
{
	struct plugin_event_start_arguments event = {.kind = (uint8_t)kind,
						     .parent = parent,
						     .function = "AllReduce",
						     .data_type = "ncclFloat32",
						     .count = 1000};

	return start(driver, context, &event);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What of CUPTI is needed, declared by ourselves: kymo builds without CUDA. Layouts are NVIDIA's
 * (cupti_activity.h, cupti_callbacks.h). Records grow at their end from version to version, so that
 * the first fields of each are the same in all that are named here; nothing behind them is read.
 */
#ifndef KYMO_DEVICE_CUDA_CUPTI_H
#define KYMO_DEVICE_CUDA_CUPTI_H

#include <stddef.h>
#include <stdint.h>

#define CUPTI_SUCCESS                     0
#define CUPTI_ERROR_MULTIPLE_SUBSCRIBERS  39
#define CUPTI_FLUSH_FORCED                1u
#define CUPTI_ATTRIBUTE_ZEROED_OUT_BUFFER 5 /* uint8_t: buffers that it is given are zero */
#define CUPTI_PRIOR_SUBSCRIBER_NAME_BYTES 64
#define CUPTI_VERSION_OLDEST              14 /* CUDA 11.1: kernel records with the graph's id */

enum cupti_activity_kind {
	CUPTI_KIND_MEMCPY = 1,
	CUPTI_KIND_MEMSET = 2,
	CUPTI_KIND_CONCURRENT_KERNEL = 10,
	CUPTI_KIND_MEMCPY_PEER = 22,
	CUPTI_KIND_MEMORY = 49,
	CUPTI_KIND_GRAPH_TRACE = 51
};

enum cupti_domain { CUPTI_DOMAIN_DRIVER = 1, CUPTI_DOMAIN_RUNTIME = 2, CUPTI_DOMAIN_RESOURCE = 3 };
enum cupti_callback_site { CUPTI_SITE_ENTER, CUPTI_SITE_EXIT };

enum cupti_resource_event {
	CUPTI_RESOURCE_CONTEXT_CREATED = 1,
	CUPTI_RESOURCE_CONTEXT_DESTROY_STARTING = 2,
	CUPTI_RESOURCE_MODULE_LOADED = 6,
	CUPTI_RESOURCE_MODULE_UNLOAD_STARTING = 7,
	CUPTI_RESOURCE_GRAPH_NODE_CREATED = 13
};

/* Calls that start work on the device (cupti_driver_cbid.h). */
enum cupti_driver_call_id {
	CUPTI_CALL_LAUNCH = 115, /* 115-117: before CUDA 4 */
	CUPTI_CALL_LAUNCH_GRID = 116,
	CUPTI_CALL_LAUNCH_GRID_ASYNC = 117,
	CUPTI_CALL_LAUNCH_KERNEL = 307,
	CUPTI_CALL_LAUNCH_KERNEL_PTSZ = 442,
	CUPTI_CALL_LAUNCH_COOPERATIVE = 477,
	CUPTI_CALL_LAUNCH_COOPERATIVE_PTSZ = 478,
	CUPTI_CALL_GRAPH_LAUNCH = 514,
	CUPTI_CALL_GRAPH_LAUNCH_PTSZ = 515,
	CUPTI_CALL_LAUNCH_KERNEL_EX = 652,
	CUPTI_CALL_LAUNCH_KERNEL_EX_PTSZ = 653,
	CUPTI_CALL_BEGIN_CAPTURE = 495,
	CUPTI_CALL_BEGIN_CAPTURE_PTSZ = 496,
	CUPTI_CALL_END_CAPTURE = 497,
	CUPTI_CALL_END_CAPTURE_PTSZ = 498,
	CUPTI_CALL_BEGIN_CAPTURE_2 = 539,
	CUPTI_CALL_BEGIN_CAPTURE_2_PTSZ = 540,
	CUPTI_CALL_BEGIN_CAPTURE_TO_GRAPH = 720,
	CUPTI_CALL_BEGIN_CAPTURE_TO_GRAPH_PTSZ = 721
};

struct cupti_callback_data {
	int site;
	const char *function_name;
	const void *parameters;
	void *return_value;
	const char *symbol_name;
	void *context;
	uint32_t context_uid;
	uint64_t *correlation_data;
	uint32_t correlation_id;
};

struct cupti_resource_data {
	void *context;
	void *handle;
	void *descriptor;
};

/* CUpti_GraphData */
struct cupti_graph_data {
	void *graph, *original_graph;
	void *node, *original_node;
	int node_type; /* not filled in by CUDA 13.0 */
	void *dependency, *executable;
};

/* CUgraphNodeType (cuda.h) */
enum { CUDA_GRAPH_NODE_COPY = 1 };

struct cupti_module {
	uint32_t module_id;
	size_t cubin_size;
	const char *cubin;
};

struct cupti_subscriber_parameters {
	size_t size;
	const char *name;
	char *old_name;
	size_t old_size;
};

struct cupti_kernel { /* kinds KERNEL and CONCURRENT_KERNEL; versions 4 (CUDA 9) to 10 */
	uint32_t kind;
	uint8_t cache_config, shared_memory_config;
	uint16_t registers;
	uint32_t global_cache[2];
	uint64_t start, end, completed;
	uint32_t device, context, stream;
	int32_t grid[3], block[3];
	int32_t static_shared, dynamic_shared;
	uint32_t local_per_thread, local_total;
	uint32_t correlation;
	int64_t grid_id;
	const char *name;
	void *reserved;
	uint64_t queued, submitted;
	uint8_t launch_type, carveout[2], padding;
	uint32_t shared_executed;
	uint64_t graph_node; /* versions 5 and later */
	uint32_t shared_limit;
	uint32_t graph;
};

struct cupti_memcpy {
	uint32_t kind;
	uint8_t copy_kind, from_kind, to_kind, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation, runtime_correlation, padding;
	void *reserved;
};

struct cupti_memcpy_peer {
	uint32_t kind;
	uint8_t copy_kind, from_kind, to_kind, flags;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, from_device, from_context, to_device, to_context;
	uint32_t correlation;
};

struct cupti_memset {
	uint32_t kind, value;
	uint64_t bytes, start, end;
	uint32_t device, context, stream, correlation;
};

struct cupti_graph {
	uint32_t kind, correlation;
	uint64_t start, end;
	uint32_t device, graph, context, stream;
};

struct cupti_memory {
	uint32_t kind, operation, memory_kind, correlation;
	uint64_t address, bytes, timestamp, pc;
	uint32_t process, device, context, stream;
};

struct cupti_record {
	uint32_t kind;
};

#define CUPTI_CHECK_LAYOUT(type, field, offset)                                                    \
	_Static_assert(offsetof(struct cupti_##type, field) == (offset), "layout of "              \
									 "CUPTI's " #type)
CUPTI_CHECK_LAYOUT(callback_data, correlation_id, 64);
CUPTI_CHECK_LAYOUT(module, cubin, 16);
CUPTI_CHECK_LAYOUT(kernel, start, 16);
CUPTI_CHECK_LAYOUT(kernel, correlation, 92);
CUPTI_CHECK_LAYOUT(kernel, name, 104);
CUPTI_CHECK_LAYOUT(kernel, shared_executed, 140);
CUPTI_CHECK_LAYOUT(kernel, graph, 156);
CUPTI_CHECK_LAYOUT(memcpy, runtime_correlation, 48);
CUPTI_CHECK_LAYOUT(memcpy_peer, correlation, 60);
CUPTI_CHECK_LAYOUT(memset, correlation, 44);
CUPTI_CHECK_LAYOUT(graph, stream, 36);
CUPTI_CHECK_LAYOUT(memory, stream, 60);
#undef CUPTI_CHECK_LAYOUT

enum cupti_copy_kind {
	CUPTI_COPY_HOST_TO_DEVICE = 1,
	CUPTI_COPY_DEVICE_TO_HOST = 2,
	CUPTI_COPY_HOST_TO_ARRAY = 3,
	CUPTI_COPY_ARRAY_TO_HOST = 4,
	CUPTI_COPY_ARRAY_TO_ARRAY = 5,
	CUPTI_COPY_ARRAY_TO_DEVICE = 6,
	CUPTI_COPY_DEVICE_TO_ARRAY = 7,
	CUPTI_COPY_DEVICE_TO_DEVICE = 8,
	CUPTI_COPY_HOST_TO_HOST = 9,
	CUPTI_COPY_PEER = 10
};

enum cupti_memory_operation { CUPTI_MEMORY_ALLOCATION = 1, CUPTI_MEMORY_RELEASE = 2 };

typedef void cupti_callback(void *user, int domain, uint32_t call, const void *data);
typedef void cupti_buffer_requested_callback(uint8_t **buffer, size_t *size, size_t *records_max);
typedef void cupti_buffer_completed_callback(void *context, uint32_t stream, uint8_t *buffer,
					     size_t size, size_t valid);

/* Functions: name, parameters. All give a status. Those in OPTIONAL are missing in old versions. */
#define CUPTI_FUNCTIONS(X)                                                                         \
	X(GetVersion, (uint32_t * version))                                                        \
	X(GetResultString, (int result, const char **text))                                        \
	X(GetTimestamp, (uint64_t * ns))                                                           \
	X(Subscribe, (void **subscriber, cupti_callback *callback, void *user))                    \
	X(Unsubscribe, (void *subscriber))                                                         \
	X(EnableCallback, (uint32_t enable, void *subscriber, int domain, uint32_t call))          \
	X(EnableDomain, (uint32_t enable, void *subscriber, int domain))                           \
	X(GetCallbackName, (int domain, uint32_t call, const char **name))                         \
	X(ActivityEnable, (int kind))                                                              \
	X(ActivityDisable, (int kind))                                                             \
	X(ActivityRegisterCallbacks,                                                               \
	  (cupti_buffer_requested_callback * request, cupti_buffer_completed_callback * complete)) \
	X(ActivityGetNextRecord, (uint8_t * buffer, size_t valid, struct cupti_record * *record))  \
	X(ActivityGetNumDroppedRecords, (void *context, uint32_t stream, size_t *dropped))         \
	X(ActivityFlushAll, (uint32_t flags))
#define CUPTI_OPTIONAL_FUNCTIONS(X)                                                                \
	X(Subscribe_v2, (void **subscriber, cupti_callback *callback, void *user,                  \
			 struct cupti_subscriber_parameters *parameters))                          \
	X(ActivityRegisterTimestampCallback, (uint64_t(*now)(void)))                               \
	X(ActivitySetAttribute, (int attribute, size_t *size, const void *value))                  \
	X(GetGraphExecId, (void *executable, uint32_t *id))                                        \
	X(GetDeviceId, (void *context, uint32_t *device))                                          \
	X(GetContextId, (void *context, uint32_t *id))                                             \
	X(GetStreamIdEx, (void *context, void *stream, uint8_t is_of_thread, uint32_t *id))        \
	X(ActivityEnableContext, (void *context, int kind))                                        \
	X(ActivityDisableContext, (void *context, int kind))

struct cupti_api {
	void *library;
	uint32_t version;
	const char *path;
#define X(name, parameters) int(*name) parameters;
	CUPTI_FUNCTIONS(X)
	CUPTI_OPTIONAL_FUNCTIONS(X)
#undef X
};

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A CUDA driver and a CUPTI that run nothing, for machines without a device: one library with the
 * names of both (libcuda.so.1, libcupti.so.13 are links to it). It behaves as NVIDIA's do where
 * kymo depends on it: injection from within cuInit(), callbacks around functions, correlation ids,
 * records in buffers that are asked for and handed over by a thread of its own when full or
 * flushed, one subscriber, records of graphs instead of their nodes'. A kernel "runs" 1 us after
 * its launch for 500 ns; a copy 1 ns a byte.
 *
 *   FAKE_CUPTI_HOLDER=NAME   somebody else has CUPTI
 *   FAKE_CUPTI_VERSION=N     instead of 130000
 *   FAKE_CUPTI_DROP=N        every N-th record is dropped, and counted
 *
 * A buffer that was promised to be clear and is not ends the process, as NVIDIA's would tell
 * rubbish.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "device/cuda/cupti.h"
#include "fake_profiler.h"

#define CALLS      1024
#define API        __attribute__((visibility("default")))
#define RUN_AT_NS  1000
#define RUN_FOR_NS 500

enum driver_call {
	CALL_HTOD_ASYNC = 277,
	CALL_DTOH_ASYNC = 279,
	CALL_DTOD_ASYNC = 281,
	CALL_FILL_ASYNC = 216,
	CALL_SYNCHRONIZE = 17,
	CALL_MEM_ALLOC = 243
};

static cupti_callback *callback;
static void *callback_user;
static bool is_on[4][CALLS], kinds[64];
static uint64_t (*clock_given)(void);
static cupti_buffer_requested_callback *request;
static cupti_buffer_completed_callback *complete;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *buffer;
static size_t buffer_size, buffer_used, dropped;
static bool clear_is_promised;
static uint32_t correlations;
static uint64_t records;
static int the_context;
static _Thread_local uint32_t current_correlation;
static _Thread_local int capturing;

struct graph {
	unsigned nodes, id;
};
static struct graph capture;
static int types[] = {0, CUDA_GRAPH_NODE_COPY};

static uint64_t now(void)
{
	struct timespec time;

	if (clock_given != NULL)
		return clock_given();
	clock_gettime(CLOCK_REALTIME, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t fake_now(void)
{
	return now();
}

/* ---- records ---- */

struct delivery {
	uint8_t *buffer;
	size_t size, used;
};

static void *deliver(void *data)
{
	struct delivery *delivery = data;

	complete(NULL, 0, delivery->buffer, delivery->size, delivery->used);
	return NULL;
}

/* As CUPTI's worker does: not on the caller's thread. Called with the lock held. */
static void hand_over(void)
{
	struct delivery delivery = {buffer, buffer_size, buffer_used};
	pthread_t worker;

	if (buffer == NULL)
		return;
	buffer = NULL;
	pthread_mutex_unlock(&lock);
	if (pthread_create(&worker, NULL, deliver, &delivery) == 0)
		pthread_join(worker, NULL);
	pthread_mutex_lock(&lock);
}

static void clear_buffer(void)
{
	for (size_t i = 0; clear_is_promised && buffer != NULL && i < buffer_size; i++) {
		if (buffer[i] != 0)
			abort();
	}
	if (!clear_is_promised && buffer != NULL)
		memset(buffer, 0, buffer_size);
}

static void add_record(const void *record, size_t size)
{
	const char *drop = getenv("FAKE_CUPTI_DROP");
	size_t aligned = (size + 7) & ~(size_t)7, most = 0;

	pthread_mutex_lock(&lock);
	records++;
	if (drop != NULL && records % (uint64_t)atoi(drop) == 0) {
		dropped++;
		pthread_mutex_unlock(&lock);
		return;
	}
	if (buffer != NULL && buffer_used + aligned > buffer_size)
		hand_over();
	if (buffer == NULL) {
		request(&buffer, &buffer_size, &most);
		buffer_used = 0;
		clear_buffer();
	}
	if (buffer == NULL) {
		dropped++;
	} else {
		memcpy(buffer + buffer_used, record, size);
		buffer_used += aligned;
	}
	pthread_mutex_unlock(&lock);
}

static size_t record_size(uint32_t kind)
{
	switch (kind) {
	case CUPTI_KIND_CONCURRENT_KERNEL:
		return sizeof(struct cupti_kernel);
	case CUPTI_KIND_GRAPH_TRACE:
		return sizeof(struct cupti_graph);
	case CUPTI_KIND_MEMORY:
		return sizeof(struct cupti_memory);
	case CUPTI_KIND_MEMSET:
		return sizeof(struct cupti_memset);
	default:
		return sizeof(struct cupti_memcpy);
	}
}

static void kernel_ran(const char *name, uint32_t graph, uint32_t grid, uint32_t block)
{
	struct cupti_kernel record = {.kind = CUPTI_KIND_CONCURRENT_KERNEL,
				      .registers = 16,
				      .start = now() + RUN_AT_NS,
				      .context = 1,
				      .stream = 7,
				      .grid = {(int32_t)grid, 1, 1},
				      .block = {(int32_t)block, 1, 1},
				      .correlation = current_correlation,
				      .name = name,
				      .graph = graph};

	record.end = record.start + RUN_FOR_NS;
	if (kinds[CUPTI_KIND_CONCURRENT_KERNEL])
		add_record(&record, sizeof(record));
}

static void copy_ran(enum cupti_copy_kind kind, size_t bytes)
{
	struct cupti_memcpy record = {.kind = CUPTI_KIND_MEMCPY,
				      .copy_kind = (uint8_t)kind,
				      .bytes = bytes,
				      .start = now() + RUN_AT_NS,
				      .context = 1,
				      .stream = 7,
				      .correlation = current_correlation};

	record.end = record.start + bytes;
	if (kinds[CUPTI_KIND_MEMCPY])
		add_record(&record, sizeof(record));
}

/* ---- functions of the driver, with callbacks around them ---- */

struct call {
	struct cupti_callback_data data;
	uint64_t between;
	uint32_t number;
	int result;
};

static void call_enter(struct call *call, uint32_t number, const void *parameters,
		       const char *symbol)
{
	current_correlation = __atomic_add_fetch(&correlations, 1, __ATOMIC_RELAXED);
	*call = (struct call){.number = number};
	call->data = (struct cupti_callback_data){.site = CUPTI_SITE_ENTER,
						  .parameters = parameters,
						  .return_value = &call->result,
						  .symbol_name = symbol,
						  .context = &the_context,
						  .correlation_data = &call->between,
						  .correlation_id = current_correlation};
	if (callback != NULL && is_on[CUPTI_DOMAIN_DRIVER][number])
		callback(callback_user, CUPTI_DOMAIN_DRIVER, number, &call->data);
}

static int call_exit(struct call *call, int result)
{
	call->result = result;
	call->data.site = CUPTI_SITE_EXIT;
	if (callback != NULL && is_on[CUPTI_DOMAIN_DRIVER][call->number])
		callback(callback_user, CUPTI_DOMAIN_DRIVER, call->number, &call->data);
	return result;
}

API int cuInit(unsigned flags)
{
	static bool is_done;
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *library = path != NULL && !is_done ? dlopen(path, RTLD_NOW) : NULL;
	int (*initialize)(void) = NULL;

	(void)flags;
	is_done = true;
	if (library != NULL)
		*(void **)&initialize = dlsym(library, "InitializeInjection");
	if (initialize != NULL)
		initialize();
	return 0;
}

API int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return ordinal == 0 ? 0 : 101;
}

API int cuDeviceGetCount(int *count)
{
	*count = 1;
	return 0;
}

API int cuDeviceGetUuid_v2(uint8_t uuid[16], int device)
{
	memset(uuid, 0x5a + device, 16);
	return 0;
}

API int cuDeviceGetName(char *name, int size, int device)
{
	(void)device;
	snprintf(name, (size_t)size, "Fake device");
	return 0;
}

API int cuDeviceGetAttribute(int *value, int attribute, int device)
{
	(void)device;
	*value = attribute == 16 ? 132 : attribute == 75 ? 9 : attribute == 13 ? 1980000 : 0;
	return 0;
}

API int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
	(void)device;
	*bytes = (size_t)1 << 37;
	return 0;
}

/* As the runtime's, the context ends with the process; CUPTI crashes when something is turned off
 * after that. */
static bool is_over;

static void is_over_now(void)
{
	is_over = true;
}

static void end_with_process(void)
{
	atexit(is_over_now);
}

API int cuDevicePrimaryCtxRetain(void **context, int device)
{
	struct cupti_resource_data data = {&the_context, NULL, NULL};
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)device;
	*context = &the_context;
	pthread_once(&once, end_with_process);
	if (callback != NULL && is_on[CUPTI_DOMAIN_RESOURCE][CUPTI_RESOURCE_CONTEXT_CREATED])
		callback(callback_user, CUPTI_DOMAIN_RESOURCE, CUPTI_RESOURCE_CONTEXT_CREATED,
			 &data);
	return 0;
}

API int cuCtxSetCurrent(void *context)
{
	(void)context;
	return 0;
}

API int cuCtxSynchronize(void)
{
	struct call call;

	call_enter(&call, CALL_SYNCHRONIZE, NULL, NULL);
	return call_exit(&call, 0);
}

API int cuModuleLoadData(void **module, const void *image)
{
	static int one;
	struct cupti_module loaded = {1, 0, NULL};
	struct cupti_resource_data data = {NULL, NULL, &loaded};

	(void)image;
	*module = &one;
	if (callback != NULL && is_on[CUPTI_DOMAIN_RESOURCE][CUPTI_RESOURCE_MODULE_LOADED])
		callback(callback_user, CUPTI_DOMAIN_RESOURCE, CUPTI_RESOURCE_MODULE_LOADED, &data);
	return 0;
}

API int cuModuleGetFunction(void **function, void *module, const char *name)
{
	(void)module;
	*function = strdup(name);
	return 0;
}

API int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
	static uint64_t next = 0x700000000000;
	struct cupti_memory record = {.kind = CUPTI_KIND_MEMORY,
				      .operation = CUPTI_MEMORY_ALLOCATION,
				      .address = next,
				      .bytes = bytes,
				      .timestamp = now()};
	struct call call;

	call_enter(&call, CALL_MEM_ALLOC, NULL, NULL);
	*address = __atomic_fetch_add(&next, bytes, __ATOMIC_RELAXED);
	if (kinds[CUPTI_KIND_MEMORY])
		add_record(&record, sizeof(record));
	return call_exit(&call, 0);
}

API int cuMemFree_v2(uint64_t address)
{
	struct cupti_memory record = {.kind = CUPTI_KIND_MEMORY,
				      .operation = CUPTI_MEMORY_RELEASE,
				      .address = address,
				      .timestamp = now()};

	if (kinds[CUPTI_KIND_MEMORY])
		add_record(&record, sizeof(record));
	return 0;
}

API int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags)
{
	(void)flags;
	*memory = malloc(bytes);
	return 0;
}

API int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream)
{
	struct call call;

	(void)to;
	(void)from;
	(void)stream;
	call_enter(&call, CALL_HTOD_ASYNC, NULL, NULL);
	copy_ran(CUPTI_COPY_HOST_TO_DEVICE, bytes);
	return call_exit(&call, 0);
}

/* A node of the graph that is captured; as CUDA 13.0 does, CUPTI leaves its type out. */
static void node_made(int type)
{
	struct cupti_graph_data made = {.graph = &capture, .node = &types[type]};
	struct cupti_resource_data data = {&the_context, NULL, &made};

	capture.nodes += type == 0;
	if (callback != NULL && is_on[CUPTI_DOMAIN_RESOURCE][CUPTI_RESOURCE_GRAPH_NODE_CREATED])
		callback(callback_user, CUPTI_DOMAIN_RESOURCE, CUPTI_RESOURCE_GRAPH_NODE_CREATED,
			 &data);
}

API int cuGraphNodeGetType(void *node, int *type)
{
	*type = *(const int *)node;
	return 0;
}

API int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
	struct call call;

	(void)to;
	(void)from;
	(void)stream;
	call_enter(&call, CALL_DTOD_ASYNC, NULL, NULL);
	if (capturing)
		node_made(CUDA_GRAPH_NODE_COPY);
	else
		copy_ran(CUPTI_COPY_DEVICE_TO_DEVICE, bytes);
	return call_exit(&call, 0);
}

API int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, void *stream)
{
	struct call call;

	(void)to;
	(void)from;
	(void)stream;
	call_enter(&call, CALL_DTOH_ASYNC, NULL, NULL);
	copy_ran(CUPTI_COPY_DEVICE_TO_HOST, bytes);
	return call_exit(&call, 0);
}

API int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *stream)
{
	struct cupti_memset record = {.kind = CUPTI_KIND_MEMSET,
				      .value = value,
				      .bytes = bytes,
				      .start = now() + RUN_AT_NS,
				      .context = 1,
				      .stream = 7};
	struct call call;

	(void)to;
	(void)stream;
	call_enter(&call, CALL_FILL_ASYNC, NULL, NULL);
	record.correlation = current_correlation;
	record.end = record.start + bytes;
	if (!capturing && kinds[CUPTI_KIND_MEMSET])
		add_record(&record, sizeof(record));
	return call_exit(&call, 0);
}

API int cuStreamCreate(void **stream, unsigned flags)
{
	static int streams[64];
	static unsigned count;

	(void)flags;
	*stream = &streams[count++ % 64];
	return 0;
}

API int cuStreamSynchronize(void *stream)
{
	(void)stream;
	return 0;
}

API int cuStreamBeginCapture_v2(void *stream, int mode)
{
	struct call call;

	(void)stream;
	(void)mode;
	call_enter(&call, CUPTI_CALL_BEGIN_CAPTURE_2, NULL, NULL);
	capturing = 1;
	capture.nodes = 0;
	return call_exit(&call, 0);
}

API int cuStreamEndCapture(void *stream, void **graph)
{
	static struct graph graphs[256];
	static unsigned ids;
	struct graph *made = &graphs[ids % 256];
	struct call call;

	(void)stream;
	call_enter(&call, CUPTI_CALL_END_CAPTURE, NULL, NULL);
	capturing = 0;
	*made = capture;
	made->id = ++ids;
	*graph = made;
	return call_exit(&call, 0);
}

API int cuStreamIsCapturing(void *stream, int *status)
{
	(void)stream;
	*status = capturing;
	return 0;
}

API int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags)
{
	(void)flags;
	*executable = graph;
	return 0;
}

API int cuGraphLaunch(void *executable, void *stream)
{
	const struct graph *graph = executable;
	struct {
		void *executable, *stream;
	} told = {executable, stream};
	struct call call;

	call_enter(&call, CUPTI_CALL_GRAPH_LAUNCH, &told, NULL);
	for (unsigned i = 0; i < graph->nodes; i++)
		fake_profiler_kernel("nothing", stream, 0);
	if (kinds[CUPTI_KIND_GRAPH_TRACE]) {
		struct cupti_graph record = {.kind = CUPTI_KIND_GRAPH_TRACE,
					     .correlation = current_correlation,
					     .start = now() + RUN_AT_NS,
					     .graph = graph->id,
					     .context = 1,
					     .stream = 7};

		record.end = record.start + RUN_FOR_NS * graph->nodes;
		add_record(&record, sizeof(record));
	} else {
		for (unsigned i = 0; i < graph->nodes; i++)
			kernel_ran("nothing", graph->id, 1, 32);
	}
	return call_exit(&call, 0);
}

API int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
		       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
		       void *stream, void **parameters, void **extra)
{
	struct {
		const void *function;
		uint32_t grid[3], block[3], shared_bytes;
		const void *stream;
	} told = {function,
		  {grid_x, grid_y, grid_z},
		  {block_x, block_y, block_z},
		  shared_bytes,
		  stream};
	struct call call;

	(void)parameters;
	(void)extra;
	call_enter(&call, CUPTI_CALL_LAUNCH_KERNEL, &told, function);
	if (capturing) {
		node_made(0);
		return call_exit(&call, 0);
	}
	if (block_x > 1024)
		return call_exit(&call, 1);
	fake_profiler_kernel(function, stream, kinds[CUPTI_KIND_CONCURRENT_KERNEL]);
	kernel_ran(function, 0, grid_x, block_x);
	return call_exit(&call, 0);
}

/* ---- CUPTI ---- */

API int cuptiGetVersion(uint32_t *version)
{
	const char *asked = getenv("FAKE_CUPTI_VERSION");

	*version = asked != NULL ? (uint32_t)atoi(asked) : 130000;
	return 0;
}

API int cuptiGetResultString(int result, const char **text)
{
	*text = result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS ? "MULTIPLE_SUBSCRIBERS" : "ERROR";
	return 0;
}

API int cuptiGetTimestamp(uint64_t *ns)
{
	*ns = now();
	return 0;
}

API int cuptiSubscribe(void **subscriber, cupti_callback *call, void *user)
{
	if (callback != NULL || getenv("FAKE_CUPTI_HOLDER") != NULL)
		return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS;
	callback = call;
	callback_user = user;
	*subscriber = &callback;
	return 0;
}

API int cuptiSubscribe_v2(void **subscriber, cupti_callback *call, void *user,
			  struct cupti_subscriber_parameters *parameters)
{
	const char *holder = getenv("FAKE_CUPTI_HOLDER");

	if (parameters->size != sizeof(*parameters))
		return 1;
	if (holder != NULL)
		snprintf(parameters->old_name, parameters->old_size, "%s", holder);
	return cuptiSubscribe(subscriber, call, user);
}

API int cuptiUnsubscribe(void *subscriber)
{
	(void)subscriber;
	callback = NULL;
	return 0;
}

API int cuptiEnableCallback(uint32_t enable, void *subscriber, int domain, uint32_t call)
{
	(void)subscriber;
	if (domain < 1 || domain > 3 || call >= CALLS)
		return 1;
	is_on[domain][call] = enable != 0;
	return 0;
}

API int cuptiEnableDomain(uint32_t enable, void *subscriber, int domain)
{
	for (uint32_t call = 0; call < CALLS; call++)
		cuptiEnableCallback(enable, subscriber, domain, call);
	return 0;
}

API int cuptiGetCallbackName(int domain, uint32_t call, const char **name)
{
	if (domain != CUPTI_DOMAIN_DRIVER)
		return 1;
	switch (call) {
	case CUPTI_CALL_LAUNCH_KERNEL:
		*name = "cuLaunchKernel";
		return 0;
	case CUPTI_CALL_GRAPH_LAUNCH:
		*name = "cuGraphLaunch";
		return 0;
	case CALL_HTOD_ASYNC:
		*name = "cuMemcpyHtoDAsync_v2";
		return 0;
	case CALL_DTOH_ASYNC:
		*name = "cuMemcpyDtoHAsync_v2";
		return 0;
	case CALL_DTOD_ASYNC:
		*name = "cuMemcpyDtoDAsync_v2";
		return 0;
	case CALL_SYNCHRONIZE:
		*name = "cuCtxSynchronize";
		return 0;
	default:
		return 1;
	}
}

API int cuptiActivityEnable(int kind)
{
	kinds[kind & 63] = true;
	return 0;
}

API int cuptiActivityDisable(int kind)
{
	if (is_over)
		abort();
	kinds[kind & 63] = false;
	return 0;
}

/* There is one context. */
API int cuptiActivityEnableContext(void *context, int kind)
{
	fake_profiler_called();
	return context != &the_context ? 1 : cuptiActivityEnable(kind);
}

API int cuptiActivityDisableContext(void *context, int kind)
{
	fake_profiler_called();
	return context != &the_context ? 1 : cuptiActivityDisable(kind);
}

API int cuptiGetContextId(void *context, uint32_t *id)
{
	*id = 1;
	return context != &the_context;
}

API int cuptiGetStreamIdEx(void *context, void *stream, uint8_t is_of_thread, uint32_t *id)
{
	(void)stream;
	(void)is_of_thread;
	*id = 7;
	return context != &the_context;
}

API int cuptiActivityRegisterCallbacks(cupti_buffer_requested_callback *ask,
				       cupti_buffer_completed_callback *take)
{
	request = ask;
	complete = take;
	return 0;
}

API int cuptiActivitySetAttribute(int attribute, size_t *size, const void *value)
{
	if (attribute != CUPTI_ATTRIBUTE_ZEROED_OUT_BUFFER || *size != 1)
		return 1;
	clear_is_promised = *(const uint8_t *)value != 0;
	return CUPTI_SUCCESS;
}

API int cuptiActivityRegisterTimestampCallback(uint64_t (*given)(void))
{
	clock_given = given;
	return 0;
}

API int cuptiGetGraphExecId(void *executable, uint32_t *id)
{
	*id = ((const struct graph *)executable)->id;
	return 0;
}

API int cuptiActivityGetNextRecord(uint8_t *from, size_t valid, struct cupti_record **record)
{
	uint8_t *next = from;

	if (*record != NULL)
		next = (uint8_t *)*record + ((record_size((*record)->kind) + 7) & ~(size_t)7);
	if (next >= from + valid)
		return 12; /* CUPTI_ERROR_MAX_LIMIT_REACHED */
	*record = (struct cupti_record *)(void *)next;
	return 0;
}

API int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count)
{
	(void)context;
	(void)stream;
	pthread_mutex_lock(&lock);
	*count = dropped;
	dropped = 0;
	pthread_mutex_unlock(&lock);
	return 0;
}

API int cuptiActivityFlushAll(uint32_t flags)
{
	(void)flags;
	pthread_mutex_lock(&lock);
	hand_over();
	pthread_mutex_unlock(&lock);
	return 0;
}

API int cuptiGetDeviceId(void *context, uint32_t *device)
{
	*device = 0;
	return context != &the_context;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Inside of the CUDA backend. The driver loads us (CUDA_INJECTION64_PATH) within cuInit(), or
 * tracing begins in a process where it is mapped already (session.c). Calls come by CUPTI's
 * callbacks (callbacks.c), what the device did by its activity records (records.c), which name the
 * call that started it by a correlation id; in between, launches.c remembers who that was.
 */
#ifndef KYMO_DEVICE_CUDA_CUDA_H
#define KYMO_DEVICE_CUDA_CUDA_H

#include <stdatomic.h>
#include <stdbool.h>

#include "device/cuda/cupti.h"
#include "device/device.h"

extern struct cupti_api cupti;
/* struct device_losses as they come: buffers are handed over on several threads. */
extern struct cuda_losses {
	_Atomic uint64_t dropped, unmatched, incomplete, conflicts;
} cuda_losses;

/* Finds CUPTI: the copy that is mapped, else by name, else where CUDA is installed. NULL: done,
 * else what was missing. */
const char *cupti_load(void);

/* Begins once; later calls do nothing. */
void cuda_begin(void);
bool cuda_is_on(void);
bool cuda_by_node(
	void); /* KYMO_CUDA_GRAPHS=nodes: a record a kernel of a graph, not one a launch */
/* KYMO_GPU_CALLS=none: launches are not looked at. Kernels and copies then belong to no call and no
 * thread. */
bool cuda_without_launches(void);
/* Counting over time waits for the driver: from the first call within a context on it can. Those
 * that load code, take memory or start work are heard of for that. */
void cuda_await_driver(void);
bool cuda_is_awaited(void);
void cuda_tell_ready(void); /* on a thread of the program's, within a callback */
void cuda_context_made(void);
/* So far the program has come. */
enum cuda_use { CUDA_USE_CONTEXT = 1, CUDA_USE_CODE = 2, CUDA_USE_WORK = 4 };
void cuda_used(enum cuda_use use);
/* The thread is inside of one of our own callbacks, where CUPTI must not be asked to flush. */
extern _Thread_local bool cuda_inside __attribute__((tls_model("initial-exec")));
uint64_t cuda_time(uint64_t record_time); /* of a record on our clock; 0 stays 0 */

/* callbacks.c */
void cuda_callback(void *user, int domain, uint32_t call, const void *data);
bool cuda_follow_is_behind(void); /* to be called again, later */
void cuda_follow_wanted(const struct device_sink *sink, void *subscriber);

/* records.c */
bool cuda_buffers_make(void);
uint64_t cuda_queue(uint32_t context, uint32_t stream);
void cuda_request(uint8_t **buffer, size_t *size, size_t *records_max);
void cuda_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);

/* launches.c: what a correlation id belongs to. */
enum cuda_launch_kind {
	CUDA_LAUNCH_NONE,
	CUDA_LAUNCH_KERNEL,
	CUDA_LAUNCH_OTHER,
	CUDA_LAUNCH_COUNTED
};
struct cuda_launch {
	enum cuda_launch_kind kind;
	device_handle handle; /* a kernel in flight, one that is counted, else a correlation */
};
/* false: the table is full of launches whose records did not come. */
bool cuda_launch_put(uint32_t correlation, struct cuda_launch launch);
/* keep: more records may come for it. */
struct cuda_launch cuda_launch_get(uint32_t correlation, bool keep);
uint64_t cuda_launches_waiting(void);
void cuda_launches_sweep(void); /* closes those whose records have come */
uint32_t cuda_launches_newest(void);
/* Those up to `last` without a record will have none; but for what is being counted. */
void cuda_launches_give_up(uint32_t last);
void cuda_launches_close(void); /* closes all */

/* symbols.c */
device_handle cuda_symbol_of_function(const void *function, const char *name);
device_handle cuda_symbol_of_name(const char *name); /* the string itself stays where it is */
device_handle cuda_symbol_of_graph(uint32_t graph);
void cuda_module_loaded(const struct cupti_module *module, void *context);
void cuda_module_unloaded(const struct cupti_module *module);

/* cubin.c: names of the kernels in an ELF image of device code. */
void cubin_each_kernel(const void *image, size_t size,
		       void (*each)(void *context, const char *name), void *context);

extern const struct device_operations cuda_driver_operations, cuda_runtime_operations;

/* agents.c */
void cuda_discover(const struct device_sink *sink);
void cuda_driver_is_up(void); /* devices by the driver's own numbers */
device_handle cuda_agent(uint32_t ordinal);

#endif

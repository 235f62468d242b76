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
/* struct device_record_loss_counts as they come: buffers are handed over on several threads. */
extern struct cuda_record_loss_counts {
	_Atomic uint64_t dropped, unmatched, incomplete, conflicts;
} cuda_record_loss_counts;

/* Finds CUPTI: the copy that is mapped, else by name, else where CUDA is installed. NULL: done,
 * else what was missing. */
const char *cupti_load_or_get_missing(void);

/* Begins once; later calls do nothing. */
void cuda_begin_tracing_once(void);
bool cuda_is_tracing(void);
/* The driver is there. */
void cuda_graphs_find_node_type_function(void);
/* The program made a node of a graph; within CUPTI's callback. */
void cuda_graphs_record_nodes_if_copy_node(const struct cupti_graph_data *made);
/* A graph has a node that copies memory: from here on the nodes of graphs are recorded one by one.
 */
void cuda_graphs_switch_to_node_records(void);
bool cuda_is_recording_graph_nodes(
	void); /* KYMO_CUDA_GRAPHS=nodes: a record a kernel of a graph, not one a launch */
/* KYMO_GPU_CALLS=none: launches are not looked at. Kernels and copies then belong to no call and no
 * thread. */
bool cuda_is_ignoring_launches(void);
/* Counting over time waits for the driver: from the first call within a context on it can. Those
 * that load code, take memory or start work are heard of for that. */
void cuda_set_counting_awaits_driver(void);
bool cuda_counting_awaits_driver(void);
void cuda_report_driver_ready(void); /* on a thread of the program's, within a callback */
void cuda_handle_context_created(void);
/* So far the program has come. */
enum cuda_use_stage { CUDA_USE_CONTEXT = 1, CUDA_USE_CODE = 2, CUDA_USE_WORK = 4 };
void cuda_register_tools_end_at_use_stage(enum cuda_use_stage use);
/* The thread is inside of one of our own callbacks, where CUPTI must not be asked to flush. */
extern _Thread_local bool cuda_thread_in_callback_flag __attribute__((tls_model("initial-exec")));
uint64_t cuda_convert_record_time(uint64_t record_time); /* of a record on our clock; 0 stays 0 */

/* callbacks.c */
void cuda_handle_callback(void *user, int domain, uint32_t call, const void *data);
bool cuda_take_callbacks_to_disable_flag(void); /* to be called again, later */
void cuda_update_enabled_callbacks(const struct device_sink *sink, void *subscriber);

/* records.c */
bool cuda_buffers_allocate(void);
uint64_t cuda_make_queue_id(uint32_t context, uint32_t stream);
void cuda_provide_buffer(uint8_t **buffer, size_t *size, size_t *records_max);
/* CUPTI's kinds of records, the service that each is enabled for, and who emits it: an addition is
 * a row of the table in records.c. */
struct cuda_activity_kind_entry {
	uint32_t kind;
	enum device_service_kind service;
	void (*emit)(const struct device_sink *sink, const void *record);
};

extern const struct cuda_activity_kind_entry cuda_activity_kind_table[];
extern const size_t cuda_activity_count;

void cuda_emit_buffer_records(void *context, uint32_t stream, uint8_t *buffer, size_t size,
			      size_t valid);

/* launches.c: what a correlation id belongs to. */
enum cuda_launch_kind {
	CUDA_LAUNCH_NONE,
	CUDA_LAUNCH_KERNEL,
	CUDA_LAUNCH_OTHER,
	CUDA_LAUNCH_COUNTED
};
struct cuda_pending_launch {
	enum cuda_launch_kind kind;
	device_handle handle; /* a kernel in flight, one that is counted, else a correlation */
};
/* false: the table is full of launches whose records did not come. */
bool cuda_launch_add(uint32_t correlation, struct cuda_pending_launch launch);
/* keep: more records may come for it. */
struct cuda_pending_launch cuda_launch_find_and_maybe_remove(uint32_t correlation, bool keep);
uint64_t cuda_launches_get_in_flight_count(void);
void cuda_launches_close_fully_recorded(void); /* closes those whose records have come */
uint32_t cuda_launches_get_newest_correlation(void);
/* Those up to `last` without a record will have none; but for what is being counted. */
void cuda_launches_give_up_until(uint32_t last);
void cuda_launches_close_all(void); /* closes all */

/* symbols.c */
device_handle cuda_symbol_find_or_add_by_function(const void *function, const char *name);
device_handle
cuda_symbol_find_or_add_by_name(const char *name); /* the string itself stays where it is */
device_handle cuda_symbol_find_or_add_by_graph(uint32_t graph);
void cuda_handle_module_loaded(const struct cupti_module *module, void *context);
void cuda_handle_module_unloaded(const struct cupti_module *module);

/* cubin.c: names of the kernels in an ELF image of device code. */
void cubin_for_each_kernel(const void *image, size_t size,
			   void (*each)(void *context, const char *name), void *context);

extern const struct device_call_catalog cuda_driver_call_catalog, cuda_runtime_call_catalog;

/* agents.c */
void cuda_report_nvml_devices(const struct device_sink *sink);
void cuda_register_driver_devices(void); /* devices by the driver's own numbers */
device_handle cuda_find_agent_by_ordinal(uint32_t ordinal);

#endif

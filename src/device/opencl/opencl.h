/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Inside of the OpenCL backend. Calls of the program come to traced_* (layer.c), which tell the
 * sink and go on to hooked_* (queues, kernels, copies, memory, programs) or to the next layer or
 * driver. Completion is signalled by events: each kernel and copy has one, the program's or ours,
 * with a callback (completion.c).
 */
#ifndef KYMO_DEVICE_OPENCL_OPENCL_H
#define KYMO_DEVICE_OPENCL_OPENCL_H

#include <stdbool.h>

#include "device/device.h"
#include "device/opencl/device_facts.h"
#include "device/opencl/types.h"

/* The functions below us, in the order of the loader's table. */
struct opencl_function_table {
#define OPENCL_CALL_ROW(number, type, name, parameters, arguments, addresses)                      \
	type(*name) parameters;
#define OPENCL_HOOKED_CALL_ROW                                               OPENCL_CALL_ROW
#define OPENCL_VOID_CALL_ROW(number, name, parameters, arguments, addresses) void(*name) parameters;
#define OPENCL_HOOKED_VOID_CALL_ROW                                          OPENCL_VOID_CALL_ROW
#define OPENCL_ABSENT_ROW(number, name)                                      void *name;
#include "device/opencl/calls_table.h"
#undef OPENCL_CALL_ROW
#undef OPENCL_HOOKED_CALL_ROW
#undef OPENCL_VOID_CALL_ROW
#undef OPENCL_HOOKED_VOID_CALL_ROW
#undef OPENCL_ABSENT_ROW
};
#define OPENCL_CALL_COUNT (sizeof(struct opencl_function_table) / sizeof(void *))

extern struct opencl_function_table opencl_next_functions;

#define OPENCL_CALL_ROW(number, type, name, parameters, arguments, addresses)
#define OPENCL_HOOKED_CALL_ROW(number, type, name, parameters, arguments, addresses)               \
	type hooked_##name parameters;
#define OPENCL_VOID_CALL_ROW(number, name, parameters, arguments, addresses)
#define OPENCL_HOOKED_VOID_CALL_ROW(number, name, parameters, arguments, addresses)                \
	void hooked_##name parameters;
#define OPENCL_ABSENT_ROW(number, name)
#include "device/opencl/calls_table.h"
#undef OPENCL_CALL_ROW
#undef OPENCL_HOOKED_CALL_ROW
#undef OPENCL_VOID_CALL_ROW
#undef OPENCL_HOOKED_VOID_CALL_ROW
#undef OPENCL_ABSENT_ROW

/* Fills in what is there of `entries` functions and gives the table to call instead. */
const void *opencl_interpose_function_table(const void *const *below, unsigned entries);
bool opencl_layer_is_installed(void);

/* Devices (agents.c): small numbers of our own, from 1; 0: there are too many. */
unsigned opencl_device_find_or_add(cl_device_id device);
/* One that a probe has found: it gets its number and its agent now, and keeps them. */
void opencl_device_add_probed(const struct opencl_device_facts *facts);
device_handle opencl_device_get_agent(unsigned number);
cl_device_id opencl_device_find_by_number(unsigned number);
bool opencl_device_is_cpu(unsigned number);
unsigned opencl_device_find_number_of_agent(device_handle agent); /* 0: not one of ours */
unsigned opencl_context_to_device_number(cl_context context);     /* the first of its devices */
/* The clock of a device (clock.c). `queued` was read between the two times of ours. */
uint64_t opencl_device_to_host_time(unsigned device_number, uint64_t device_time);
void opencl_clock_add_reading(unsigned device_number, uint64_t queued, uint64_t before,
			      uint64_t after);

/* Memory (memory.c): is it shared virtual memory of the runtime's? */
bool opencl_is_svm_pointer(const void *pointer);
void opencl_forget_svm_allocations(void); /* in a child of fork */

/* Queues (queues.c). */
struct opencl_queue {
	unsigned device_number;
	uint64_t number; /* from 1; 0: not one that we know */
	bool profiled;
};
struct opencl_queue opencl_find_queue(cl_command_queue queue);

/* Programs and kernels (programs.c). */
device_handle opencl_find_or_add_kernel_symbol(cl_kernel kernel, unsigned device_number);

/* Completion. A command that somebody wants: opencl_announce_*() before it is enqueued; then the
 * enqueueing with *slot as its event, then opencl_track_enqueued_command(). */
struct opencl_tracked_command {
	struct opencl_queue queue;
	device_handle handle;
	bool is_copy;
	cl_event own;
	uint64_t before;
	struct device_kernel_launch kernel;
	struct opencl_counted_kernel *counted; /* NULL: it is not */
};
bool opencl_announce_kernel_if_wanted(struct opencl_tracked_command *command,
				      cl_command_queue queue, cl_kernel kernel, cl_uint dimensions,
				      const size_t *global, const size_t *local);
bool opencl_announce_copy_if_wanted(struct opencl_tracked_command *command, cl_command_queue queue,
				    const struct device_copy *copy);
void opencl_track_enqueued_command(struct opencl_tracked_command *command, cl_command_queue queue,
				   cl_int result, const cl_event *slot);
/* Tells the end of what has failed without its callback being called. */
void opencl_complete_failed_commands_in_flight(void);
/* Kernels of a device that were enqueued and have not ended. */
uint64_t opencl_get_in_flight_kernel_count(unsigned device_number);

/* Counting (counting.c). A kernel: opencl_begin_kernel_counting_if_asked() waits for its turn,
 * opencl_wait_for_counted_kernel() for its end; opencl_complete_counted_kernel() is where its event
 * reports it. */
extern const struct device_counting_backend opencl_counting;
bool opencl_is_counting_busy_time(unsigned device_number); /* how long the device is busy */
void opencl_begin_kernel_counting_if_asked(struct opencl_tracked_command *command,
					   cl_command_queue queue, cl_uint waits,
					   const cl_event *waits_for);
void opencl_wait_for_counted_kernel(struct opencl_tracked_command *command, cl_command_queue queue);
/* It was not enqueued, or nobody is going to tell its end. */
void opencl_fail_counted_kernel(struct opencl_counted_kernel *counted, const char *text);
void opencl_complete_counted_kernel(struct opencl_counted_kernel *counted, bool succeeded,
				    uint64_t start, uint64_t end);
void opencl_add_busy_time(unsigned device_number, uint64_t start, uint64_t end);

/* Waits until nothing is in flight any more. */
void opencl_wait_until_idle(uint64_t wait_ns);
uint64_t opencl_get_in_flight_command_count(void);
void opencl_reset_in_flight_counts(void);
extern struct device_record_loss_counts opencl_losses;
extern const struct device_call_catalog opencl_call_catalog;

#endif

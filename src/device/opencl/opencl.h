/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Inside of the OpenCL backend. Calls of the program come to traced_* (layer.c), which tell the
 * sink and go on to hooked_* (queues, kernels, copies, memory, programs) or to the next layer or
 * driver. Completion is told by events: each kernel and copy has one, the program's or ours, with a
 * callback (completion.c).
 */
#ifndef KYMO_DEVICE_OPENCL_OPENCL_H
#define KYMO_DEVICE_OPENCL_OPENCL_H

#include <stdbool.h>

#include "device/device.h"
#include "device/opencl/types.h"

/* The functions below us, in the order of the loader's table. */
struct opencl_table {
#define CALL(number, type, name, parameters, arguments, addresses) type(*name) parameters;
#define HOOKED                                                     CALL
#define VOID_CALL(number, name, parameters, arguments, addresses)  void(*name) parameters;
#define VOID_HOOKED                                                VOID_CALL
#define ABSENT(number, name)                                       void *name;
#include "device/opencl/calls_table.h"
#undef CALL
#undef HOOKED
#undef VOID_CALL
#undef VOID_HOOKED
#undef ABSENT
};
#define OPENCL_CALLS (sizeof(struct opencl_table) / sizeof(void *))

extern struct opencl_table opencl_next;

#define CALL(number, type, name, parameters, arguments, addresses)
#define HOOKED(number, type, name, parameters, arguments, addresses) type hooked_##name parameters;
#define VOID_CALL(number, name, parameters, arguments, addresses)
#define VOID_HOOKED(number, name, parameters, arguments, addresses) void hooked_##name parameters;
#define ABSENT(number, name)
#include "device/opencl/calls_table.h"
#undef CALL
#undef HOOKED
#undef VOID_CALL
#undef VOID_HOOKED
#undef ABSENT

/* Fills in what is there of `entries` functions and gives the table to call instead. */
const void *opencl_interpose(const void *const *below, unsigned entries);
bool opencl_is_there(void);

/* Devices (agents.c): small numbers of our own, from 1; 0: there are too many. */
unsigned opencl_device_number(cl_device_id device);
device_handle opencl_device_agent(unsigned number);
cl_device_id opencl_device(unsigned number);
bool opencl_device_is_cpu(unsigned number);
unsigned opencl_device_of_agent(device_handle agent);      /* 0: not one of ours */
unsigned opencl_context_device_number(cl_context context); /* the first of its devices */
/* The clock of a device (clock.c). `queued` was read between the two times of ours. */
uint64_t opencl_host_time(unsigned device_number, uint64_t device_time);
void opencl_clock_seen(unsigned device_number, uint64_t queued, uint64_t before, uint64_t after);

/* Queues (queues.c). */
struct opencl_queue {
	unsigned device_number;
	uint64_t number; /* from 1; 0: not one that we know */
	bool profiled;
};
struct opencl_queue opencl_queue_of(cl_command_queue queue);

/* Programs and kernels (programs.c). */
device_handle opencl_symbol_of(cl_kernel kernel, unsigned device_number);

/* Completion. A command that somebody wants: opencl_begin_*() before it is enqueued; then the
 * enqueueing with *slot as its event, then opencl_enqueued(). */
struct opencl_command {
	struct opencl_queue queue;
	device_handle handle;
	bool is_copy;
	cl_event own;
	uint64_t before;
	struct device_kernel kernel;
	struct opencl_counted *counted; /* NULL: it is not */
};
bool opencl_begin_kernel(struct opencl_command *command, cl_command_queue queue, cl_kernel kernel,
			 cl_uint dimensions, const size_t *global, const size_t *local);
bool opencl_begin_copy(struct opencl_command *command, cl_command_queue queue,
		       const struct device_copy *copy);
void opencl_enqueued(struct opencl_command *command, cl_command_queue queue, cl_int result,
		     const cl_event *slot);
/* Tells the end of what has failed without its callback being called. */
void opencl_find_failed(void);
/* Kernels of a device that were enqueued and have not ended. */
uint64_t opencl_kernels_in_flight(unsigned device_number);

/* Counting (counting.c). A kernel: opencl_count_begin() waits for its turn, opencl_count_end() for
 * its end; opencl_count_completed() is where its event is told. */
extern const struct device_counting opencl_counting;
bool opencl_counts_time(unsigned device_number); /* how long the device is busy */
void opencl_count_begin(struct opencl_command *command, cl_command_queue queue, cl_uint waits,
			const cl_event *waits_for);
void opencl_count_end(struct opencl_command *command, cl_command_queue queue);
/* It was not enqueued, or nobody is going to tell its end. */
void opencl_count_failed(struct opencl_counted *counted, const char *text);
void opencl_count_completed(struct opencl_counted *counted, bool succeeded, uint64_t start,
			    uint64_t end);
void opencl_count_busy(unsigned device_number, uint64_t start, uint64_t end);

/* Waits until nothing is in flight any more. */
void opencl_wait(uint64_t wait_ns);
uint64_t opencl_in_flight(void);
void opencl_forget_in_flight(void);
extern struct device_losses opencl_losses;
extern const struct device_operations opencl_operations;

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counting beyond ROCprofiler-SDK's functions: what kymo's tool library offers besides. Look these
 * functions up by name, or refer to them weakly; another tool library does not have them.
 */
#ifndef KYMO_COUNTING_H
#define KYMO_COUNTING_H

#include <rocprofiler-sdk/rocprofiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* For rocprofiler_sample_device_counting_service(): values since the sample before (the first:
 * since the start), and derived counters of those. Each agent remembers one sample; whoever takes
 * the next one, takes from there. */
#define KYMO_COUNTER_FLAG_SINCE_LAST_SAMPLE ((rocprofiler_counter_flag_t)0x1000)

/* Values of one interval of an agent, in the order of its counters; called on a thread of the
 * library. Times are ns of CLOCK_BOOTTIME. */
typedef void (*kymo_device_counting_samples_cb_t)(rocprofiler_context_id_t context,
						  rocprofiler_agent_id_t agent,
						  const rocprofiler_counter_record_t *records,
						  size_t count, uint64_t start, uint64_t end,
						  void *data);

/* Every device counting service of the context, which is not started yet, besides calls the
 * function about every interval_ns; 0: no longer. INVALID_ARGUMENT, CONTEXT_NOT_FOUND, and
 * CONTEXT_INVALID where it has no such service. */
rocprofiler_status_t
kymo_configure_device_counting_samples(rocprofiler_context_id_t context, uint64_t interval_ns,
				       kymo_device_counting_samples_cb_t samples, void *data);

/* Why the calling thread's last rocprofiler_create_counter_config(), rocprofiler_create_counter()
 * or rocprofiler_start_context() was refused; "" where it was not. Valid until its next call. */
const char *kymo_counter_config_problem(void);

/* How a counter can be counted: of single kernels (rocprofiler_configure_*_dispatch_counting_*), of
 * devices over time (rocprofiler_configure_device_counting_service()). INVALID_ARGUMENT,
 * COUNTER_NOT_FOUND. */
#define KYMO_COUNTING_OF_KERNELS 1u
#define KYMO_COUNTING_OF_DEVICES 2u
rocprofiler_status_t kymo_counter_ways(rocprofiler_counter_id_t counter, uint32_t *ways);

/* Calls `told` with each line that counting has to say: mistakes in definitions, kernels that were
 * not counted and why, services that could not be started. NULL: they go to standard error. */
void kymo_counting_problem(void (*told)(void *context, const char *text), void *context);

/* Kernels of the process so far: counted, not counted because a filter excludes them, not counted
 * for another reason; and samples of devices that were lost. */
void kymo_counting_totals(uint64_t totals[4]);

#ifdef __cplusplus
}
#endif

#endif

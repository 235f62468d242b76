/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Arguments of what OpenMP runtimes report.
 */
#ifndef ROCPROFILER_SDK_OMPT_API_ARGS_H
#define ROCPROFILER_SDK_OMPT_API_ARGS_H

#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/ompt/omp-tools.h>

ROCPROFILER_EXTERN_C_INIT

/* Functions of the runtime that a tool may call. */
typedef struct rocprofiler_ompt_callback_functions_t {
	ompt_enumerate_states_t ompt_enumerate_states;
	ompt_enumerate_mutex_impls_t ompt_enumerate_mutex_impls;
	ompt_get_thread_data_t ompt_get_thread_data;
	ompt_get_num_places_t ompt_get_num_places;
	ompt_get_place_proc_ids_t ompt_get_place_proc_ids;
	ompt_get_place_num_t ompt_get_place_num;
	ompt_get_partition_place_nums_t ompt_get_partition_place_nums;
	ompt_get_proc_id_t ompt_get_proc_id;
	ompt_get_state_t ompt_get_state;
	ompt_get_parallel_info_t ompt_get_parallel_info;
	ompt_get_task_info_t ompt_get_task_info;
	ompt_get_task_memory_t ompt_get_task_memory;
	ompt_get_num_devices_t ompt_get_num_devices;
	ompt_get_num_procs_t ompt_get_num_procs;
	ompt_get_target_info_t ompt_get_target_info;
	ompt_get_unique_id_t ompt_get_unique_id;
} rocprofiler_ompt_callback_functions_t;

/* C and C++ do not agree on the size of a struct without members. */
typedef struct rocprofiler_ompt_no_args {
	char empty;
} rocprofiler_ompt_no_args;

#define ROCP_F(name, args)                                                                         \
	struct {                                                                                   \
		args                                                                               \
	} name;
#define ROCP_A(type, name)             type name;
#define ROCP_P(type, name, parameters) type(*name) parameters;
#define ROCP_N(name)                   rocprofiler_ompt_no_args name;
typedef union rocprofiler_ompt_args_t {
#include <rocprofiler-sdk/ompt/api_list.h>
	rocprofiler_ompt_callback_functions_t callback_functions;
} rocprofiler_ompt_args_t;
#undef ROCP_F
#undef ROCP_A
#undef ROCP_P
#undef ROCP_N

ROCPROFILER_EXTERN_C_FINI

#endif

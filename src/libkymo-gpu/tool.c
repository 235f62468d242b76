/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * kymo's own recording of devices: a tool like any other, written to ROCprofiler-SDK's interface.
 * It turns what is reported to it into records of the process's file (file.h); what they mean is
 * found out by the kymo command. KYMO_GPU_CALLS says which calls of the runtimes are wanted: those
 * that give work to a device or wait for it (work), all, or none.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rocprofiler-sdk/registration.h>
#include <rocprofiler-sdk/rocprofiler.h>

#include "libkymo-gpu/calls.h"
#include "libkymo-gpu/count_devices.h"
#include "libkymo-gpu/count_kernels.h"
#include "libkymo-gpu/counter_records.h"
#include "libkymo-gpu/file.h"
#include "libkymo-gpu/launch_paths.h"
#include "libkymo-gpu/metrics.h"
#include "libkymo-gpu/names.h"

#define RECORDS_BUFFER_BYTES    (16u << 20)
#define BUFFER_WATERMARK_BYTES  (1u << 20)
#define FLUSH_PERIOD_DEFAULT_MS 100

static rocprofiler_context_id_t recording_context; /* stopped while the program pauses recording */
static rocprofiler_context_id_t always_on_context; /* names, and the calls that pause and resume */
static rocprofiler_buffer_id_t records_buffer;
static _Atomic bool tool_ended_flag;

/* Only kymo's tool library has it; another one does not have it. */
extern void kymo_device_losses(uint64_t counts[4]) __attribute__((weak));

/* ---- records ---- */

static void write_kernel_record(const rocprofiler_buffer_tracing_kernel_dispatch_record_t *told)
{
	struct gpu_kernel record = {
		.head = {GPU_RECORD_KERNEL, sizeof(record),
			 names_find_or_write_launch_shape(&told->dispatch_info)},
		.start = told->start_timestamp,
		.duration = told->end_timestamp - told->start_timestamp,
		.correlation = told->correlation_id.internal,
		.queue = told->dispatch_info.queue_id.handle,
		.tid = (uint32_t)told->thread_id,
		.launch_path = launch_paths_of_external_id(told->correlation_id.external.value)};

	gpu_file_write_record(&record.head);
}

static enum gpu_direction copy_operation_to_direction(rocprofiler_memory_copy_operation_t operation)
{
	switch ((int)operation) {
	case ROCPROFILER_MEMORY_COPY_NONE:
		return GPU_DIRECTION_FILL;
	case ROCPROFILER_MEMORY_COPY_HOST_TO_HOST:
		return GPU_DIRECTION_HOST_TO_HOST;
	case ROCPROFILER_MEMORY_COPY_HOST_TO_DEVICE:
		return GPU_DIRECTION_HOST_TO_DEVICE;
	case ROCPROFILER_MEMORY_COPY_DEVICE_TO_HOST:
		return GPU_DIRECTION_DEVICE_TO_HOST;
	case ROCPROFILER_MEMORY_COPY_DEVICE_TO_DEVICE:
		return GPU_DIRECTION_DEVICE_TO_DEVICE;
	default:
		return GPU_DIRECTION_OTHER;
	}
}

static void write_copy_record(const rocprofiler_buffer_tracing_memory_copy_record_t *told)
{
	struct gpu_copy record = {
		.head = {GPU_RECORD_COPY, sizeof(record),
			 copy_operation_to_direction(told->operation)},
		.start = told->start_timestamp,
		.duration = told->end_timestamp - told->start_timestamp,
		.correlation = told->correlation_id.internal,
		.bytes = told->bytes,
		.from = names_find_or_write_agent(told->src_agent_id),
		.to = names_find_or_write_agent(told->dst_agent_id),
		.tid = (uint32_t)told->thread_id,
		.launch_path = launch_paths_of_external_id(told->correlation_id.external.value)};

	gpu_file_write_record(&record.head);
}

/* Records of all kinds of calls are alike. */
static void write_call_record(const rocprofiler_buffer_tracing_hip_api_record_t *told)
{
	struct gpu_call record = {
		.head = {GPU_RECORD_CALL, sizeof(record),
			 names_find_or_write_call_name(told->kind, told->operation)},
		.start = told->start_timestamp,
		.duration = told->end_timestamp - told->start_timestamp,
		.correlation = told->correlation_id.internal,
		.tid = (uint32_t)told->thread_id,
		.runtime = names_find_or_write_call_kind(told->kind)};

	gpu_file_write_record(&record.head);
}

static void write_record_of_tracing_header(const rocprofiler_record_header_t *header)
{
	if (header->category != ROCPROFILER_BUFFER_CATEGORY_TRACING)
		return;
	if (header->kind == ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH)
		write_kernel_record(header->payload);
	else if (header->kind == ROCPROFILER_BUFFER_TRACING_MEMORY_COPY)
		write_copy_record(header->payload);
	else if (calls_is_recorded_call_kind(header->kind))
		write_call_record(header->payload);
}

static void add_callback_thread_cpu_time(void)
{
	static _Thread_local uint64_t told;
	struct timespec used;
	uint64_t ns;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	ns = (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
	gpu_file_add_own_cpu_time(ns - told);
	told = ns;
}

static void write_buffer_records(rocprofiler_context_id_t of_context,
				 rocprofiler_buffer_id_t of_buffer,
				 rocprofiler_record_header_t **headers, size_t count, void *data,
				 uint64_t dropped)
{
	(void)of_context;
	(void)of_buffer;
	(void)data;
	gpu_file_lock();
	/* A marker of the program's that comes meanwhile is not to wait for all of them. */
	for (size_t i = 0; i < count; i++) {
		write_record_of_tracing_header(headers[i]);
		gpu_file_yield_lock_if_awaited();
	}
	gpu_file_unlock();
	gpu_file_add_loss_count(GPU_LOSS_BUFFER, dropped);
	add_callback_thread_cpu_time();
}

/* ---- callbacks: names of kernels, markers ---- */

static void handle_kernel_symbol_loaded(rocprofiler_callback_tracing_record_t record,
					rocprofiler_user_data_t *user_data, void *data)
{
	const rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t *symbol =
		record.payload;

	(void)user_data;
	(void)data;
	if (record.phase == ROCPROFILER_CALLBACK_PHASE_LOAD)
		names_add_kernel_name(symbol->kernel_id, symbol->kernel_name);
}

static void write_marker_record(enum gpu_marker_what what, uint64_t correlation, uint64_t tid,
				const char *message)
{
	struct gpu_marker record = {.head = {GPU_RECORD_MARKER, sizeof(record), what},
				    .time = gpu_read_boottime_ns(),
				    .correlation = correlation,
				    .tid = (uint32_t)tid};

	gpu_file_lock();
	if (message != NULL)
		record.message = gpu_file_find_or_write_string(message);
	gpu_file_write_record(&record.head);
	gpu_file_unlock();
}

static const char *get_marker_message(const rocprofiler_callback_tracing_record_t *record)
{
	const rocprofiler_callback_tracing_marker_api_data_t *marker = record->payload;

	switch (record->operation) {
	case ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxMarkA:
		return marker->args.roctxMarkA.message;
	case ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxThreadRangeA:
		return marker->args.roctxThreadRangeA.message;
	case ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxProcessRangeA:
		return marker->args.roctxProcessRangeA.message;
	default:
		return NULL;
	}
}

static void handle_marker_call(rocprofiler_callback_tracing_record_t record,
			       rocprofiler_user_data_t *user_data, void *data)
{
	bool is_mark = record.operation == ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxMarkA;
	const char *message = get_marker_message(&record);

	(void)user_data;
	(void)data;
	if (record.operation == ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxGetThreadId)
		return;
	if (record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER)
		write_marker_record(is_mark ? GPU_MARKER_MARK : GPU_MARKER_BEGIN,
				    record.correlation_id.internal, record.thread_id,
				    message != NULL ? message : "");
	else if (record.phase == ROCPROFILER_CALLBACK_PHASE_EXIT && !is_mark)
		write_marker_record(GPU_MARKER_END, record.correlation_id.internal,
				    record.thread_id, NULL);
}

/* The program says what of it is worth recording (roctxProfilerPause, roctxProfilerResume). */
static void handle_pause_resume_call(rocprofiler_callback_tracing_record_t record,
				     rocprofiler_user_data_t *user_data, void *data)
{
	(void)user_data;
	(void)data;
	if (record.operation == ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerPause &&
	    record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER) {
		/* Work whose launch nobody saw belongs to who listens when it is reported. */
		if (calls_recording_is_disabled_by_env())
			rocprofiler_flush_buffer(records_buffer);
		rocprofiler_stop_context(recording_context);
	} else if (record.operation == ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerResume &&
		   record.phase == ROCPROFILER_CALLBACK_PHASE_EXIT)
		rocprofiler_start_context(recording_context);
}

/* ---- life ---- */

/* What is finished becomes part of the file, however the process ends. */
static void *run_flush_thread(void *unused)
{
	const char *asked = secure_getenv("KYMO_CUDA_FLUSH_MS");
	long period = asked != NULL ? strtol(asked, NULL, 10) : 0;
	struct timespec pause;

	if (period <= 0)
		period = FLUSH_PERIOD_DEFAULT_MS;
	pause = (struct timespec){period / 1000, period % 1000 * 1000000};
	pthread_setname_np(pthread_self(), "kymo-gpu");
	while (!atomic_load(&tool_ended_flag)) {
		nanosleep(&pause, NULL);
		if (!atomic_load(&tool_ended_flag))
			rocprofiler_flush_buffer(records_buffer);
	}
	return unused;
}

static void start_flush_thread(void)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, run_flush_thread, NULL) == 0)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static bool configure_tool_services(void)
{
	const rocprofiler_tracing_operation_t symbols[] = {
		ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER};

	if (rocprofiler_create_context(&always_on_context) != ROCPROFILER_STATUS_SUCCESS ||
	    rocprofiler_create_context(&recording_context) != ROCPROFILER_STATUS_SUCCESS ||
	    rocprofiler_create_buffer(recording_context, RECORDS_BUFFER_BYTES,
				      BUFFER_WATERMARK_BYTES, ROCPROFILER_BUFFER_POLICY_LOSSLESS,
				      write_buffer_records, NULL,
				      &records_buffer) != ROCPROFILER_STATUS_SUCCESS)
		return false;
	rocprofiler_configure_callback_tracing_service(
		always_on_context, ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT, symbols, 1,
		handle_kernel_symbol_loaded, NULL);
	rocprofiler_configure_callback_tracing_service(
		always_on_context, ROCPROFILER_CALLBACK_TRACING_MARKER_CONTROL_API, NULL, 0,
		handle_pause_resume_call, NULL);
	rocprofiler_configure_callback_tracing_service(
		recording_context, ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_RANGE_API, NULL, 0,
		handle_marker_call, NULL);
	rocprofiler_configure_buffer_tracing_service(recording_context,
						     ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH,
						     NULL, 0, records_buffer);
	rocprofiler_configure_buffer_tracing_service(
		recording_context, ROCPROFILER_BUFFER_TRACING_MEMORY_COPY, NULL, 0, records_buffer);
	calls_configure_tracing(recording_context, records_buffer);
	launch_paths_configure_unless_disabled(recording_context);
	counting_problems_register_notice_writer();
	kernel_counting_configure_if_env_asks();
	device_counting_configure_if_env_asks();
	return true;
}

static int tool_initialize(rocprofiler_client_finalize_t finalize, void *data)
{
	(void)finalize;
	(void)data;
	if (!gpu_file_open() || !configure_tool_services() ||
	    rocprofiler_start_context(always_on_context) != ROCPROFILER_STATUS_SUCCESS ||
	    rocprofiler_start_context(recording_context) != ROCPROFILER_STATUS_SUCCESS)
		return -1;
	kernel_counting_start();
	device_counting_start();
	start_flush_thread();
	metrics_start_thread_unless_disabled();
	return 0;
}

static void add_device_losses_to_file(void)
{
	uint64_t counts[4] = {
		0}; /* as device_record_loss_counts: dropped, unmatched, incomplete, conflicts */

	if (kymo_device_losses == NULL)
		return;
	kymo_device_losses(counts);
	gpu_file_add_loss_count(GPU_LOSS_RUNTIME, counts[0]);
	gpu_file_add_loss_count(GPU_LOSS_INCOMPLETE, counts[2]);
	gpu_file_add_loss_count(GPU_LOSS_CONFLICT, counts[3]);
}

static void tool_finalize(void *data)
{
	(void)data;
	atomic_store(&tool_ended_flag, true);
	metrics_stop();
	device_counting_stop();
	rocprofiler_flush_buffer(records_buffer);
	kernel_counting_add_loss_of_uncounted_kernels();
	counting_add_filtered_and_loss_counts_to_file();
	add_device_losses_to_file();
	gpu_file_close();
}

static void handle_fork_child(void)
{
	gpu_file_drop_after_fork();
	names_reset_after_fork();
	counter_records_reset_after_fork();
	kernel_counting_reset_after_fork();
	device_counting_reset_after_fork();
	if (!atomic_load(&tool_ended_flag) && gpu_file_open())
		start_flush_thread();
}

__attribute__((visibility("default"))) rocprofiler_tool_configure_result_t *
rocprofiler_configure(uint32_t version, const char *runtime_version, uint32_t priority,
		      rocprofiler_client_id_t *client)
{
	static rocprofiler_tool_configure_result_t result = {sizeof(result), tool_initialize,
							     tool_finalize, NULL};
	const char *enabled = secure_getenv("KYMO_ENABLED"),
		   *session = secure_getenv("KYMO_SPOOL_DIRECTORY");

	(void)version;
	(void)runtime_version;
	(void)priority;
	if (session == NULL || (enabled != NULL && strcmp(enabled, "off") == 0))
		return NULL;
	client->name = "kymo";
	pthread_atfork(NULL, NULL, handle_fork_child);
	return &result;
}

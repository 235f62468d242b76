/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * kymo's own recording of devices: a tool like any other, written to ROCprofiler-SDK's interface.
 * It turns what it is told into records of the process's file (file.h); what they mean is found out
 * by the kymo command. KYMO_GPU_CALLS says which calls of the runtimes are wanted: those that give
 * work to a device or wait for it (work), all, or none.
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
#include "libkymo-gpu/metrics.h"
#include "libkymo-gpu/names.h"

#define BUFFER_BYTES     (16u << 20)
#define BUFFER_WATERMARK (1u << 20)
#define FLUSH_MS         100

static rocprofiler_context_id_t context; /* stopped while the program pauses recording */
static rocprofiler_context_id_t lasting; /* names, and the calls that pause and resume */
static rocprofiler_buffer_id_t buffer;
static _Atomic bool has_ended;

/* Of kymo's tool library alone; another one does not have it. */
extern void kymo_device_losses(uint64_t counts[4]) __attribute__((weak));

/* ---- records ---- */

static void write_kernel(const rocprofiler_buffer_tracing_kernel_dispatch_record_t *told)
{
	struct gpu_kernel record = {
		.head = {GPU_RECORD_KERNEL, sizeof(record), names_shape(&told->dispatch_info)},
		.start = told->start_timestamp,
		.duration = told->end_timestamp - told->start_timestamp,
		.correlation = told->correlation_id.internal,
		.queue = told->dispatch_info.queue_id.handle,
		.tid = (uint32_t)told->thread_id};

	gpu_file_write(&record.head);
}

static enum gpu_direction direction_of(rocprofiler_memory_copy_operation_t operation)
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

static void write_copy(const rocprofiler_buffer_tracing_memory_copy_record_t *told)
{
	struct gpu_copy record = {
		.head = {GPU_RECORD_COPY, sizeof(record), direction_of(told->operation)},
		.start = told->start_timestamp,
		.duration = told->end_timestamp - told->start_timestamp,
		.correlation = told->correlation_id.internal,
		.bytes = told->bytes,
		.from = names_agent(told->src_agent_id),
		.to = names_agent(told->dst_agent_id),
		.tid = (uint32_t)told->thread_id};

	gpu_file_write(&record.head);
}

/* Records of all kinds of calls are alike. */
static void write_call(const rocprofiler_buffer_tracing_hip_api_record_t *told)
{
	struct gpu_call record = {
		.head = {GPU_RECORD_CALL, sizeof(record), names_call(told->kind, told->operation)},
		.start = told->start_timestamp,
		.duration = told->end_timestamp - told->start_timestamp,
		.correlation = told->correlation_id.internal,
		.tid = (uint32_t)told->thread_id,
		.runtime = names_kind(told->kind)};

	gpu_file_write(&record.head);
}

static void write_record(const rocprofiler_record_header_t *header)
{
	if (header->category != ROCPROFILER_BUFFER_CATEGORY_TRACING)
		return;
	if (header->kind == ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH)
		write_kernel(header->payload);
	else if (header->kind == ROCPROFILER_BUFFER_TRACING_MEMORY_COPY)
		write_copy(header->payload);
	else if (calls_is_kind(header->kind))
		write_call(header->payload);
}

static void tell_cpu_time(void)
{
	static _Thread_local uint64_t told;
	struct timespec used;
	uint64_t ns;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
	ns = (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
	gpu_file_cpu(ns - told);
	told = ns;
}

static void take_records(rocprofiler_context_id_t of_context, rocprofiler_buffer_id_t of_buffer,
			 rocprofiler_record_header_t **headers, size_t count, void *data,
			 uint64_t dropped)
{
	(void)of_context;
	(void)of_buffer;
	(void)data;
	gpu_file_lock();
	/* A marker of the program's that comes meanwhile is not to wait for all of them. */
	for (size_t i = 0; i < count; i++) {
		write_record(headers[i]);
		gpu_file_give_way();
	}
	gpu_file_unlock();
	gpu_file_lost(GPU_LOSS_BUFFER, dropped);
	tell_cpu_time();
}

/* ---- callbacks: names of kernels, markers ---- */

static void take_symbol(rocprofiler_callback_tracing_record_t record,
			rocprofiler_user_data_t *user_data, void *data)
{
	const rocprofiler_callback_tracing_code_object_kernel_symbol_register_data_t *symbol =
		record.payload;

	(void)user_data;
	(void)data;
	if (record.phase == ROCPROFILER_CALLBACK_PHASE_LOAD)
		names_add_kernel(symbol->kernel_id, symbol->kernel_name);
}

static void write_marker(enum gpu_marker_what what, uint64_t correlation, uint64_t tid,
			 const char *message)
{
	struct gpu_marker record = {.head = {GPU_RECORD_MARKER, sizeof(record), what},
				    .time = gpu_now(),
				    .correlation = correlation,
				    .tid = (uint32_t)tid};

	gpu_file_lock();
	if (message != NULL)
		record.message = gpu_file_string(message);
	gpu_file_write(&record.head);
	gpu_file_unlock();
}

static const char *marker_message(const rocprofiler_callback_tracing_record_t *record)
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

static void take_marker(rocprofiler_callback_tracing_record_t record,
			rocprofiler_user_data_t *user_data, void *data)
{
	bool is_mark = record.operation == ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxMarkA;
	const char *message = marker_message(&record);

	(void)user_data;
	(void)data;
	if (record.operation == ROCPROFILER_MARKER_CORE_RANGE_API_ID_roctxGetThreadId)
		return;
	if (record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER)
		write_marker(is_mark ? GPU_MARKER_MARK : GPU_MARKER_BEGIN,
			     record.correlation_id.internal, record.thread_id,
			     message != NULL ? message : "");
	else if (record.phase == ROCPROFILER_CALLBACK_PHASE_EXIT && !is_mark)
		write_marker(GPU_MARKER_END, record.correlation_id.internal, record.thread_id,
			     NULL);
}

/* The program says what of it is worth recording (roctxProfilerPause, roctxProfilerResume). */
static void take_control(rocprofiler_callback_tracing_record_t record,
			 rocprofiler_user_data_t *user_data, void *data)
{
	(void)user_data;
	(void)data;
	if (record.operation == ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerPause &&
	    record.phase == ROCPROFILER_CALLBACK_PHASE_ENTER) {
		/* Work whose launch nobody saw belongs to who listens when it is told. */
		if (calls_are_off())
			rocprofiler_flush_buffer(buffer);
		rocprofiler_stop_context(context);
	} else if (record.operation == ROCPROFILER_MARKER_CONTROL_API_ID_roctxProfilerResume &&
		   record.phase == ROCPROFILER_CALLBACK_PHASE_EXIT)
		rocprofiler_start_context(context);
}

/* ---- life ---- */

/* What is finished becomes part of the file, however the process ends. */
static void *flush_now_and_then(void *unused)
{
	const char *asked = getenv("KYMO_CUDA_FLUSH_MS");
	long period = asked != NULL ? strtol(asked, NULL, 10) : 0;
	struct timespec pause;

	if (period <= 0)
		period = FLUSH_MS;
	pause = (struct timespec){period / 1000, period % 1000 * 1000000};
	pthread_setname_np(pthread_self(), "kymo-gpu");
	while (!atomic_load(&has_ended)) {
		nanosleep(&pause, NULL);
		if (!atomic_load(&has_ended))
			rocprofiler_flush_buffer(buffer);
	}
	return unused;
}

static void start_thread(void)
{
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	if (pthread_create(&thread, NULL, flush_now_and_then, NULL) == 0)
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static bool configure(void)
{
	const rocprofiler_tracing_operation_t symbols[] = {
		ROCPROFILER_CODE_OBJECT_DEVICE_KERNEL_SYMBOL_REGISTER};

	if (rocprofiler_create_context(&lasting) != ROCPROFILER_STATUS_SUCCESS ||
	    rocprofiler_create_context(&context) != ROCPROFILER_STATUS_SUCCESS ||
	    rocprofiler_create_buffer(context, BUFFER_BYTES, BUFFER_WATERMARK,
				      ROCPROFILER_BUFFER_POLICY_LOSSLESS, take_records, NULL,
				      &buffer) != ROCPROFILER_STATUS_SUCCESS)
		return false;
	rocprofiler_configure_callback_tracing_service(
		lasting, ROCPROFILER_CALLBACK_TRACING_CODE_OBJECT, symbols, 1, take_symbol, NULL);
	rocprofiler_configure_callback_tracing_service(
		lasting, ROCPROFILER_CALLBACK_TRACING_MARKER_CONTROL_API, NULL, 0, take_control,
		NULL);
	rocprofiler_configure_callback_tracing_service(
		context, ROCPROFILER_CALLBACK_TRACING_MARKER_CORE_RANGE_API, NULL, 0, take_marker,
		NULL);
	rocprofiler_configure_buffer_tracing_service(
		context, ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH, NULL, 0, buffer);
	rocprofiler_configure_buffer_tracing_service(
		context, ROCPROFILER_BUFFER_TRACING_MEMORY_COPY, NULL, 0, buffer);
	calls_configure(context, buffer);
	counting_problems_follow();
	count_kernels_configure();
	count_devices_configure();
	return true;
}

static int initialize(rocprofiler_client_finalize_t finalize, void *data)
{
	(void)finalize;
	(void)data;
	if (!gpu_file_open() || !configure() ||
	    rocprofiler_start_context(lasting) != ROCPROFILER_STATUS_SUCCESS ||
	    rocprofiler_start_context(context) != ROCPROFILER_STATUS_SUCCESS)
		return -1;
	count_kernels_start();
	count_devices_start();
	start_thread();
	metrics_start();
	return 0;
}

static void tell_losses(void)
{
	uint64_t counts[4] = {0}; /* as device_losses: dropped, unmatched, incomplete, conflicts */

	if (kymo_device_losses == NULL)
		return;
	kymo_device_losses(counts);
	gpu_file_lost(GPU_LOSS_RUNTIME, counts[0]);
	gpu_file_lost(GPU_LOSS_INCOMPLETE, counts[2]);
	gpu_file_lost(GPU_LOSS_CONFLICT, counts[3]);
}

static void finalize(void *data)
{
	(void)data;
	atomic_store(&has_ended, true);
	metrics_stop();
	count_devices_end();
	rocprofiler_flush_buffer(buffer);
	count_kernels_end();
	counting_problems_end();
	tell_losses();
	gpu_file_close();
}

static void in_child(void)
{
	gpu_file_forked();
	names_forked();
	counter_records_forked();
	count_kernels_forked();
	count_devices_forked();
	if (!atomic_load(&has_ended) && gpu_file_open())
		start_thread();
}

__attribute__((visibility("default"))) rocprofiler_tool_configure_result_t *
rocprofiler_configure(uint32_t version, const char *runtime_version, uint32_t priority,
		      rocprofiler_client_id_t *client)
{
	static rocprofiler_tool_configure_result_t result = {sizeof(result), initialize, finalize,
							     NULL};
	const char *enabled = getenv("KYMO_ENABLED"), *session = getenv("KYMO_SPOOL_DIRECTORY");

	(void)version;
	(void)runtime_version;
	(void)priority;
	if (session == NULL || (enabled != NULL && strcmp(enabled, "off") == 0))
		return NULL;
	client->name = "kymo";
	pthread_atfork(NULL, NULL, in_child);
	return &result;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What tools cost per event: a call that is told by callback (ENTER and EXIT), a call that becomes
 * a record in a buffer, a finished kernel that does, a record that is only put there, and a call
 * that nobody wants. With one thread and with several.
 *
 * usage: sdk [EVENTS-PER-THREAD [THREADS]]     "per event" is a thread's own time, "in all" what
 * the machine gets done; with more threads than CPUs, threads wait for CPUs.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rocprofiler-sdk/registration.h>

#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/emit.h"

#define BENCH_BUFFER    ((size_t)8 << 20)
#define BENCH_WATERMARK ((size_t)6 << 20)
#define BENCH_THREADS   64
#define BENCH_WARM      400000 /* more than both halves of the buffer: its memory is there */

enum bench_what { NOBODY, CALLBACK, CALL_RECORD, KERNEL_RECORD, ONLY_PUT, WHATS };

static const char *const bench_names[WHATS] = {
	"a call that nobody wants",      "callbacks, ENTER and EXIT", "buffered call, two times",
	"buffered kernel, from enqueue", "buffered record, only put",
};

static enum bench_what bench_what;
static uint64_t bench_events;
static rocprofiler_context_id_t bench_context;
static rocprofiler_buffer_id_t bench_buffer;
static uint64_t bench_calls[BENCH_THREADS][8];
static uint64_t bench_records;
static pthread_barrier_t bench_barrier;
static __thread unsigned bench_thread;

static void bench_tell(rocprofiler_callback_tracing_record_t record,
		       rocprofiler_user_data_t *user_data, void *data)
{
	(void)record;
	(void)data;
	user_data->value = bench_calls[bench_thread][0]++;
}

static void bench_take(rocprofiler_context_id_t context, rocprofiler_buffer_id_t buffer,
		       rocprofiler_record_header_t **headers, size_t count, void *data,
		       uint64_t dropped)
{
	(void)context;
	(void)buffer;
	(void)headers;
	(void)data;
	if (dropped)
		printf("%llu dropped\n", (unsigned long long)dropped);
	bench_records += count;
}

static int bench_initialize(rocprofiler_client_finalize_t finalizer, void *data)
{
	rocprofiler_status_t status = rocprofiler_create_context(&bench_context);

	(void)finalizer;
	(void)data;
	if (!status)
		status = rocprofiler_create_buffer(bench_context, BENCH_BUFFER, BENCH_WATERMARK,
						   ROCPROFILER_BUFFER_POLICY_LOSSLESS, bench_take,
						   NULL, &bench_buffer);
	if (!status && bench_what == CALLBACK)
		status = rocprofiler_configure_callback_tracing_service(
			bench_context, ROCPROFILER_CALLBACK_TRACING_HIP_RUNTIME_API, NULL, 0,
			bench_tell, NULL);
	if (!status && bench_what == CALL_RECORD)
		status = rocprofiler_configure_buffer_tracing_service(
			bench_context, ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API, NULL, 0,
			bench_buffer);
	if (!status && bench_what == KERNEL_RECORD)
		status = rocprofiler_configure_buffer_tracing_service(
			bench_context, ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH, NULL, 0,
			bench_buffer);
	if (!status)
		status = rocprofiler_start_context(bench_context);
	return (int)status;
}

static rocprofiler_tool_configure_result_t *
bench_configure(uint32_t version, const char *text, uint32_t priority, rocprofiler_client_id_t *id)
{
	static rocprofiler_tool_configure_result_t result = {sizeof(result), bench_initialize, NULL,
							     NULL};

	(void)version;
	(void)text;
	(void)priority;
	id->name = "bench";
	return &result;
}

static void bench_calls_of(uint64_t count)
{
	rocprofiler_callback_tracing_hip_api_data_t data = {.size = sizeof(data)};
	struct sdk_call_state call;

	for (uint64_t i = 0; i < count; i++) {
		if (sdk_call_enter(&call, SDK_DOMAIN_HIP_RUNTIME, 7, &data))
			sdk_call_exit(&call, &data);
	}
}

static void bench_kernels_of(uint64_t count)
{
	rocprofiler_kernel_dispatch_info_t info = {.kernel_id = 1};

	for (uint64_t i = 0; i < count; i++) {
		struct sdk_device_work *work = sdk_dispatch_report_enqueue(&info);

		sdk_dispatch_report_submitted(work, false);
		sdk_dispatch_report_complete(work, NULL, 1000 + i, 2000 + i);
	}
}

static void bench_puts_of(uint64_t count)
{
	struct sdk_buffer *buffer = sdk_buffer_find_by_id(bench_buffer.handle);
	rocprofiler_buffer_tracing_hip_api_record_t record = {.size = sizeof(record)};

	for (uint64_t i = 0; i < count; i++) {
		record.start_timestamp = i;
		sdk_buffer_append_tracing_record(buffer, ROCPROFILER_BUFFER_TRACING_HIP_RUNTIME_API,
						 &record, sizeof(record), i);
	}
}

static void bench_run(uint64_t count)
{
	if (bench_what == KERNEL_RECORD)
		bench_kernels_of(count);
	else if (bench_what == ONLY_PUT)
		bench_puts_of(count);
	else
		bench_calls_of(count);
}

static uint64_t bench_clock(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static void *bench_main(void *data)
{
	uint64_t *cpu = data, start;

	bench_thread = (unsigned)(cpu[1]);
	bench_run(BENCH_WARM);
	pthread_barrier_wait(&bench_barrier);
	start = bench_clock(CLOCK_THREAD_CPUTIME_ID);
	bench_run(bench_events);
	cpu[0] = bench_clock(CLOCK_THREAD_CPUTIME_ID) - start;
	return NULL;
}

static void bench_one(unsigned threads)
{
	uint64_t cpu[BENCH_THREADS][2], start, wall, sum = 0;
	pthread_t made[BENCH_THREADS];

	if (rocprofiler_force_configure(bench_configure))
		exit(1);
	pthread_barrier_init(&bench_barrier, NULL, threads + 1);
	for (unsigned i = 0; i < threads; i++) {
		cpu[i][1] = i;
		if (pthread_create(&made[i], NULL, bench_main, cpu[i]))
			exit(1);
	}
	pthread_barrier_wait(&bench_barrier);
	start = bench_clock(CLOCK_MONOTONIC);
	for (unsigned i = 0; i < threads; i++) {
		pthread_join(made[i], NULL);
		sum += cpu[i][0];
	}
	wall = bench_clock(CLOCK_MONOTONIC) - start;
	rocprofiler_flush_buffer(bench_buffer);
	printf("%-31s %2u threads: %7.1f ns CPU per event, %7.2f M/s in all",
	       bench_names[bench_what], threads, (double)sum / (double)(threads * bench_events),
	       (double)threads * (double)bench_events * 1e3 / (double)wall);
	if (bench_what >= CALL_RECORD)
		printf(", %llu records%s", (unsigned long long)bench_records,
		       bench_records == threads * (bench_events + BENCH_WARM) ? "" : " (LOST)");
	printf("\n");
}

int main(int argc, char **argv)
{
	unsigned most = argc > 2 ? (unsigned)atoi(argv[2]) : 16;

	bench_events = argc > 1 ? (uint64_t)atoll(argv[1]) : 2000000;
	if (most < 1 || most > BENCH_THREADS)
		most = BENCH_THREADS;
	for (bench_what = NOBODY; bench_what < WHATS; bench_what++) {
		for (unsigned threads = 1; threads <= most; threads *= 4) {
			pid_t child;

			fflush(stdout);
			child = fork();
			if (!child) {
				bench_one(threads);
				return 0;
			}
			waitpid(child, NULL, 0);
		}
	}
	return 0;
}

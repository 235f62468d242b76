/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a kernel's launch costs the program when calls and kernels are recorded, without a device:
 * the backend is called as CUPTI calls it, for the entry and the exit of a launch on the program's
 * thread, and with full buffers of records on another thread, as far behind as CUPTI is. So what
 * is made on one processor is used up on the other, which is most of what it costs.
 *
 * usage: cuda_launches [LAUNCHES [KIB]]
 * KIB: memory that the program uses between two launches (as the driver does, 3 us of it); 64
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include <rocprofiler-sdk/registration.h>

#include "device/cuda/cuda.h"
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/emit.h"
#include "libkymo-sdk/runtimes/device_sink.h"
#include "libkymo-sdk/runtimes/start.h"

#define RECORD_BYTES     216 /* of CUDA 13 */
#define RECORDS          4854
#define BUFFERS          4
#define KIND_CUDA_DRIVER 0x1001
#define BUFFER_BYTES     ((size_t)16 << 20)
#define WATERMARK        ((size_t)1 << 20)

enum what { KERNELS, CALLS_AND_KERNELS, WHATS };

static const char *const names[WHATS] = {"kernels", "kernels and calls"};

static enum what what;
static rocprofiler_context_id_t context;
static rocprofiler_buffer_id_t buffer;
static uint64_t records, launches;
static struct lump {
	uint8_t data[(size_t)RECORD_BYTES * RECORDS];
	size_t count;
	sem_t is_free, is_full;
} lumps[BUFFERS];
static volatile uint8_t *program_memory;
static size_t program_bytes;

static void take(rocprofiler_context_id_t of_context, rocprofiler_buffer_id_t of_buffer,
		 rocprofiler_record_header_t **headers, size_t count, void *data, uint64_t dropped)
{
	(void)of_context;
	(void)of_buffer;
	(void)headers;
	(void)data;
	if (dropped != 0)
		printf("%llu dropped\n", (unsigned long long)dropped);
	records += count;
}

static int initialize(rocprofiler_client_finalize_t finalizer, void *data)
{
	static const int32_t calls[] = {CUPTI_CALL_LAUNCH_KERNEL};
	rocprofiler_status_t status = rocprofiler_create_context(&context);

	(void)finalizer;
	(void)data;
	if (status == ROCPROFILER_STATUS_SUCCESS)
		status = rocprofiler_create_buffer(context, BUFFER_BYTES, WATERMARK,
						   ROCPROFILER_BUFFER_POLICY_LOSSLESS, take, NULL,
						   &buffer);
	if (status == ROCPROFILER_STATUS_SUCCESS)
		status = rocprofiler_configure_buffer_tracing_service(
			context, ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH, NULL, 0, buffer);
	if (status == ROCPROFILER_STATUS_SUCCESS && what == CALLS_AND_KERNELS)
		status = rocprofiler_configure_buffer_tracing_service(
			context, (rocprofiler_buffer_tracing_kind_t)KIND_CUDA_DRIVER, calls, 1,
			buffer);
	return status == ROCPROFILER_STATUS_SUCCESS ? (int)rocprofiler_start_context(context)
						    : (int)status;
}

static rocprofiler_tool_configure_result_t *
configure(uint32_t version, const char *text, uint32_t priority, rocprofiler_client_id_t *id)
{
	static rocprofiler_tool_configure_result_t result = {sizeof(result), initialize, NULL,
							     NULL};

	(void)version;
	(void)text;
	(void)priority;
	id->name = "bench";
	return &result;
}

/* ---- CUPTI's worker ---- */

static int next_record(uint8_t *from, size_t valid, struct cupti_record **record)
{
	uint8_t *next = *record == NULL ? from : (uint8_t *)*record + RECORD_BYTES;

	*record = (struct cupti_record *)(void *)next;
	return next + RECORD_BYTES <= from + valid ? CUPTI_SUCCESS : 1;
}

static int none_dropped(void *of_context, uint32_t stream, size_t *dropped)
{
	(void)of_context;
	(void)stream;
	*dropped = 0;
	return CUPTI_SUCCESS;
}

static void *work(void *unused)
{
	for (unsigned i = 0;; i = (i + 1) % BUFFERS) {
		struct lump *lump = &lumps[i];

		sem_wait(&lump->is_full);
		if (lump->count == 0)
			return unused;
		cuda_emit_buffer_records(NULL, 0, lump->data, sizeof(lump->data),
					 lump->count * RECORD_BYTES);
		lump->count = 0;
		sem_post(&lump->is_free);
	}
}

/* ---- the program ---- */

static void use_memory(void)
{
	for (size_t i = 0; i < program_bytes; i += 64)
		program_memory[i]++;
}

static void fill(struct lump *lump, size_t place, uint32_t correlation)
{
	struct cupti_kernel *kernel = (void *)(lump->data + place * RECORD_BYTES);

	kernel->kind = CUPTI_KIND_CONCURRENT_KERNEL;
	kernel->correlation = correlation;
	kernel->start = sdk_clock_read_now_ns();
	kernel->end = kernel->start + 500;
	kernel->name = "kernel";
	for (unsigned i = 0; i < 3; i++)
		kernel->grid[i] = kernel->block[i] = 1;
}

/* Time stamps of the whole and of what is not kymo's are told apart. */
static void launch_all(double *ns_each)
{
	static const struct {
		const void *function;
		uint32_t grid[3], block[3], shared_bytes;
		const void *stream;
	} parameters = {"function", {1, 1, 1}, {1, 1, 1}, 0, NULL};
	uint64_t correlation_data = 0, ticks = 0, start, begun = __rdtsc(),
		 begun_ns = sdk_clock_read_now_ns();
	int result = 0;
	struct cupti_callback_data data = {.function_name = "cuLaunchKernel",
					   .parameters = &parameters,
					   .return_value = &result,
					   .symbol_name = "kernel",
					   .correlation_data = &correlation_data};
	unsigned at = 0;
	size_t place = 0;

	for (uint32_t i = 1; i <= launches; i++) {
		struct lump *lump = &lumps[at];

		if (place == 0)
			sem_wait(&lump->is_free);
		use_memory();
		data.correlation_id = i;
		data.site = CUPTI_SITE_ENTER;
		start = __rdtsc();
		cuda_handle_callback(NULL, CUPTI_DOMAIN_DRIVER, CUPTI_CALL_LAUNCH_KERNEL, &data);
		data.site = CUPTI_SITE_EXIT;
		cuda_handle_callback(NULL, CUPTI_DOMAIN_DRIVER, CUPTI_CALL_LAUNCH_KERNEL, &data);
		ticks += __rdtsc() - start;
		fill(lump, place++, i);
		if (place == RECORDS || i == launches) {
			lump->count = place;
			place = 0;
			sem_post(&lump->is_full);
			at = (at + 1) % BUFFERS;
		}
	}
	*ns_each = (double)ticks * (double)(sdk_clock_read_now_ns() - begun_ns) /
		   (double)(__rdtsc() - begun) / (double)launches;
	sem_wait(&lumps[at].is_free); /* with nothing in it: the end */
	sem_post(&lumps[at].is_full);
}

static void measure(void)
{
	pthread_t worker;
	double ns;

	cupti.ActivityGetNextRecord = next_record;
	cupti.ActivityGetNumDroppedRecords = none_dropped;
	if (!cuda_buffers_allocate() || rocprofiler_force_configure(configure) != 0)
		exit(1);
	for (unsigned i = 0; i < BUFFERS; i++) {
		sem_init(&lumps[i].is_free, 0, 1);
		sem_init(&lumps[i].is_full, 0, 0);
	}
	if (pthread_create(&worker, NULL, work, NULL) != 0)
		exit(1);
	launch_all(&ns);
	pthread_join(worker, NULL);
	rocprofiler_flush_buffer(buffer);
	printf("%-18s %7.1f ns a launch, two time stamps included; %llu records%s, %llu "
	       "unmatched\n",
	       names[what], ns, (unsigned long long)records,
	       records == launches * (what == KERNELS ? 1 : 2) ? "" : " (LOST)",
	       (unsigned long long)cuda_record_loss_counts.unmatched);
}

int main(int argc, char **argv)
{
	launches = argc > 1 ? (uint64_t)atoll(argv[1]) : 500000;
	program_bytes = (argc > 2 ? (size_t)atoll(argv[2]) : 64) << 10;
	program_memory = calloc(1, program_bytes + 1);
	if (program_memory == NULL || launches == 0)
		return 1;
	for (what = KERNELS; what < WHATS; what++) {
		pid_t child;

		fflush(stdout);
		child = fork();
		if (child == 0) {
			measure();
			return 0;
		}
		waitpid(child, NULL, 0);
	}
	return 0;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * CUPTI's activity records: what the device did and when. They come in buffers that we give (from a
 * list of free ones, since CUPTI asks on the program's threads too) on a thread of CUPTI's.
 *
 * CUPTI clears a buffer when it gets it, in the middle of somebody's launch, unless it is told that
 * buffers come cleared: ours do. What was used of one is cleared where its records are read, and
 * buffers are small, so that they stay in the caches of whoever fills them.
 */
#include <string.h>
#include <sys/mman.h>

#include "device/cuda/counting.h"

#define BUFFER_BYTES (1u << 20)
#define BUFFERS_MAX  256u

struct cuda_losses cuda_losses;
static uint8_t *_Atomic memory; /* of all buffers; pages come when they are touched */
static _Atomic uint32_t next_free[BUFFERS_MAX + 1];
static _Atomic uint64_t free_head; /* count << 32 | number of a buffer, from 1 */
static _Atomic uint32_t buffer_count;

/* Before the first is asked for. false: no memory. */
bool cuda_buffers_make(void)
{
	static const uint8_t are_clear = 1;
	size_t size = sizeof(are_clear);
	void *mapped = mmap(NULL, (size_t)BUFFERS_MAX * BUFFER_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (mapped == MAP_FAILED)
		return false;
	atomic_store(&memory, mapped);
	if (cupti.ActivitySetAttribute != NULL)
		cupti.ActivitySetAttribute(CUPTI_ATTRIBUTE_CLEAR_BUFFERS, &size, &are_clear);
	return true;
}

static uint8_t *take_buffer(void)
{
	uint64_t head = atomic_load(&free_head);
	uint32_t number;

	while ((uint32_t)head != 0) {
		number = (uint32_t)head;
		if (atomic_compare_exchange_weak(&free_head, &head,
						 ((head >> 32) + 1) << 32 |
							 atomic_load(&next_free[number])))
			return atomic_load(&memory) + (size_t)(number - 1) * BUFFER_BYTES;
	}
	number = atomic_load(&buffer_count);
	do {
		if (number == BUFFERS_MAX)
			return NULL;
	} while (!atomic_compare_exchange_weak(&buffer_count, &number, number + 1));
	return atomic_load(&memory) + (size_t)number * BUFFER_BYTES;
}

/* used: what of it is not zero any more. */
static void give_buffer(uint8_t *buffer, size_t used)
{
	size_t offset = (size_t)(buffer - atomic_load(&memory));
	uint32_t number = (uint32_t)(offset / BUFFER_BYTES) + 1;
	uint64_t head;

	if (offset >= (size_t)BUFFERS_MAX * BUFFER_BYTES)
		return;
	memset(buffer, 0, used < BUFFER_BYTES ? used : BUFFER_BYTES);
	head = atomic_load(&free_head);
	do {
		atomic_store(&next_free[number], (uint32_t)head);
	} while (!atomic_compare_exchange_weak(&free_head, &head,
					       ((head >> 32) + 1) << 32 | number));
}

/* Without a buffer CUPTI drops records, and counts them. */
void cuda_request(uint8_t **buffer, size_t *size, size_t *records_max)
{
	*buffer = take_buffer();
	*size = *buffer != NULL ? BUFFER_BYTES : 0;
	*records_max = 0;
}

uint64_t cuda_queue(uint32_t context, uint32_t stream)
{
	return (uint64_t)context << 32 | stream;
}

static void tell_kernel(const struct device_sink *sink, const struct cupti_kernel *record)
{
	struct device_kernel ran = {
		.agent = cuda_agent(record->device),
		.symbol = cuda_symbol_of_name(record->name),
		.queue = cuda_queue(record->context, record->stream),
		.private_bytes = record->local_per_thread,
		.group_bytes = (uint32_t)(record->static_shared + record->dynamic_shared)};
	bool is_of_graph = record->graph != 0;
	struct cuda_launch launch = cuda_launch_get(record->correlation, is_of_graph);

	for (unsigned i = 0; i < 3; i++) {
		ran.group[i] = (uint32_t)record->block[i];
		ran.grid[i] = (uint32_t)record->grid[i] * (uint32_t)record->block[i];
	}
	if (launch.kind == CUDA_LAUNCH_COUNTED) {
		cuda_counted_ran(launch.handle, &ran, cuda_time(record->start),
				 cuda_time(record->end));
		return;
	}
	/* CUPTI's own, when it begins to count. */
	if (launch.kind == CUDA_LAUNCH_NONE && record->name != NULL &&
	    strcmp(record->name, "WaitNs") == 0)
		return;
	if (record->start == 0 || record->end == 0)
		cuda_losses.incomplete++;
	if (launch.kind == CUDA_LAUNCH_KERNEL) {
		sink->kernel_complete(launch.handle, &ran, cuda_time(record->start),
				      cuda_time(record->end));
		return;
	}
	if (launch.kind == CUDA_LAUNCH_NONE && !cuda_without_launches())
		cuda_losses.unmatched++;
	sink->kernel_record(launch.handle, &ran, cuda_time(record->start), cuda_time(record->end));
}

static void tell_graph(const struct device_sink *sink, const struct cupti_graph *record)
{
	struct device_kernel ran = {.agent = cuda_agent(record->device),
				    .symbol = cuda_symbol_of_graph(record->graph),
				    .queue = cuda_queue(record->context, record->stream),
				    .group = {1, 1, 1},
				    .grid = {1, 1, 1}};
	struct cuda_launch launch = cuda_launch_get(record->correlation, true);
	uint64_t start = cuda_time(record->start), end = cuda_time(record->end);

	/* While kernels are counted a graph is one of them. */
	if (launch.kind == CUDA_LAUNCH_COUNTED || launch.kind == CUDA_LAUNCH_KERNEL) {
		launch = cuda_launch_get(record->correlation, false);
		if (launch.kind == CUDA_LAUNCH_COUNTED)
			cuda_counted_ran(launch.handle, &ran, start, end);
		else if (launch.kind == CUDA_LAUNCH_KERNEL)
			sink->kernel_complete(launch.handle, &ran, start, end);
		return;
	}
	if (launch.kind == CUDA_LAUNCH_NONE && !cuda_without_launches())
		cuda_losses.unmatched++;
	sink->kernel_record(launch.handle, &ran, start, end);
}

static enum device_copy_direction direction_of(uint8_t kind)
{
	switch (kind) {
	case CUPTI_COPY_HOST_TO_DEVICE:
	case CUPTI_COPY_HOST_TO_ARRAY:
		return DEVICE_COPY_HOST_TO_DEVICE;
	case CUPTI_COPY_DEVICE_TO_HOST:
	case CUPTI_COPY_ARRAY_TO_HOST:
		return DEVICE_COPY_DEVICE_TO_HOST;
	case CUPTI_COPY_HOST_TO_HOST:
		return DEVICE_COPY_HOST_TO_HOST;
	case CUPTI_COPY_ARRAY_TO_ARRAY:
	case CUPTI_COPY_ARRAY_TO_DEVICE:
	case CUPTI_COPY_DEVICE_TO_ARRAY:
	case CUPTI_COPY_DEVICE_TO_DEVICE:
	case CUPTI_COPY_PEER:
		return DEVICE_COPY_DEVICE_TO_DEVICE;
	default:
		return DEVICE_COPY_OTHER;
	}
}

static void tell_copy(const struct device_sink *sink, uint32_t correlation,
		      const struct device_copy *copy, uint64_t start, uint64_t end)
{
	struct cuda_launch launch = cuda_launch_get(correlation, true);

	if (launch.kind == CUDA_LAUNCH_NONE && !cuda_without_launches())
		cuda_losses.unmatched++;
	sink->copy_record(launch.kind == CUDA_LAUNCH_OTHER ? launch.handle : DEVICE_NONE, copy,
			  start, end);
}

static void tell_memcpy(const struct device_sink *sink, const struct cupti_memcpy *record)
{
	enum device_copy_direction direction = direction_of(record->copy_kind);
	device_handle device = cuda_agent(record->device), host = sink->host_agent();
	bool from_host =
		direction == DEVICE_COPY_HOST_TO_DEVICE || direction == DEVICE_COPY_HOST_TO_HOST;
	bool to_host =
		direction == DEVICE_COPY_DEVICE_TO_HOST || direction == DEVICE_COPY_HOST_TO_HOST;
	struct device_copy copy = {.direction = direction,
				   .from = from_host ? host : device,
				   .to = to_host ? host : device,
				   .queue = cuda_queue(record->context, record->stream),
				   .bytes = record->bytes};

	tell_copy(sink, record->correlation, &copy, cuda_time(record->start),
		  cuda_time(record->end));
}

static void tell_peer(const struct device_sink *sink, const struct cupti_memcpy_peer *record)
{
	struct device_copy copy = {.direction = DEVICE_COPY_DEVICE_TO_DEVICE,
				   .from = cuda_agent(record->from_device),
				   .to = cuda_agent(record->to_device),
				   .queue = cuda_queue(record->context, record->stream),
				   .bytes = record->bytes};

	tell_copy(sink, record->correlation, &copy, cuda_time(record->start),
		  cuda_time(record->end));
}

/* What is filled of an array has no address, and no number of bytes either. */
static void tell_fill(const struct device_sink *sink, const struct cupti_memset *record)
{
	device_handle device = cuda_agent(record->device);
	struct device_copy fill = {.direction = DEVICE_COPY_FILL,
				   .from = device,
				   .to = device,
				   .queue = cuda_queue(record->context, record->stream),
				   .bytes = record->bytes};

	tell_copy(sink, record->correlation, &fill, cuda_time(record->start),
		  cuda_time(record->end));
}

static void tell_memory(const struct device_sink *sink, const struct cupti_memory *record)
{
	struct device_allocation told = {.operation = record->operation == CUPTI_MEMORY_ALLOCATION
							      ? DEVICE_ALLOCATE
							      : DEVICE_FREE,
					 .agent = cuda_agent(record->device),
					 .address = record->address,
					 .bytes = record->bytes,
					 .start = record->timestamp,
					 .end = record->timestamp};

	sink->allocation(&told);
}

static void tell_record(const struct device_sink *sink, const void *record, uint32_t kind)
{
	switch (kind) {
	case CUPTI_KIND_CONCURRENT_KERNEL:
		tell_kernel(sink, record);
		break;
	case CUPTI_KIND_GRAPH_TRACE:
		tell_graph(sink, record);
		break;
	case CUPTI_KIND_MEMCPY:
		tell_memcpy(sink, record);
		break;
	case CUPTI_KIND_MEMCPY_PEER:
		tell_peer(sink, record);
		break;
	case CUPTI_KIND_MEMORY:
		tell_memory(sink, record);
		break;
	case CUPTI_KIND_MEMSET:
		tell_fill(sink, record);
		break;
	default:
		break;
	}
}

void cuda_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
	const struct device_sink *sink = device_sink();
	struct cupti_record *record = NULL;
	bool outer = cuda_inside;
	size_t dropped = 0;

	(void)size;
	if (buffer == NULL)
		return;
	cuda_inside = true;
	while (sink != NULL && valid != 0 &&
	       cupti.ActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
		tell_record(sink, record, record->kind);
	if (cupti.ActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS)
		cuda_losses.dropped += dropped;
	give_buffer(buffer, valid);
	cuda_inside = outer;
}

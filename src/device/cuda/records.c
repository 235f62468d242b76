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

#include "common/array.h"
#include "device/cuda/counting.h"

#define BUFFER_BYTES (1u << 20)
#define BUFFERS_MAX  256u

struct cuda_record_loss_counts cuda_record_loss_counts;
static uint8_t *_Atomic buffers_memory; /* of all buffers; pages come when they are touched */
static _Atomic uint32_t next_free_buffer_numbers[BUFFERS_MAX + 1];
static _Atomic uint64_t free_buffers_head; /* count << 32 | number of a buffer, from 1 */
static _Atomic uint32_t used_buffer_count;

/* Before the first is asked for. false: no memory. */
bool cuda_buffers_allocate(void)
{
	static const uint8_t are_clear = 1;
	size_t size = sizeof(are_clear);
	void *mapped = mmap(NULL, (size_t)BUFFERS_MAX * BUFFER_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (mapped == MAP_FAILED)
		return false;
	atomic_store(&buffers_memory, mapped);
	if (cupti.ActivitySetAttribute != NULL)
		cupti.ActivitySetAttribute(CUPTI_ATTRIBUTE_ZEROED_OUT_BUFFER, &size, &are_clear);
	return true;
}

static uint8_t *pop_free_or_new_buffer(void)
{
	uint64_t head = atomic_load(&free_buffers_head);
	uint32_t number;

	while ((uint32_t)head != 0) {
		number = (uint32_t)head;
		if (atomic_compare_exchange_weak(
			    &free_buffers_head, &head,
			    ((head >> 32) + 1) << 32 |
				    atomic_load(&next_free_buffer_numbers[number])))
			return atomic_load(&buffers_memory) + (size_t)(number - 1) * BUFFER_BYTES;
	}
	number = atomic_load(&used_buffer_count);
	do {
		if (number == BUFFERS_MAX)
			return NULL;
	} while (!atomic_compare_exchange_weak(&used_buffer_count, &number, number + 1));
	return atomic_load(&buffers_memory) + (size_t)number * BUFFER_BYTES;
}

/* used: what of it is not zero any more. */
static void clear_and_free_buffer(uint8_t *buffer, size_t used)
{
	size_t offset = (size_t)(buffer - atomic_load(&buffers_memory));
	uint32_t number = (uint32_t)(offset / BUFFER_BYTES) + 1;
	uint64_t head;

	if (offset >= (size_t)BUFFERS_MAX * BUFFER_BYTES)
		return;
	memset(buffer, 0, used < BUFFER_BYTES ? used : BUFFER_BYTES);
	head = atomic_load(&free_buffers_head);
	do {
		atomic_store(&next_free_buffer_numbers[number], (uint32_t)head);
	} while (!atomic_compare_exchange_weak(&free_buffers_head, &head,
					       ((head >> 32) + 1) << 32 | number));
}

/* Without a buffer CUPTI drops records, and counts them. */
void cuda_provide_buffer(uint8_t **buffer, size_t *size, size_t *records_max)
{
	*buffer = pop_free_or_new_buffer();
	*size = *buffer != NULL ? BUFFER_BYTES : 0;
	*records_max = 0;
}

uint64_t cuda_make_queue_id(uint32_t context, uint32_t stream)
{
	return (uint64_t)context << 32 | stream;
}

static void emit_kernel(const struct device_sink *sink, const void *data)
{
	const struct cupti_kernel *record = data;
	struct device_kernel_launch ran = {
		.agent = cuda_find_agent_by_ordinal(record->device),
		.symbol = cuda_symbol_find_or_add_by_name(record->name),
		.queue = cuda_make_queue_id(record->context, record->stream),
		.private_bytes = record->local_per_thread,
		.group_bytes = (uint32_t)(record->static_shared + record->dynamic_shared)};
	bool is_of_graph = record->graph != 0;
	struct cuda_pending_launch launch =
		cuda_launch_find_and_maybe_remove(record->correlation, is_of_graph);

	for (unsigned i = 0; i < 3; i++) {
		ran.group_threads[i] = (uint32_t)record->block[i];
		ran.grid_threads[i] = (uint32_t)record->grid[i] * (uint32_t)record->block[i];
	}
	if (launch.kind == CUDA_LAUNCH_COUNTED) {
		cuda_profiled_kernel_add_record(launch.handle, &ran,
						cuda_convert_record_time(record->start),
						cuda_convert_record_time(record->end));
		return;
	}
	/* CUPTI's own, when it begins to count. */
	if (launch.kind == CUDA_LAUNCH_NONE && record->name != NULL &&
	    strcmp(record->name, "WaitNs") == 0)
		return;
	if (record->start == 0 || record->end == 0)
		cuda_record_loss_counts.incomplete++;
	if (launch.kind == CUDA_LAUNCH_KERNEL) {
		sink->kernel_complete(launch.handle, &ran, cuda_convert_record_time(record->start),
				      cuda_convert_record_time(record->end));
		return;
	}
	if (launch.kind == CUDA_LAUNCH_NONE && !cuda_is_ignoring_launches())
		cuda_record_loss_counts.unmatched++;
	sink->kernel_record(launch.handle, &ran, cuda_convert_record_time(record->start),
			    cuda_convert_record_time(record->end));
}

static void emit_graph_launch(const struct device_sink *sink, const void *data)
{
	const struct cupti_graph *record = data;
	struct device_kernel_launch ran = {
		.agent = cuda_find_agent_by_ordinal(record->device),
		.symbol = cuda_symbol_find_or_add_by_graph(record->graph),
		.queue = cuda_make_queue_id(record->context, record->stream),
		.group_threads = {1, 1, 1},
		.grid_threads = {1, 1, 1}};
	struct cuda_pending_launch launch =
		cuda_launch_find_and_maybe_remove(record->correlation, true);
	uint64_t start = cuda_convert_record_time(record->start),
		 end = cuda_convert_record_time(record->end);

	/* While kernels are counted a graph is one of them. */
	if (launch.kind == CUDA_LAUNCH_COUNTED || launch.kind == CUDA_LAUNCH_KERNEL) {
		launch = cuda_launch_find_and_maybe_remove(record->correlation, false);
		if (launch.kind == CUDA_LAUNCH_COUNTED)
			cuda_profiled_kernel_add_record(launch.handle, &ran, start, end);
		else if (launch.kind == CUDA_LAUNCH_KERNEL)
			sink->kernel_complete(launch.handle, &ran, start, end);
		return;
	}
	if (launch.kind == CUDA_LAUNCH_NONE && !cuda_is_ignoring_launches())
		cuda_record_loss_counts.unmatched++;
	sink->kernel_record(launch.handle, &ran, start, end);
}

static enum device_copy_direction copy_kind_to_direction(uint8_t kind)
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

static void emit_copy(const struct device_sink *sink, uint32_t correlation,
		      const struct device_copy *copy, uint64_t start, uint64_t end)
{
	struct cuda_pending_launch launch = cuda_launch_find_and_maybe_remove(correlation, true);

	if (launch.kind == CUDA_LAUNCH_NONE && !cuda_is_ignoring_launches())
		cuda_record_loss_counts.unmatched++;
	sink->copy_record(launch.kind == CUDA_LAUNCH_OTHER ? launch.handle : DEVICE_HANDLE_NONE,
			  copy, start, end);
}

static void emit_memcpy(const struct device_sink *sink, const void *data)
{
	const struct cupti_memcpy *record = data;
	enum device_copy_direction direction = copy_kind_to_direction(record->copy_kind);
	device_handle device = cuda_find_agent_by_ordinal(record->device),
		      host = sink->get_host_agent();
	bool from_host =
		direction == DEVICE_COPY_HOST_TO_DEVICE || direction == DEVICE_COPY_HOST_TO_HOST;
	bool to_host =
		direction == DEVICE_COPY_DEVICE_TO_HOST || direction == DEVICE_COPY_HOST_TO_HOST;
	struct device_copy copy = {.direction = direction,
				   .from = from_host ? host : device,
				   .to = to_host ? host : device,
				   .queue = cuda_make_queue_id(record->context, record->stream),
				   .bytes = record->bytes};

	emit_copy(sink, record->correlation, &copy, cuda_convert_record_time(record->start),
		  cuda_convert_record_time(record->end));
}

static void emit_peer_copy(const struct device_sink *sink, const void *data)
{
	const struct cupti_memcpy_peer *record = data;
	struct device_copy copy = {.direction = DEVICE_COPY_DEVICE_TO_DEVICE,
				   .from = cuda_find_agent_by_ordinal(record->from_device),
				   .to = cuda_find_agent_by_ordinal(record->to_device),
				   .queue = cuda_make_queue_id(record->context, record->stream),
				   .bytes = record->bytes};

	emit_copy(sink, record->correlation, &copy, cuda_convert_record_time(record->start),
		  cuda_convert_record_time(record->end));
}

/* What is filled of an array has no address, and no number of bytes either. */
static void emit_memset(const struct device_sink *sink, const void *data)
{
	const struct cupti_memset *record = data;
	device_handle device = cuda_find_agent_by_ordinal(record->device);
	struct device_copy fill = {.direction = DEVICE_COPY_FILL,
				   .from = device,
				   .to = device,
				   .queue = cuda_make_queue_id(record->context, record->stream),
				   .bytes = record->bytes};

	emit_copy(sink, record->correlation, &fill, cuda_convert_record_time(record->start),
		  cuda_convert_record_time(record->end));
}

static void emit_allocation(const struct device_sink *sink, const void *data)
{
	const struct cupti_memory *record = data;
	struct device_allocation told = {.operation = record->operation == CUPTI_MEMORY_ALLOCATION
							      ? DEVICE_ALLOCATE
							      : DEVICE_FREE,
					 .agent = cuda_find_agent_by_ordinal(record->device),
					 .address = record->address,
					 .bytes = record->bytes,
					 .start = record->timestamp,
					 .end = record->timestamp};

	sink->allocation_event(&told);
}

const struct cuda_activity_kind_entry cuda_activity_kind_table[] = {
	{CUPTI_KIND_CONCURRENT_KERNEL, DEVICE_SERVICE_KERNELS, emit_kernel},
	{CUPTI_KIND_GRAPH_TRACE, DEVICE_SERVICE_KERNELS, emit_graph_launch},
	{CUPTI_KIND_MEMCPY, DEVICE_SERVICE_COPIES, emit_memcpy},
	{CUPTI_KIND_MEMCPY_PEER, DEVICE_SERVICE_COPIES, emit_peer_copy},
	{CUPTI_KIND_MEMSET, DEVICE_SERVICE_COPIES, emit_memset},
	{CUPTI_KIND_MEMORY, DEVICE_SERVICE_ALLOCATIONS, emit_allocation},
};
const size_t cuda_activity_count = ARRAY_SIZE(cuda_activity_kind_table);

static void emit_record(const struct device_sink *sink, const void *record, uint32_t kind)
{
	for (size_t i = 0; i < cuda_activity_count; i++) {
		if (cuda_activity_kind_table[i].kind == kind) {
			cuda_activity_kind_table[i].emit(sink, record);
			return;
		}
	}
}

void cuda_emit_buffer_records(void *context, uint32_t stream, uint8_t *buffer, size_t size,
			      size_t valid)
{
	const struct device_sink *sink = device_get_sink();
	struct cupti_record *record = NULL;
	bool outer = cuda_thread_in_callback_flag;
	size_t dropped = 0;

	(void)size;
	if (buffer == NULL)
		return;
	cuda_thread_in_callback_flag = true;
	while (sink != NULL && valid != 0 &&
	       cupti.ActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
		emit_record(sink, record, record->kind);
	if (cupti.ActivityGetNumDroppedRecords(context, stream, &dropped) == CUPTI_SUCCESS)
		cuda_record_loss_counts.dropped += dropped;
	clear_and_free_buffer(buffer, valid);
	cuda_thread_in_callback_flag = outer;
}

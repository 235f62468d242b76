/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See work.h. No external id is asked for, nothing is called back, counted or retired: the record
 * is made at the end from what fits into two cache lines.
 */
#include "common/hot.h"
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/correlation.h"
#include "libkymo-sdk/external.h"
#include "libkymo-sdk/work.h"

struct sdk_fast_dispatch {
	struct sdk_work_header head;
	uint8_t context;
	uint32_t thread_id;
	uint64_t correlation_id, dispatch_id, begun_ns;
	rocprofiler_user_data_t external_id;
	uint64_t agent, queue, kernel;
	uint32_t private_segment_bytes, group_segment_bytes;
	uint32_t workgroup_size[3], grid_size[3];
};
_Static_assert(sizeof(struct sdk_fast_dispatch) <= 128, "two cache lines");

/* -1: the kernel is not plain. */
static int find_fast_dispatch_context_bit(void)
{
	uint64_t active = sdk_contexts_get_active_bits();
	uint64_t wanted = active & sdk_domain_get_buffer_context_bits(SDK_DOMAIN_DISPATCH);
	const struct sdk_context *context;

	if (!wanted || (wanted & (wanted - 1)) || sdk_contexts_get_counting_bits() ||
	    (active & (sdk_domain_get_callback_context_bits(SDK_DOMAIN_DISPATCH) |
		       sdk_domain_get_buffer_context_bits(SDK_DOMAIN_RETIREMENT))))
		return -1;
	context = sdk_context_get_by_bit((unsigned)__builtin_ctzll(wanted));
	if (!context->buffer_services[SDK_DOMAIN_DISPATCH] ||
	    !sdk_operation_is_in_set(context->buffer_services[SDK_DOMAIN_DISPATCH]->operations,
				     ROCPROFILER_KERNEL_DISPATCH_COMPLETE) ||
	    atomic_load_explicit(&context->external_id_request_service, memory_order_relaxed))
		return -1;
	return __builtin_ctzll(wanted);
}

static void fast_dispatch_store_info(struct sdk_fast_dispatch *plain,
				     const rocprofiler_kernel_dispatch_info_t *info)
{
	plain->agent = info->agent_id.handle;
	plain->queue = info->queue_id.handle;
	plain->kernel = info->kernel_id;
	plain->private_segment_bytes = info->private_segment_size;
	plain->group_segment_bytes = info->group_segment_size;
	plain->workgroup_size[0] = info->workgroup_size.x;
	plain->workgroup_size[1] = info->workgroup_size.y;
	plain->workgroup_size[2] = info->workgroup_size.z;
	plain->grid_size[0] = info->grid_size.x;
	plain->grid_size[1] = info->grid_size.y;
	plain->grid_size[2] = info->grid_size.z;
}

static rocprofiler_kernel_dispatch_info_t
fast_dispatch_to_dispatch_info(const struct sdk_fast_dispatch *plain)
{
	return (rocprofiler_kernel_dispatch_info_t){
		.agent_id = {plain->agent},
		.queue_id = {plain->queue},
		.kernel_id = plain->kernel,
		.private_segment_size = plain->private_segment_bytes,
		.group_segment_size = plain->group_segment_bytes,
		.workgroup_size = {plain->workgroup_size[0], plain->workgroup_size[1],
				   plain->workgroup_size[2]},
		.grid_size = {plain->grid_size[0], plain->grid_size[1], plain->grid_size[2]},
	};
}

static struct sdk_fast_dispatch *fast_dispatch_allocate(struct sdk_thread_state *thread)
{
	struct sdk_fast_dispatch *plain =
		sdk_object_pool_take(&thread->fast_dispatch_pool, sizeof(*plain));

	if (plain)
		plain->head.is_fast_dispatch = true;
	return plain;
}

KYMO_HOT struct sdk_device_work *
sdk_fast_dispatch_begin_if_possible(struct sdk_thread_state *thread,
				    rocprofiler_kernel_dispatch_info_t *info)
{
	int context = find_fast_dispatch_context_bit();
	struct sdk_fast_dispatch *plain = context < 0 ? NULL : fast_dispatch_allocate(thread);

	if (!plain)
		return NULL;
	info->dispatch_id = sdk_dispatch_allocate_id(thread);
	plain->context = (uint8_t)context;
	plain->thread_id = (uint32_t)thread->tid;
	plain->correlation_id =
		thread->call ? thread->call->id : sdk_correlation_allocate_id(thread);
	plain->dispatch_id = info->dispatch_id;
	plain->begun_ns = sdk_thread_get_new_work_begin_ns(thread, false);
	if (!sdk_launch_id_fill(sdk_context_get_by_bit((unsigned)context), &plain->external_id))
		plain->external_id = sdk_external_id_get_stack_top(
			thread, sdk_context_get_by_bit((unsigned)context));
	fast_dispatch_store_info(plain, info);
	sdk_work_increment_thread_counter(&thread->work_begun_count);
	return (struct sdk_device_work *)plain;
}

static void fast_dispatch_return_to_pool(struct sdk_fast_dispatch *plain,
					 struct sdk_thread_state *thread)
{
	if (thread)
		sdk_work_increment_thread_counter(&thread->work_ended_count);
	sdk_object_pool_return(plain, thread ? &thread->fast_dispatch_pool : NULL);
}

void sdk_fast_dispatch_cancel(struct sdk_fast_dispatch *plain)
{
	fast_dispatch_return_to_pool(plain, sdk_thread_get_or_create_own_state());
}

static void fast_dispatch_append_record(const struct sdk_fast_dispatch *plain,
					const rocprofiler_kernel_dispatch_info_t *info,
					uint64_t start, uint64_t end)
{
	struct sdk_buffer_tracing_service *service =
		sdk_context_get_by_bit(plain->context)->buffer_services[SDK_DOMAIN_DISPATCH];
	rocprofiler_buffer_tracing_kernel_dispatch_record_t record = {
		.size = sizeof(record),
		.kind = ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH,
		.operation = ROCPROFILER_KERNEL_DISPATCH_COMPLETE,
		.correlation_id = {.internal = plain->correlation_id,
				   .external = plain->external_id},
		.thread_id = plain->thread_id,
		.start_timestamp = start,
		.end_timestamp = end,
	};

	sdk_dispatch_copy_info_with_id(&record.dispatch_info, info, plain->dispatch_id);
	sdk_buffer_append_tracing_record(service->buffer, record.kind, &record, sizeof(record),
					 sdk_clock_read_now_ns());
}

void sdk_fast_dispatch_report_complete(struct sdk_fast_dispatch *plain,
				       const rocprofiler_kernel_dispatch_info_t *info,
				       uint64_t start, uint64_t end)
{
	rocprofiler_kernel_dispatch_info_t kept;
	bool busy;
	struct sdk_thread_state *thread = sdk_thread_get_own_and_set_busy(&busy);

	if (!thread)
		return;
	if (!info) {
		kept = fast_dispatch_to_dispatch_info(plain);
		info = &kept;
	}
	sdk_clamp_device_times_to_begin(plain->begun_ns, &start, &end);
	fast_dispatch_append_record(plain, info, start, end);
	fast_dispatch_return_to_pool(plain, thread);
	thread->busy = busy;
}

struct sdk_device_work *sdk_fast_dispatch_copy_with_new_id(struct sdk_fast_dispatch *plain)
{
	bool busy;
	struct sdk_thread_state *thread = sdk_thread_get_own_and_set_busy(&busy);
	struct sdk_fast_dispatch *again = thread ? fast_dispatch_allocate(thread) : NULL;

	if (again) {
		struct sdk_work_header head = again->head;

		*again = *plain;
		again->head = head;
		again->dispatch_id = sdk_dispatch_allocate_id(thread);
		sdk_work_increment_thread_counter(&thread->work_begun_count);
	}
	if (thread)
		thread->busy = busy;
	return (struct sdk_device_work *)again;
}

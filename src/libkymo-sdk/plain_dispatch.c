/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See work.h. No external id is asked for, nothing is called back, counted or retired: the record
 * is made at the end from what fits into two cache lines.
 */
#include "common/hot.h"
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/correlation.h"
#include "libkymo-sdk/counters/counters.h"
#include "libkymo-sdk/external.h"
#include "libkymo-sdk/work.h"

struct sdk_plain {
	struct sdk_work_head head;
	uint8_t context;
	uint32_t thread_id;
	uint64_t id, dispatch_id, begun;
	rocprofiler_user_data_t external;
	uint64_t agent, queue, kernel;
	uint32_t private_size, group_size;
	uint32_t workgroup[3], grid[3];
};
_Static_assert(sizeof(struct sdk_plain) <= 128, "two cache lines");

/* -1: the kernel is not plain. */
static int plain_context(void)
{
	uint64_t active = sdk_active_contexts();
	uint64_t wanted = active & sdk_with_buffers(SDK_DOMAIN_DISPATCH);
	const struct sdk_context *context;

	if (!wanted || (wanted & (wanted - 1)) || sdk_counting_contexts() ||
	    (active &
	     (sdk_with_callbacks(SDK_DOMAIN_DISPATCH) | sdk_with_buffers(SDK_DOMAIN_RETIREMENT))))
		return -1;
	context = sdk_context_at((unsigned)__builtin_ctzll(wanted));
	if (!context->buffers[SDK_DOMAIN_DISPATCH] ||
	    !sdk_operation_is_in(context->buffers[SDK_DOMAIN_DISPATCH]->operations,
				 ROCPROFILER_KERNEL_DISPATCH_COMPLETE) ||
	    atomic_load_explicit(&context->request, memory_order_relaxed))
		return -1;
	return __builtin_ctzll(wanted);
}

static void plain_keep(struct sdk_plain *plain, const rocprofiler_kernel_dispatch_info_t *info)
{
	plain->agent = info->agent_id.handle;
	plain->queue = info->queue_id.handle;
	plain->kernel = info->kernel_id;
	plain->private_size = info->private_segment_size;
	plain->group_size = info->group_segment_size;
	plain->workgroup[0] = info->workgroup_size.x;
	plain->workgroup[1] = info->workgroup_size.y;
	plain->workgroup[2] = info->workgroup_size.z;
	plain->grid[0] = info->grid_size.x;
	plain->grid[1] = info->grid_size.y;
	plain->grid[2] = info->grid_size.z;
}

static rocprofiler_kernel_dispatch_info_t plain_info(const struct sdk_plain *plain)
{
	return (rocprofiler_kernel_dispatch_info_t){
		.agent_id = {plain->agent},
		.queue_id = {plain->queue},
		.kernel_id = plain->kernel,
		.private_segment_size = plain->private_size,
		.group_segment_size = plain->group_size,
		.workgroup_size = {plain->workgroup[0], plain->workgroup[1], plain->workgroup[2]},
		.grid_size = {plain->grid[0], plain->grid[1], plain->grid[2]},
	};
}

static struct sdk_plain *plain_take(struct sdk_thread *thread)
{
	struct sdk_plain *plain = sdk_pool_take(&thread->plain_works, sizeof(*plain));

	if (plain)
		plain->head.is_plain = true;
	return plain;
}

KYMO_HOT struct sdk_work *sdk_plain_begin(struct sdk_thread *thread,
					  rocprofiler_kernel_dispatch_info_t *info)
{
	int context = plain_context();
	struct sdk_plain *plain = context < 0 ? NULL : plain_take(thread);

	if (!plain)
		return NULL;
	info->dispatch_id = sdk_dispatch_next(thread);
	plain->context = (uint8_t)context;
	plain->thread_id = (uint32_t)thread->tid;
	plain->id = thread->call ? thread->call->id : sdk_correlation_next(thread);
	plain->dispatch_id = info->dispatch_id;
	plain->begun = sdk_work_begins(thread, false);
	plain->external = sdk_external_top(thread, sdk_context_at((unsigned)context));
	plain_keep(plain, info);
	sdk_work_count(&thread->work_begun);
	return (struct sdk_work *)plain;
}

static void plain_give(struct sdk_plain *plain, struct sdk_thread *thread)
{
	if (thread)
		sdk_work_count(&thread->work_ended);
	sdk_pool_give(plain, thread ? &thread->plain_works : NULL);
}

void sdk_plain_failed(struct sdk_plain *plain)
{
	plain_give(plain, sdk_thread_self());
}

static void plain_put(const struct sdk_plain *plain, const rocprofiler_kernel_dispatch_info_t *info,
		      uint64_t start, uint64_t end)
{
	struct sdk_buffer_service *service =
		sdk_context_at(plain->context)->buffers[SDK_DOMAIN_DISPATCH];
	rocprofiler_buffer_tracing_kernel_dispatch_record_t record = {
		.size = sizeof(record),
		.kind = ROCPROFILER_BUFFER_TRACING_KERNEL_DISPATCH,
		.operation = ROCPROFILER_KERNEL_DISPATCH_COMPLETE,
		.correlation_id = {.internal = plain->id, .external = plain->external},
		.thread_id = plain->thread_id,
		.start_timestamp = start,
		.end_timestamp = end,
	};

	sdk_dispatch_set(&record.dispatch_info, info, plain->dispatch_id);
	sdk_buffer_put_tracing(service->buffer, record.kind, &record, sizeof(record), sdk_now());
}

void sdk_plain_complete(struct sdk_plain *plain, const rocprofiler_kernel_dispatch_info_t *info,
			uint64_t start, uint64_t end)
{
	rocprofiler_kernel_dispatch_info_t kept;
	bool busy;
	struct sdk_thread *thread = sdk_work_end_begin(&busy);

	if (!thread)
		return;
	if (!info) {
		kept = plain_info(plain);
		info = &kept;
	}
	sdk_work_order(plain->begun, &start, &end);
	plain_put(plain, info, start, end);
	plain_give(plain, thread);
	thread->busy = busy;
}

struct sdk_work *sdk_plain_again(struct sdk_plain *plain)
{
	bool busy;
	struct sdk_thread *thread = sdk_work_end_begin(&busy);
	struct sdk_plain *again = thread ? plain_take(thread) : NULL;

	if (again) {
		struct sdk_work_head head = again->head;

		*again = *plain;
		again->head = head;
		again->dispatch_id = sdk_dispatch_next(thread);
		sdk_work_count(&thread->work_begun);
	}
	if (thread)
		thread->busy = busy;
	return (struct sdk_work *)again;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * One operation as outputs want it: how long it took by the best there is, and when that was.
 */
#include "analysis/nccl/private.h"

uint64_t nccl_ticks_to_host_time(struct nccl_process *process, uint64_t ticks)
{
	return clock_map_ticks_to_boottime(&process->clock, ticks);
}

uint64_t nccl_host_time_to_common_time(const struct nccl_data *data, uint32_t host,
				       uint64_t time_ns)
{
	struct nccl_host_clock_offset offset =
		nccl_align_get_offset_at_time(&data->clock_alignment, host, time_ns);
	int64_t time;

	if (__builtin_add_overflow((int64_t)time_ns, offset.offset_to_host0_ns, &time))
		return time_ns;
	return time > 0 ? (uint64_t)time : 1;
}

uint64_t nccl_ticks_to_common_time(struct nccl_data *data, uint32_t process, uint64_t ticks)
{
	return nccl_host_time_to_common_time(
		data, data->processes[process].host,
		nccl_ticks_to_host_time(&data->processes[process], ticks));
}

uint64_t nccl_gpu_stamp_to_gpu_ns(const struct nccl_data *data,
				  const struct nccl_communicator_rank *member, uint64_t gpu)
{
	const struct nccl_file_header *header = &data->processes[member->process].file.header;
	double ns;

	if (header->gpu_clock != NCCL_GPU_CLOCK_TICKS || !header->gpu_clock_hz)
		return gpu;
	ns = (double)gpu * (1e9 / (double)header->gpu_clock_hz);
	return ns < (double)INT64_MAX ? (uint64_t)ns : INT64_MAX;
}

bool nccl_gpu_stamp_to_common_time(const struct nccl_data *data,
				   const struct nccl_communicator_rank *member, uint64_t gpu,
				   struct nccl_gpu_time_on_host *ret)
{
	if (!nccl_gpu_clock_to_host_time(&member->gpu_clock,
					 nccl_gpu_stamp_to_gpu_ns(data, member, gpu), ret))
		return false;
	ret->time_ns = nccl_host_time_to_common_time(data, data->processes[member->process].host,
						     ret->time_ns);
	return true;
}

/* Where nothing of an operation was seen to run, that says something only if its kernel would have
 * been seen. */
static bool operation_run_cannot_be_observed(const struct nccl_operation *operation, uint32_t mask)
{
	if (!operation->stop || operation->channels_started || operation->networks_started)
		return false;
	return !(mask & NCCL_KIND_MASK(NCCL_KIND_KERNEL_CHANNEL)) ||
	       operation->kind == NCCL_KIND_CE_COLLECTIVE ||
	       (operation->flags & (NCCL_OPERATION_GRAPH | NCCL_OPERATION_ENQUEUE_ONLY));
}

static bool operation_is_waiting(const struct nccl_operation *operation, uint32_t mask)
{
	if (operation->state == NCCL_OPERATION_DONE ||
	    operation_run_cannot_be_observed(operation, mask))
		return false;
	/* The process may have ended before its own thread looked at the operation again. */
	return !nccl_operation_is_quiet(operation);
}

/* Its events were not recorded, and it is over, for its communicator is, or its process has exited:
 * that nothing of it is seen says nothing. */
static bool operation_ended_unseen(const struct nccl_operation *operation,
				   const struct nccl_communicator_rank *member,
				   const struct nccl_process *process)
{
	return operation->flags & NCCL_OPERATION_LOST_CHILD &&
	       (member->record.flags & NCCL_COMMUNICATOR_FINALIZED ||
		process->ended == NCCL_PROCESS_EXITED);
}

uint64_t nccl_get_kernel_time_outside_stamps_ns(const struct nccl_process *process)
{
	return process->file.header.gpu_clock == NCCL_GPU_CLOCK_EPOCH_NS
		       ? NCCL_KERNEL_TIME_OUTSIDE_STAMPS_NS
		       : 0;
}

/* The plugin compares with what it has seen so far; here all that came later has been seen too. */
static uint32_t compute_operation_flags_for_view(const struct nccl_process *process,
						 const struct nccl_operation *operation)
{
	if (!nccl_operation_has_gpu_times(operation))
		return operation->flags;
	return nccl_operation_gpu_times_are_proven(process, operation)
		       ? operation->flags & ~(uint32_t)NCCL_OPERATION_ALIASED
		       : operation->flags | NCCL_OPERATION_ALIASED;
}

struct nccl_kernel *nccl_find_kernel_of_operation(struct nccl_process *process,
						  const struct nccl_operation *operation)
{
	if (!process->kernels.count || !operation->launch || !operation->stop ||
	    (operation->flags & NCCL_OPERATION_REPLAYED))
		return NULL;
	return nccl_kernels_find_by_launch(&process->kernels, operation->thread,
					   nccl_ticks_to_host_time(process, operation->launch),
					   nccl_ticks_to_host_time(process, operation->start));
}

static uint64_t raise_zero_to_one(uint64_t ns)
{
	return ns ? ns : 1;
}

static void set_view_timing_and_duration(const struct nccl_data *data,
					 const struct nccl_communicator_rank *member,
					 struct nccl_process *process,
					 struct nccl_operation_view *view)
{
	const struct nccl_operation *operation = view->record;

	const struct nccl_kernel *kernel = nccl_find_kernel_of_operation(process, operation);

	view->timing_source = NCCL_TIMING_UNKNOWN;
	if (nccl_operation_has_gpu_times(operation))
		view->channel_stamps_span_ns = raise_zero_to_one(
			nccl_gpu_stamp_to_gpu_ns(data, member, operation->gpu_stop) -
			nccl_gpu_stamp_to_gpu_ns(data, member, operation->gpu_start));
	if (kernel && (kernel->operations == 1 || !view->channel_stamps_span_ns)) {
		view->kernel = kernel;
		view->is_waiting = false;
		view->state = NCCL_OPERATION_DONE;
		view->timing_source = kernel->operations == 1 ? NCCL_TIMING_BY_KERNEL_RECORD
							      : NCCL_TIMING_SHARED_BY_SEVERAL;
		view->duration_ns = kernel->duration_ns;
	} else if (view->is_waiting) {
		view->timing_source = NCCL_TIMING_UNFINISHED;
	} else if (view->state == NCCL_OPERATION_INCOMPLETE) {
		view->timing_source =
			NCCL_TIMING_UNKNOWN; /* what is missing may have been the longest */
	} else if (view->channel_stamps_span_ns) {
		view->timing_source =
			view->flags & (NCCL_OPERATION_BATCHED | NCCL_OPERATION_ALIASED)
				? NCCL_TIMING_SHARED_BY_SEVERAL
				: NCCL_TIMING_BY_GPU;
		/* Stamps that may be those of others are not what a batch took together. */
		if (view->timing_source == NCCL_TIMING_BY_GPU)
			view->duration_ns = view->channel_stamps_span_ns +
					    nccl_get_kernel_time_outside_stamps_ns(process);
		else if (view->flags & NCCL_OPERATION_BATCHED)
			view->duration_ns = view->channel_stamps_span_ns;
	} else if (operation->network_start && operation->network_stop > operation->network_start) {
		view->timing_source = NCCL_TIMING_BY_NETWORK;
		view->duration_ns = raise_zero_to_one(
			nccl_ticks_to_host_time(process, operation->network_stop) -
			nccl_ticks_to_host_time(process, operation->network_start));
	}
}

static void set_view_times_by_gpu(const struct nccl_data *data,
				  const struct nccl_communicator_rank *member,
				  struct nccl_operation_view *view)
{
	const struct nccl_operation *operation = view->record;
	uint64_t before =
		nccl_get_kernel_time_outside_stamps_ns(&data->processes[view->process]) / 2;
	struct nccl_gpu_time_on_host time;

	if (!operation->gpu_start || (view->flags & NCCL_OPERATION_ALIASED) ||
	    !nccl_gpu_stamp_to_common_time(data, member, operation->gpu_start, &time))
		return;
	view->begin_ns = time.time_ns;
	if (view->timing_source != NCCL_TIMING_SHARED_BY_SEVERAL && time.time_ns > before)
		view->begin_ns -= before;
	view->begin_error_ns = time.error_ns;
	if (view->duration_ns)
		view->end_ns = view->begin_ns + view->duration_ns;
}

/* Times on the same clock as the call that launched it, before which it cannot have begun. */
static void set_view_times_by_kernel(const struct nccl_data *data, struct nccl_operation_view *view)
{
	const struct nccl_kernel *kernel = view->kernel;

	view->begin_ns = nccl_host_time_to_common_time(data, data->processes[view->process].host,
						       kernel->start_ns);
	view->end_ns = view->begin_ns + view->duration_ns;
	view->begin_error_ns = kernel->start_ns > kernel->launch_call_start_ns
				       ? kernel->start_ns - kernel->launch_call_start_ns
				       : kernel->launch_call_start_ns - kernel->start_ns;
}

/* The best that is known of when it ran: by the GPU, by the network, or when it was enqueued. */
static void set_view_times(struct nccl_data *data, const struct nccl_communicator_rank *member,
			   struct nccl_operation_view *view)
{
	const struct nccl_operation *operation = view->record;
	uint32_t process = view->process;

	view->enqueue_begin_ns = nccl_ticks_to_common_time(data, process, operation->start);
	view->enqueue_end_ns =
		operation->stop ? nccl_ticks_to_common_time(data, process, operation->stop) : 0;
	if (view->kernel)
		set_view_times_by_kernel(data, view);
	else
		set_view_times_by_gpu(data, member, view);
	view->is_begin_known = view->begin_ns;
	if (view->begin_ns)
		return;
	if (operation->network_start) {
		view->is_begin_known = true;
		view->begin_ns = nccl_ticks_to_common_time(data, process, operation->network_start);
		if (view->timing_source == NCCL_TIMING_BY_NETWORK)
			view->end_ns = view->begin_ns + view->duration_ns;
		return;
	}
	view->begin_ns = view->enqueue_begin_ns;
	view->begin_error_ns = UINT64_MAX;
}

bool nccl_make_operation_view(struct nccl_data *data, uint32_t process,
			      const struct nccl_operation *operation, bool times,
			      struct nccl_operation_view *ret)
{
	struct nccl_process *from = &data->processes[process];
	uint32_t index = id_map_get(&from->members, operation->communicator);
	const struct nccl_communicator_rank *member;
	enum nccl_function_kind function;

	if (index == ID_MAP_NONE)
		return false;
	member = &data->members[index];
	*ret = (struct nccl_operation_view){
		.record = operation, .process = process, .member = index};
	ret->function = nccl_find_or_add_function(data, process, operation->function);
	if (ret->function == NCCL_INDEX_NONE)
		return false;
	ret->flags = compute_operation_flags_for_view(from, operation);
	function = data->functions[ret->function].function;
	ret->is_size_known = operation->bytes && nccl_function_compute_message_size(
							 function, operation->bytes,
							 member->rank_count, &ret->size_bytes);
	if (!operation->count)
		ret->is_size_known = function != NCCL_FUNCTION_OTHER;
	ret->bus_factor = nccl_function_get_bus_bandwidth_factor(function, member->rank_count);
	ret->is_waiting = operation_is_waiting(operation, member->record.mask);
	ret->state = nccl_operation_is_quiet(operation) ? NCCL_OPERATION_DONE
							: nccl_operation_state(operation);
	if (ret->is_waiting && operation_ended_unseen(operation, member, from)) {
		ret->is_waiting = false;
		ret->state = NCCL_OPERATION_INCOMPLETE;
	}
	set_view_timing_and_duration(data, member, from, ret);
	if (times)
		set_view_times(data, member, ret);
	return true;
}

/* ---- all of them ---- */

struct operation_visit_context {
	struct nccl_data *data;
	uint32_t process;
	int (*each)(const struct nccl_operation_view *view, void *context);
	void *context;
};

static int visit_operation_record(const void *record, void *context)
{
	struct operation_visit_context *operations = context;
	struct nccl_operation_view view;

	if (!nccl_make_operation_view(operations->data, operations->process, record, true, &view))
		return 0;
	return operations->each(&view, operations->context);
}

int nccl_visit_operations_of_process(struct nccl_data *data, uint32_t process,
				     int (*each)(const struct nccl_operation_view *view,
						 void *context),
				     void *context, struct problem *problem)
{
	struct operation_visit_context operations = {data, process, each, context};
	struct nccl_file *file = &data->processes[process].file;
	int result = nccl_file_reopen(file, problem);

	if (result < 0)
		return result;
	result = nccl_file_visit_records_of_kind(file, NCCL_CHUNK_OPERATIONS,
						 visit_operation_record, &operations);
	nccl_file_close_temporarily(file);
	return result;
}

struct event_visit_context {
	struct nccl_data *data;
	uint32_t process;
	int (*each)(const struct nccl_event *event, uint32_t process, uint32_t member,
		    void *context);
	void *context;
};

static int visit_event_record(const void *record, void *context)
{
	const struct event_visit_context *events = context;
	const struct nccl_event *event = record;
	uint32_t member =
		id_map_get(&events->data->processes[events->process].members, event->communicator);

	return events->each(event, events->process,
			    member == ID_MAP_NONE ? NCCL_INDEX_NONE : member, events->context);
}

int nccl_visit_events_of_process(struct nccl_data *data, uint32_t process,
				 int (*each)(const struct nccl_event *event, uint32_t process,
					     uint32_t member, void *context),
				 void *context, struct problem *problem)
{
	struct event_visit_context events = {data, process, each, context};
	struct nccl_file *file = &data->processes[process].file;
	int result = nccl_file_reopen(file, problem);

	if (result < 0)
		return result;
	result = nccl_file_visit_records_of_kind(file, NCCL_CHUNK_EVENTS, visit_event_record,
						 &events);
	nccl_file_close_temporarily(file);
	return result;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * One operation as outputs want it: how long it took by the best there is, and when that was.
 */
#include "analysis/nccl_private.h"

uint64_t nccl_own_time(struct nccl_process *process, uint64_t ticks)
{
	return clock_map_boottime(&process->clock, ticks);
}

uint64_t nccl_common_time(const struct nccl_data *data, uint32_t host, uint64_t time_ns)
{
	struct nccl_offset offset = nccl_align_at(&data->align, host, time_ns);
	int64_t time;

	if (__builtin_add_overflow((int64_t)time_ns, offset.add_ns, &time))
		return time_ns;
	return time > 0 ? (uint64_t)time : 1;
}

uint64_t nccl_time(struct nccl_data *data, uint32_t process, uint64_t ticks)
{
	return nccl_common_time(data, data->processes[process].host,
				nccl_own_time(&data->processes[process], ticks));
}

uint64_t nccl_gpu_ns(const struct nccl_data *data, const struct nccl_member *member, uint64_t gpu)
{
	const struct nccl_file_header *header = &data->processes[member->process].file.header;
	double ns;

	if (header->gpu_clock != NCCL_GPU_CLOCK_TICKS || !header->gpu_clock_hz)
		return gpu;
	ns = (double)gpu * (1e9 / (double)header->gpu_clock_hz);
	return ns < (double)INT64_MAX ? (uint64_t)ns : INT64_MAX;
}

bool nccl_gpu_time(const struct nccl_data *data, const struct nccl_member *member, uint64_t gpu,
		   struct nccl_host_time *ret)
{
	if (!nccl_gpu_clock_find(&member->gpu, nccl_gpu_ns(data, member, gpu), ret))
		return false;
	ret->time_ns = nccl_common_time(data, data->processes[member->process].host, ret->time_ns);
	return true;
}

/* Where nothing of an operation was seen to run, that says something only if its kernel would have
 * been seen. */
static bool shows_nothing(const struct nccl_operation *operation, uint32_t mask)
{
	if (!operation->stop || operation->channels_started || operation->networks_started)
		return false;
	return !(mask & NCCL_KIND_MASK(NCCL_KIND_KERNEL_CHANNEL)) ||
	       operation->kind == NCCL_KIND_CE_COLLECTIVE ||
	       (operation->flags & (NCCL_OPERATION_GRAPH | NCCL_OPERATION_ENQUEUE_ONLY));
}

static bool is_waiting(const struct nccl_operation *operation, uint32_t mask)
{
	if (operation->state == NCCL_OPERATION_DONE || shows_nothing(operation, mask))
		return false;
	/* The process may have ended before its own thread looked at the operation again. */
	return !nccl_operation_is_quiet(operation);
}

/* Its events were not recorded, and it is over, for its communicator is, or its process has exited:
 * that nothing of it is seen says nothing. */
static bool is_cut_short(const struct nccl_operation *operation, const struct nccl_member *member,
			 const struct nccl_process *process)
{
	return operation->flags & NCCL_OPERATION_LOST_CHILD &&
	       (member->record.flags & NCCL_COMMUNICATOR_FINALIZED ||
		process->ended == NCCL_ENDED_EXITED);
}

uint64_t nccl_kernel_around_ns(const struct nccl_process *process)
{
	return process->file.header.gpu_clock == NCCL_GPU_CLOCK_EPOCH_NS ? NCCL_KERNEL_AROUND_NS
									 : 0;
}

/* The plugin compares with what it has seen so far; here all that came later has been seen too. */
static uint32_t flags_of(const struct nccl_process *process, const struct nccl_operation *operation)
{
	if (!nccl_has_gpu_times(operation))
		return operation->flags;
	return nccl_is_proven(process, operation)
		       ? operation->flags & ~(uint32_t)NCCL_OPERATION_ALIASED
		       : operation->flags | NCCL_OPERATION_ALIASED;
}

struct nccl_kernel *nccl_kernel_of(struct nccl_process *process,
				   const struct nccl_operation *operation)
{
	if (!process->kernels.count || !operation->launch || !operation->stop ||
	    (operation->flags & NCCL_OPERATION_REPLAYED))
		return NULL;
	return nccl_kernels_find(&process->kernels, operation->thread,
				 nccl_own_time(process, operation->launch),
				 nccl_own_time(process, operation->start));
}

static uint64_t at_least_one(uint64_t ns)
{
	return ns ? ns : 1;
}

static void view_duration(const struct nccl_data *data, const struct nccl_member *member,
			  struct nccl_process *process, struct nccl_view *view)
{
	const struct nccl_operation *operation = view->record;

	const struct nccl_kernel *kernel = nccl_kernel_of(process, operation);

	view->timing = NCCL_TIMING_NONE;
	if (nccl_has_gpu_times(operation))
		view->stamped_ns = at_least_one(nccl_gpu_ns(data, member, operation->gpu_stop) -
						nccl_gpu_ns(data, member, operation->gpu_start));
	if (kernel && (kernel->operations == 1 || !view->stamped_ns)) {
		view->kernel = kernel;
		view->is_waiting = false;
		view->state = NCCL_OPERATION_DONE;
		view->timing = kernel->operations == 1 ? NCCL_TIMING_KERNEL : NCCL_TIMING_SHARED;
		view->duration_ns = kernel->duration_ns;
	} else if (view->is_waiting) {
		view->timing = NCCL_TIMING_OPEN;
	} else if (view->state == NCCL_OPERATION_INCOMPLETE) {
		view->timing = NCCL_TIMING_NONE; /* what is missing may have been the longest */
	} else if (view->stamped_ns) {
		view->timing = view->flags & (NCCL_OPERATION_BATCHED | NCCL_OPERATION_ALIASED)
				       ? NCCL_TIMING_SHARED
				       : NCCL_TIMING_GPU;
		/* Stamps that may be those of others are not what a batch took together. */
		if (view->timing == NCCL_TIMING_GPU)
			view->duration_ns = view->stamped_ns + nccl_kernel_around_ns(process);
		else if (view->flags & NCCL_OPERATION_BATCHED)
			view->duration_ns = view->stamped_ns;
	} else if (operation->network_start && operation->network_stop > operation->network_start) {
		view->timing = NCCL_TIMING_NETWORK;
		view->duration_ns = at_least_one(nccl_own_time(process, operation->network_stop) -
						 nccl_own_time(process, operation->network_start));
	}
}

static void view_gpu_times(const struct nccl_data *data, const struct nccl_member *member,
			   struct nccl_view *view)
{
	const struct nccl_operation *operation = view->record;
	uint64_t before = nccl_kernel_around_ns(&data->processes[view->process]) / 2;
	struct nccl_host_time time;

	if (!operation->gpu_start || (view->flags & NCCL_OPERATION_ALIASED) ||
	    !nccl_gpu_time(data, member, operation->gpu_start, &time))
		return;
	view->begin_ns = time.time_ns;
	if (view->timing != NCCL_TIMING_SHARED && time.time_ns > before)
		view->begin_ns -= before;
	view->begin_error_ns = time.error_ns;
	if (view->duration_ns)
		view->end_ns = view->begin_ns + view->duration_ns;
}

/* Of the same clock as the call that launched it, before which it cannot have begun. */
static void view_kernel_times(const struct nccl_data *data, struct nccl_view *view)
{
	const struct nccl_kernel *kernel = view->kernel;

	view->begin_ns =
		nccl_common_time(data, data->processes[view->process].host, kernel->start_ns);
	view->end_ns = view->begin_ns + view->duration_ns;
	view->begin_error_ns = kernel->start_ns > kernel->called_ns
				       ? kernel->start_ns - kernel->called_ns
				       : kernel->called_ns - kernel->start_ns;
}

/* The best that is known of when it ran: by the GPU, by the network, or when it was enqueued. */
static void view_times(struct nccl_data *data, const struct nccl_member *member,
		       struct nccl_view *view)
{
	const struct nccl_operation *operation = view->record;
	uint32_t process = view->process;

	view->enqueue_ns = nccl_time(data, process, operation->start);
	view->enqueued_ns = operation->stop ? nccl_time(data, process, operation->stop) : 0;
	if (view->kernel)
		view_kernel_times(data, view);
	else
		view_gpu_times(data, member, view);
	view->begin_known = view->begin_ns;
	if (view->begin_ns)
		return;
	if (operation->network_start) {
		view->begin_known = true;
		view->begin_ns = nccl_time(data, process, operation->network_start);
		if (view->timing == NCCL_TIMING_NETWORK)
			view->end_ns = view->begin_ns + view->duration_ns;
		return;
	}
	view->begin_ns = view->enqueue_ns;
	view->begin_error_ns = UINT64_MAX;
}

bool nccl_view_make(struct nccl_data *data, uint32_t process,
		    const struct nccl_operation *operation, bool times, struct nccl_view *ret)
{
	struct nccl_process *from = &data->processes[process];
	uint32_t index = id_map_get(&from->members, operation->communicator);
	const struct nccl_member *member;
	enum nccl_function function;

	if (index == ID_MAP_NONE)
		return false;
	member = &data->members[index];
	*ret = (struct nccl_view){.record = operation, .process = process, .member = index};
	ret->function = nccl_function_of(data, process, operation->function);
	if (ret->function == NCCL_NONE)
		return false;
	ret->flags = flags_of(from, operation);
	function = data->functions[ret->function].function;
	ret->size_known = operation->bytes && nccl_function_size(function, operation->bytes,
								 member->ranks, &ret->size_bytes);
	if (!operation->count)
		ret->size_known = function != NCCL_FUNCTION_OTHER;
	ret->bus_factor = nccl_function_bus_factor(function, member->ranks);
	ret->is_waiting = is_waiting(operation, member->record.mask);
	ret->state = nccl_operation_is_quiet(operation) ? NCCL_OPERATION_DONE
							: nccl_operation_state(operation);
	if (ret->is_waiting && is_cut_short(operation, member, from)) {
		ret->is_waiting = false;
		ret->state = NCCL_OPERATION_INCOMPLETE;
	}
	view_duration(data, member, from, ret);
	if (times)
		view_times(data, member, ret);
	return true;
}

/* ---- all of them ---- */

struct operations {
	struct nccl_data *data;
	uint32_t process;
	int (*each)(const struct nccl_view *view, void *context);
	void *context;
};

static int visit_operation(const void *record, void *context)
{
	struct operations *operations = context;
	struct nccl_view view;

	if (!nccl_view_make(operations->data, operations->process, record, true, &view))
		return 0;
	return operations->each(&view, operations->context);
}

int nccl_each_operation(struct nccl_data *data, uint32_t process,
			int (*each)(const struct nccl_view *view, void *context), void *context,
			struct problem *problem)
{
	struct operations operations = {data, process, each, context};
	struct nccl_file *file = &data->processes[process].file;
	int result = nccl_file_resume(file, problem);

	if (result < 0)
		return result;
	result = nccl_file_each(file, NCCL_CHUNK_OPERATIONS, visit_operation, &operations);
	nccl_file_pause(file);
	return result;
}

struct events {
	struct nccl_data *data;
	uint32_t process;
	int (*each)(const struct nccl_event *event, uint32_t process, uint32_t member,
		    void *context);
	void *context;
};

static int visit_event(const void *record, void *context)
{
	const struct events *events = context;
	const struct nccl_event *event = record;
	uint32_t member =
		id_map_get(&events->data->processes[events->process].members, event->communicator);

	return events->each(event, events->process, member == ID_MAP_NONE ? NCCL_NONE : member,
			    events->context);
}

int nccl_each_event(struct nccl_data *data, uint32_t process,
		    int (*each)(const struct nccl_event *event, uint32_t process, uint32_t member,
				void *context),
		    void *context, struct problem *problem)
{
	struct events events = {data, process, each, context};
	struct nccl_file *file = &data->processes[process].file;
	int result = nccl_file_resume(file, problem);

	if (result < 0)
		return result;
	result = nccl_file_each(file, NCCL_CHUNK_EVENTS, visit_event, &events);
	nccl_file_pause(file);
	return result;
}

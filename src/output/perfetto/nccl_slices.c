/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Records of one process to slices of tracks; see nccl.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/arena.h"
#include "output/perfetto/nccl.h"

/* Ids of flows and correlations are of the whole trace. */
static uint64_t hash_to_trace_id(uint64_t value, uint64_t salt)
{
	uint64_t mixed =
		id_map_hash_key(id_map_hash_key(value) + salt * UINT64_C(0x9e3779b97f4a7c15));

	return mixed ? mixed : 1;
}

/* Ids hold a nonce of their process. */
static uint64_t make_operation_flow_id(uint64_t id)
{
	return hash_to_trace_id(id, 1);
}

static uint64_t make_transfer_flow_id(uint64_t operation)
{
	return hash_to_trace_id(operation, 2);
}

static uint64_t make_collective_correlation_id(const struct nccl_data *data,
					       const struct nccl_operation_view *view)
{
	const struct nccl_communicator *communicator =
		&data->communicators[data->members[view->member].communicator];

	return hash_to_trace_id(hash_to_trace_id(communicator->hash + communicator->same_hash_index,
						 view->function + 3),
				view->record->sequence);
}

static struct nccl_track *find_or_add_track(struct nccl_slices *slices, uint32_t member,
					    enum nccl_slice_kind kind, uint32_t number, bool nests,
					    uint32_t *ret)
{
	uint64_t key = hash_to_trace_id((uint64_t)member << 32 | number, (uint64_t)kind + 16);

	*ret = id_map_get(&slices->track_index_by_key, key);
	if (*ret != ID_MAP_NONE)
		return &slices->tracks[*ret];
	if (array_reserve_one_more((void **)&slices->tracks, &slices->track_capacity,
				   slices->track_count, sizeof(*slices->tracks)) < 0 ||
	    id_map_set(&slices->track_index_by_key, key, (uint32_t)slices->track_count) < 0)
		return NULL;
	*ret = (uint32_t)slices->track_count++;
	slices->tracks[*ret] = (struct nccl_track){.member_index = member,
						   .kind = (uint8_t)kind,
						   .number = number,
						   .may_nest_slices = nests};
	return &slices->tracks[*ret];
}

static int append_nccl_slice(struct nccl_slices *slices, const struct nccl_slice *slice)
{
	if (array_reserve_one_more((void **)&slices->slices, &slices->capacity, slices->count,
				   sizeof(*slices->slices)) < 0)
		return -ENOMEM;
	slices->slices[slices->count] = *slice;
	/* An end before its begin comes of damaged records. */
	if (slice->end_ns < slice->start_ns)
		slices->slices[slices->count].end_ns = slice->start_ns;
	slices->count++;
	return 0;
}

static int add_slice_to_thread_track(struct nccl_slices *slices, uint32_t thread,
				     struct nccl_slice *slice)
{
	return find_or_add_track(slices, NCCL_INDEX_NONE, NCCL_SLICE_CALL, thread, true,
				 &slice->track)
		       ? append_nccl_slice(slices, slice)
		       : -ENOMEM;
}

static int add_slice_to_rank_track(struct nccl_slices *slices, uint32_t member, uint32_t number,
				   bool nests, struct nccl_slice *slice)
{
	return find_or_add_track(slices, member, slice->kind, number, nests, &slice->track)
		       ? append_nccl_slice(slices, slice)
		       : -ENOMEM;
}

/* ---- operations ---- */

static struct nccl_slice slice_from_operation_view(const struct nccl_operation_view *view,
						   enum nccl_slice_kind kind)
{
	const struct nccl_operation *record = view->record;

	return (struct nccl_slice){
		.kind = (uint8_t)kind,
		.function = view->function,
		.sequence = record->sequence,
		.bytes = view->is_size_known ? view->size_bytes : record->bytes,
		.number = record->peer,
		.waits = view->is_waiting,
		.data_type = record->data_type,
		.algorithm = record->algorithm,
		.protocol = record->protocol,
	};
}

static int add_gpu_operation_slice(struct nccl_slices *slices,
				   const struct nccl_operation_view *view)
{
	struct nccl_slice slice = slice_from_operation_view(view, NCCL_SLICE_GPU);
	const struct nccl_operation *record = view->record;

	if ((!record->gpu_start && !view->kernel) || !view->is_begin_known ||
	    (!view->is_waiting && !view->duration_ns))
		return 0;
	slice.start_ns = view->begin_ns;
	slice.end_ns =
		view->is_waiting ? NCCL_SLICE_NOT_ENDED_NS : view->begin_ns + view->duration_ns;
	slice.flow = make_operation_flow_id(record->parent ? record->parent : record->id);
	slice.correlation = record->kind == NCCL_KIND_P2P
				    ? 0
				    : make_collective_correlation_id(slices->data, view);
	if ((view->timing_source == NCCL_TIMING_BY_GPU ||
	     view->timing_source == NCCL_TIMING_BY_KERNEL_RECORD) &&
	    view->is_size_known)
		slice.bus_bandwidth_gb_per_s =
			nccl_compute_algorithm_bandwidth(view->size_bytes, view->duration_ns) *
			view->bus_factor;
	return add_slice_to_rank_track(slices, view->member, 0, false, &slice);
}

static int add_slices_of_one_operation(const struct nccl_operation_view *view, void *context)
{
	struct nccl_slices *slices = context;
	const struct nccl_operation *record = view->record;
	struct nccl_slice slice = slice_from_operation_view(view, NCCL_SLICE_ENQUEUE);
	int result;

	slice.start_ns = view->enqueue_begin_ns;
	slice.end_ns = view->enqueue_end_ns ? view->enqueue_end_ns : NCCL_SLICE_NOT_ENDED_NS;
	if (!record->parent)
		slice.flow = make_operation_flow_id(record->id);
	if (record->proxies_started || record->networks_started)
		slice.flow = make_transfer_flow_id(record->id);
	if (id_map_set(&slices->slice_index_of_operation, record->id, (uint32_t)slices->count) < 0)
		return -ENOMEM;
	result = add_slice_to_thread_track(slices, record->thread, &slice);
	return result == 0 ? add_gpu_operation_slice(slices, view) : result;
}

/* ---- events ---- */

static struct nccl_slice slice_from_event(struct nccl_slices *slices,
					  const struct nccl_event *event, enum nccl_slice_kind kind)
{
	struct nccl_slice slice = {.kind = (uint8_t)kind, .function = NCCL_INDEX_NONE};

	slice.start_ns = nccl_ticks_to_common_time(slices->data, slices->process, event->start);
	slice.end_ns =
		event->flags & NCCL_EVENT_STOPPED
			? nccl_ticks_to_common_time(slices->data, slices->process, event->stop)
			: NCCL_SLICE_NOT_ENDED_NS;
	return slice;
}

static int add_api_call_slice(struct nccl_slices *slices, const struct nccl_event *event)
{
	struct nccl_slice slice = slice_from_event(slices, event, NCCL_SLICE_CALL);

	slice.function = nccl_find_or_add_function(slices->data, slices->process, event->a);
	slice.data_type = event->b;
	slice.bytes = event->api.count;
	slice.flow = event->flags & NCCL_EVENT_USED ? make_operation_flow_id(event->id) : 0;
	return add_slice_to_thread_track(slices, event->thread, &slice);
}

static int add_channel_slice(struct nccl_slices *slices, const struct nccl_event *event,
			     uint32_t member)
{
	const struct nccl_communicator_rank *of = &slices->data->members[member];
	uint32_t operation = id_map_get(&slices->slice_index_of_operation, event->parent);
	struct nccl_slice slice = {.kind = NCCL_SLICE_CHANNEL, .function = NCCL_INDEX_NONE};
	struct nccl_gpu_time_on_host begin;

	if (!event->gpu.start ||
	    !nccl_gpu_stamp_to_common_time(slices->data, of, event->gpu.start, &begin))
		return 0;
	if (operation != ID_MAP_NONE) {
		slice.function = slices->slices[operation].function;
		slice.sequence = slices->slices[operation].sequence;
	}
	slice.start_ns = begin.time_ns;
	slice.end_ns = NCCL_SLICE_NOT_ENDED_NS;
	if (event->gpu.stop >= event->gpu.start)
		slice.end_ns = begin.time_ns +
			       nccl_gpu_stamp_to_gpu_ns(slices->data, of, event->gpu.stop) -
			       nccl_gpu_stamp_to_gpu_ns(slices->data, of, event->gpu.start);
	return add_slice_to_rank_track(slices, member, event->a, false, &slice);
}

static int add_transfer_slice(struct nccl_slices *slices, const struct nccl_event *event,
			      uint32_t member)
{
	struct nccl_slice slice = slice_from_event(slices, event, NCCL_SLICE_TRANSFER);

	slice.number = event->c;
	slice.sends = event->flags & NCCL_EVENT_SEND;
	slice.sequence = (uint64_t)(uint32_t)event->proxy_op.steps;
	slice.flow = make_transfer_flow_id(event->parent);
	return add_slice_to_rank_track(slices, member, event->a, false, &slice);
}

/* On the track of its transfer's channel, which came before it. */
static int add_step_slice(struct nccl_slices *slices, const struct nccl_event *event,
			  uint32_t member)
{
	struct nccl_slice slice = slice_from_event(slices, event, NCCL_SLICE_STEP);

	slice.number = event->c;
	slice.bytes = event->proxy_step.bytes;
	slice.sends = !(event->a & 16);
	return add_slice_to_rank_track(slices, member, slice.sends, false, &slice);
}

static int add_event_slice(const struct nccl_event *event, uint32_t process, uint32_t member,
			   void *context)
{
	struct nccl_slices *slices = context;
	struct nccl_slice slice;

	(void)process;
	switch (event->kind) {
	case NCCL_KIND_COLLECTIVE_API:
	case NCCL_KIND_P2P_API:
		return add_api_call_slice(slices, event);
	case NCCL_KIND_GROUP_API:
		slice = slice_from_event(slices, event, NCCL_SLICE_GROUP_CALL);
		return add_slice_to_thread_track(slices, event->thread, &slice);
	case NCCL_KIND_KERNEL_LAUNCH:
		slice = slice_from_event(slices, event, NCCL_SLICE_LAUNCH);
		return add_slice_to_thread_track(slices, event->thread, &slice);
	case NCCL_KIND_GROUP:
		slice = slice_from_event(slices, event, NCCL_SLICE_GROUP);
		return add_slice_to_thread_track(slices, event->thread, &slice);
	default:
		break;
	}
	if (member == NCCL_INDEX_NONE)
		return 0;
	switch (event->kind) {
	case NCCL_KIND_KERNEL_CHANNEL:
		return add_channel_slice(slices, event, member);
	case NCCL_KIND_PROXY_OP:
		return add_transfer_slice(slices, event, member);
	case NCCL_KIND_PROXY_STEP:
		return add_step_slice(slices, event, member);
	case NCCL_KIND_PROXY_CONTROL:
		slice = slice_from_event(slices, event, NCCL_SLICE_PROXY_CONTROL);
		slice.number = event->a;
		return add_slice_to_rank_track(slices, member, event->thread, true, &slice);
	default:
		slice = slice_from_event(slices, event, NCCL_SLICE_OTHER);
		slice.number = event->kind;
		return add_slice_to_rank_track(slices, member, event->kind, false, &slice);
	}
}

/* ---- all of them ---- */

/* Parents before children; what began and ended together stays in the order of kinds. */
static int compare_slices_by_time(const void *left, const void *right)
{
	const struct nccl_slice *a = left, *b = right;

	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	if (a->end_ns != b->end_ns)
		return a->end_ns > b->end_ns ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	return a->sequence < b->sequence ? -1 : a->sequence > b->sequence;
}

int nccl_slices_collect(struct nccl_slices *slices, struct problem *problem)
{
	struct nccl_data *data = slices->data;
	int result;

	slices->group_uuid_of_member =
		calloc((size_t)data->processes[slices->process].member_count + 1,
		       sizeof(*slices->group_uuid_of_member));
	if (!slices->group_uuid_of_member)
		return problem_set(problem, -ENOMEM, "no memory for the Perfetto trace");
	result = nccl_visit_operations_of_process(data, slices->process,
						  add_slices_of_one_operation, slices, problem);
	if (result == 0)
		result = nccl_visit_events_of_process(data, slices->process, add_event_slice,
						      slices, problem);
	if (result == -ENOMEM)
		problem_set(problem, result, "no memory for the Perfetto trace");
	if (result == 0 && slices->count > 1)
		qsort(slices->slices, slices->count, sizeof(*slices->slices),
		      compare_slices_by_time);
	return result;
}

void nccl_slices_deinit(struct nccl_slices *slices)
{
	for (size_t i = 0; i < slices->track_count; i++) {
		for (size_t k = 0; k < slices->tracks[i].lane_count; k++)
			free(slices->tracks[i].lanes[k].slice_ends_ns);
		free(slices->tracks[i].lanes);
	}
	free(slices->tracks);
	free(slices->slices);
	free(slices->group_uuid_of_member);
	id_map_deinit(&slices->track_index_by_key);
	id_map_deinit(&slices->slice_index_of_operation);
}

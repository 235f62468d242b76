/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Records of one process to slices of tracks; see perfetto_nccl.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/arena.h"
#include "output/perfetto_nccl.h"

/* Ids of flows and correlations are of the whole trace. */
static uint64_t mix(uint64_t value, uint64_t salt)
{
	uint64_t mixed = id_map_mix(id_map_mix(value) + salt * UINT64_C(0x9e3779b97f4a7c15));

	return mixed ? mixed : 1;
}

/* Ids hold a nonce of their process. */
static uint64_t flow_of(uint64_t id)
{
	return mix(id, 1);
}

static uint64_t transfer_flow_of(uint64_t operation)
{
	return mix(operation, 2);
}

static uint64_t correlation_of(const struct nccl_data *data, const struct nccl_view *view)
{
	const struct nccl_team *team = &data->teams[data->members[view->member].team];

	return mix(mix(team->hash + team->occurrence, view->function + 3), view->record->sequence);
}

static struct nccl_track *track_of(struct nccl_slices *slices, uint32_t member,
				   enum nccl_slice_kind kind, uint32_t number, bool nests,
				   uint32_t *ret)
{
	uint64_t key = mix((uint64_t)member << 32 | number, (uint64_t)kind + 16);

	*ret = id_map_get(&slices->track_ids, key);
	if (*ret != ID_MAP_NONE)
		return &slices->tracks[*ret];
	if (array_reserve((void **)&slices->tracks, &slices->track_capacity, slices->track_count,
			  sizeof(*slices->tracks)) < 0 ||
	    id_map_set(&slices->track_ids, key, (uint32_t)slices->track_count) < 0)
		return NULL;
	*ret = (uint32_t)slices->track_count++;
	slices->tracks[*ret] = (struct nccl_track){
		.member = member, .kind = (uint8_t)kind, .number = number, .nests = nests};
	return &slices->tracks[*ret];
}

static int add(struct nccl_slices *slices, const struct nccl_slice *slice)
{
	if (array_reserve((void **)&slices->slices, &slices->capacity, slices->count,
			  sizeof(*slices->slices)) < 0)
		return -ENOMEM;
	slices->slices[slices->count] = *slice;
	/* An end before its begin comes of damaged records. */
	if (slice->end_ns < slice->start_ns)
		slices->slices[slices->count].end_ns = slice->start_ns;
	slices->count++;
	return 0;
}

static int add_to_thread(struct nccl_slices *slices, uint32_t thread, struct nccl_slice *slice)
{
	return track_of(slices, NCCL_NONE, NCCL_SLICE_CALL, thread, true, &slice->track)
		       ? add(slices, slice)
		       : -ENOMEM;
}

static int add_to_member(struct nccl_slices *slices, uint32_t member, uint32_t number, bool nests,
			 struct nccl_slice *slice)
{
	return track_of(slices, member, slice->kind, number, nests, &slice->track)
		       ? add(slices, slice)
		       : -ENOMEM;
}

/* ---- operations ---- */

static struct nccl_slice describe(const struct nccl_view *view, enum nccl_slice_kind kind)
{
	const struct nccl_operation *record = view->record;

	return (struct nccl_slice){
		.kind = (uint8_t)kind,
		.function = view->function,
		.sequence = record->sequence,
		.bytes = view->size_known ? view->size_bytes : record->bytes,
		.number = record->peer,
		.waits = view->is_waiting,
		.data_type = record->data_type,
		.algorithm = record->algorithm,
		.protocol = record->protocol,
	};
}

static int add_gpu(struct nccl_slices *slices, const struct nccl_view *view)
{
	struct nccl_slice slice = describe(view, NCCL_SLICE_GPU);
	const struct nccl_operation *record = view->record;

	if ((!record->gpu_start && !view->kernel) || !view->begin_known ||
	    (!view->is_waiting && !view->duration_ns))
		return 0;
	slice.start_ns = view->begin_ns;
	slice.end_ns = view->is_waiting ? NCCL_SLICE_OPEN : view->begin_ns + view->duration_ns;
	slice.flow = flow_of(record->parent ? record->parent : record->id);
	slice.correlation = record->kind == NCCL_KIND_P2P ? 0 : correlation_of(slices->data, view);
	if ((view->timing == NCCL_TIMING_GPU || view->timing == NCCL_TIMING_KERNEL) &&
	    view->size_known)
		slice.bus_bandwidth =
			nccl_algorithm_bandwidth(view->size_bytes, view->duration_ns) *
			view->bus_factor;
	return add_to_member(slices, view->member, 0, false, &slice);
}

static int add_operation(const struct nccl_view *view, void *context)
{
	struct nccl_slices *slices = context;
	const struct nccl_operation *record = view->record;
	struct nccl_slice slice = describe(view, NCCL_SLICE_ENQUEUE);
	int result;

	slice.start_ns = view->enqueue_ns;
	slice.end_ns = view->enqueued_ns ? view->enqueued_ns : NCCL_SLICE_OPEN;
	if (!record->parent)
		slice.flow = flow_of(record->id);
	if (record->proxies_started || record->networks_started)
		slice.flow = transfer_flow_of(record->id);
	if (id_map_set(&slices->operations, record->id, (uint32_t)slices->count) < 0)
		return -ENOMEM;
	result = add_to_thread(slices, record->thread, &slice);
	return result == 0 ? add_gpu(slices, view) : result;
}

/* ---- events ---- */

static struct nccl_slice span(struct nccl_slices *slices, const struct nccl_event *event,
			      enum nccl_slice_kind kind)
{
	struct nccl_slice slice = {.kind = (uint8_t)kind, .function = NCCL_NONE};

	slice.start_ns = nccl_time(slices->data, slices->process, event->start);
	slice.end_ns = event->flags & NCCL_EVENT_STOPPED
			       ? nccl_time(slices->data, slices->process, event->stop)
			       : NCCL_SLICE_OPEN;
	return slice;
}

static int add_call(struct nccl_slices *slices, const struct nccl_event *event)
{
	struct nccl_slice slice = span(slices, event, NCCL_SLICE_CALL);

	slice.function = nccl_function_of(slices->data, slices->process, event->a);
	slice.data_type = event->b;
	slice.bytes = event->api.count;
	slice.flow = event->flags & NCCL_EVENT_USED ? flow_of(event->id) : 0;
	return add_to_thread(slices, event->thread, &slice);
}

static int add_channel(struct nccl_slices *slices, const struct nccl_event *event, uint32_t member)
{
	const struct nccl_member *of = &slices->data->members[member];
	uint32_t operation = id_map_get(&slices->operations, event->parent);
	struct nccl_slice slice = {.kind = NCCL_SLICE_CHANNEL, .function = NCCL_NONE};
	struct nccl_host_time begin;

	if (!event->gpu.start || !nccl_gpu_time(slices->data, of, event->gpu.start, &begin))
		return 0;
	if (operation != ID_MAP_NONE) {
		slice.function = slices->slices[operation].function;
		slice.sequence = slices->slices[operation].sequence;
	}
	slice.start_ns = begin.time_ns;
	slice.end_ns = NCCL_SLICE_OPEN;
	if (event->gpu.stop >= event->gpu.start)
		slice.end_ns = begin.time_ns + nccl_gpu_ns(slices->data, of, event->gpu.stop) -
			       nccl_gpu_ns(slices->data, of, event->gpu.start);
	return add_to_member(slices, member, event->a, false, &slice);
}

static int add_transfer(struct nccl_slices *slices, const struct nccl_event *event, uint32_t member)
{
	struct nccl_slice slice = span(slices, event, NCCL_SLICE_TRANSFER);

	slice.number = event->c;
	slice.sends = event->flags & NCCL_EVENT_SEND;
	slice.sequence = (uint64_t)(uint32_t)event->proxy_op.steps;
	slice.flow = transfer_flow_of(event->parent);
	return add_to_member(slices, member, event->a, false, &slice);
}

/* On the track of its transfer's channel, which came before it. */
static int add_step(struct nccl_slices *slices, const struct nccl_event *event, uint32_t member)
{
	struct nccl_slice slice = span(slices, event, NCCL_SLICE_STEP);

	slice.number = event->c;
	slice.bytes = event->proxy_step.bytes;
	slice.sends = !(event->a & 16);
	return add_to_member(slices, member, slice.sends, false, &slice);
}

static int add_event(const struct nccl_event *event, uint32_t process, uint32_t member,
		     void *context)
{
	struct nccl_slices *slices = context;
	struct nccl_slice slice;

	(void)process;
	switch (event->kind) {
	case NCCL_KIND_COLLECTIVE_API:
	case NCCL_KIND_P2P_API:
		return add_call(slices, event);
	case NCCL_KIND_GROUP_API:
		slice = span(slices, event, NCCL_SLICE_GROUP_CALL);
		return add_to_thread(slices, event->thread, &slice);
	case NCCL_KIND_KERNEL_LAUNCH:
		slice = span(slices, event, NCCL_SLICE_LAUNCH);
		return add_to_thread(slices, event->thread, &slice);
	case NCCL_KIND_GROUP:
		slice = span(slices, event, NCCL_SLICE_GROUP);
		return add_to_thread(slices, event->thread, &slice);
	default:
		break;
	}
	if (member == NCCL_NONE)
		return 0;
	switch (event->kind) {
	case NCCL_KIND_KERNEL_CHANNEL:
		return add_channel(slices, event, member);
	case NCCL_KIND_PROXY_OP:
		return add_transfer(slices, event, member);
	case NCCL_KIND_PROXY_STEP:
		return add_step(slices, event, member);
	case NCCL_KIND_PROXY_CONTROL:
		slice = span(slices, event, NCCL_SLICE_CONTROL);
		slice.number = event->a;
		return add_to_member(slices, member, event->thread, true, &slice);
	default:
		slice = span(slices, event, NCCL_SLICE_OTHER);
		slice.number = event->kind;
		return add_to_member(slices, member, event->kind, false, &slice);
	}
}

/* ---- all of them ---- */

/* Parents before children; what began and ended together stays in the order of kinds. */
static int by_time(const void *left, const void *right)
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

	slices->groups = calloc((size_t)data->processes[slices->process].member_count + 1,
				sizeof(*slices->groups));
	if (!slices->groups)
		return problem_set(problem, -ENOMEM, "no memory for the Perfetto trace");
	result = nccl_each_operation(data, slices->process, add_operation, slices, problem);
	if (result == 0)
		result = nccl_each_event(data, slices->process, add_event, slices, problem);
	if (result == -ENOMEM)
		problem_set(problem, result, "no memory for the Perfetto trace");
	if (result == 0 && slices->count > 1)
		qsort(slices->slices, slices->count, sizeof(*slices->slices), by_time);
	return result;
}

void nccl_slices_deinit(struct nccl_slices *slices)
{
	for (size_t i = 0; i < slices->track_count; i++) {
		for (size_t k = 0; k < slices->tracks[i].lane_count; k++)
			free(slices->tracks[i].lanes[k].ends);
		free(slices->tracks[i].lanes);
	}
	free(slices->tracks);
	free(slices->slices);
	free(slices->groups);
	id_map_deinit(&slices->track_ids);
	id_map_deinit(&slices->operations);
}

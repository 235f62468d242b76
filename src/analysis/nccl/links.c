/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Links between ranks: network transfers (proxy operations and their steps) where they were
 * recorded, and sends and receives as operations, which also know of NVLink and shared memory.
 */
#include "analysis/nccl/links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/nccl/private.h"

#define PROXY_STEP_TICKS_PER_UNIT 64 /* of the times in a PROXY_STEP */

double nccl_compute_link_bandwidth(const struct nccl_rank_to_peer_link *link)
{
	return link->ns ? (double)link->bytes / (double)link->ns : 0;
}

bool nccl_get_next_function_transfer_sums(const struct nccl_data *data,
					  const struct nccl_joined_collectives *joined,
					  size_t *place, struct nccl_collective_transfer_sums *ret)
{
	const struct nccl_collective *first;

	if (*place >= joined->count)
		return false;
	first = &joined->collectives[*place];
	*ret = (struct nccl_collective_transfer_sums){.communicator = first->communicator,
						      .function = first->function};
	for (; *place < joined->count; ++*place) {
		const struct nccl_collective *collective = &joined->collectives[*place];
		uint64_t wait = collective->longest_duration_ns - collective->shortest_duration_ns;

		if (collective->communicator != ret->communicator ||
		    collective->function != ret->function)
			break;
		if (!collective->is_timed || !collective->size_bytes)
			continue;
		ret->collectives++;
		ret->bytes += collective->size_bytes;
		ret->ns += collective->shortest_duration_ns;
		if (wait > ret->longest_wait_ns)
			ret->longest_wait_ns = wait;
	}
	ret->bus_bytes =
		(double)ret->bytes * nccl_function_get_bus_bandwidth_factor(
					     data->functions[ret->function].function,
					     data->communicators[ret->communicator].rank_count);
	return true;
}

struct link_summing_context {
	struct nccl_data *data;
	struct nccl_joined_collectives *joined;
	struct id_map link_index_by_proxy_operation; /* id of a proxy operation -> link */
};

int nccl_find_or_add_link(struct nccl_joined_collectives *joined, uint32_t member, int32_t peer,
			  bool sends, bool network, uint32_t *ret)
{
	uint64_t key =
		(uint64_t)member << 32 | (uint32_t)peer << 2 | (uint64_t)sends << 1 | network;

	*ret = id_map_get(&joined->link_index_by_key, key);
	if (*ret != ID_MAP_NONE)
		return 0;
	if (array_reserve_one_more((void **)&joined->links, &joined->link_capacity,
				   joined->link_count, sizeof(*joined->links)) < 0 ||
	    id_map_set(&joined->link_index_by_key, key, (uint32_t)joined->link_count) < 0)
		return -ENOMEM;
	*ret = (uint32_t)joined->link_count++;
	joined->links[*ret] = (struct nccl_rank_to_peer_link){
		.member = member, .peer = peer, .sends = sends, .is_over_network = network};
	return 0;
}

static void add_transfer_to_link(struct nccl_rank_to_peer_link *link, uint64_t ns)
{
	link->transfer_count++;
	link->ns += ns;
	if (ns > link->slowest_transfer_ns)
		link->slowest_transfer_ns = ns;
}

/* ---- the network ---- */

static int add_proxy_operation_to_link(struct link_summing_context *finder,
				       const struct nccl_event *event, uint32_t process,
				       uint32_t member)
{
	struct nccl_process *from = &finder->data->processes[process];
	uint32_t link;

	if (!(event->flags & NCCL_EVENT_STOPPED) || !(event->flags & NCCL_EVENT_NETWORK) ||
	    event->c < 0 || event->stop < event->start)
		return 0;
	if (nccl_find_or_add_link(finder->joined, member, event->c, event->flags & NCCL_EVENT_SEND,
				  true, &link) < 0)
		return -ENOMEM;
	add_transfer_to_link(&finder->joined->links[link],
			     nccl_ticks_to_host_time(from, event->stop) -
				     nccl_ticks_to_host_time(from, event->start));
	finder->joined->links[link].bytes += (uint64_t)event->proxy_op.kib * 1024;
	return id_map_set(&finder->link_index_by_proxy_operation, event->id, link);
}

/* From the moment the network had it until it said that it was done. */
static void add_network_step_to_link(struct link_summing_context *finder,
				     const struct nccl_event *event, uint32_t process)
{
	struct nccl_process *from = &finder->data->processes[process];
	uint32_t link = id_map_get(&finder->link_index_by_proxy_operation, event->parent);
	uint64_t began =
		event->start + (uint64_t)event->proxy_step.wait * PROXY_STEP_TICKS_PER_UNIT;

	if (link == ID_MAP_NONE)
		return;
	finder->joined->links[link].bytes += event->proxy_step.bytes;
	if ((event->flags & NCCL_EVENT_STOPPED) && (event->a & 4) && event->stop > began)
		finder->joined->links[link].network_or_peer_wait_ns +=
			clock_map_ticks_to_duration_ns(&from->clock, event->stop - began);
}

static int add_proxy_event_to_link(const struct nccl_event *event, uint32_t process,
				   uint32_t member, void *context)
{
	struct link_summing_context *finder = context;

	if (member == NCCL_INDEX_NONE)
		return 0;
	if (event->kind == NCCL_KIND_PROXY_OP)
		return add_proxy_operation_to_link(finder, event, process, member);
	if (event->kind == NCCL_KIND_PROXY_STEP)
		add_network_step_to_link(finder, event, process);
	return 0;
}

int nccl_sum_transfers_by_link(struct nccl_data *data, struct nccl_joined_collectives *joined,
			       struct problem *problem)
{
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < data->process_count; i++) {
		struct link_summing_context finder = {data, joined, {0}};

		result = nccl_visit_events_of_process(data, i, add_proxy_event_to_link, &finder,
						      problem);
		id_map_deinit(&finder.link_index_by_proxy_operation);
	}
	return result == 0 ? nccl_pair_transfers(data, joined, problem) : result;
}

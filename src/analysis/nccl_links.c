/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Links between ranks: network transfers (proxy operations and their steps) where they were
 * recorded, and sends and receives as operations, which also know of NVLink and shared memory.
 */
#include "analysis/nccl_links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/nccl_private.h"

#define UNIT_TICKS 64 /* of the times in a PROXY_STEP */

double nccl_link_bandwidth(const struct nccl_link *link)
{
	return link->ns ? (double)link->bytes / (double)link->ns : 0;
}

bool nccl_transfer_next(const struct nccl_data *data, const struct nccl_joined *joined,
			size_t *place, struct nccl_transfer_sum *ret)
{
	const struct nccl_collective *first;

	if (*place >= joined->count)
		return false;
	first = &joined->collectives[*place];
	*ret = (struct nccl_transfer_sum){.team = first->team, .function = first->function};
	for (; *place < joined->count; ++*place) {
		const struct nccl_collective *collective = &joined->collectives[*place];
		uint64_t wait = collective->longest_ns - collective->shortest_ns;

		if (collective->team != ret->team || collective->function != ret->function)
			break;
		if (collective->timed < 2 || !collective->size_bytes)
			continue;
		ret->collectives++;
		ret->bytes += collective->size_bytes;
		ret->ns += collective->shortest_ns;
		if (wait > ret->longest_wait_ns)
			ret->longest_wait_ns = wait;
	}
	ret->bus_bytes = (double)ret->bytes *
			 nccl_function_bus_factor(data->functions[ret->function].function,
						  data->teams[ret->team].ranks);
	return true;
}

struct finder {
	struct nccl_data *data;
	struct nccl_joined *joined;
	struct id_map proxies; /* id of a proxy operation -> link */
};

static int link_of(struct nccl_joined *joined, uint32_t member, int32_t peer, bool sends,
		   bool network, uint32_t *ret)
{
	uint64_t key =
		(uint64_t)member << 32 | (uint32_t)peer << 2 | (uint64_t)sends << 1 | network;

	*ret = id_map_get(&joined->link_ids, key);
	if (*ret != ID_MAP_NONE)
		return 0;
	if (array_reserve((void **)&joined->links, &joined->link_capacity, joined->link_count,
			  sizeof(*joined->links)) < 0 ||
	    id_map_set(&joined->link_ids, key, (uint32_t)joined->link_count) < 0)
		return -ENOMEM;
	*ret = (uint32_t)joined->link_count++;
	joined->links[*ret] = (struct nccl_link){
		.member = member, .peer = peer, .sends = sends, .network = network};
	return 0;
}

static void add_transfer(struct nccl_link *link, uint64_t ns)
{
	link->transfers++;
	link->ns += ns;
	if (ns > link->slowest_ns)
		link->slowest_ns = ns;
}

/* ---- the network ---- */

static int take_proxy(struct finder *finder, const struct nccl_event *event, uint32_t process,
		      uint32_t member)
{
	struct nccl_process *from = &finder->data->processes[process];
	uint32_t link;

	if (!(event->flags & NCCL_EVENT_STOPPED) || !(event->flags & NCCL_EVENT_NETWORK) ||
	    event->c < 0 || event->stop < event->start)
		return 0;
	if (link_of(finder->joined, member, event->c, event->flags & NCCL_EVENT_SEND, true, &link) <
	    0)
		return -ENOMEM;
	add_transfer(&finder->joined->links[link],
		     nccl_own_time(from, event->stop) - nccl_own_time(from, event->start));
	finder->joined->links[link].bytes += (uint64_t)event->proxy_op.kib * 1024;
	return id_map_set(&finder->proxies, event->id, link);
}

/* From the moment the network had it until it said that it was done. */
static void take_step(struct finder *finder, const struct nccl_event *event, uint32_t process)
{
	struct nccl_process *from = &finder->data->processes[process];
	uint32_t link = id_map_get(&finder->proxies, event->parent);
	uint64_t began = event->start + (uint64_t)event->proxy_step.wait * UNIT_TICKS;

	if (link == ID_MAP_NONE)
		return;
	finder->joined->links[link].bytes += event->proxy_step.bytes;
	if ((event->flags & NCCL_EVENT_STOPPED) && (event->a & 4) && event->stop > began)
		finder->joined->links[link].wait_ns +=
			clock_map_duration(&from->clock, event->stop - began);
}

static int take_event(const struct nccl_event *event, uint32_t process, uint32_t member,
		      void *context)
{
	struct finder *finder = context;

	if (member == NCCL_NONE)
		return 0;
	if (event->kind == NCCL_KIND_PROXY_OP)
		return take_proxy(finder, event, process, member);
	if (event->kind == NCCL_KIND_PROXY_STEP)
		take_step(finder, event, process);
	return 0;
}

/* ---- send and receive ---- */

static int take_p2p(const struct nccl_view *view, void *context)
{
	struct finder *finder = context;
	bool sends = finder->data->functions[view->function].function == NCCL_FUNCTION_SEND;
	uint32_t link;

	if (view->record->kind != NCCL_KIND_P2P || view->record->peer < 0 ||
	    !nccl_timing_is_own(view->timing))
		return 0;
	if (link_of(finder->joined, view->member, view->record->peer, sends, false, &link) < 0)
		return -ENOMEM;
	add_transfer(&finder->joined->links[link], view->duration_ns);
	finder->joined->links[link].bytes += view->record->bytes;
	return 0;
}

int nccl_links_find(struct nccl_data *data, struct nccl_joined *joined, struct problem *problem)
{
	int result = 0;

	for (uint32_t i = 0; result == 0 && i < data->process_count; i++) {
		struct finder finder = {data, joined, {0}};

		result = nccl_each_event(data, i, take_event, &finder, problem);
		if (result == 0)
			result = nccl_each_operation(data, i, take_p2p, &finder, problem);
		id_map_deinit(&finder.proxies);
	}
	return result;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See plan_flow.h. Cuts of two edges are found as in Pritchard and Thurimella, Fast Computation of
 * Small Cuts via Cycle Space Sampling: every edge outside a spanning tree has a random number,
 * every edge of the tree the sum (exclusive or) of those whose cycles it lies on. Two edges with
 * the same sum are a cut; that others have the same by chance is as likely as 2 to the -64.
 *
 * A block is an edge between two nodes, where control enters and where it leaves it; one node more
 * is the world outside.
 */
#include "binary/plan_flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/blocks_internal.h"

struct flow_graph {
	uint32_t block_count, node_count, edge_count;
	uint32_t *ends;             /* two nodes for each edge; edges of blocks come first */
	uint32_t *first, *adjacent; /* edges of each node */
	uint32_t *order;            /* nodes as they were found */
	uint32_t *above;            /* of each node, the edge that it was found by */
	uint64_t *sums;             /* of each node */
};

static uint64_t random_number(uint64_t number)
{
	number = (number + 1) * 0x9e3779b97f4a7c15;
	number = (number ^ number >> 30) * 0xbf58476d1ce4e5b9;
	number = (number ^ number >> 27) * 0x94d049bb133111eb;
	return number ^ number >> 31;
}

static uint32_t node_in(uint32_t block)
{
	return 2 * block;
}

static uint32_t node_out(uint32_t block)
{
	return 2 * block + 1;
}

static int make_room(struct plan_flow *flow, const struct blocks *blocks, struct flow_graph *graph)
{
	size_t nodes = 2 * (size_t)blocks->count + 1;
	size_t edges = 3 * (size_t)blocks->count + blocks->successor_count;
	uint32_t *next;

	if (blocks_reserve(&flow->labels, &flow->label_capacity, blocks->count,
			   sizeof(*flow->labels)) ||
	    blocks_reserve(&flow->values, &flow->value_capacity, nodes, sizeof(*flow->values)) ||
	    blocks_reserve(&flow->indices, &flow->index_capacity, 3 * nodes + 1 + 4 * edges,
			   sizeof(*flow->indices)))
		return -ENOMEM;
	next = flow->indices;
	*graph = (struct flow_graph){.block_count = blocks->count,
				     .node_count = (uint32_t)nodes,
				     .first = next,
				     .order = next + nodes + 1,
				     .above = next + 2 * nodes + 1,
				     .ends = next + 3 * nodes + 1,
				     .adjacent = next + 3 * nodes + 1 + 2 * edges,
				     .sums = flow->values};
	memset(flow->values, 0, nodes * sizeof(*flow->values));
	return 0;
}

static void add_edge(struct flow_graph *graph, uint32_t from, uint32_t to)
{
	graph->ends[2 * graph->edge_count] = from;
	graph->ends[2 * graph->edge_count++ + 1] = to;
}

static void add_edges(struct flow_graph *graph, const struct blocks *blocks, const uint8_t *kinds)
{
	const uint32_t outside = graph->node_count - 1;

	for (uint32_t i = 0; i < blocks->count; i++)
		add_edge(graph, node_in(i), node_out(i));
	for (uint32_t i = 0; i < blocks->count; i++) {
		const struct block *block = &blocks->list[i];

		if (kinds[i] & PLAN_FLOW_NOWHERE)
			continue;
		for (uint32_t k = 0; k < block->successor_count; k++)
			add_edge(graph, node_out(i),
				 node_in(blocks->successors[block->first_successor + k]));
		if (kinds[i] & PLAN_FLOW_LEAVES)
			add_edge(graph, node_out(i), outside);
		if (kinds[i] & PLAN_FLOW_ENTERED)
			add_edge(graph, outside, node_in(i));
	}
}

static void sort_edges(struct flow_graph *graph)
{
	uint32_t *first = graph->first, sum = 0;

	memset(first, 0, ((size_t)graph->node_count + 1) * sizeof(*first));
	for (uint32_t i = 0; i < 2 * graph->edge_count; i++)
		first[graph->ends[i]]++;
	for (uint32_t i = 0; i <= graph->node_count; i++) {
		sum += first[i];
		first[i] = sum;
	}
	for (uint32_t i = 0; i < 2 * graph->edge_count; i++)
		graph->adjacent[--first[graph->ends[i]]] = i / 2;
}

static uint32_t other_end(const struct flow_graph *graph, uint32_t edge, uint32_t node)
{
	return graph->ends[2 * edge] ^ graph->ends[2 * edge + 1] ^ node;
}

/* A spanning tree of each part, breadth first. Roots have no edge above them. */
static void span(struct flow_graph *graph)
{
	const uint32_t unseen = BLOCKS_NONE - 1;
	uint32_t found = 0;

	for (uint32_t i = 0; i < graph->node_count; i++)
		graph->above[i] = unseen;
	for (uint32_t root = graph->node_count; root-- > 0;) {
		uint32_t next = found;

		if (graph->above[root] != unseen)
			continue;
		graph->above[root] = BLOCKS_NONE;
		graph->order[found++] = root;
		for (; next < found; next++) {
			uint32_t node = graph->order[next];

			for (uint32_t i = graph->first[node]; i < graph->first[node + 1]; i++) {
				uint32_t to = other_end(graph, graph->adjacent[i], node);
				if (graph->above[to] != unseen)
					continue;
				graph->above[to] = graph->adjacent[i];
				graph->order[found++] = to;
			}
		}
	}
}

static void label(const struct flow_graph *graph, uint64_t *labels)
{
	for (uint32_t i = 0; i < graph->edge_count; i++) {
		uint32_t from = graph->ends[2 * i], to = graph->ends[2 * i + 1];
		uint64_t number = random_number(i);

		if (graph->above[from] == i || graph->above[to] == i)
			continue;
		graph->sums[from] ^= number;
		graph->sums[to] ^= number;
		if (i < graph->block_count)
			labels[i] = number;
	}
	for (uint32_t i = graph->node_count; i-- > 0;) {
		uint32_t node = graph->order[i], edge = graph->above[node];

		if (edge == BLOCKS_NONE)
			continue;
		graph->sums[other_end(graph, edge, node)] ^= graph->sums[node];
		if (edge < graph->block_count)
			labels[edge] = graph->sums[node];
	}
}

int plan_flow_find(struct plan_flow *flow, const struct blocks *blocks, const uint8_t *kinds)
{
	struct flow_graph graph;

	if (make_room(flow, blocks, &graph))
		return -ENOMEM;
	add_edges(&graph, blocks, kinds);
	sort_edges(&graph);
	span(&graph);
	label(&graph, flow->labels);
	for (uint32_t i = 0; i < blocks->count; i++) {
		if (kinds[i] & PLAN_FLOW_NOWHERE)
			flow->labels[i] = 0;
	}
	return 0;
}

void plan_flow_deinit(struct plan_flow *flow)
{
	free(flow->labels);
	free(flow->values);
	free(flow->indices);
	memset(flow, 0, sizeof(*flow));
}

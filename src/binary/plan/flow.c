/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See flow.h. Cuts of two edges are found as in Pritchard and Thurimella, Fast Computation of
 * Small Cuts via Cycle Space Sampling: every edge outside a spanning tree has a random number,
 * every edge of the tree the sum (exclusive or) of those whose cycles it lies on. Two edges with
 * the same sum are a cut; that others have the same by chance is as likely as 2 to the -64.
 *
 * A block is an edge between two nodes, where control enters and where it leaves it; one node more
 * is the world outside.
 */
#include "binary/plan/flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "binary/functions/blocks_private.h"
#include "common/splitmix64.h"

struct flow_graph {
	uint32_t block_count, node_count, edge_count;
	uint32_t *edge_ends; /* two nodes for each edge; edges of blocks come first */
	uint32_t *first_adjacent, *adjacent_edges; /* edges of each node */
	uint32_t *order;                           /* nodes as they were found */
	uint32_t *parent_edges;                    /* of each node, the edge that it was found by */
	uint64_t *sums;                            /* of each node */
};

static uint64_t get_edge_random_number(uint64_t number)
{
	return splitmix64_mix((number + 1) * SPLITMIX64_STEP);
}

static uint32_t block_to_entry_node(uint32_t block)
{
	return 2 * block;
}

static uint32_t block_to_exit_node(uint32_t block)
{
	return 2 * block + 1;
}

static int allocate_flow_graph(struct plan_block_flow_labels *flow,
			       const struct basic_blocks *blocks, struct flow_graph *graph)
{
	size_t nodes = 2 * (size_t)blocks->count + 1;
	size_t edges = 3 * (size_t)blocks->count + blocks->successor_count;
	uint32_t *next;

	if (blocks_grow_any_array(&flow->labels, &flow->label_capacity, blocks->count,
				  sizeof(*flow->labels)) ||
	    blocks_grow_any_array(&flow->node_sums, &flow->node_sum_capacity, nodes,
				  sizeof(*flow->node_sums)) ||
	    blocks_grow_any_array(&flow->graph_arrays, &flow->graph_array_capacity,
				  3 * nodes + 1 + 4 * edges, sizeof(*flow->graph_arrays)))
		return -ENOMEM;
	next = flow->graph_arrays;
	*graph = (struct flow_graph){.block_count = blocks->count,
				     .node_count = (uint32_t)nodes,
				     .first_adjacent = next,
				     .order = next + nodes + 1,
				     .parent_edges = next + 2 * nodes + 1,
				     .edge_ends = next + 3 * nodes + 1,
				     .adjacent_edges = next + 3 * nodes + 1 + 2 * edges,
				     .sums = flow->node_sums};
	memset(flow->node_sums, 0, nodes * sizeof(*flow->node_sums));
	return 0;
}

static void add_flow_edge(struct flow_graph *graph, uint32_t from, uint32_t to)
{
	graph->edge_ends[2 * graph->edge_count] = from;
	graph->edge_ends[2 * graph->edge_count++ + 1] = to;
}

static void add_all_flow_edges(struct flow_graph *graph, const struct basic_blocks *blocks,
			       const uint8_t *kinds)
{
	const uint32_t outside = graph->node_count - 1;

	for (uint32_t i = 0; i < blocks->count; i++)
		add_flow_edge(graph, block_to_entry_node(i), block_to_exit_node(i));
	for (uint32_t i = 0; i < blocks->count; i++) {
		const struct basic_block *block = &blocks->list[i];

		if (kinds[i] & PLAN_FLOW_NEVER_EXECUTED)
			continue;
		for (uint32_t k = 0; k < block->successor_count; k++)
			add_flow_edge(graph, block_to_exit_node(i),
				      block_to_entry_node(
					      blocks->successors[block->first_successor + k]));
		if (kinds[i] & PLAN_FLOW_LEAVES_GRAPH)
			add_flow_edge(graph, block_to_exit_node(i), outside);
		if (kinds[i] & PLAN_FLOW_ENTERS_GRAPH)
			add_flow_edge(graph, outside, block_to_entry_node(i));
	}
}

static void group_edges_by_node(struct flow_graph *graph)
{
	uint32_t *first = graph->first_adjacent, sum = 0;

	memset(first, 0, ((size_t)graph->node_count + 1) * sizeof(*first));
	for (uint32_t i = 0; i < 2 * graph->edge_count; i++)
		first[graph->edge_ends[i]]++;
	for (uint32_t i = 0; i <= graph->node_count; i++) {
		sum += first[i];
		first[i] = sum;
	}
	for (uint32_t i = 0; i < 2 * graph->edge_count; i++)
		graph->adjacent_edges[--first[graph->edge_ends[i]]] = i / 2;
}

static uint32_t get_edge_other_end(const struct flow_graph *graph, uint32_t edge, uint32_t node)
{
	return graph->edge_ends[2 * edge] ^ graph->edge_ends[2 * edge + 1] ^ node;
}

/* A spanning tree of each part, breadth first. Roots have no edge above them. */
static void build_spanning_tree(struct flow_graph *graph)
{
	const uint32_t unseen = BLOCKS_INDEX_NONE - 1;
	uint32_t found = 0;

	for (uint32_t i = 0; i < graph->node_count; i++)
		graph->parent_edges[i] = unseen;
	for (uint32_t root = graph->node_count; root-- > 0;) {
		uint32_t next = found;

		if (graph->parent_edges[root] != unseen)
			continue;
		graph->parent_edges[root] = BLOCKS_INDEX_NONE;
		graph->order[found++] = root;
		for (; next < found; next++) {
			uint32_t node = graph->order[next];

			for (uint32_t i = graph->first_adjacent[node];
			     i < graph->first_adjacent[node + 1]; i++) {
				uint32_t to =
					get_edge_other_end(graph, graph->adjacent_edges[i], node);
				if (graph->parent_edges[to] != unseen)
					continue;
				graph->parent_edges[to] = graph->adjacent_edges[i];
				graph->order[found++] = to;
			}
		}
	}
}

static void label_equally_executed_blocks(const struct flow_graph *graph, uint64_t *labels)
{
	for (uint32_t i = 0; i < graph->edge_count; i++) {
		uint32_t from = graph->edge_ends[2 * i], to = graph->edge_ends[2 * i + 1];
		uint64_t number = get_edge_random_number(i);

		if (graph->parent_edges[from] == i || graph->parent_edges[to] == i)
			continue;
		graph->sums[from] ^= number;
		graph->sums[to] ^= number;
		if (i < graph->block_count)
			labels[i] = number;
	}
	for (uint32_t i = graph->node_count; i-- > 0;) {
		uint32_t node = graph->order[i], edge = graph->parent_edges[node];

		if (edge == BLOCKS_INDEX_NONE)
			continue;
		graph->sums[get_edge_other_end(graph, edge, node)] ^= graph->sums[node];
		if (edge < graph->block_count)
			labels[edge] = graph->sums[node];
	}
}

int plan_label_equally_executed_blocks(struct plan_block_flow_labels *flow,
				       const struct basic_blocks *blocks, const uint8_t *kinds)
{
	struct flow_graph graph;

	if (allocate_flow_graph(flow, blocks, &graph))
		return -ENOMEM;
	add_all_flow_edges(&graph, blocks, kinds);
	group_edges_by_node(&graph);
	build_spanning_tree(&graph);
	label_equally_executed_blocks(&graph, flow->labels);
	for (uint32_t i = 0; i < blocks->count; i++) {
		if (kinds[i] & PLAN_FLOW_NEVER_EXECUTED)
			flow->labels[i] = 0;
	}
	return 0;
}

void plan_block_flow_labels_deinit(struct plan_block_flow_labels *flow)
{
	free(flow->labels);
	free(flow->node_sums);
	free(flow->graph_arrays);
	memset(flow, 0, sizeof(*flow));
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Natural loops: an edge that leads back to a block through which every way to the edge's source
 * leads. A depth-first walk finds the edges that lead back at all; most functions have none, and
 * only for the others are dominators computed (Cooper, Harvey and Kennedy, A Simple, Fast Dominance
 * Algorithm).
 *
 * The walk begins at the entry, then at each block that it has not seen. Edges that lead from such
 * a part into an earlier one (a landing pad that goes on in a loop) do not count for dominance:
 * otherwise no loop with a handler would be one.
 */
#include <errno.h>
#include <string.h>

#include "binary/blocks_internal.h"

struct graph {
	struct blocks *blocks;
	uint32_t *finished;  /* number in postorder; BLOCKS_NONE: not yet */
	uint32_t *root;      /* of the walk that found the block; BLOCKS_NONE: not found */
	uint32_t *order;     /* blocks in postorder */
	uint32_t *stack;     /* of the walk */
	uint32_t *position;  /* successors of each block that were followed */
	uint32_t *dominator; /* immediate */
	uint32_t *first_predecessor, *predecessors;
	uint32_t finished_count;
	bool leads_back;
};

static int graph_init(struct graph *graph, struct blocks *blocks)
{
	struct blocks_workspace *workspace = blocks->workspace;
	size_t count = blocks->count;
	uint32_t *next;
	int error =
		blocks_reserve(&workspace->graph, &workspace->graph_capacity,
			       7 * count + 1 + blocks->successor_count, sizeof(*workspace->graph));

	if (error)
		return error;
	next = workspace->graph;
	*graph = (struct graph){.blocks = blocks,
				.finished = next,
				.root = next + count,
				.order = next + 2 * count,
				.stack = next + 3 * count,
				.position = next + 4 * count,
				.dominator = next + 5 * count,
				.first_predecessor = next + 6 * count,
				.predecessors = next + 7 * count + 1};
	/* Also BLOCKS_NONE in each of `root`. */
	memset(graph->finished, 0xff, 2 * count * sizeof(*graph->finished));
	return 0;
}

static void walk(struct graph *graph, uint32_t from)
{
	const struct blocks *blocks = graph->blocks;
	uint32_t depth = 0;

	graph->root[from] = from;
	graph->position[from] = 0;
	graph->stack[depth++] = from;
	while (depth) {
		uint32_t at = graph->stack[depth - 1], to;
		const struct block *block = &blocks->list[at];
		if (graph->position[at] == block->successor_count) {
			graph->finished[at] = graph->finished_count;
			graph->order[graph->finished_count++] = at;
			depth--;
			continue;
		}
		to = blocks->successors[block->first_successor + graph->position[at]++];
		if (graph->root[to] == BLOCKS_NONE) {
			graph->root[to] = from;
			graph->position[to] = 0;
			graph->stack[depth++] = to;
		} else if (graph->finished[to] == BLOCKS_NONE) {
			graph->leads_back = true;
		}
	}
}

static void find_predecessors(struct graph *graph)
{
	const struct blocks *blocks = graph->blocks;
	uint32_t *first = graph->first_predecessor, sum = 0;

	memset(first, 0, ((size_t)blocks->count + 1) * sizeof(*first));
	for (uint32_t i = 0; i < blocks->successor_count; i++)
		first[blocks->successors[i]]++;
	for (uint32_t i = 0; i <= blocks->count; i++) {
		sum += first[i];
		first[i] = sum;
	}
	for (uint32_t i = 0; i < blocks->count; i++) {
		const struct block *block = &blocks->list[i];
		for (uint32_t k = 0; k < block->successor_count; k++) {
			uint32_t to = blocks->successors[block->first_successor + k];
			graph->predecessors[--first[to]] = i;
		}
	}
}

static uint32_t common_dominator(const struct graph *graph, uint32_t left, uint32_t right)
{
	while (left != right) {
		while (graph->finished[left] < graph->finished[right])
			left = graph->dominator[left];
		while (graph->finished[right] < graph->finished[left])
			right = graph->dominator[right];
	}
	return left;
}

static uint32_t meet_predecessors(const struct graph *graph, uint32_t at)
{
	uint32_t dominator = BLOCKS_NONE;

	for (uint32_t i = graph->first_predecessor[at]; i < graph->first_predecessor[at + 1]; i++) {
		uint32_t from = graph->predecessors[i];
		if (graph->root[from] != graph->root[at] || graph->dominator[from] == BLOCKS_NONE)
			continue;
		dominator =
			dominator == BLOCKS_NONE ? from : common_dominator(graph, dominator, from);
	}
	return dominator;
}

static void find_dominators(struct graph *graph)
{
	bool changed = true;

	find_predecessors(graph);
	for (uint32_t i = 0; i < graph->blocks->count; i++)
		graph->dominator[i] = graph->root[i] == i ? i : BLOCKS_NONE;
	while (changed) {
		changed = false;
		for (uint32_t i = graph->finished_count; i-- > 0;) {
			uint32_t at = graph->order[i], dominator;
			if (graph->root[at] == at)
				continue;
			dominator = meet_predecessors(graph, at);
			changed |= dominator != graph->dominator[at];
			graph->dominator[at] = dominator;
		}
	}
}

static bool dominates(const struct graph *graph, uint32_t above, uint32_t at)
{
	while (graph->finished[at] < graph->finished[above])
		at = graph->dominator[at];
	return at == above;
}

/* An edge to a block that finishes later leads back, or to itself. */
static void mark_heads(struct graph *graph)
{
	struct blocks *blocks = graph->blocks;

	for (uint32_t i = 0; i < blocks->count; i++) {
		const struct block *block = &blocks->list[i];
		for (uint32_t k = 0; k < block->successor_count; k++) {
			uint32_t to = blocks->successors[block->first_successor + k];
			if (graph->finished[to] < graph->finished[i] ||
			    graph->root[to] != graph->root[i] || blocks->list[to].is_loop_head ||
			    !dominates(graph, to, i))
				continue;
			blocks->list[to].is_loop_head = true;
			blocks->loops++;
		}
	}
}

int blocks_find_loops(struct blocks *blocks)
{
	struct graph graph;
	int error = graph_init(&graph, blocks);

	if (error)
		return error;
	for (uint32_t i = 0; i < blocks->count; i++) {
		if (graph.root[i] != BLOCKS_NONE)
			continue;
		blocks->list[i].is_root = true;
		walk(&graph, i);
	}
	if (graph.leads_back) {
		find_dominators(&graph);
		mark_heads(&graph);
	}
	return 0;
}

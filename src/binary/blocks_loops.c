/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Natural loops: an edge that leads back to a block through which every way to the edge's source
 * leads. A depth-first walk finds the edges that lead back at all; most functions have none, and
 * only for the others are dominators computed (after Cooper, Harvey and Kennedy, A Simple, Fast
 * Dominance Algorithm).
 *
 * The walk begins at the entry, then at each block that it has not seen. Edges that lead from such
 * a part into an earlier one (a landing pad that goes on in a loop) do not count for dominance:
 * otherwise no loop with a handler would be one.
 *
 * Blocks are known by their number in postorder: those of a part are behind those of the parts
 * before it, its root is the last, and an edge leads back where it leads to a number that is not
 * lower.
 */
#include <errno.h>
#include <string.h>

#include "binary/blocks_internal.h"

#define NOT_FOUND    BLOCKS_NONE /* as a number: the walk has not been there */
#define NOT_FINISHED (BLOCKS_NONE - 1)

/* A block on the way to where the walk is, and which of its successors is next. */
struct step {
	uint32_t at, next, end;
};

struct graph {
	struct blocks *blocks;
	uint32_t *number;    /* of each block */
	uint32_t *order;     /* the block of each number */
	uint32_t *dominator; /* immediate; numbers, by number */
	struct step *steps;
	uint32_t low, count; /* numbers of the part begin here; numbers given */
	bool leads_back;     /* an edge of the part does */
};

static int graph_init(struct graph *graph, struct blocks *blocks)
{
	struct blocks_workspace *workspace = blocks->workspace;
	size_t count = blocks->count;
	int error = blocks_reserve(&workspace->graph, &workspace->graph_capacity, 3 * count + 1,
				   sizeof(*workspace->graph));

	if (!error)
		error = blocks_reserve(&workspace->steps, &workspace->step_capacity, count + 1,
				       sizeof(struct step));
	if (error)
		return error;
	*graph = (struct graph){.blocks = blocks,
				.number = workspace->graph,
				.order = workspace->graph + count,
				.dominator = workspace->graph + 2 * count,
				.steps = workspace->steps};
	memset(graph->number, 0xff, count * sizeof(*graph->number));
	return 0;
}

static struct step enter(struct graph *graph, uint32_t at)
{
	const struct block *block = &graph->blocks->list[at];

	graph->number[at] = NOT_FINISHED;
	return (struct step){at, block->first_successor,
			     block->first_successor + block->successor_count};
}

static void walk(struct graph *graph, uint32_t from)
{
	const uint32_t *successors = graph->blocks->successors;
	uint32_t depth = 0;

	graph->low = graph->count;
	graph->leads_back = false;
	graph->steps[depth++] = enter(graph, from);
	while (depth) {
		struct step *step = &graph->steps[depth - 1];
		uint32_t to;
		if (step->next == step->end) {
			graph->number[step->at] = graph->count;
			graph->order[graph->count++] = step->at;
			depth--;
			continue;
		}
		to = successors[step->next++];
		if (graph->number[to] == NOT_FOUND)
			graph->steps[depth++] = enter(graph, to);
		else
			graph->leads_back |= graph->number[to] == NOT_FINISHED;
	}
}

static uint32_t common_dominator(const uint32_t *dominator, uint32_t left, uint32_t right)
{
	while (left != right) {
		while (left < right)
			left = dominator[left];
		while (right < left)
			right = dominator[right];
	}
	return left;
}

/* What is dominated may only turn out to be less so; false: nothing did. */
static bool pass_on(const struct graph *graph, uint32_t from, uint32_t below)
{
	const struct block *block = &graph->blocks->list[graph->order[from]];
	const uint32_t *successors = graph->blocks->successors + block->first_successor;
	uint32_t *dominator = graph->dominator;
	bool changed = false;

	for (uint32_t k = 0; k < block->successor_count; k++) {
		uint32_t to = graph->number[successors[k]], before;
		if (to < graph->low || to >= below)
			continue;
		before = dominator[to];
		dominator[to] =
			before == BLOCKS_NONE ? from : common_dominator(dominator, before, from);
		changed |= dominator[to] != before;
	}
	return changed;
}

static bool dominates(const struct graph *graph, uint32_t above, uint32_t at)
{
	while (at < above)
		at = graph->dominator[at];
	return at == above;
}

/* The next edge that leads back, from the one that *from and *k are at on. */
static bool edge_back(const struct graph *graph, uint32_t *from, uint32_t *k, uint32_t *ret_to)
{
	for (; *from < graph->count; ++*from, *k = 0) {
		const struct block *block = &graph->blocks->list[graph->order[*from]];
		while (*k < block->successor_count) {
			uint32_t at = graph->blocks->successors[block->first_successor + (*k)++];
			*ret_to = graph->number[at];
			if (*ret_to >= *from)
				return true;
		}
	}
	return false;
}

/* Without the edges that lead back, once is enough. These change nothing as long as each leads to
 * what dominates its source, which only loops with several entries do not. */
static void find_dominators(struct graph *graph)
{
	uint32_t last = graph->count - 1, from = graph->low, k = 0, to;
	bool changed = false;

	memset(graph->dominator + graph->low, 0xff,
	       (graph->count - graph->low) * sizeof(*graph->dominator));
	graph->dominator[last] = last;
	for (uint32_t i = last; i > graph->low; i--)
		pass_on(graph, i, i);
	while (!changed && edge_back(graph, &from, &k, &to))
		changed = !dominates(graph, to, from);
	while (changed) {
		changed = false;
		for (uint32_t i = last + 1; i-- > graph->low;)
			changed |= pass_on(graph, i, last);
	}
}

static void mark_heads(struct graph *graph)
{
	struct blocks *blocks = graph->blocks;
	uint32_t from = graph->low, k = 0, to;

	while (edge_back(graph, &from, &k, &to)) {
		struct block *head = &blocks->list[graph->order[to]];
		if (head->is_loop_head || !dominates(graph, to, from))
			continue;
		head->is_loop_head = true;
		blocks->loops++;
	}
}

/* No loop without an edge to a block that does not lie further on. */
static bool runs_forward(const struct blocks *blocks)
{
	for (uint32_t i = 0; i < blocks->count; i++) {
		const struct block *block = &blocks->list[i];
		const uint32_t *successors = blocks->successors + block->first_successor;
		for (uint32_t k = 0; k < block->successor_count; k++) {
			if (successors[k] <= i)
				return false;
		}
	}
	return true;
}

/* The walk's roots, where it would come to each block from an earlier one. */
static void mark_roots(struct graph *graph)
{
	struct blocks *blocks = graph->blocks;

	for (uint32_t i = 0; i < blocks->successor_count; i++)
		graph->number[blocks->successors[i]] = 0;
	for (uint32_t i = 0; i < blocks->count; i++)
		blocks->list[i].is_root = graph->number[i] == NOT_FOUND;
}

int blocks_find_loops(struct blocks *blocks)
{
	struct graph graph;
	int error = graph_init(&graph, blocks);

	if (error)
		return error;
	if (runs_forward(blocks)) {
		mark_roots(&graph);
		return 0;
	}
	for (uint32_t i = 0; i < blocks->count; i++) {
		if (graph.number[i] != NOT_FOUND)
			continue;
		blocks->list[i].is_root = true;
		walk(&graph, i);
		if (graph.leads_back) {
			find_dominators(&graph);
			mark_heads(&graph);
		}
	}
	return 0;
}

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

#include "binary/functions/blocks_private.h"

#define BLOCK_NOT_WALKED      BLOCKS_INDEX_NONE /* as a number: the walk has not been there */
#define BLOCK_WALK_UNFINISHED (BLOCKS_INDEX_NONE - 1)

/* A block on the way to where the walk is, and which of its successors is next. */
struct block_walk_entry {
	uint32_t at, next, end;
};

struct loop_search_state {
	struct basic_blocks *blocks;
	uint32_t *number_by_block;     /* of each block */
	uint32_t *block_by_number;     /* the block of each number */
	uint32_t *dominator_by_number; /* immediate; numbers, by number */
	struct block_walk_entry *walk_stack;
	uint32_t first_number, count; /* numbers of the part begin here; numbers given */
	bool has_back_edge;           /* an edge of the part does */
};

static int init_loop_search(struct loop_search_state *graph, struct basic_blocks *blocks)
{
	struct blocks_workspace *workspace = blocks->workspace;
	size_t count = blocks->count;
	int error = blocks_grow_any_array(&workspace->graph, &workspace->graph_capacity,
					  3 * count + 1, sizeof(*workspace->graph));

	if (!error)
		error = blocks_grow_any_array(&workspace->walk_stack,
					      &workspace->walk_stack_capacity, count + 1,
					      sizeof(struct block_walk_entry));
	if (error)
		return error;
	*graph = (struct loop_search_state){.blocks = blocks,
					    .number_by_block = workspace->graph,
					    .block_by_number = workspace->graph + count,
					    .dominator_by_number = workspace->graph + 2 * count,
					    .walk_stack = workspace->walk_stack};
	memset(graph->number_by_block, 0xff, count * sizeof(*graph->number_by_block));
	return 0;
}

static struct block_walk_entry create_walk_entry_of_block(struct loop_search_state *graph,
							  uint32_t at)
{
	const struct basic_block *block = &graph->blocks->list[at];

	graph->number_by_block[at] = BLOCK_WALK_UNFINISHED;
	return (struct block_walk_entry){at, block->first_successor,
					 block->first_successor + block->successor_count};
}

static void walk_depth_first(struct loop_search_state *graph, uint32_t from)
{
	const uint32_t *successors = graph->blocks->successors;
	uint32_t depth = 0;

	graph->first_number = graph->count;
	graph->has_back_edge = false;
	graph->walk_stack[depth++] = create_walk_entry_of_block(graph, from);
	while (depth) {
		struct block_walk_entry *step = &graph->walk_stack[depth - 1];
		uint32_t to;
		if (step->next == step->end) {
			graph->number_by_block[step->at] = graph->count;
			graph->block_by_number[graph->count++] = step->at;
			depth--;
			continue;
		}
		to = successors[step->next++];
		if (graph->number_by_block[to] == BLOCK_NOT_WALKED)
			graph->walk_stack[depth++] = create_walk_entry_of_block(graph, to);
		else
			graph->has_back_edge |= graph->number_by_block[to] == BLOCK_WALK_UNFINISHED;
	}
}

static uint32_t find_common_dominator(const uint32_t *dominator, uint32_t left, uint32_t right)
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
static bool update_successor_dominators(const struct loop_search_state *graph, uint32_t from,
					uint32_t below)
{
	const struct basic_block *block = &graph->blocks->list[graph->block_by_number[from]];
	const uint32_t *successors = graph->blocks->successors + block->first_successor;
	uint32_t *dominator = graph->dominator_by_number;
	bool changed = false;

	for (uint32_t k = 0; k < block->successor_count; k++) {
		uint32_t to = graph->number_by_block[successors[k]], before;
		if (to < graph->first_number || to >= below)
			continue;
		before = dominator[to];
		dominator[to] = before == BLOCKS_INDEX_NONE
					? from
					: find_common_dominator(dominator, before, from);
		changed |= dominator[to] != before;
	}
	return changed;
}

static bool block_dominates(const struct loop_search_state *graph, uint32_t above, uint32_t at)
{
	while (at < above)
		at = graph->dominator_by_number[at];
	return at == above;
}

/* The next edge that leads back, from the one that *from and *k are at on. */
static bool find_next_back_edge(const struct loop_search_state *graph, uint32_t *from, uint32_t *k,
				uint32_t *ret_to)
{
	for (; *from < graph->count; ++*from, *k = 0) {
		const struct basic_block *block =
			&graph->blocks->list[graph->block_by_number[*from]];
		while (*k < block->successor_count) {
			uint32_t at = graph->blocks->successors[block->first_successor + (*k)++];
			*ret_to = graph->number_by_block[at];
			if (*ret_to >= *from)
				return true;
		}
	}
	return false;
}

/* Without the edges that lead back, once is enough. These change nothing as long as each leads to
 * what dominates its source, which only loops with several entries do not. */
static void find_dominators(struct loop_search_state *graph)
{
	uint32_t last = graph->count - 1, from = graph->first_number, k = 0, to;
	bool changed = false;

	memset(graph->dominator_by_number + graph->first_number, 0xff,
	       (graph->count - graph->first_number) * sizeof(*graph->dominator_by_number));
	graph->dominator_by_number[last] = last;
	for (uint32_t i = last; i > graph->first_number; i--)
		update_successor_dominators(graph, i, i);
	while (!changed && find_next_back_edge(graph, &from, &k, &to))
		changed = !block_dominates(graph, to, from);
	while (changed) {
		changed = false;
		for (uint32_t i = last + 1; i-- > graph->first_number;)
			changed |= update_successor_dominators(graph, i, last);
	}
}

static void mark_loop_heads(struct loop_search_state *graph)
{
	struct basic_blocks *blocks = graph->blocks;
	uint32_t from = graph->first_number, k = 0, to;

	while (find_next_back_edge(graph, &from, &k, &to)) {
		struct basic_block *head = &blocks->list[graph->block_by_number[to]];
		if (head->is_loop_head || !block_dominates(graph, to, from))
			continue;
		head->is_loop_head = true;
		blocks->loops++;
	}
}

/* No loop without an edge to a block that does not lie further on. */
static bool all_edges_lead_forward(const struct basic_blocks *blocks)
{
	for (uint32_t i = 0; i < blocks->count; i++) {
		const struct basic_block *block = &blocks->list[i];
		const uint32_t *successors = blocks->successors + block->first_successor;
		for (uint32_t k = 0; k < block->successor_count; k++) {
			if (successors[k] <= i)
				return false;
		}
	}
	return true;
}

/* The walk's roots, where it would come to each block from an earlier one. */
static void mark_blocks_without_predecessor(struct loop_search_state *graph)
{
	struct basic_blocks *blocks = graph->blocks;

	for (uint32_t i = 0; i < blocks->successor_count; i++)
		graph->number_by_block[blocks->successors[i]] = 0;
	for (uint32_t i = 0; i < blocks->count; i++)
		blocks->list[i].is_root = graph->number_by_block[i] == BLOCK_NOT_WALKED;
}

int blocks_find_loops(struct basic_blocks *blocks)
{
	struct loop_search_state graph;
	int error = init_loop_search(&graph, blocks);

	if (error)
		return error;
	if (all_edges_lead_forward(blocks)) {
		mark_blocks_without_predecessor(&graph);
		return 0;
	}
	for (uint32_t i = 0; i < blocks->count; i++) {
		if (graph.number_by_block[i] != BLOCK_NOT_WALKED)
			continue;
		blocks->list[i].is_root = true;
		walk_depth_first(&graph, i);
		if (graph.has_back_edge) {
			find_dominators(&graph);
			mark_loop_heads(&graph);
		}
	}
	return 0;
}

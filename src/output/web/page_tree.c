/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include "output/web/page_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE_THREADS_MAX     1000u
#define PAGE_THREAD_ROWS_MAX 80000u

struct tree_reducer {
	const struct session *session;
	const struct function_tree *functions;
	struct page_tree *tree;
	uint64_t *inclusive_importance; /* by function node */
	uint32_t *place; /* by function node: its node in the page, MODEL_ENTRY_INDEX_NONE if left
			    out */
	uint32_t *rest;  /* by node of the page: the node for its small branches, or 0 */
	uint32_t *function_of_id; /* by function id, then one for the rest: number in the page */
	size_t *row_of;           /* by page node, for the thread in progress */
};

/* ---- threads ---- */

struct ranked_thread {
	uint64_t weight;
	uint32_t index, row_count;
};

static int compare_threads_by_weight(const void *left, const void *right)
{
	const struct ranked_thread *a = left, *b = right;

	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

/* The busiest threads; a thread with more rows than there is room for is left out, and the next one
 * may fit. By index; NULL: no memory. */
static bool *choose_listed_threads(const struct session *session,
				   const struct view_thread_node_row *rows, size_t count)
{
	struct ranked_thread *ranks = calloc((size_t)session->thread_count + 1, sizeof(*ranks));
	bool *is_listed = calloc((size_t)session->thread_count + 1, sizeof(*is_listed));
	size_t row_count = 0, listed = 0;

	for (uint32_t i = 0; ranks != NULL && i < session->thread_count; i++) {
		ranks[i] = (struct ranked_thread){session->threads[i].cpu_ns, i, 0};
		for (int source = 0; source < SPOOL_SOURCE_COUNT; source++)
			ranks[i].weight += session->threads[i].weight[source];
	}
	for (size_t i = 0; ranks != NULL && i < count; i++)
		ranks[rows[i].thread].row_count++;
	if (ranks != NULL)
		qsort(ranks, session->thread_count, sizeof(*ranks), compare_threads_by_weight);
	for (uint32_t i = 0; ranks != NULL && is_listed != NULL && i < session->thread_count &&
			     listed < PAGE_THREADS_MAX;
	     i++) {
		if (listed != 0 && row_count + ranks[i].row_count > PAGE_THREAD_ROWS_MAX)
			continue;
		row_count += ranks[i].row_count;
		is_listed[ranks[i].index] = true;
		listed++;
	}
	free(ranks);
	return is_listed;
}

/* The busiest threads, then for each process one that stands for its others. */
static int list_page_threads(struct page_tree *tree, const struct session *session,
			     const struct view_thread_node_row *rows, size_t count)
{
	bool *is_listed = choose_listed_threads(session, rows, count);
	int error = 0;

	tree->page_thread_of_thread = calloc((size_t)session->thread_count + 1, sizeof(uint32_t));
	tree->threads =
		calloc((size_t)session->thread_count + 2 * (size_t)session->process_count + 1,
		       sizeof(*tree->threads));
	if (is_listed == NULL || tree->page_thread_of_thread == NULL || tree->threads == NULL)
		error = -ENOMEM;
	for (uint32_t i = 0; error == 0 && i < session->thread_count; i++) {
		const struct model_thread *thread = &session->threads[i];
		if (!is_listed[i])
			continue;
		tree->page_thread_of_thread[i] = tree->thread_count;
		tree->threads[tree->thread_count++] =
			(struct page_thread){thread->name, thread->tid, thread->process, 1, false};
	}
	for (uint32_t i = 0, process = MODEL_ENTRY_INDEX_NONE;
	     error == 0 && i < session->thread_count; i++) {
		if (is_listed[i])
			continue;
		if (session->threads[i].process != process) {
			process = session->threads[i].process;
			tree->threads[tree->thread_count++] =
				(struct page_thread){"other threads", 0, process, 0, true};
		}
		tree->page_thread_of_thread[i] = tree->thread_count - 1;
		tree->threads[tree->thread_count - 1].count++;
	}
	free(is_listed);
	return error;
}

/* ---- which nodes stay ---- */

/* What a row counts for when branches are compared: its samples, and something for time that no
 * sample stands for. */
static uint64_t compute_row_importance(const struct view_thread_node_row *row)
{
	uint64_t samples = 0, weight = 0;

	for (int source = 0; source < MODEL_SOURCE_COUNT; source++) {
		samples += row->self_samples[source];
		weight += row->self_weight[source];
	}
	return samples != 0 || weight == 0 ? samples : 1;
}

/* Children stand behind their parents. */
static void sum_inclusive_importance(struct tree_reducer *reduction,
				     const struct view_thread_node_row *rows, size_t count)
{
	const struct function_tree *functions = reduction->functions;

	for (size_t i = 0; i < count; i++)
		reduction->inclusive_importance[functions->of_node[rows[i].node]] +=
			compute_row_importance(&rows[i]);
	for (uint32_t i = functions->count; i-- > 0;) {
		uint32_t parent = functions->nodes[i].parent;
		if (parent != MODEL_ENTRY_INDEX_NONE)
			reduction->inclusive_importance[parent] +=
				reduction->inclusive_importance[i];
	}
}

/* The least importance that leaves no more than `limit` nodes; at least one. */
static uint64_t find_importance_threshold(const struct tree_reducer *reduction, uint32_t limit)
{
	for (uint64_t threshold = 1;; threshold *= 2) {
		uint32_t kept = 0;
		for (uint32_t i = 0; i < reduction->functions->count; i++)
			kept += reduction->inclusive_importance[i] >= threshold;
		if (kept <= limit || threshold > UINT64_MAX / 2)
			return threshold;
	}
}

/* ---- functions ---- */

static struct page_function make_page_function(const struct session *session, uint32_t frame_index)
{
	const struct model_frame *frame = &session->frames[frame_index];

	return (struct page_function){
		.name = frame->function,
		.file = frame->file,
		.module = frame->module == MODEL_ENTRY_INDEX_NONE
				  ? NULL
				  : session->modules[frame->module].name,
		.line = frame->function_line != 0 ? frame->function_line : frame->line,
		.kind = frame->kind == FRAME_INLINE ? FRAME_NATIVE : frame->kind};
}

/* Functions are numbered in the order of their first node. */
static uint32_t find_or_add_function(struct tree_reducer *reduction, uint32_t frame)
{
	struct page_tree *tree = reduction->tree;
	uint32_t id = frame == MODEL_ENTRY_INDEX_NONE
			      ? reduction->session->function_count
			      : reduction->session->frames[frame].function_id;

	if (reduction->function_of_id[id] == MODEL_ENTRY_INDEX_NONE) {
		reduction->function_of_id[id] = tree->function_count;
		tree->functions[tree->function_count++] =
			frame == MODEL_ENTRY_INDEX_NONE
				? (struct page_function){.name = "[branches too small to show]",
							 .kind = FRAME_SYNTHETIC}
				: make_page_function(reduction->session, frame);
	}
	return reduction->function_of_id[id];
}

/* ---- nodes ---- */

static void add_kept_nodes(struct tree_reducer *reduction, uint64_t threshold)
{
	const struct function_tree *functions = reduction->functions;
	struct page_tree *tree = reduction->tree;

	for (uint32_t i = 0; i < functions->count; i++) {
		const struct function_node *node = &functions->nodes[i];
		reduction->place[i] = MODEL_ENTRY_INDEX_NONE;
		if (reduction->inclusive_importance[i] < threshold) {
			tree->dropped_node_count += reduction->inclusive_importance[i] != 0;
			continue;
		}
		reduction->place[i] = tree->node_count;
		tree->nodes[tree->node_count++] = (struct page_node){
			.parent = node->parent == MODEL_ENTRY_INDEX_NONE
					  ? MODEL_ENTRY_INDEX_NONE
					  : reduction->place[node->parent],
			.process = node->process,
			.function = find_or_add_function(reduction, node->frame)};
	}
}

/* Where the weight of a function node goes: itself, or the rest of its nearest kept caller. Roots
 * that are left out have no such caller and get a rest of their own. */
static uint32_t find_or_add_page_node(struct tree_reducer *reduction, uint32_t node)
{
	struct page_tree *tree = reduction->tree;
	uint32_t process = reduction->functions->nodes[node].process;

	if (reduction->place[node] != MODEL_ENTRY_INDEX_NONE)
		return reduction->place[node];
	uint32_t pruned = node, above = node;
	while (above != MODEL_ENTRY_INDEX_NONE &&
	       reduction->place[above] == MODEL_ENTRY_INDEX_NONE) {
		pruned = above;
		above = reduction->functions->nodes[above].parent;
	}
	uint32_t kept =
		above == MODEL_ENTRY_INDEX_NONE ? MODEL_ENTRY_INDEX_NONE : reduction->place[above];
	uint32_t rest = kept == MODEL_ENTRY_INDEX_NONE ? 0 : reduction->rest[kept];
	if (rest == 0) {
		rest = tree->node_count++;
		tree->nodes[rest] = (struct page_node){
			kept, process, find_or_add_function(reduction, MODEL_ENTRY_INDEX_NONE)};
		if (kept != MODEL_ENTRY_INDEX_NONE)
			reduction->rest[kept] = rest;
	}
	if (kept == MODEL_ENTRY_INDEX_NONE)
		reduction->place[pruned] = rest;
	return rest;
}

/* ---- rows ---- */

struct page_row *page_tree_add_row(struct page_tree *tree, uint32_t thread, uint32_t node)
{
	if (tree->row_count == tree->row_capacity) {
		size_t capacity = tree->row_capacity * 2 + 1024;
		struct page_row *rows = reallocarray(tree->rows, capacity, sizeof(*rows));
		if (rows == NULL)
			return NULL;
		tree->rows = rows;
		tree->row_capacity = capacity;
	}
	tree->rows[tree->row_count] = (struct page_row){.thread = thread, .node = node};
	return &tree->rows[tree->row_count++];
}

/* Rows of the same thread and page node become one. */
static int add_to_row(struct tree_reducer *reduction, uint32_t thread, size_t first,
		      const struct view_thread_node_row *source)
{
	struct page_tree *tree = reduction->tree;
	uint32_t node =
		find_or_add_page_node(reduction, reduction->functions->of_node[source->node]);
	size_t at = reduction->row_of[node];

	tree->page_node_of_node[source->node] = node;
	if (at < first || at >= tree->row_count || tree->rows[at].node != node) {
		at = reduction->row_of[node] = tree->row_count;
		if (page_tree_add_row(tree, thread, node) == NULL)
			return -ENOMEM;
	}
	for (int i = 0; i < MODEL_SOURCE_COUNT; i++) {
		tree->rows[at].values[2 * i] += source->self_weight[i];
		tree->rows[at].values[2 * i + 1] += source->self_samples[i];
		tree->column_totals[2 * i] += source->self_weight[i];
		tree->column_totals[2 * i + 1] += source->self_samples[i];
	}
	return 0;
}

/* Threads that stand for themselves first, then those that are added up: each kind is in the order
 * of the page's threads. */
static int merge_rows_by_page_node(struct tree_reducer *reduction,
				   const struct view_thread_node_row *rows, size_t count)
{
	struct page_tree *tree = reduction->tree;
	int error = 0;

	for (int pass = 0; pass < 2; pass++) {
		uint32_t thread = MODEL_ENTRY_INDEX_NONE;
		size_t first = tree->row_count;
		for (size_t i = 0; error == 0 && i < count; i++) {
			uint32_t of = tree->page_thread_of_thread[rows[i].thread];
			if (tree->threads[of].is_rest != (pass == 1))
				continue;
			if (of != thread)
				first = tree->row_count;
			thread = of;
			error = add_to_row(reduction, thread, first, &rows[i]);
		}
	}
	return error;
}

/* ---- all of it ---- */

static int reduce_function_tree(struct page_tree *tree, const struct session *session,
				const struct function_tree *functions,
				const struct view_thread_node_row *rows, size_t count,
				uint32_t limit)
{
	/* Every kept node may get one more for its rest, every left-out root one of its own. */
	size_t room = 2 * (size_t)functions->count + 1;
	size_t ids = (size_t)session->function_count + 1;
	struct tree_reducer reduction = {session,
					 functions,
					 tree,
					 calloc((size_t)functions->count + 1, sizeof(uint64_t)),
					 calloc((size_t)functions->count + 1, sizeof(uint32_t)),
					 calloc(room, sizeof(uint32_t)),
					 malloc(ids * sizeof(uint32_t)),
					 calloc(room, sizeof(size_t))};
	int error = -ENOMEM;

	tree->nodes = calloc(room, sizeof(*tree->nodes));
	tree->functions = calloc(ids, sizeof(*tree->functions));
	tree->page_node_of_node =
		malloc(((size_t)session->node_count + 1) * sizeof(*tree->page_node_of_node));
	if (reduction.inclusive_importance != NULL && reduction.place != NULL &&
	    reduction.rest != NULL && reduction.function_of_id != NULL &&
	    reduction.row_of != NULL && tree->nodes != NULL && tree->functions != NULL &&
	    tree->page_node_of_node != NULL) {
		memset(reduction.function_of_id, 0xff, ids * sizeof(uint32_t));
		memset(tree->page_node_of_node, 0xff, session->node_count * sizeof(uint32_t));
		sum_inclusive_importance(&reduction, rows, count);
		add_kept_nodes(&reduction, find_importance_threshold(&reduction, limit));
		error = merge_rows_by_page_node(&reduction, rows, count);
	}
	free(reduction.inclusive_importance);
	free(reduction.place);
	free(reduction.rest);
	free(reduction.function_of_id);
	free(reduction.row_of);
	return error;
}

int page_tree_init(struct page_tree *tree, struct session *session, uint32_t limit)
{
	struct function_tree functions;
	const struct view_thread_node_row *rows = NULL;
	size_t count = 0;

	*tree = (struct page_tree){0};
	int error = function_tree_build_per_process(&functions, session);
	if (error == 0)
		error = view_sum_by_thread_and_node(session, &rows, &count);
	if (error == 0)
		error = list_page_threads(tree, session, rows, count);
	if (error == 0)
		error = reduce_function_tree(tree, session, &functions, rows, count, limit);
	function_tree_deinit(&functions);
	return error;
}

void page_tree_deinit(struct page_tree *tree)
{
	free(tree->nodes);
	free(tree->functions);
	free(tree->threads);
	free(tree->rows);
	free(tree->page_thread_of_thread);
	free(tree->page_node_of_node);
	*tree = (struct page_tree){0};
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The call tree as a page has it: functions, without branches too small to be seen when it is very
 * large, and for each thread the weights of the nodes it was seen in. Allocations have no threads:
 * theirs stand under an entry for all threads of their process.
 */
#ifndef KYMO_OUTPUT_WEB_PAGE_TREE_H
#define KYMO_OUTPUT_WEB_PAGE_TREE_H

#include <stdbool.h>

#include "analysis/views.h"
#include "output/function_tree.h"

enum {
	/* By source: weight, then samples. */
	PAGE_COLUMN_ALLOCATED_BYTES = 2 * MODEL_SOURCE_COUNT,
	PAGE_COLUMN_ALLOCATIONS,
	PAGE_COLUMN_NOT_FREED_BYTES,
	PAGE_COLUMN_COUNT,
};

/* What a node is: a function of the session's frames, of allocations, or the rest that was left
 * out. */
struct page_function {
	const char *name, *file, *module; /* file, module: may be NULL */
	uint32_t line;
	uint32_t kind; /* model_frame_kind, without FRAME_INLINE */
};

struct page_node {
	uint32_t parent; /* before this node; MODEL_ENTRY_INDEX_NONE for roots */
	uint32_t process;
	uint32_t function;
};

/* A thread of the session, or several that the page adds up. */
struct page_thread {
	const char *name; /* NULL: all threads of the process, for what is of no thread */
	uint32_t tid, process;
	uint32_t count; /* of threads of the session */
	bool is_rest;   /* the threads that have no entry of their own */
};

struct page_row {
	uint32_t thread, node;
	uint64_t values[PAGE_COLUMN_COUNT];
};

struct page_tree {
	struct page_node *nodes;
	struct page_function *functions;
	struct page_thread *threads;
	struct page_row *rows; /* sorted by thread */
	uint32_t *page_thread_of_thread;
	uint32_t *page_node_of_node; /* by node of the session; MODEL_ENTRY_INDEX_NONE: none */
	uint32_t node_count, function_count, thread_count, dropped_node_count;
	size_t row_count, row_capacity;
	uint64_t column_totals[PAGE_COLUMN_COUNT];
};

/* Trees of more than `limit` nodes lose their lightest branches, whose weight goes to a node that
 * says so. 0 or negative errno; deinit is needed after either. */
int page_tree_init(struct page_tree *tree, struct session *session, uint32_t limit);
void page_tree_deinit(struct page_tree *tree);

/* page_allocations.c. 0 or -ENOMEM. */
int page_tree_add_allocations(struct page_tree *tree, const struct session *session);

/* For those who add to a tree. NULL: no memory. */
struct page_row *page_tree_add_row(struct page_tree *tree, uint32_t thread, uint32_t node);

#endif

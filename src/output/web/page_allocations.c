/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Call paths of allocations in the tree of a page. They are known by process, with frames of their
 * own; the smallest sites of a process that has very many become one node.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/allocations/allocations.h"
#include "analysis/id_map.h"
#include "common/cleanup.h"
#include "output/strings.h"
#include "output/web/page_tree.h"

#define SITES_MAX 20000u
#define FUNCTION_OF_REST                                                                           \
	(&(const struct model_allocation_frame){.function = "[allocation sites too small to "      \
							    "show]"})

struct allocation_adder {
	struct page_tree *tree;
	const struct session *session;
	struct string_table names; /* of functions, with file and module */
	uint32_t *function_of_name;
	struct id_map node_of_caller_and_function;
	uint32_t process, thread, name_capacity, node_capacity, function_capacity;
	uint64_t bytes_least; /* of sites that are shown */
};

static int reserve(void **array, uint32_t *capacity, uint32_t count, size_t size)
{
	if (count < *capacity)
		return 0;
	uint32_t larger = count * 2 + 256;
	void *moved = reallocarray(*array, larger, size);
	if (moved == NULL)
		return -ENOMEM;
	*array = moved;
	*capacity = larger;
	return 0;
}

static uint32_t append_function(struct page_tree *tree, const struct model_allocation_frame *frame)
{
	bool is_made_by_kymo = frame->function[0] == '[';

	tree->functions[tree->function_count] =
		(struct page_function){.name = frame->function,
				       .file = frame->file,
				       .module = frame->module,
				       .line = frame->line,
				       .kind = frame->interpreted ? FRAME_INTERPRETED
					       : is_made_by_kymo  ? FRAME_SYNTHETIC
								  : FRAME_NATIVE};
	return tree->function_count++;
}

static int find_or_add_function(struct allocation_adder *adder,
				const struct model_allocation_frame *frame, uint32_t *ret)
{
	struct page_tree *tree = adder->tree;
	_cleanup_(cleanup_free) char *key = NULL;
	uint32_t known = adder->names.count, number;

	if (asprintf(&key, "%s\n%s\n%s", frame->function, frame->file != NULL ? frame->file : "",
		     frame->module != NULL ? frame->module : "") < 0)
		return -ENOMEM;
	if (strings_find_or_add(&adder->names, key, &number) != 0 ||
	    reserve((void **)&adder->function_of_name, &adder->name_capacity, number,
		    sizeof(*adder->function_of_name)) != 0 ||
	    reserve((void **)&tree->functions, &adder->function_capacity, tree->function_count,
		    sizeof(*tree->functions)) != 0)
		return -ENOMEM;
	if (number == known)
		adder->function_of_name[number] = append_function(tree, frame);
	*ret = adder->function_of_name[number];
	return 0;
}

static int find_or_add_node(struct allocation_adder *adder,
			    const struct model_allocation_frame *frame, uint32_t *node)
{
	struct page_tree *tree = adder->tree;
	uint32_t function, caller = *node;
	int error = find_or_add_function(adder, frame, &function);

	if (error != 0)
		return error;
	/* Roots are told apart by their process. */
	uint64_t above =
		caller != MODEL_ENTRY_INDEX_NONE ? caller : UINT64_C(0xffffffff) - adder->process;
	uint64_t key = above << 32 | function;
	*node = id_map_get(&adder->node_of_caller_and_function, key);
	if (*node != ID_MAP_NONE)
		return 0;
	*node = tree->node_count;
	if (reserve((void **)&tree->nodes, &adder->node_capacity, tree->node_count,
		    sizeof(*tree->nodes)) != 0 ||
	    id_map_set(&adder->node_of_caller_and_function, key, *node) != 0)
		return -ENOMEM;
	tree->nodes[tree->node_count++] = (struct page_node){caller, adder->process, function};
	return 0;
}

static int find_node_of_site(struct allocation_adder *adder,
			     const struct model_allocation_site *site, uint32_t *ret)
{
	static const struct model_allocation_frame unknown = {.function = "[site not known]"};
	int error = 0;

	*ret = MODEL_ENTRY_INDEX_NONE;
	if (site->allocated_bytes < adder->bytes_least)
		return find_or_add_node(adder, FUNCTION_OF_REST, ret);
	for (uint32_t i = site->frame_count; error == 0 && i-- > 0;)
		error = find_or_add_node(adder, &site->frames[i], ret);
	if (error == 0 && site->frame_count == 0)
		error = find_or_add_node(adder, &unknown, ret);
	return error;
}

static int add_site(struct allocation_adder *adder, const struct model_allocation_site *site)
{
	struct page_tree *tree = adder->tree;
	uint64_t values[] = {site->allocated_bytes, site->allocations,
			     allocation_site_get_live_bytes(site)};
	uint32_t node;

	if (site->process != adder->process) {
		adder->process = site->process;
		adder->thread = tree->thread_count++;
		tree->threads[adder->thread] = (struct page_thread){.process = site->process};
	}
	int error = find_node_of_site(adder, site, &node);
	if (error != 0)
		return error;
	struct page_row *row = page_tree_add_row(tree, adder->thread, node);
	if (row == NULL)
		return -ENOMEM;
	for (int i = 0; i < 3; i++) {
		row->values[PAGE_COLUMN_ALLOCATED_BYTES + i] = values[i];
		tree->column_totals[PAGE_COLUMN_ALLOCATED_BYTES + i] += values[i];
	}
	return 0;
}

static uint64_t find_bytes_least(const struct model_allocations *allocations)
{
	for (uint64_t least = 0;; least = least * 2 + 1) {
		uint32_t kept = 0;
		for (uint32_t i = 0; i < allocations->count; i++)
			kept += allocations->sites[i].allocated_bytes >= least;
		if (kept <= SITES_MAX)
			return least;
	}
}

int page_tree_add_allocations(struct page_tree *tree, const struct session *session)
{
	const struct model_allocations *allocations = session_get_allocations(session);
	struct allocation_adder adder = {.tree = tree,
					 .session = session,
					 .process = MODEL_ENTRY_INDEX_NONE,
					 .node_capacity = tree->node_count,
					 .function_capacity = tree->function_count};
	int error = 0;

	if (allocations == NULL || allocations->count == 0)
		return 0;
	strings_init_with_copies(&adder.names);
	adder.bytes_least = find_bytes_least(allocations);
	for (uint32_t i = 0; error == 0 && i < allocations->count; i++)
		error = add_site(&adder, &allocations->sites[i]);
	strings_deinit(&adder.names);
	free(adder.function_of_name);
	id_map_deinit(&adder.node_of_caller_and_function);
	return error;
}

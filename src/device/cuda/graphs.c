/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which nodes the program's graphs have. CUPTI announces each node when it is made, by an explicit
 * call or by a capture, and so before the graph is instantiated. It leaves the type of the node out
 * of what it says (CUDA 13.0), so the driver is asked.
 */
#include <stdatomic.h>

#include "common/loader.h"
#include "device/cuda/cuda.h"

static int (*_Atomic get_graph_node_type)(void *node, int *type);

void cuda_graphs_find_node_type_function(void)
{
	union {
		void *address;
		int (*function)(void *node, int *type);
	} found = {.address =
			   loader_find_symbol(LOADER_SCOPE_ANY_OBJECT, NULL, "cuGraphNodeGetType")};

	atomic_store(&get_graph_node_type, found.function);
}

void cuda_graphs_record_nodes_if_copy_node(const struct cupti_graph_data *made)
{
	int (*ask)(void *, int *) =
		atomic_load_explicit(&get_graph_node_type, memory_order_acquire);
	int type = 0;

	/* What cannot be asked may be a copy. */
	if (ask == NULL || ask(made->node, &type) != 0 || type == CUDA_GRAPH_NODE_COPY)
		cuda_graphs_switch_to_node_records();
}

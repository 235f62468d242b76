/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include <errno.h>
#include <stdlib.h>

#include "output/pprof/pprof.h"

int pprof_locations_init(struct pprof_profile *profile)
{
	const struct session *session = profile->session;
	uint64_t capacity = 64;

	while (capacity < (uint64_t)session->node_count * 2)
		capacity *= 2;
	profile->slot_mask = capacity - 1;
	profile->slots = calloc(capacity, sizeof(*profile->slots));
	profile->location_id_of_node =
		calloc((size_t)session->node_count + 1, sizeof(*profile->location_id_of_node));
	profile->build_ids = calloc((size_t)session->module_count + 1, sizeof(*profile->build_ids));
	profile->is_function_written = calloc((size_t)session->function_count + 1, sizeof(bool));
	profile->is_module_written = calloc((size_t)session->module_count + 1, sizeof(bool));
	return profile->slots != NULL && profile->location_id_of_node != NULL &&
			       profile->build_ids != NULL && profile->is_function_written != NULL &&
			       profile->is_module_written != NULL
		       ? 0
		       : -ENOMEM;
}

void pprof_locations_deinit(struct pprof_profile *profile)
{
	free(profile->slots);
	free(profile->location_id_of_node);
	free(profile->build_ids);
	free(profile->is_function_written);
	free(profile->is_module_written);
}

static const struct model_frame *get_node_frame(const struct pprof_profile *profile, uint32_t node)
{
	return &profile->session->frames[profile->session->nodes[node].frame];
}

/* The node outside all functions inlined at `node`; a chain without one ends at its root. */
static uint32_t find_node_outside_inlined(const struct pprof_profile *profile, uint32_t node)
{
	const struct model_calltree_node *nodes = profile->session->nodes;

	while (get_node_frame(profile, node)->kind == FRAME_INLINE &&
	       nodes[node].parent != MODEL_ENTRY_INDEX_NONE)
		node = nodes[node].parent;
	return node;
}

static uint64_t hash_location(const struct pprof_profile *profile, uint32_t node, uint32_t end)
{
	const struct model_calltree_node *nodes = profile->session->nodes;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (;; node = nodes[node].parent) {
		hash = (hash ^ nodes[node].frame) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 32;
		if (node == end)
			return hash;
	}
}

static bool is_same_location(const struct pprof_profile *profile, uint32_t left, uint32_t right,
			     uint32_t right_end)
{
	const struct model_calltree_node *nodes = profile->session->nodes;
	uint32_t left_end = find_node_outside_inlined(profile, left);

	for (;; left = nodes[left].parent, right = nodes[right].parent) {
		if (nodes[left].frame != nodes[right].frame)
			return false;
		if (left == left_end || right == right_end)
			return left == left_end && right == right_end;
	}
}

static void write_mapping_once(struct pprof_profile *profile, uint32_t index)
{
	const struct model_module *module = &profile->session->modules[index];
	struct protobuf_writer *writer = &profile->writer;
	char *build_id = profile->build_ids[index];

	if (profile->is_module_written[index])
		return;
	profile->is_module_written[index] = true;
	for (uint32_t i = 0; i < module->build_id_size && i < sizeof(module->build_id); i++)
		snprintf(build_id + (size_t)i * 2, 3, "%02x", module->build_id[i]);
	protobuf_open_message(writer, PROFILE_FIELD_MAPPING);
	protobuf_write_uint(writer, 1, index + 1);
	protobuf_write_uint(writer, 5, pprof_intern_string(profile, module->path));
	protobuf_write_uint(writer, 6, pprof_intern_string(profile, build_id));
	for (unsigned has = 7; has <= 10; has++)
		protobuf_write_uint(writer, has, 1);
	protobuf_close_message(writer);
}

static void write_function_once(struct pprof_profile *profile, const struct model_frame *frame)
{
	struct protobuf_writer *writer = &profile->writer;

	if (profile->is_function_written[frame->function_id])
		return;
	profile->is_function_written[frame->function_id] = true;
	protobuf_open_message(writer, PROFILE_FIELD_FUNCTION);
	protobuf_write_uint(writer, 1, frame->function_id + 1);
	protobuf_write_uint(writer, 2, pprof_intern_string(profile, frame->function));
	protobuf_write_uint(writer, 3,
			    pprof_intern_string(profile, frame->linkage_name != NULL
								 ? frame->linkage_name
								 : frame->function));
	protobuf_write_uint(writer, 4,
			    pprof_intern_string(profile, frame->file != NULL ? frame->file : ""));
	if (frame->function_line != 0)
		protobuf_write_uint(writer, 5, frame->function_line);
	protobuf_close_message(writer);
}

static void write_location(struct pprof_profile *profile, uint32_t id, uint32_t node, uint32_t end)
{
	const struct model_calltree_node *nodes = profile->session->nodes;
	const struct model_frame *frame = get_node_frame(profile, end);
	struct protobuf_writer *writer = &profile->writer;

	for (uint32_t at = node;; at = nodes[at].parent) {
		write_function_once(profile, get_node_frame(profile, at));
		if (at == end)
			break;
	}
	if (frame->module != MODEL_ENTRY_INDEX_NONE)
		write_mapping_once(profile, frame->module);
	protobuf_open_message(writer, PROFILE_FIELD_LOCATION);
	protobuf_write_uint(writer, 1, id);
	if (frame->module != MODEL_ENTRY_INDEX_NONE)
		protobuf_write_uint(writer, 2, frame->module + 1);
	protobuf_write_uint(writer, 3, frame->relative_pc);
	for (uint32_t at = node;; at = nodes[at].parent) {
		protobuf_open_message(writer, 4);
		protobuf_write_uint(writer, 1, get_node_frame(profile, at)->function_id + 1);
		if (get_node_frame(profile, at)->line != 0)
			protobuf_write_uint(writer, 2, get_node_frame(profile, at)->line);
		protobuf_close_message(writer);
		if (at == end)
			break;
	}
	protobuf_close_message(writer);
}

static uint32_t find_or_write_location(struct pprof_profile *profile, uint32_t node, uint32_t end)
{
	uint64_t slot = hash_location(profile, node, end) & profile->slot_mask;

	for (; profile->slots[slot] != 0; slot = (slot + 1) & profile->slot_mask) {
		uint32_t known = profile->slots[slot] - 1;
		if (is_same_location(profile, known, node, end))
			return profile->location_id_of_node[known];
	}
	profile->slots[slot] = node + 1;
	write_location(profile, ++profile->location_count, node, end);
	return profile->location_count;
}

uint32_t pprof_find_or_write_location(struct pprof_profile *profile, uint32_t node,
				      uint32_t *ret_caller)
{
	uint32_t end = find_node_outside_inlined(profile, node);

	if (profile->location_id_of_node[node] == 0)
		profile->location_id_of_node[node] = find_or_write_location(profile, node, end);
	*ret_caller = profile->session->nodes[end].parent;
	return profile->location_id_of_node[node];
}

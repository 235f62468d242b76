/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors */
#include <errno.h>
#include <stdlib.h>

#include "output/pprof.h"

int pprof_locations_init(struct pprof *profile)
{
	const struct session *session = profile->session;
	uint64_t capacity = 64;

	while (capacity < (uint64_t)session->node_count * 2)
		capacity *= 2;
	profile->slot_mask = capacity - 1;
	profile->slots = calloc(capacity, sizeof(*profile->slots));
	profile->location_of_node =
		calloc((size_t)session->node_count + 1, sizeof(*profile->location_of_node));
	profile->build_ids = calloc((size_t)session->module_count + 1, sizeof(*profile->build_ids));
	profile->function_written = calloc((size_t)session->function_count + 1, sizeof(bool));
	profile->module_written = calloc((size_t)session->module_count + 1, sizeof(bool));
	return profile->slots != NULL && profile->location_of_node != NULL &&
			       profile->build_ids != NULL && profile->function_written != NULL &&
			       profile->module_written != NULL
		       ? 0
		       : -ENOMEM;
}

void pprof_locations_deinit(struct pprof *profile)
{
	free(profile->slots);
	free(profile->location_of_node);
	free(profile->build_ids);
	free(profile->function_written);
	free(profile->module_written);
}

static const struct model_frame *frame_of(const struct pprof *profile, uint32_t node)
{
	return &profile->session->frames[profile->session->nodes[node].frame];
}

/* The node outside all functions inlined at `node`; a chain without one ends at its root. */
static uint32_t outermost(const struct pprof *profile, uint32_t node)
{
	const struct model_node *nodes = profile->session->nodes;

	while (frame_of(profile, node)->kind == FRAME_INLINE && nodes[node].parent != MODEL_NONE)
		node = nodes[node].parent;
	return node;
}

static uint64_t hash_location(const struct pprof *profile, uint32_t node, uint32_t end)
{
	const struct model_node *nodes = profile->session->nodes;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (;; node = nodes[node].parent) {
		hash = (hash ^ nodes[node].frame) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 32;
		if (node == end)
			return hash;
	}
}

static bool same_location(const struct pprof *profile, uint32_t left, uint32_t right,
			  uint32_t right_end)
{
	const struct model_node *nodes = profile->session->nodes;
	uint32_t left_end = outermost(profile, left);

	for (;; left = nodes[left].parent, right = nodes[right].parent) {
		if (nodes[left].frame != nodes[right].frame)
			return false;
		if (left == left_end || right == right_end)
			return left == left_end && right == right_end;
	}
}

static void write_module(struct pprof *profile, uint32_t index)
{
	const struct model_module *module = &profile->session->modules[index];
	struct protobuf *writer = &profile->writer;
	char *build_id = profile->build_ids[index];

	if (profile->module_written[index])
		return;
	profile->module_written[index] = true;
	for (uint32_t i = 0; i < module->build_id_size && i < sizeof(module->build_id); i++)
		snprintf(build_id + (size_t)i * 2, 3, "%02x", module->build_id[i]);
	protobuf_open(writer, PROFILE_MAPPING);
	protobuf_uint(writer, 1, index + 1);
	protobuf_uint(writer, 5, pprof_string(profile, module->path));
	protobuf_uint(writer, 6, pprof_string(profile, build_id));
	for (unsigned has = 7; has <= 10; has++)
		protobuf_uint(writer, has, 1);
	protobuf_close(writer);
}

static void write_function(struct pprof *profile, const struct model_frame *frame)
{
	struct protobuf *writer = &profile->writer;

	if (profile->function_written[frame->function_id])
		return;
	profile->function_written[frame->function_id] = true;
	protobuf_open(writer, PROFILE_FUNCTION);
	protobuf_uint(writer, 1, frame->function_id + 1);
	protobuf_uint(writer, 2, pprof_string(profile, frame->function));
	protobuf_uint(writer, 3,
		      pprof_string(profile, frame->linkage_name != NULL ? frame->linkage_name
									: frame->function));
	protobuf_uint(writer, 4, pprof_string(profile, frame->file != NULL ? frame->file : ""));
	if (frame->function_line != 0)
		protobuf_uint(writer, 5, frame->function_line);
	protobuf_close(writer);
}

static void write_location(struct pprof *profile, uint32_t id, uint32_t node, uint32_t end)
{
	const struct model_node *nodes = profile->session->nodes;
	const struct model_frame *frame = frame_of(profile, end);
	struct protobuf *writer = &profile->writer;

	for (uint32_t at = node;; at = nodes[at].parent) {
		write_function(profile, frame_of(profile, at));
		if (at == end)
			break;
	}
	if (frame->module != MODEL_NONE)
		write_module(profile, frame->module);
	protobuf_open(writer, PROFILE_LOCATION);
	protobuf_uint(writer, 1, id);
	if (frame->module != MODEL_NONE)
		protobuf_uint(writer, 2, frame->module + 1);
	protobuf_uint(writer, 3, frame->relative_pc);
	for (uint32_t at = node;; at = nodes[at].parent) {
		protobuf_open(writer, 4);
		protobuf_uint(writer, 1, frame_of(profile, at)->function_id + 1);
		if (frame_of(profile, at)->line != 0)
			protobuf_uint(writer, 2, frame_of(profile, at)->line);
		protobuf_close(writer);
		if (at == end)
			break;
	}
	protobuf_close(writer);
}

static uint32_t find_location(struct pprof *profile, uint32_t node, uint32_t end)
{
	uint64_t slot = hash_location(profile, node, end) & profile->slot_mask;

	for (; profile->slots[slot] != 0; slot = (slot + 1) & profile->slot_mask) {
		uint32_t known = profile->slots[slot] - 1;
		if (same_location(profile, known, node, end))
			return profile->location_of_node[known];
	}
	profile->slots[slot] = node + 1;
	write_location(profile, ++profile->location_count, node, end);
	return profile->location_count;
}

uint32_t pprof_location(struct pprof *profile, uint32_t node, uint32_t *ret_caller)
{
	uint32_t end = outermost(profile, node);

	if (profile->location_of_node[node] == 0)
		profile->location_of_node[node] = find_location(profile, node, end);
	*ret_caller = profile->session->nodes[end].parent;
	return profile->location_of_node[node];
}

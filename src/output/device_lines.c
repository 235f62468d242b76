/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See device_lines.h.
 */
#include "output/device_lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "output/format.h"

static bool has_any_prefix(const char *text, const char *const *prefixes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!strncmp(text, prefixes[i], strlen(prefixes[i])))
			return true;
	}
	return false;
}

/* "cuLaunchKernel", "cudaMemcpy", "hipLaunchKernel", "clEnqueueNDRangeKernel": the runtimes' names,
 * wherever the functions are. */
static bool function_is_of_runtime_interface(const char *function)
{
	static const char *const prefixes[] = {"cu", "cuda", "hip", "cl"};

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		size_t length = strlen(prefixes[i]);

		if (!strncmp(function, prefixes[i], length) && function[length] >= 'A' &&
		    function[length] <= 'Z')
			return true;
	}
	return false;
}

/* Of the runtime, which may be linked into the program, or of a vendor's library of kernels. */
static bool frame_is_of_device_vendor(const struct session *session,
				      const struct model_frame *frame)
{
	static const char *const modules[] = {
		"libcuda.so",  "libcudart",   "libcublas",   "libcudnn",       "libcufft",
		"libcusparse", "libcusolver", "libcurand",   "libcutensor",    "libnvrtc",
		"libnccl.so",  "libOpenCL",   "libamdhip64", "libhsa-runtime", "librocblas",
		"libhipblas",  "libMIOpen",   "librccl"};
	static const char *const functions[] = {"cudart::", "__cudart", "__device_stub__",
						"libcudart_static_"};

	return (frame->module != MODEL_ENTRY_INDEX_NONE &&
		has_any_prefix(session->modules[frame->module].name, modules,
			       ARRAY_SIZE(modules))) ||
	       has_any_prefix(frame->function, functions, ARRAY_SIZE(functions)) ||
	       function_is_of_runtime_interface(frame->function);
}

uint32_t device_find_launching_frame(const struct session *session, uint32_t node)
{
	uint32_t native = MODEL_ENTRY_INDEX_NONE;

	for (uint32_t at = node; at != MODEL_ENTRY_INDEX_NONE; at = session->nodes[at].parent) {
		uint32_t index = session->nodes[at].frame;
		const struct model_frame *frame = &session->frames[index];

		if (frame->kind == FRAME_INTERPRETED)
			return index;
		if (native == MODEL_ENTRY_INDEX_NONE && frame->kind != FRAME_DEVICE_WORK &&
		    frame->kind != FRAME_SYNTHETIC && !frame_is_of_device_vendor(session, frame))
			native = index;
	}
	return native;
}

void device_format_launching_frame(char *buffer, size_t size, const struct session *session,
				   uint32_t frame)
{
	const struct model_frame *it = &session->frames[frame];

	if (it->file != NULL && it->line != 0)
		format_interpreted_function(buffer, size, it, it->line);
	else
		format_function_with_module(buffer, size, session, frame);
}

static void add_node(struct device_lines *lines, const struct session *session, uint32_t node,
		     uint32_t *last_node)
{
	const struct model_calltree_node *it = &session->nodes[node];
	uint64_t ns = it->self_weight[MODEL_SOURCE_DEVICE];
	uint64_t count = it->self_samples[MODEL_SOURCE_DEVICE];
	uint32_t launching;

	if (!ns && !count)
		return;
	launching = device_find_launching_frame(session, node);
	lines->total_ns += ns;
	if (launching == MODEL_ENTRY_INDEX_NONE) {
		lines->without_line_ns += ns;
	} else {
		lines->lines[launching].own_ns += ns;
		lines->lines[launching].own_count += count;
	}
	for (uint32_t at = node; at != MODEL_ENTRY_INDEX_NONE; at = session->nodes[at].parent) {
		uint32_t frame = session->nodes[at].frame;

		if (last_node[frame] == node + 1)
			continue; /* recursion */
		last_node[frame] = node + 1;
		lines->lines[frame].inclusive_ns += ns;
	}
}

static int compare_lines(const void *left, const void *right)
{
	const struct device_line *a = left, *b = right;

	if (a->own_ns != b->own_ns)
		return a->own_ns > b->own_ns ? -1 : 1;
	return a->frame < b->frame ? -1 : a->frame > b->frame;
}

static int compare_modules_by_name(const void *left, const void *right)
{
	const struct device_module *a = left, *b = right;

	return strcmp(a->name, b->name);
}

static int compare_modules_by_time(const void *left, const void *right)
{
	const struct device_module *a = left, *b = right;

	if (a->ns != b->ns)
		return a->ns > b->ns ? -1 : 1;
	return strcmp(a->name, b->name);
}

static const char *get_module_name(const struct session *session, const struct model_frame *frame)
{
	if (frame->kind == FRAME_INTERPRETED)
		return frame->file ? frame->file : "?";
	return frame->module != MODEL_ENTRY_INDEX_NONE ? session->modules[frame->module].name : "?";
}

static void merge_modules_by_name(struct device_lines *lines)
{
	size_t kept = 0;

	qsort(lines->modules, lines->module_count, sizeof(*lines->modules),
	      compare_modules_by_name);
	for (size_t i = 0; i < lines->module_count; i++) {
		if (kept && !strcmp(lines->modules[kept - 1].name, lines->modules[i].name)) {
			lines->modules[kept - 1].ns += lines->modules[i].ns;
			lines->modules[kept - 1].count += lines->modules[i].count;
		} else {
			lines->modules[kept++] = lines->modules[i];
		}
	}
	lines->module_count = kept;
	qsort(lines->modules, lines->module_count, sizeof(*lines->modules),
	      compare_modules_by_time);
}

int device_lines_build(struct device_lines *lines, const struct session *session)
{
	size_t room = (size_t)session->frame_count + 1;
	uint32_t *last_node = calloc(room, sizeof(*last_node));

	*lines = (struct device_lines){.lines = calloc(room, sizeof(*lines->lines)),
				       .modules = calloc(room, sizeof(*lines->modules))};
	if (!last_node || !lines->lines || !lines->modules) {
		free(last_node);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < session->frame_count; i++)
		lines->lines[i].frame = i;
	for (uint32_t i = 0; i < session->node_count; i++)
		add_node(lines, session, i, last_node);
	for (uint32_t i = 0; i < session->frame_count; i++) {
		const struct device_line *line = &lines->lines[i];

		if (!line->own_count)
			continue;
		lines->modules[lines->module_count++] = (struct device_module){
			get_module_name(session, &session->frames[line->frame]), line->own_ns,
			line->own_count};
		lines->lines[lines->line_count++] = *line;
	}
	qsort(lines->lines, lines->line_count, sizeof(*lines->lines), compare_lines);
	merge_modules_by_name(lines);
	free(last_node);
	return 0;
}

void device_lines_deinit(struct device_lines *lines)
{
	free(lines->lines);
	free(lines->modules);
	*lines = (struct device_lines){0};
}

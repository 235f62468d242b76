/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Folded stacks of regions: `process;outer;…;inner ns`, where ns is the real time that the calls of
 * the innermost region spent outside regions inside it. Where wall_clock was not among the
 * components it is their number. A line a thread and path; readers add up equal ones.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/regions/regions.h"
#include "output/folded_name.h"
#include "output/output.h"

/* The place of a component, MODEL_ENTRY_INDEX_NONE where it was not recorded. */
static uint32_t find_component_index_by_name(const struct model_regions *model, const char *name)
{
	for (uint32_t i = 0; i < model->component_count; i++) {
		if (strcmp(model->components[i].name, name) == 0)
			return i;
	}
	return MODEL_ENTRY_INDEX_NONE;
}

/* What each node has itself, by node. */
static void compute_self_values_of_all_regions(const struct model_regions *model, double *self)
{
	uint32_t clock = find_component_index_by_name(model, "wall_clock");

	for (uint32_t i = 0; i < model->node_count; i++) {
		const struct model_region_node *node = &model->nodes[i];
		if (clock == MODEL_ENTRY_INDEX_NONE) {
			self[i] = (double)node->count;
			continue;
		}
		double sum = model->statistics[(size_t)i * model->component_count + clock].sum;

		self[i] = sum + node->self_correction;
		if (node->parent != MODEL_ENTRY_INDEX_NONE)
			self[node->parent] -= sum;
	}
}

static void write_region_stack(const struct session *session, uint32_t index, bool per_thread,
			       uint32_t *path, FILE *stream)
{
	const struct model_regions *model = session_get_regions(session);
	const struct model_region_node *node = &model->nodes[index];
	uint32_t length = 0;

	folded_write_name(stream, session->processes[node->process].name);
	if (per_thread) {
		putc(';', stream);
		folded_write_name(stream, session->threads[node->thread].name);
		fprintf(stream, "-%" PRIu32, session->threads[node->thread].tid);
	}
	for (uint32_t at = index; at != MODEL_ENTRY_INDEX_NONE; at = model->nodes[at].parent)
		path[length++] = model->nodes[at].region;
	while (length-- > 0) {
		putc(';', stream);
		folded_write_name(stream, model->regions[path[length]].name);
	}
}

static uint32_t get_deepest_region_node_depth(const struct model_regions *model)
{
	uint32_t depth = 0;

	for (uint32_t i = 0; i < model->node_count; i++) {
		if (model->nodes[i].depth > depth)
			depth = model->nodes[i].depth;
	}
	return depth;
}

static int write_regions_folded(struct session *session, const struct output_options *options,
				FILE *stream, struct problem *problem)
{
	const struct model_regions *model = session_get_regions(session);
	double *self = calloc((size_t)model->node_count + 1, sizeof(*self));
	uint32_t *path = calloc((size_t)get_deepest_region_node_depth(model) + 1, sizeof(*path));
	int error = self != NULL && path != NULL ? 0 : -ENOMEM;

	errno = 0; /* a write that fails half-way leaves its reason here */
	if (error == 0)
		compute_self_values_of_all_regions(model, self);
	for (uint32_t i = 0; error == 0 && i < model->node_count; i++) {
		if (self[i] < 1)
			continue;
		write_region_stack(session, i, options->per_thread, path, stream);
		fprintf(stream, " %.0f\n", self[i]);
	}
	if (error == 0 && (fflush(stream) != 0 || ferror(stream)))
		error = errno != 0 ? -errno : -EIO;
	free(self);
	free(path);
	if (error != 0)
		problem_set(problem, error, "cannot write folded regions: %s", strerror(-error));
	return error;
}

const struct output_format output_format_regions_folded = {
	.name = "regions-folded",
	.file_name = "regions.folded",
	.description = "the same for regions, by real time, if requested",
	.write = write_regions_folded,
};

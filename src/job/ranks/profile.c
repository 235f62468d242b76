/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The samples of one rank by call path and by function. Call paths are of functions, whatever lines
 * and addresses they were at; below a call of MPI they count as waiting or transfer, not as work.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "job/ranks/private.h"

#define PROFILE_QUANTITY_COUNT (JOB_DEVICE + 1)

/* ns and events of one path or function; a rank's sums. */
struct profile_values {
	uint64_t of[PROFILE_QUANTITY_COUNT];
};

struct rank_profile {
	struct rank_collector *collector;
	uint32_t *path_of_node; /* by node of the session */
	bool *is_inside_mpi;    /* by path */
	struct profile_values *paths, *names;
};

/* ---- paths ---- */

static int add_program_path(const struct rank_profile *profile, uint32_t process, uint32_t *ret)
{
	struct job *job = profile->collector->job;
	struct job_name name = {JOB_NAME_PROGRAM,
				profile->collector->session->processes[process].name, "", ""};
	uint32_t index;
	int error = job_find_or_add_name(job, &name, &index);

	return error ? error : job_find_or_add_path(job, JOB_NO_PATH, index, ret);
}

static struct job_name get_function_name(const struct session *session, uint32_t frame_index)
{
	const struct model_frame *frame = &session->frames[frame_index];

	return (struct job_name){
		JOB_NAME_FUNCTION, frame->function,
		frame->module == MODEL_ENTRY_INDEX_NONE ? "" : session->modules[frame->module].name,
		frame->file ? frame->file : ""};
}

static int add_path_of_node(const struct rank_profile *profile, uint32_t node_index)
{
	const struct session *session = profile->collector->session;
	const struct model_calltree_node *node = &session->nodes[node_index];
	struct job *job = profile->collector->job;
	uint32_t parent, name_index;
	struct job_name name;
	int error = 0;

	if (node->parent == MODEL_ENTRY_INDEX_NONE)
		error = add_program_path(profile, node->process, &parent);
	else
		parent = profile->path_of_node[node->parent];
	if (error || node->frame == MODEL_ENTRY_INDEX_NONE) {
		profile->path_of_node[node_index] = parent;
		return error;
	}
	name = get_function_name(session, node->frame);
	error = job_find_or_add_name(job, &name, &name_index);
	return error ? error
		     : job_find_or_add_path(job, parent, name_index,
					    &profile->path_of_node[node_index]);
}

static int add_all_paths(struct rank_profile *profile)
{
	const struct session *session = profile->collector->session;
	int error = 0;

	for (uint32_t i = 0; !error && i < session->node_count; i++) {
		if (collector_wants_process(profile->collector, session->nodes[i].process))
			error = add_path_of_node(profile, i);
	}
	return error;
}

/* ---- sums ---- */

static void mark_paths_inside_mpi(const struct rank_profile *profile)
{
	const struct job *job = profile->collector->job;

	for (uint32_t i = 0; i < job->path_count; i++) {
		const struct job_path *path = &job->paths[i];

		profile->is_inside_mpi[i] = path->parent != JOB_NO_PATH &&
					    (profile->is_inside_mpi[path->parent] ||
					     mpi_name_is_call(job->names[path->name].name));
	}
}

static void add_up_paths(const struct rank_profile *profile)
{
	const struct session *session = profile->collector->session;
	const struct job *job = profile->collector->job;

	for (uint32_t i = 0; i < session->node_count; i++) {
		const uint64_t *weight = session->nodes[i].self_weight;
		struct profile_values *values;
		bool is_inside;

		if (!collector_wants_process(profile->collector, session->nodes[i].process))
			continue;
		values = &profile->paths[profile->path_of_node[i]];
		is_inside = profile->is_inside_mpi[profile->path_of_node[i]];
		values->of[is_inside ? JOB_CPU_INSIDE_MPI : JOB_CPU_OUTSIDE_MPI] +=
			weight[SPOOL_SOURCE_CPU];
		values->of[JOB_CPU_TOTAL] += weight[SPOOL_SOURCE_CPU];
		values->of[is_inside ? JOB_BLOCKED_INSIDE_MPI : JOB_BLOCKED_OUTSIDE_MPI] +=
			weight[SPOOL_SOURCE_WALL] + weight[SPOOL_SOURCE_RUNNABLE];
		values->of[JOB_EVENTS] += weight[SPOOL_SOURCE_OVERFLOW];
		values->of[JOB_DEVICE] += weight[MODEL_SOURCE_DEVICE];
	}
	/* Children stand behind their parents. */
	for (uint32_t i = job->path_count; i-- > 0;) {
		if (job->paths[i].parent != JOB_NO_PATH)
			profile->paths[job->paths[i].parent].of[JOB_CPU_TOTAL] +=
				profile->paths[i].of[JOB_CPU_TOTAL];
	}
}

static bool is_function_above(const struct job *job, uint32_t path)
{
	uint32_t name = job->paths[path].name;

	while ((path = job->paths[path].parent) != JOB_NO_PATH) {
		if (job->paths[path].name == name)
			return true;
	}
	return false;
}

static void add_up_functions(const struct rank_profile *profile)
{
	const struct job *job = profile->collector->job;

	for (uint32_t i = 0; i < job->path_count; i++) {
		struct profile_values *to = &profile->names[job->paths[i].name];
		const struct profile_values *from = &profile->paths[i];

		for (unsigned k = 0; k < PROFILE_QUANTITY_COUNT; k++) {
			if (k != JOB_CPU_TOTAL || (from->of[k] && !is_function_above(job, i)))
				to->of[k] += from->of[k];
		}
		profile->collector->rank.cpu_in_mpi_ns += from->of[JOB_CPU_INSIDE_MPI];
	}
	if (profile->collector->rank.cpu_in_mpi_ns > JOB_VALUE_MAX)
		profile->collector->rank.cpu_in_mpi_ns = JOB_VALUE_MAX;
}

static int add_rows(const struct rank_profile *profile, const struct profile_values *values,
		    uint32_t count, bool are_paths)
{
	const struct rank_collector *collector = profile->collector;
	int error = 0;

	for (uint32_t i = 0; i < count; i++) {
		for (unsigned k = 0; !error && k < PROFILE_QUANTITY_COUNT; k++) {
			struct job_moments moments =
				job_moments_from_value(values[i].of[k], collector->rank.rank);

			error = job_add_moments(collector->job, i, are_paths, (enum job_quantity)k,
						&moments);
		}
	}
	return error;
}

static int add_sums(struct rank_profile *profile)
{
	const struct job *job = profile->collector->job;
	int error;

	profile->is_inside_mpi =
		calloc((size_t)job->path_count + 1, sizeof(*profile->is_inside_mpi));
	profile->paths = calloc((size_t)job->path_count + 1, sizeof(*profile->paths));
	profile->names = calloc((size_t)job->name_count + 1, sizeof(*profile->names));
	if (!profile->is_inside_mpi || !profile->paths || !profile->names)
		return -ENOMEM;
	mark_paths_inside_mpi(profile);
	add_up_paths(profile);
	add_up_functions(profile);
	error = add_rows(profile, profile->paths, job->path_count, true);
	return error ? error : add_rows(profile, profile->names, job->name_count, false);
}

int collector_add_profile(struct rank_collector *collector)
{
	struct rank_profile profile = {.collector = collector};
	int error = -ENOMEM;

	profile.path_of_node =
		calloc((size_t)collector->session->node_count + 1, sizeof(*profile.path_of_node));
	if (profile.path_of_node)
		error = add_all_paths(&profile);
	if (!error)
		error = add_sums(&profile);
	free(profile.path_of_node);
	free(profile.is_inside_mpi);
	free(profile.paths);
	free(profile.names);
	return error;
}

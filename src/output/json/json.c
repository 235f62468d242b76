/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * profile.json: the whole model for programs. Arrays of functions, frames and nodes refer to each
 * other by `id`, which is the index in the array; a node comes after its parent. Weights of nodes
 * are their own (exclusive) ones; functions carry both.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "output/calls.h"
#include "output/interpreter_states.h"
#include "output/json/gpu.h"
#include "output/json/mpi.h"
#include "output/json/parts.h"
#include "output/json/regions.h"
#include "output/json/waits.h"
#include "output/output.h"
#include "output/thread_sums.h"

static const char *get_frame_kind_name(enum model_frame_kind kind)
{
	static const char *const names[] = {
		[FRAME_NATIVE] = "native",
		[FRAME_INLINE] = "inline",
		[FRAME_JIT] = "jit",
		[FRAME_UNRESOLVED] = "unresolved",
		[FRAME_SYNTHETIC] = "synthetic",
		[FRAME_THREAD_STATE] = "state",
		[FRAME_INTERPRETED] = "interpreted",
		[FRAME_DEVICE_WORK] = "device",
	};
	return names[kind];
}

static void json_put_optional_index(struct json_writer *json, const char *key, uint32_t index)
{
	if (index == MODEL_ENTRY_INDEX_NONE)
		json_put_null(json, key);
	else
		json_put_count(json, key, index);
}

static void json_put_weights_by_source(struct json_writer *json,
				       const uint64_t weight[MODEL_SOURCE_COUNT],
				       const uint64_t samples[MODEL_SOURCE_COUNT])
{
	static const struct {
		const char *weight, *samples;
	} keys[MODEL_SOURCE_COUNT] = {
		[SPOOL_SOURCE_CPU] = {"cpu_ns", "cpu_samples"},
		[SPOOL_SOURCE_WALL] = {"blocked_ns", "blocked_samples"},
		[SPOOL_SOURCE_OVERFLOW] = {"overflow_events", "overflow_samples"},
		[SPOOL_SOURCE_RUNNABLE] = {"runnable_ns", "runnable_samples"},
		[MODEL_SOURCE_DEVICE] = {"device_ns", "device_work"},
	};

	for (unsigned source = 0; source < MODEL_SOURCE_COUNT; source++) {
		if (weight[source] == 0 && samples[source] == 0)
			continue;
		json_put_count(json, keys[source].weight, weight[source]);
		json_put_count(json, keys[source].samples, samples[source]);
	}
}

/* What a thread of Python does about the global lock. */
static void json_put_interpreter_states(struct json_writer *json, const struct model_thread *thread)
{
	if (!interpreter_state_sum_ns(thread))
		return;
	json_object_begin(json, "python_lock");
	for (unsigned state = INTERPRETER_STATE_FIRST; state < INTERPRETER_STATE_END; state++)
		json_put_count(json, interpreter_state_get_key(state),
			       interpreter_state_get_ns(thread, state));
	json_object_end(json);
}

static void json_put_modules(struct json_writer *json, const struct session *session)
{
	json_array_begin(json, "modules");
	for (uint32_t i = 0; i < session->module_count; i++) {
		const struct model_module *module = &session->modules[i];

		json_object_begin(json, NULL);
		json_put_count(json, "id", i);
		json_put_count(json, "process", module->process);
		json_put_text(json, "path", module->path);
		json_put_bytes_as_hexadecimal(json, "build_id", module->build_id,
					      module->build_id_size);
		json_put_count(json, "start_address", module->start);
		json_put_count(json, "end_address", module->end);
		json_put_count(json, "file_offset", module->file_offset);
		json_put_count(json, "loaded_ns", module->loaded_ns);
		if (module->unloaded_ns != UINT64_MAX)
			json_put_count(json, "unloaded_ns", module->unloaded_ns);
		json_put_count(json, "leaf_samples", module->samples_total);
		json_put_count(json, "leaf_samples_unresolved", module->samples_unresolved);
		json_put_text(json, "advice", module->advice);
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_put_threads_added_up_by_name(struct json_writer *json,
					      const struct thread_sums *sums)
{
	if (!sums->count)
		return;
	json_put_text(json, "threads_note", THREADS_SUMMED_NOTE);
	json_array_begin(json, "threads_added_up");
	for (size_t i = 0; i < sums->count; i++) {
		const struct thread_sum *sum = &sums->sums[i];

		json_object_begin(json, NULL);
		json_put_count(json, "process", sum->process);
		json_put_text(json, "name", sum->name);
		json_put_count(json, "threads", sum->threads);
		json_put_count(json, "total_cpu_ns", sum->cpu_ns);
		json_put_count(json, "covered_cpu_ns", sum->covered_cpu_ns);
		if (sum->signals_blocked_cpu_ns)
			json_put_count(json, "signals_blocked_cpu_ns", sum->signals_blocked_cpu_ns);
		json_put_weights_by_source(json, sum->weight, sum->samples);
		json_object_end(json);
	}
	json_array_end(json);
}

static int json_put_threads(struct json_writer *json, const struct session *session)
{
	struct thread_sums sums;

	if (thread_sums_create(session, &sums))
		return -ENOMEM;
	json_array_begin(json, "threads");
	for (uint32_t i = 0; i < session->thread_count; i++) {
		const struct model_thread *thread = &session->threads[i];

		if (!thread_sums_is_thread_listed(&sums, i))
			continue;
		json_object_begin(json, NULL);
		json_put_count(json, "id", i);
		json_put_count(json, "process", thread->process);
		json_put_count(json, "tid", thread->tid);
		json_put_count(json, "internal_id", thread->internal_id);
		json_put_count(json, "sequent_id", thread->sequent_id);
		json_put_optional_index(json, "parent", thread->parent);
		json_put_text(json, "name", thread->name);
		json_put_text(json, "found", json_get_thread_origin_name(thread->how));
		json_put_count(json, "start_ns", thread->start_ns);
		if (thread->end_ns != UINT64_MAX)
			json_put_count(json, "end_ns", thread->end_ns);
		json_put_count(json, "total_cpu_ns", thread->cpu_ns);
		json_put_count(json, "covered_cpu_ns", thread->covered_ns);
		if (thread->blocked_ns)
			json_put_count(json, "signals_blocked_cpu_ns", thread->blocked_ns);
		json_put_weights_by_source(json, thread->weight, thread->samples);
		json_put_interpreter_states(json, thread);
		json_object_end(json);
	}
	json_array_end(json);
	json_put_threads_added_up_by_name(json, &sums);
	thread_sums_destroy(&sums);
	return 0;
}

static int json_put_functions(struct json_writer *json, const struct session *session,
			      enum view_measure_kind measure)
{
	struct view_flat_profile_row *functions;
	size_t count;
	int result = view_build_flat_profile(session, measure, &functions, &count);

	if (result < 0)
		return result;
	json_array_begin(json, "functions");
	for (size_t i = 0; i < count; i++) {
		const struct view_flat_profile_row *function = &functions[i];
		const struct model_frame *frame = &session->frames[function->frame];

		json_object_begin(json, NULL);
		json_put_count(json, "id", function->function_id);
		json_put_text(json, "name", frame->function);
		json_put_text(json, "linkage_name", frame->linkage_name);
		json_put_text(json, "module",
			      frame->module == MODEL_ENTRY_INDEX_NONE
				      ? NULL
				      : session->modules[frame->module].path);
		json_put_text(json, "file", frame->file);
		json_put_count(json, "line", frame->function_line);
		json_put_count(json,
			       measure == VIEW_MEASURE_COUNTER_EVENTS ? "self_events" : "self_ns",
			       function->self);
		json_put_count(json,
			       measure == VIEW_MEASURE_COUNTER_EVENTS ? "inclusive_events"
								      : "inclusive_ns",
			       function->inclusive);
		json_put_count(json, "self_samples", function->self_samples);
		json_put_count(json, "inclusive_samples", function->inclusive_samples);
		json_object_end(json);
	}
	json_array_end(json);
	free(functions);
	return 0;
}

static void json_put_frames(struct json_writer *json, const struct session *session)
{
	json_array_begin(json, "frames");
	for (uint32_t i = 0; i < session->frame_count; i++) {
		const struct model_frame *frame = &session->frames[i];

		json_object_begin(json, NULL);
		json_put_count(json, "id", i);
		json_put_count(json, "function", frame->function_id);
		json_put_text(json, "name", frame->function);
		json_put_text(json, "kind", get_frame_kind_name(frame->kind));
		json_put_optional_index(json, "module", frame->module);
		json_put_count(json, "relative_pc", frame->relative_pc);
		if (frame->file) {
			json_put_text(json, "file", frame->file);
			json_put_count(json, "line", frame->line);
		}
		json_object_end(json);
	}
	json_array_end(json);
}

static void json_put_call_tree_nodes(struct json_writer *json, const struct session *session)
{
	json_array_begin(json, "nodes");
	for (uint32_t i = 0; i < session->node_count; i++) {
		const struct model_calltree_node *node = &session->nodes[i];

		json_object_begin(json, NULL);
		json_put_count(json, "id", i);
		json_put_optional_index(json, "parent", node->parent);
		json_put_count(json, "frame", node->frame);
		json_put_count(json, "process", node->process);
		json_put_count(json, "depth", node->depth);
		json_put_weights_by_source(json, node->self_weight, node->self_samples);
		json_object_end(json);
	}
	json_array_end(json);
}

static int json_put_thread_nodes(struct json_writer *json, struct session *session)
{
	const struct view_thread_node_row *entries;
	size_t count;
	int result = view_sum_by_thread_and_node(session, &entries, &count);

	if (result < 0)
		return result;
	json_array_begin(json, "thread_nodes");
	for (size_t i = 0; i < count; i++) {
		json_object_begin(json, NULL);
		json_put_count(json, "thread", entries[i].thread);
		json_put_count(json, "node", entries[i].node);
		json_put_weights_by_source(json, entries[i].self_weight, entries[i].self_samples);
		json_object_end(json);
	}
	json_array_end(json);
	return 0;
}

static void json_put_totals(struct json_writer *json, const struct session *session,
			    enum view_measure_kind measure)
{
	uint64_t weight[MODEL_SOURCE_COUNT] = {0}, samples[MODEL_SOURCE_COUNT] = {0};

	for (uint32_t i = 0; i < session->node_count; i++) {
		for (unsigned source = 0; source < MODEL_SOURCE_COUNT; source++) {
			weight[source] += session->nodes[i].self_weight[source];
			samples[source] += session->nodes[i].self_samples[source];
		}
	}
	json_put_text(json, "measure", view_measure_get_name(measure));
	json_put_text(json, "measure_unit", view_measure_get_unit(measure));
	json_object_begin(json, "totals");
	json_put_weights_by_source(json, weight, samples);
	json_object_end(json);
}

static int output_write_json(struct session *session, const struct output_options *options,
			     FILE *stream, struct problem *problem)
{
	enum view_measure_kind measure =
		options->is_measure_given ? options->measure : view_choose_default_measure(session);
	struct json_writer json;
	int result;

	json_writer_init(&json, stream);
	json_object_begin(&json, NULL);
	json_put_text(&json, "schema", "kymo.profile/1");
	json_put_run(&json, session);
	json_put_totals(&json, session, measure);
	json_put_own_cost(&json, session);
	json_put_session_processes(&json, session);
	result = json_put_threads(&json, session);
	json_put_modules(&json, session);
	if (result == 0)
		result = json_put_functions(&json, session, measure);
	if (!options->flat && result == 0) {
		json_put_frames(&json, session);
		json_put_call_tree_nodes(&json, session);
		if (options->per_thread)
			result = json_put_thread_nodes(&json, session);
	}
	if (result == 0)
		result = json_put_region_profile(&json, session, options->flat);
	calls_put_json_untimed_functions(&json, session);
	json_put_mpi(&json, session);
	if (result == 0)
		result = json_put_gpu_sums(&json, session);
	json_put_waits(&json, session);
	json_object_end(&json);
	if (result < 0)
		return problem_set(problem, result, "cannot make the JSON profile: %s",
				   strerror(-result));
	return json_writer_finish(&json, problem);
}

const struct output_format output_format_json = {
	.name = "json",
	.file_name = "profile.json",
	.description = "the same as JSON, with modules, processes and losses",
	.write = output_write_json,
};

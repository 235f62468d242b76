/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See calls.h.
 */
#include "output/calls.h"

#include <inttypes.h>

#include "output/format.h"

#define LABEL_COLUMNS_MAX 100

const char *calls_get_function_name(const struct session *session, uint32_t region)
{
	return region == MODEL_ENTRY_INDEX_NONE
		       ? "[block of code]"
		       : session_get_regions(session)->regions[region].name;
}

/* ---- text ---- */

static void write_function_label(const struct session *session, FILE *stream, uint32_t process,
				 uint32_t region)
{
	format_write_cut_to_width(stream, calls_get_function_name(session, region),
				  LABEL_COLUMNS_MAX);
	if (session->process_count > 1)
		fprintf(stream, " [%" PRIu32 "]", session->processes[process].pid);
	fputc('\n', stream);
}

static void write_count_only_functions(const struct session *session,
				       const struct output_options *options, FILE *stream)
{
	const struct model_instrumented_calls *calls = session_get_calls(session);
	uint32_t shown = 0, left = 0;

	fputs("\nCOUNTED ONLY\n"
	      "functions, and loops, whose calls were counted and not timed: these calls are in no "
	      "table above.\n\n"
	      "              COUNT LABEL\n",
	      stream);
	for (uint32_t i = 0; i < calls->counted_function_count; i++) {
		const struct model_counted_function *counted = &calls->counted_functions[i];

		if (counted->region == MODEL_ENTRY_INDEX_NONE || counted->calls == 0)
			continue;
		if (options->top && shown >= options->top) {
			left++;
			continue;
		}
		fprintf(stream, "%19" PRIu64 " ", counted->calls);
		write_function_label(session, stream, counted->process, counted->region);
		shown++;
	}
	if (left)
		fprintf(stream, "(%" PRIu32 " more)\n", left);
}

static void write_demoted_functions(const struct session *session, FILE *stream)
{
	const struct model_instrumented_calls *calls = session_get_calls(session);

	fputs("\nDEMOTED\n"
	      "functions that are so short and called so often that their calls were timed no more "
	      "from here on.\n\n"
	      "         SECONDS AFTER START LABEL\n",
	      stream);
	for (uint32_t i = 0; i < calls->demoted_function_count; i++) {
		const struct model_demoted_function *demoted = &calls->demoted_functions[i];
		uint64_t ns = demoted->time_ns > session->start_ns
				      ? demoted->time_ns - session->start_ns
				      : 0;

		fprintf(stream, "%28.6f ", (double)ns / 1e9);
		write_function_label(session, stream, demoted->process, demoted->region);
	}
}

static bool has_count_only_functions(const struct model_instrumented_calls *calls)
{
	for (uint32_t i = 0; i < calls->counted_function_count; i++) {
		if (calls->counted_functions[i].region != MODEL_ENTRY_INDEX_NONE &&
		    calls->counted_functions[i].calls)
			return true;
	}
	return false;
}

void calls_write_untimed_functions_text(const struct session *session,
					const struct output_options *options, FILE *stream)
{
	if (options->is_timeline_wanted)
		return;
	if (has_count_only_functions(session_get_calls(session)))
		write_count_only_functions(session, options, stream);
	if (session_get_calls(session)->demoted_function_count)
		write_demoted_functions(session, stream);
}

/* ---- JSON ---- */

static void json_put_function_fields(struct json_writer *json, const struct session *session,
				     uint32_t process, uint32_t region)
{
	json_put_count(json, "process", process);
	if (region != MODEL_ENTRY_INDEX_NONE)
		json_put_count(json, "region", region);
	json_put_text(json, "name", calls_get_function_name(session, region));
}

static void json_put_demoted_functions(struct json_writer *json, const struct session *session)
{
	const struct model_instrumented_calls *calls = session_get_calls(session);

	json_array_begin(json, "demoted_functions");
	for (uint32_t i = 0; i < calls->demoted_function_count; i++) {
		json_object_begin(json, NULL);
		json_put_function_fields(json, session, calls->demoted_functions[i].process,
					 calls->demoted_functions[i].region);
		json_put_count(json, "time_ns", calls->demoted_functions[i].time_ns);
		json_object_end(json);
	}
	json_array_end(json);
}

void calls_put_json_untimed_functions(struct json_writer *json, const struct session *session)
{
	const struct model_instrumented_calls *calls = session_get_calls(session);

	if (has_count_only_functions(calls)) {
		json_array_begin(json, "counted_functions");
		for (uint32_t i = 0; i < calls->counted_function_count; i++) {
			const struct model_counted_function *counted = &calls->counted_functions[i];

			if (counted->region == MODEL_ENTRY_INDEX_NONE || counted->calls == 0)
				continue;
			json_object_begin(json, NULL);
			json_put_function_fields(json, session, counted->process, counted->region);
			json_put_count(json, "calls", counted->calls);
			json_object_end(json);
		}
		json_array_end(json);
	}
	if (calls->demoted_function_count)
		json_put_demoted_functions(json, session);
}

static void json_put_instrumented_modules(struct json_writer *json,
					  const struct model_instrumented_calls *calls)
{
	json_array_begin(json, "modules");
	for (uint32_t i = 0; i < calls->module_count; i++) {
		const struct model_instrumented_module *module = &calls->modules[i];

		json_object_begin(json, NULL);
		json_put_count(json, "process", module->process);
		json_put_text(json, "path", module->module);
		json_put_text(json, "plan", module->plan);
		json_put_count(json, "functions", module->count);
		json_put_count(json, "first_id", module->first_id);
		json_put_count(json, "load_bias", module->bias);
		json_put_count(json, "instrumented_ns", module->time_ns);
		json_object_end(json);
	}
	json_array_end(json);
}

void calls_put_json_instrumentation(struct json_writer *json, const struct session *session)
{
	const struct model_instrumented_calls *calls = session_get_calls(session);
	uint64_t counted = 0;

	if (calls->module_count + calls->counted_function_count == 0 && calls->words == 0)
		return;
	for (uint32_t i = 0; i < calls->counted_function_count; i++)
		counted += calls->counted_functions[i].calls;
	json_object_begin(json, "instrumentation");
	json_put_count(json, "calls_recorded", calls->recorded);
	json_put_count(json, "calls_counted_only", counted);
	json_put_count(json, "words", calls->words);
	json_put_count(json, "calls_unwound", calls->unwound);
	json_put_count(json, "exits_unmatched", calls->unmatched);
	json_put_instrumented_modules(json, calls);
	json_put_demoted_functions(json, session);
	json_object_end(json);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See calls.h.
 */
#include "output/calls.h"

#include <inttypes.h>

#include "output/format.h"

#define LABEL_WIDTH 100

const char *calls_name(const struct session *session, uint32_t region)
{
	return region == MODEL_NONE ? "[block of code]" : session->regions->regions[region].name;
}

/* ---- text ---- */

static void write_label(const struct session *session, FILE *stream, uint32_t process,
			uint32_t region)
{
	format_limited(stream, calls_name(session, region), LABEL_WIDTH);
	if (session->process_count > 1)
		fprintf(stream, " [%" PRIu32 "]", session->processes[process].pid);
	fputc('\n', stream);
}

static void write_counted(const struct session *session, const struct output_options *options,
			  FILE *stream)
{
	const struct model_calls *calls = session->calls;
	uint32_t shown = 0, left = 0;

	fputs("\nCOUNTED ONLY\n"
	      "functions, and loops, whose calls were counted and not timed: these calls are in no "
	      "table above.\n\n"
	      "              COUNT LABEL\n",
	      stream);
	for (uint32_t i = 0; i < calls->counted_count; i++) {
		const struct model_counted *counted = &calls->counted[i];

		if (counted->region == MODEL_NONE || counted->calls == 0)
			continue;
		if (options->top && shown >= options->top) {
			left++;
			continue;
		}
		fprintf(stream, "%19" PRIu64 " ", counted->calls);
		write_label(session, stream, counted->process, counted->region);
		shown++;
	}
	if (left)
		fprintf(stream, "(%" PRIu32 " more)\n", left);
}

static void write_demoted(const struct session *session, FILE *stream)
{
	const struct model_calls *calls = session->calls;

	fputs("\nDEMOTED\n"
	      "functions that are so short and called so often that their calls were timed no more "
	      "from here on.\n\n"
	      "         SECONDS AFTER START LABEL\n",
	      stream);
	for (uint32_t i = 0; i < calls->demoted_count; i++) {
		const struct model_demoted *demoted = &calls->demoted[i];
		uint64_t ns = demoted->time_ns > session->start_ns
				      ? demoted->time_ns - session->start_ns
				      : 0;

		fprintf(stream, "%28.6f ", (double)ns / 1e9);
		write_label(session, stream, demoted->process, demoted->region);
	}
}

static bool has_counted(const struct model_calls *calls)
{
	for (uint32_t i = 0; i < calls->counted_count; i++) {
		if (calls->counted[i].region != MODEL_NONE && calls->counted[i].calls)
			return true;
	}
	return false;
}

void calls_text(const struct session *session, const struct output_options *options, FILE *stream)
{
	if (options->timeline)
		return;
	if (has_counted(session->calls))
		write_counted(session, options, stream);
	if (session->calls->demoted_count)
		write_demoted(session, stream);
}

/* ---- JSON ---- */

static void put_function(struct json_writer *json, const struct session *session, uint32_t process,
			 uint32_t region)
{
	json_put_count(json, "process", process);
	if (region != MODEL_NONE)
		json_put_count(json, "region", region);
	json_put_text(json, "name", calls_name(session, region));
}

static void put_demoted(struct json_writer *json, const struct session *session)
{
	const struct model_calls *calls = session->calls;

	json_array_begin(json, "demoted_functions");
	for (uint32_t i = 0; i < calls->demoted_count; i++) {
		json_object_begin(json, NULL);
		put_function(json, session, calls->demoted[i].process, calls->demoted[i].region);
		json_put_count(json, "time_ns", calls->demoted[i].time_ns);
		json_object_end(json);
	}
	json_array_end(json);
}

void calls_json_profile(struct json_writer *json, const struct session *session)
{
	const struct model_calls *calls = session->calls;

	if (has_counted(calls)) {
		json_array_begin(json, "counted_functions");
		for (uint32_t i = 0; i < calls->counted_count; i++) {
			const struct model_counted *counted = &calls->counted[i];

			if (counted->region == MODEL_NONE || counted->calls == 0)
				continue;
			json_object_begin(json, NULL);
			put_function(json, session, counted->process, counted->region);
			json_put_count(json, "calls", counted->calls);
			json_object_end(json);
		}
		json_array_end(json);
	}
	if (calls->demoted_count)
		put_demoted(json, session);
}

static void put_modules(struct json_writer *json, const struct model_calls *calls)
{
	json_array_begin(json, "modules");
	for (uint32_t i = 0; i < calls->module_count; i++) {
		const struct model_instrumented *module = &calls->modules[i];

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

void calls_json_metadata(struct json_writer *json, const struct session *session)
{
	const struct model_calls *calls = session->calls;
	uint64_t counted = 0;

	if (calls->module_count + calls->counted_count == 0 && calls->words == 0)
		return;
	for (uint32_t i = 0; i < calls->counted_count; i++)
		counted += calls->counted[i].calls;
	json_object_begin(json, "instrumentation");
	json_put_count(json, "calls_recorded", calls->recorded);
	json_put_count(json, "calls_counted_only", counted);
	json_put_count(json, "words", calls->words);
	json_put_count(json, "calls_unwound", calls->unwound);
	json_put_count(json, "exits_unmatched", calls->unmatched);
	put_modules(json, calls);
	put_demoted(json, session);
	json_object_end(json);
}

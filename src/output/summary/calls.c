/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Instrumented functions in the summary: how many calls there are, and what was only counted.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/array.h"
#include "common/cleanup.h"
#include "common/region_categories.h"
#include "output/calls.h"
#include "output/format.h"
#include "output/region_rows.h"
#include "output/summary/private.h"

#define DEMOTED_NAMES_MAX 10

/* What the processes of a run called, each function once however many of them called it. Where
 * calls are recorded like any other region, for components of their own, arguments, or because some
 * are left out, they are counted there alone. */
static int count_recorded_calls(const struct session *session, uint64_t *calls, uint64_t *functions)
{
	static const struct region_table_layout_options layout = {.flat = true,
								  .collapse_processes = true};
	struct region_rows rows;
	int result = region_rows_build(&rows, session, &layout);

	*calls = *functions = 0;
	for (uint32_t i = 0; result == 0 && i < rows.count; i++) {
		const struct region_row *row = &rows.rows[i];

		if (row->region == MODEL_ENTRY_INDEX_NONE || row->count + row->open == 0 ||
		    strcmp(session_get_regions(session)->regions[row->region].category,
			   region_categories[REGION_INSTRUMENTED].name) != 0)
			continue;
		*calls += row->count + row->open;
		++*functions;
	}
	region_rows_deinit(&rows);
	if (session_get_calls(session)->words && !session->has_only_part_of_time &&
	    !session->has_only_part_of_threads)
		*calls = session_get_calls(session)->recorded;
	return result;
}

static int compare_module_paths(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Every process has entries of its own for the modules. */
static int count_modules(const struct model_instrumented_calls *calls, uint64_t *count)
{
	_cleanup_(cleanup_free) const char **paths =
		calloc(calls->module_count + 1, sizeof(*paths));

	*count = 0;
	if (!paths)
		return -ENOMEM;
	for (uint32_t i = 0; i < calls->module_count; i++)
		paths[i] = calls->modules[i].module;
	qsort(paths, calls->module_count, sizeof(*paths), compare_module_paths);
	for (uint32_t i = 0; i < calls->module_count; i++)
		*count += i == 0 || strcmp(paths[i], paths[i - 1]) != 0;
	return 0;
}

static int write_recorded_calls(const struct summary_writer *summary)
{
	const struct model_instrumented_calls *calls = session_get_calls(summary->session);
	uint64_t recorded, functions, modules = 0;
	int result = count_recorded_calls(summary->session, &recorded, &functions);

	if (result == 0)
		result = count_modules(calls, &modules);
	if (result < 0)
		return result;
	summary_write_line(summary, "%s call%s recorded of %s function%s in %s module%s",
			   quantity_from_count(recorded).text, recorded == 1 ? "" : "s",
			   quantity_from_count(functions).text, functions == 1 ? "" : "s",
			   quantity_from_count(modules).text, modules == 1 ? "" : "s");
	if (calls->unwound)
		summary_write_line(summary,
				   "%s calls were ended by an outer call (longjmp, an exception)",
				   quantity_from_count(calls->unwound).text);
	if (calls->unmatched)
		summary_write_line(summary, "%s calls ended whose beginning was not recorded",
				   quantity_from_count(calls->unmatched).text);
	return result;
}

static void write_count_only_calls(const struct summary_writer *summary)
{
	const struct model_instrumented_calls *calls = session_get_calls(summary->session);
	uint64_t counted = 0, functions = 0;

	for (uint32_t i = 0; i < calls->counted_function_count; i++) {
		if (calls->counted_functions[i].region == MODEL_ENTRY_INDEX_NONE ||
		    calls->counted_functions[i].calls == 0)
			continue;
		counted += calls->counted_functions[i].calls;
		functions++;
	}
	if (functions)
		summary_write_line(summary, "%s calls of %s functions were only counted, not timed",
				   quantity_from_count(counted).text,
				   quantity_from_count(functions).text);
}

/* What the process was told, where it counted nothing that has come through. */
static bool is_call_counting_configured(const struct session *session)
{
	static const char *const settings[] = {"INSTRUMENT_COUNT", "INSTRUMENT_DEMOTE", "COVERAGE"};
	const struct model_program_launch *launch = &session->launch;

	for (uint32_t i = 0; i < launch->setting_count; i++) {
		const struct model_setting *setting = &launch->settings[i];

		for (size_t k = 0; k < ARRAY_SIZE(settings); k++) {
			if (!strcmp(setting->name, settings[k]) && *setting->value &&
			    strcmp(setting->value, "none") != 0)
				return true;
		}
	}
	return session_get_calls(session)->counted_function_count != 0;
}

static bool process_is_instrumented(const struct session *session, uint32_t process)
{
	for (uint32_t i = 0; i < session_get_calls(session)->module_count; i++) {
		if (session_get_calls(session)->modules[i].process == process)
			return true;
	}
	return false;
}

/* Counts are written every second, and at the end where the process knows of it. */
static void write_missing_counts_warning(const struct summary_writer *summary)
{
	const struct session *session = summary->session;
	uint64_t cut = 0;

	if (!is_call_counting_configured(session))
		return;
	for (uint32_t i = 0; i < session->process_count; i++)
		cut += session->processes[i].state == SPOOL_STATE_OPEN &&
		       process_is_instrumented(session, i);
	if (cut)
		summary_write_line(
			summary,
			"%s process%s ended by a signal: the counts that %s made in the last "
			"second are missing",
			quantity_from_count(cut).text, cut == 1 ? "" : "es",
			cut == 1 ? "it" : "they");
}

static void write_demoted_functions(const struct summary_writer *summary)
{
	const struct session *session = summary->session;
	uint32_t count = session_get_calls(session)->demoted_function_count;
	char names[1024];
	size_t used = 0;

	if (count == 0)
		return;
	names[0] = 0;
	for (uint32_t i = 0; i < count && i < DEMOTED_NAMES_MAX; i++) {
		int written = snprintf(
			names + used, sizeof(names) - used, "%s%.80s", i ? ", " : "",
			calls_get_function_name(
				session, session_get_calls(session)->demoted_functions[i].region));

		used += written > 0 ? (size_t)written : 0;
	}
	summary_write_line(
		summary,
		"%s short functions were called so often that kymo only counted them from "
		"then on: %s%s",
		quantity_from_count(count).text, names, count > DEMOTED_NAMES_MAX ? ", ..." : "");
}

int summary_write_instrumented_calls(const struct summary_writer *summary)
{
	const struct model_instrumented_calls *calls = session_get_calls(summary->session);
	int result;

	if (calls->module_count + calls->counted_function_count == 0 && calls->words == 0)
		return 0;
	summary_write_heading(summary, "Instrumented functions");
	result = write_recorded_calls(summary);
	write_count_only_calls(summary);
	write_missing_counts_warning(summary);
	write_demoted_functions(summary);
	return result;
}

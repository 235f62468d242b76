/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Instrumented functions in the summary: how many calls there are, and what was only counted.
 */
#include <string.h>

#include "common/region_categories.h"
#include "output/calls.h"
#include "output/format.h"
#include "output/region_rows.h"
#include "output/summary.h"

#define NAMES_MAX 10

static uint64_t functions_called(const struct session *session)
{
	const struct model_calls *calls = session->calls;
	uint64_t count = 0;

	for (uint32_t i = 0; i < calls->module_count; i++)
		count += calls->modules[i].called;
	return count;
}

/* Where calls are recorded like any other region, for components of their own, arguments, or
 * because some are left out, they are counted there alone. */
static int count_regions(const struct session *session, uint64_t *recorded, uint64_t *functions)
{
	static const struct region_layout layout = {.flat = true, .collapse_processes = true};
	struct region_rows rows;
	int result = region_rows_init(&rows, session, &layout);

	for (uint32_t i = 0; result == 0 && i < rows.count; i++) {
		const struct region_row *row = &rows.rows[i];

		if (row->region == MODEL_NONE || !row->count ||
		    strcmp(session->regions->regions[row->region].category,
			   region_categories[REGION_HOST].name) != 0)
			continue;
		*recorded += row->count;
		++*functions;
	}
	region_rows_deinit(&rows);
	return result;
}

static int write_calls(const struct summary *summary)
{
	const struct model_calls *calls = summary->session->calls;
	uint64_t recorded = calls->recorded, functions = functions_called(summary->session);
	int result = 0;

	if (calls->words == 0)
		result = count_regions(summary->session, &recorded, &functions);
	summary_line(summary, "%s calls recorded of %s functions in %s module%s",
		     quantity_count(recorded).text, quantity_count(functions).text,
		     quantity_count(calls->module_count).text, calls->module_count == 1 ? "" : "s");
	if (calls->unwound)
		summary_line(summary, "%s calls ended with one around them (longjmp, an exception)",
			     quantity_count(calls->unwound).text);
	if (calls->unmatched)
		summary_line(summary, "%s ends of calls whose begin is not in the data",
			     quantity_count(calls->unmatched).text);
	return result;
}

static void write_counted(const struct summary *summary)
{
	const struct model_calls *calls = summary->session->calls;
	uint64_t counted = 0, functions = 0;

	for (uint32_t i = 0; i < calls->counted_count; i++) {
		if (calls->counted[i].region == MODEL_NONE || calls->counted[i].calls == 0)
			continue;
		counted += calls->counted[i].calls;
		functions++;
	}
	if (functions)
		summary_line(summary, "%s calls of %s functions were counted only, without times",
			     quantity_count(counted).text, quantity_count(functions).text);
}

/* What the process was told, where it counted nothing that has come through. */
static bool was_to_count(const struct session *session)
{
	static const char *const settings[] = {"INSTRUMENT_COUNT", "INSTRUMENT_DEMOTE", "COVERAGE"};
	const struct model_launch *launch = &session->launch;

	for (uint32_t i = 0; i < launch->setting_count; i++) {
		const struct model_setting *setting = &launch->settings[i];

		for (size_t k = 0; k < sizeof(settings) / sizeof(settings[0]); k++) {
			if (!strcmp(setting->name, settings[k]) && *setting->value &&
			    strcmp(setting->value, "none") != 0)
				return true;
		}
	}
	return session->calls->counted_count != 0;
}

static bool is_instrumented(const struct session *session, uint32_t process)
{
	for (uint32_t i = 0; i < session->calls->module_count; i++) {
		if (session->calls->modules[i].process == process)
			return true;
	}
	return false;
}

/* Counts are written every second, and at the end where the process knows of it. */
static void write_cut(const struct summary *summary)
{
	const struct session *session = summary->session;
	uint64_t cut = 0;

	if (!was_to_count(session))
		return;
	for (uint32_t i = 0; i < session->process_count; i++)
		cut += session->processes[i].state == SPOOL_STATE_OPEN &&
		       is_instrumented(session, i);
	if (cut)
		summary_line(summary,
			     "%s process%s ended without a word (by a signal): what %s counted in "
			     "up to a second before is missing",
			     quantity_count(cut).text, cut == 1 ? "" : "es",
			     cut == 1 ? "it" : "they");
}

static void write_demoted(const struct summary *summary)
{
	const struct session *session = summary->session;
	uint32_t count = session->calls->demoted_count;
	char names[1024];
	size_t used = 0;

	if (count == 0)
		return;
	names[0] = 0;
	for (uint32_t i = 0; i < count && i < NAMES_MAX; i++) {
		int written = snprintf(names + used, sizeof(names) - used, "%s%.80s", i ? ", " : "",
				       calls_name(session, session->calls->demoted[i].region));

		used += written > 0 ? (size_t)written : 0;
	}
	summary_line(summary,
		     "%s short functions that were called very often are counted only since then: "
		     "%s%s",
		     quantity_count(count).text, names, count > NAMES_MAX ? ", ..." : "");
}

int summary_calls(const struct summary *summary)
{
	const struct model_calls *calls = summary->session->calls;
	int result;

	if (calls->module_count + calls->counted_count == 0 && calls->words == 0)
		return 0;
	summary_heading(summary, "Instrumented functions");
	result = write_calls(summary);
	write_counted(summary);
	write_cut(summary);
	write_demoted(summary);
	return result;
}

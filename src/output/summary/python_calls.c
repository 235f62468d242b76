/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Calls of Python functions in the summary: how many there are.
 */
#include <string.h>

#include "analysis/interpreted/interpreted.h"
#include "common/region_categories.h"
#include "common/settings.h"
#include "common/settings_value.h"
#include "output/format.h"
#include "output/region_rows.h"
#include "output/summary/private.h"

static bool is_setting(const struct session *session, enum setting_id id, bool wanted)
{
	const char *text = session_find_launch_setting(session, settings_table[id].name);
	bool value;

	return text && setting_parse_bool(setting_slice_from_text(text), &value) == SETTING_VALID &&
	       value == wanted;
}

static bool is_coverage_wanted(const struct session *session)
{
	const char *kind =
		session_find_launch_setting(session, settings_table[SETTING_COVERAGE].name);

	return kind && strcmp(kind, "none") != 0;
}

/* In the place of calls, which are not recorded then. */
static void write_coverage(const struct summary_writer *summary)
{
	if (interpreted_code_has_coverage(summary->session))
		summary_write_line(summary, "coverage.txt has which functions ran, and which lines "
					    "where Python tells them (3.12 and later)");
	else
		summary_write_warning(summary, "no coverage: no interpreter was found in the "
					       "program");
}

bool summary_was_told_not_to_sample(const struct summary_writer *summary)
{
	return !summary->samples && is_setting(summary->session, SETTING_USE_SAMPLING, false);
}

int summary_write_python_calls(const struct summary_writer *summary)
{
	static const struct region_table_layout_options layout = {.flat = true,
								  .collapse_processes = true};
	const struct model_regions *regions = session_get_regions(summary->session);
	uint64_t calls = 0, functions = 0;
	struct region_rows rows;
	int result;

	if (!is_setting(summary->session, SETTING_PYTHON_CALLS, true))
		return 0;
	result = region_rows_build(&rows, summary->session, &layout);
	for (uint32_t i = 0; result == 0 && i < rows.count; i++) {
		const struct region_row *row = &rows.rows[i];

		if (row->region == MODEL_ENTRY_INDEX_NONE || !row->count ||
		    strcmp(regions->regions[row->region].category,
			   region_categories[REGION_PYTHON].name) != 0)
			continue;
		calls += row->count;
		functions++;
	}
	region_rows_deinit(&rows);
	summary_write_heading(summary, "Python functions");
	if (is_coverage_wanted(summary->session))
		write_coverage(summary);
	else if (calls)
		summary_write_line(summary, "%s call%s recorded of %s function%s",
				   quantity_from_count(calls).text, calls == 1 ? "" : "s",
				   quantity_from_count(functions).text, functions == 1 ? "" : "s");
	else
		summary_write_warning(summary,
				      "no calls: no interpreter was found in the program, or no "
				      "function that the expressions choose was called");
	return result;
}

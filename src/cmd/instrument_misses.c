/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See instrument_misses.h.
 */
#include "cmd/instrument_misses.h"

#include <stdlib.h>
#include <string.h>

#include "binary/demangle.h"
#include "cmd/message.h"
#include "common/settings_value.h"

static const char *misses_source(const struct resolved *settings, enum setting_id id)
{
	return settings->values[id].source ? settings->values[id].source : settings_table[id].name;
}

/* ---- lists ---- */

static void misses_of_list(const struct instrument_lists *lists, const char *source, bool whole)
{
	const char *first;
	size_t count, misses = selection_rules_misses(lists->rules, &first, &count);

	if (misses && misses == count)
		message_warning("%s: none of its %zu functions was found, such as '%s'", source,
				count, first ? first : "");
	else if (misses && whole)
		message_warning("%s: %zu of its %zu functions were not found, such as '%s'", source,
				misses, count, first ? first : "");
	else if (!count)
		message_warning("%s: no functions on the list", source);
}

/* ---- selected regions ---- */

static bool misses_is_called(const char *mangled, struct setting_slice word)
{
	char *readable, *plain;
	bool same = setting_slice_is(word, mangled);

	if (same || mangled[0] != '_')
		return same;
	readable = demangle(mangled);
	plain = readable ? selection_plain_name(readable) : NULL;
	same = (readable && setting_slice_is(word, readable)) ||
	       (plain && setting_slice_is(word, plain));
	free(plain);
	free(readable);
	return same;
}

static bool misses_is_instrumented(const struct instrument_module *module, uint64_t vaddr)
{
	const struct plan_function *functions = plan_functions(&module->plan);

	for (size_t i = 0; i < module->selection.count; i++) {
		if (functions[i].vaddr == vaddr && module->selection.modes[i] != PLAN_MODE_OFF)
			return true;
	}
	return false;
}

static bool misses_is_function(const struct instrument_module *module, struct setting_slice word)
{
	const struct selection_name *name;

	for (size_t i = 0; module->names && module->selection.chosen &&
			   (name = selection_names_nth(module->names, i));
	     i++) {
		if (misses_is_called(name->mangled, word) &&
		    misses_is_instrumented(module, name->vaddr))
			return true;
	}
	return false;
}

static void misses_of_regions(const struct instrument_lists *lists, const char *source,
			      const char *selected)
{
	struct setting_slice rest = setting_slice(selected), word;

	while (setting_list_next(&rest, &word)) {
		bool function = false;

		for (size_t i = 0; !function && i < lists->count; i++)
			function = misses_is_function(lists->modules[i], word);
		if (function)
			message_warning("%s: '%.*s' is an instrumented function, and these select "
					"nothing; regions that the program names do",
					source, (int)word.length, word.text);
	}
}

void instrument_misses_warn(const struct instrument_lists *lists, const struct resolved *settings,
			    bool whole)
{
	if (lists->rules && *resolved_text(settings, SETTING_INSTRUMENT_LISTS))
		misses_of_list(lists, misses_source(settings, SETTING_INSTRUMENT_LISTS), whole);
	misses_of_regions(lists, misses_source(settings, SETTING_SELECTED_REGIONS),
			  resolved_text(settings, SETTING_SELECTED_REGIONS));
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See misses.h.
 */
#include "planning/misses.h"

#include <stdlib.h>
#include <string.h>

#include "binary/demangle.h"
#include "common/settings_value.h"
#include "console/message.h"

static const char *get_setting_source_text(const struct effective_settings *settings,
					   enum setting_id id)
{
	return settings->values[id].source ? settings->values[id].source : settings_table[id].name;
}

/* ---- lists ---- */

static void warn_of_unmatched_list_names(const struct function_list_output_args *lists,
					 const char *source, bool whole)
{
	const char *first;
	size_t count, misses = selection_rules_count_missing(lists->rules, &first, &count);

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

static bool symbol_matches_word(const char *mangled, struct text_slice word)
{
	char *readable, *plain;
	bool same = setting_slice_equals_word(word, mangled);

	if (same || mangled[0] != '_')
		return same;
	readable = demangle(mangled);
	plain = readable ? selection_copy_plain_name(readable) : NULL;
	same = (readable && setting_slice_equals_word(word, readable)) ||
	       (plain && setting_slice_equals_word(word, plain));
	free(plain);
	free(readable);
	return same;
}

static bool is_address_instrumented(const struct planned_module *module, uint64_t vaddr)
{
	const struct plan_function *functions = plan_get_functions(&module->plan);

	for (size_t i = 0; i < module->selection.count; i++) {
		if (functions[i].vaddr == vaddr && module->selection.modes[i] != PLAN_MODE_OFF)
			return true;
	}
	return false;
}

static bool is_instrumented_function_name(const struct planned_module *module,
					  struct text_slice word)
{
	const struct selection_symbol_name *name;

	for (size_t i = 0; module->names && module->selection.chosen_count &&
			   (name = selection_symbol_names_get_nth(module->names, i));
	     i++) {
		if (symbol_matches_word(name->mangled, word) &&
		    is_address_instrumented(module, name->vaddr))
			return true;
	}
	return false;
}

static void warn_of_functions_named_as_regions(const struct function_list_output_args *lists,
					       const char *source, const char *selected)
{
	struct text_slice rest = setting_slice_from_text(selected), word;

	while (setting_next_list_word(&rest, &word)) {
		bool function = false;

		for (size_t i = 0; !function && i < lists->count; i++)
			function = is_instrumented_function_name(lists->modules[i], word);
		if (function)
			message_warning("%s: '%.*s' is an instrumented function, which cannot "
					"select; name a region of the program",
					source, (int)word.length, word.text);
	}
}

void instrument_warn_of_unmatched_names(const struct function_list_output_args *lists,
					const struct effective_settings *settings, bool whole)
{
	if (lists->rules && *effective_setting_text(settings, SETTING_INSTRUMENT_LISTS))
		warn_of_unmatched_list_names(
			lists, get_setting_source_text(settings, SETTING_INSTRUMENT_LISTS), whole);
	warn_of_functions_named_as_regions(
		lists, get_setting_source_text(settings, SETTING_SELECTED_REGIONS),
		effective_setting_text(settings, SETTING_SELECTED_REGIONS));
}

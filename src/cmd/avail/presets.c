/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo avail presets`: what each preset is for, and what it sets.
 */
#include "settings/presets.h"

#include "cmd/avail/avail.h"
#include "settings/listing.h"

enum { NAME_COLUMN = 10, LINE_WIDTH = 100 };

void avail_print_presets(const struct effective_settings *settings,
			 const struct avail_listing_filter *filter)
{
	(void)settings;
	(void)filter;
	puts("Presets (--preset NAME). What you set yourself counts before a preset; of several "
	     "presets,\nseparated by commas, the last one counts.");
	for (size_t i = 0; i < preset_count; i++) {
		printf("\n  %-8s", presets[i].name);
		listing_print_wrapped(stdout, presets[i].explanation, NAME_COLUMN, NAME_COLUMN,
				      LINE_WIDTH);
		for (const struct preset_value *value = presets[i].values; value->value; value++)
			printf("%*s%s = %s\n", NAME_COLUMN, "", settings_table[value->id].name,
			       value->value);
	}
	puts("\nkymo avail --preset NAME -G FILE writes a preset to a configuration file.");
}

json_t *avail_presets_to_json(const struct effective_settings *settings,
			      const struct avail_listing_filter *filter)
{
	json_t *list = json_array();

	(void)settings;
	(void)filter;
	for (size_t i = 0; i < preset_count; i++) {
		json_t *preset = json_object(), *values = json_object();
		for (const struct preset_value *value = presets[i].values; value->value; value++)
			json_object_set_new(values, settings_table[value->id].name,
					    json_string(value->value));
		json_object_set_new(preset, "name", json_string(presets[i].name));
		json_object_set_new(preset, "description", json_string(presets[i].explanation));
		json_object_set_new(preset, "settings", values);
		json_array_append_new(list, preset);
	}
	return list;
}

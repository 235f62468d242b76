/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo avail --json`; see avail.h.
 */
#include <errno.h>
#include <string.h>

#include "cmd/avail/avail.h"
#include "common/settings_value.h"
#include "output/formats/formats.h"
#include "output/output.h"
#include "settings/listing.h"
#include "settings/probe.h"

static json_t *word_list_to_json_array(const char *list)
{
	json_t *array = json_array();
	struct text_slice rest = setting_slice_from_text(list), word;

	while (setting_next_list_word(&rest, &word))
		json_array_append_new(array, json_stringn(word.text, word.length));
	return array;
}

static json_t *setting_to_json(const struct effective_settings *settings, enum setting_id id)
{
	static const char *const visibilities[] = {"basic", "advanced", "internal"};
	const struct setting *setting = &settings_table[id];
	const struct effective_value *value = &settings->values[id];
	json_t *object = json_object();
	char option[66] = "--", variable[64];

	effective_format_option_name(id, option + 2, sizeof(option) - 2);
	snprintf(variable, sizeof(variable), "KYMO_%s", setting->name);
	json_object_set_new(object, "name", json_string(setting->name));
	json_object_set_new(object, "option", json_string(option));
	json_object_set_new(object, "environment", json_string(variable));
	json_object_set_new(object, "type", json_string(listing_get_type_name(setting->type)));
	json_object_set_new(object, "default", json_string(setting->default_value));
	json_object_set_new(object, "value", json_string(value->text));
	json_object_set_new(object, "origin",
			    json_string(effective_get_origin_name(value->origin)));
	if (value->source)
		json_object_set_new(object, "source", json_string(value->source));
	if (setting->choices)
		json_object_set_new(object, "choices", word_list_to_json_array(setting->choices));
	if (setting->fallback_setting)
		json_object_set_new(object, "inherits", json_string(setting->fallback_setting));
	json_object_set_new(object, "category", json_string(setting->category));
	json_object_set_new(object, "visibility", json_string(visibilities[setting->visibility]));
	json_object_set_new(object, "help", json_string(setting->help));
	return object;
}

json_t *avail_settings_to_json(const struct effective_settings *settings,
			       const struct avail_listing_filter *filter)
{
	json_t *array = json_array();

	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		if (avail_setting_matches_filter(filter, (enum setting_id)id))
			json_array_append_new(array,
					      setting_to_json(settings, (enum setting_id)id));
	}
	return array;
}

json_t *avail_formats_to_json(const struct effective_settings *settings,
			      const struct avail_listing_filter *filter)
{
	json_t *array = json_array();

	(void)settings;
	(void)filter;
	for (size_t i = 0; i < output_format_count; i++) {
		json_t *object = json_object();

		json_object_set_new(object, "name", json_string(output_formats[i]->name));
		json_object_set_new(object, "file", json_string(output_formats[i]->file_name));
		json_object_set_new(object, "description",
				    json_string(output_formats[i]->description));
		json_array_append_new(array, object);
	}
	return array;
}

json_t *avail_sampling_sources_to_json(const struct effective_settings *settings,
				       const struct avail_listing_filter *filter)
{
	struct probed_sampling_source sources[PROBE_SOURCE_COUNT];
	json_t *array = json_array();

	(void)settings;
	(void)filter;
	probe_sampling_sources(sources);
	for (unsigned i = 0; i < PROBE_SOURCE_COUNT; i++) {
		json_t *object = json_object();

		json_object_set_new(object, "name", json_string(sources[i].name));
		json_object_set_new(object, "description", json_string(sources[i].description));
		json_object_set_new(object, "works", json_boolean(sources[i].works));
		json_object_set_new(object, "detail", json_string(sources[i].detail));
		json_array_append_new(array, object);
	}
	return array;
}

int avail_print_json(const struct effective_settings *settings,
		     const struct avail_listing_filter *filter, const char *section, FILE *out,
		     struct problem *problem)
{
	json_t *root = json_object();
	int error = 0;

	json_object_set_new(root, "schema", json_string("kymo.avail/1"));
	json_object_set_new(root, "kymo_version", json_string(KYMO_VERSION));
	for (const struct avail_section *each = avail_sections; each->name; each++) {
		if (!section || !strcmp(section, each->name))
			json_object_set_new(root, each->name, each->json(settings, filter));
	}
	if (json_dumpf(root, out, JSON_INDENT(2)))
		error = problem_set(problem, -EIO, "cannot write JSON");
	fputc('\n', out);
	json_decref(root);
	return error;
}

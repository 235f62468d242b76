/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo avail --json`; see avail.h.
 */
#include <errno.h>
#include <string.h>

#include "cmd/avail.h"
#include "cmd/listing.h"
#include "cmd/probe.h"
#include "common/settings_value.h"
#include "output/output.h"

static json_t *avail_words(const char *list)
{
	json_t *array = json_array();
	struct setting_slice rest = setting_slice(list), word;

	while (setting_list_next(&rest, &word))
		json_array_append_new(array, json_stringn(word.text, word.length));
	return array;
}

static json_t *avail_setting(const struct resolved *settings, enum setting_id id)
{
	static const char *const visibilities[] = {"basic", "advanced", "internal"};
	const struct setting *setting = &settings_table[id];
	const struct resolved_value *value = &settings->values[id];
	json_t *object = json_object();
	char option[66] = "--", variable[64];

	resolved_option_name(id, option + 2, sizeof(option) - 2);
	snprintf(variable, sizeof(variable), "KYMO_%s", setting->name);
	json_object_set_new(object, "name", json_string(setting->name));
	json_object_set_new(object, "option", json_string(option));
	json_object_set_new(object, "environment", json_string(variable));
	json_object_set_new(object, "type", json_string(listing_type_name(setting->type)));
	json_object_set_new(object, "default", json_string(setting->default_value));
	json_object_set_new(object, "value", json_string(value->text));
	json_object_set_new(object, "origin", json_string(resolved_origin_name(value->origin)));
	if (value->source)
		json_object_set_new(object, "source", json_string(value->source));
	if (setting->choices)
		json_object_set_new(object, "choices", avail_words(setting->choices));
	if (setting->inherits)
		json_object_set_new(object, "inherits", json_string(setting->inherits));
	json_object_set_new(object, "category", json_string(setting->category));
	json_object_set_new(object, "visibility", json_string(visibilities[setting->visibility]));
	json_object_set_new(object, "help", json_string(setting->help));
	return object;
}

json_t *avail_json_settings(const struct resolved *settings, const struct avail_filter *filter)
{
	json_t *array = json_array();

	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		if (avail_matches(filter, (enum setting_id)id))
			json_array_append_new(array, avail_setting(settings, (enum setting_id)id));
	}
	return array;
}

json_t *avail_json_formats(const struct resolved *settings, const struct avail_filter *filter)
{
	json_t *array = json_array();

	(void)settings;
	(void)filter;
	for (size_t i = 0; i < output_format_count; i++) {
		json_t *object = json_object();

		json_object_set_new(object, "name", json_string(output_formats[i].name));
		json_object_set_new(object, "file", json_string(output_formats[i].file_name));
		json_object_set_new(object, "description",
				    json_string(output_formats[i].description));
		json_array_append_new(array, object);
	}
	return array;
}

json_t *avail_json_sources(const struct resolved *settings, const struct avail_filter *filter)
{
	struct probe_source sources[PROBE_SOURCES];
	json_t *array = json_array();

	(void)settings;
	(void)filter;
	probe_sources(sources);
	for (unsigned i = 0; i < PROBE_SOURCES; i++) {
		json_t *object = json_object();

		json_object_set_new(object, "name", json_string(sources[i].name));
		json_object_set_new(object, "description", json_string(sources[i].description));
		json_object_set_new(object, "works", json_boolean(sources[i].works));
		json_object_set_new(object, "detail", json_string(sources[i].detail));
		json_array_append_new(array, object);
	}
	return array;
}

int avail_print_json(const struct resolved *settings, const struct avail_filter *filter,
		     const char *section, FILE *out, struct problem *problem)
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

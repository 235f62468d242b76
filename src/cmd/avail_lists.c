/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo avail components | categories | wrappers`: what regions can be measured with, and where
 * they come from.
 */
#include <string.h>

#include "cmd/avail.h"
#include "cmd/listing.h"
#include "common/components.h"
#include "common/region_categories.h"

enum { LISTS_WIDTH = 100, LISTS_COLUMN = 36 };

static bool lists_match(const struct avail_filter *filter, const char *name, const char *help)
{
	return !filter->expression || !regexec(filter->expression, name, 0, NULL, 0) ||
	       !regexec(filter->expression, help, 0, NULL, 0);
}

static const char *lists_kind(enum spool_component_kind kind)
{
	static const char *const names[] = {
		[SPOOL_COMPONENT_PHASE] = "sum",
		[SPOOL_COMPONENT_LEVEL] = "level",
		[SPOOL_COMPONENT_COUNT] = "count",
		[SPOOL_COMPONENT_RATIO] = "ratio",
	};

	return names[kind];
}

void avail_print_components(const struct resolved *settings, const struct avail_filter *filter)
{
	(void)settings;
	puts("Components (--components): measured in every region of the profile");
	for (unsigned i = 0; i < COMPONENT_ID_COUNT; i++) {
		const struct component_description *component = &component_table[i];

		if (!lists_match(filter, component->name, component->help))
			continue;
		printf("  %-26s%-7s ", component->name, component->unit);
		listing_wrap(stdout, component->help, LISTS_COLUMN, LISTS_COLUMN, LISTS_WIDTH);
	}
	if (!filter->expression)
		puts("  … and perf events by name (kymo avail counters)");
}

json_t *avail_json_components(const struct resolved *settings, const struct avail_filter *filter)
{
	json_t *array = json_array();

	(void)settings;
	for (unsigned i = 0; i < COMPONENT_ID_COUNT; i++) {
		const struct component_description *component = &component_table[i];
		json_t *object;

		if (!lists_match(filter, component->name, component->help))
			continue;
		object = json_object();
		json_object_set_new(object, "name", json_string(component->name));
		json_object_set_new(object, "unit", json_string(component->unit));
		json_object_set_new(object, "kind", json_string(lists_kind(component->kind)));
		json_object_set_new(object, "description", json_string(component->help));
		json_array_append_new(array, object);
	}
	return array;
}

void avail_print_categories(const struct resolved *settings, const struct avail_filter *filter)
{
	(void)settings;
	puts("Categories of regions (--enable-categories, --disable-categories)");
	for (unsigned i = 0; i < REGION_CATEGORY_COUNT; i++) {
		if (lists_match(filter, region_categories[i].name, region_categories[i].help))
			printf("  %-10s %s\n", region_categories[i].name,
			       region_categories[i].help);
	}
	if (!filter->expression)
		puts("  … and those that a program makes with the user API");
}

json_t *avail_json_categories(const struct resolved *settings, const struct avail_filter *filter)
{
	json_t *array = json_array();

	(void)settings;
	for (unsigned i = 0; i < REGION_CATEGORY_COUNT; i++) {
		json_t *object;

		if (!lists_match(filter, region_categories[i].name, region_categories[i].help))
			continue;
		object = json_object();
		json_object_set_new(object, "name", json_string(region_categories[i].name));
		json_object_set_new(object, "description", json_string(region_categories[i].help));
		json_array_append_new(array, object);
	}
	return array;
}

/* A group of wrapped functions is a switch among the settings. */
static bool lists_is_group(enum setting_id id, const struct avail_filter *filter)
{
	const struct setting *setting = &settings_table[id];

	return !strcmp(setting->category, "wrappers") && setting->type == SETTING_BOOL &&
	       id != SETTING_USE_WRAPPERS && lists_match(filter, setting->name, setting->help);
}

void avail_print_wrappers(const struct resolved *settings, const struct avail_filter *filter)
{
	bool all = resolved_bool(settings, SETTING_USE_WRAPPERS);
	char option[64];

	printf("Wrapped functions%s\n", all ? "" : " (USE_WRAPPERS is off: none)");
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		if (!lists_is_group((enum setting_id)id, filter))
			continue;
		resolved_option_name((enum setting_id)id, option, sizeof(option));
		printf("  --%-27s %-4s ", option,
		       all && resolved_bool(settings, (enum setting_id)id) ? "on" : "off");
		listing_wrap(stdout, settings_table[id].help, LISTS_COLUMN + 1, LISTS_COLUMN + 1,
			     LISTS_WIDTH);
	}
	if (!filter->expression)
		puts("  … and functions of your choice: --wrap 'library:function(types)' "
		     "(kymo help wrappers)");
}

json_t *avail_json_wrappers(const struct resolved *settings, const struct avail_filter *filter)
{
	json_t *array = json_array();

	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		json_t *object;

		if (!lists_is_group((enum setting_id)id, filter))
			continue;
		object = json_object();
		json_object_set_new(object, "setting", json_string(settings_table[id].name));
		json_object_set_new(object, "on",
				    json_boolean(resolved_bool(settings, SETTING_USE_WRAPPERS) &&
						 resolved_bool(settings, (enum setting_id)id)));
		json_object_set_new(object, "description", json_string(settings_table[id].help));
		json_array_append_new(array, object);
	}
	return array;
}

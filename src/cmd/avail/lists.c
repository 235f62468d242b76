/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo avail components | categories | wrappers`: what regions can be measured with, and where
 * they come from.
 */
#include <string.h>

#include "cmd/avail/avail.h"
#include "common/components.h"
#include "common/region_categories.h"
#include "settings/listing.h"

enum { LISTS_LINE_WIDTH = 100, LISTS_DESCRIPTION_COLUMN = 36 };

static bool lists_item_matches_filter(const struct avail_listing_filter *filter, const char *name,
				      const char *help)
{
	return !filter->expression || !regexec(filter->expression, name, 0, NULL, 0) ||
	       !regexec(filter->expression, help, 0, NULL, 0);
}

static const char *component_kind_to_text(enum spool_component_kind kind)
{
	static const char *const names[] = {
		[SPOOL_COMPONENT_PHASE] = "sum",
		[SPOOL_COMPONENT_LEVEL] = "level",
		[SPOOL_COMPONENT_COUNT] = "count",
		[SPOOL_COMPONENT_RATIO] = "ratio",
	};

	return names[kind];
}

void avail_print_region_components(const struct effective_settings *settings,
				   const struct avail_listing_filter *filter)
{
	(void)settings;
	puts("Components (--components): measured in every region of the profile");
	for (unsigned i = 0; i < COMPONENT_ID_COUNT; i++) {
		const struct component_description *component = &component_table[i];

		if (!lists_item_matches_filter(filter, component->name, component->help))
			continue;
		printf("  %-26s%-7s ", component->name, component->unit);
		listing_print_wrapped(stdout, component->help, LISTS_DESCRIPTION_COLUMN,
				      LISTS_DESCRIPTION_COLUMN, LISTS_LINE_WIDTH);
	}
	if (!filter->expression)
		puts("  … and perf events by name (kymo avail counters)");
}

json_t *avail_region_components_to_json(const struct effective_settings *settings,
					const struct avail_listing_filter *filter)
{
	json_t *array = json_array();

	(void)settings;
	for (unsigned i = 0; i < COMPONENT_ID_COUNT; i++) {
		const struct component_description *component = &component_table[i];
		json_t *object;

		if (!lists_item_matches_filter(filter, component->name, component->help))
			continue;
		object = json_object();
		json_object_set_new(object, "name", json_string(component->name));
		json_object_set_new(object, "unit", json_string(component->unit));
		json_object_set_new(object, "kind",
				    json_string(component_kind_to_text(component->kind)));
		json_object_set_new(object, "description", json_string(component->help));
		json_array_append_new(array, object);
	}
	return array;
}

void avail_print_region_categories(const struct effective_settings *settings,
				   const struct avail_listing_filter *filter)
{
	(void)settings;
	puts("Categories of regions (--enable-categories, --disable-categories)");
	for (unsigned i = 0; i < REGION_CATEGORY_COUNT; i++) {
		if (lists_item_matches_filter(filter, region_categories[i].name,
					      region_categories[i].help))
			printf("  %-10s %s\n", region_categories[i].name,
			       region_categories[i].help);
	}
	if (!filter->expression)
		puts("  … and those that a program makes with the user API");
}

json_t *avail_region_categories_to_json(const struct effective_settings *settings,
					const struct avail_listing_filter *filter)
{
	json_t *array = json_array();

	(void)settings;
	for (unsigned i = 0; i < REGION_CATEGORY_COUNT; i++) {
		json_t *object;

		if (!lists_item_matches_filter(filter, region_categories[i].name,
					       region_categories[i].help))
			continue;
		object = json_object();
		json_object_set_new(object, "name", json_string(region_categories[i].name));
		json_object_set_new(object, "description", json_string(region_categories[i].help));
		json_array_append_new(array, object);
	}
	return array;
}

/* A group of wrapped functions is a switch among the settings. */
static bool lists_is_matching_wrapper_setting(enum setting_id id,
					      const struct avail_listing_filter *filter)
{
	const struct setting *setting = &settings_table[id];

	return !strcmp(setting->category, "wrappers") && setting->type == SETTING_BOOL &&
	       id != SETTING_USE_WRAPPERS &&
	       lists_item_matches_filter(filter, setting->name, setting->help);
}

void avail_print_wrappers(const struct effective_settings *settings,
			  const struct avail_listing_filter *filter)
{
	bool all = effective_setting_bool(settings, SETTING_USE_WRAPPERS);
	char option[64];

	printf("Wrapped functions%s\n", all ? "" : " (USE_WRAPPERS is off: none)");
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		if (!lists_is_matching_wrapper_setting((enum setting_id)id, filter))
			continue;
		effective_format_option_name((enum setting_id)id, option, sizeof(option));
		printf("  --%-27s %-4s ", option,
		       all && effective_setting_bool(settings, (enum setting_id)id) ? "on" : "off");
		listing_print_wrapped(stdout, settings_table[id].help, LISTS_DESCRIPTION_COLUMN + 1,
				      LISTS_DESCRIPTION_COLUMN + 1, LISTS_LINE_WIDTH);
	}
	if (!filter->expression)
		puts("  … and functions of your choice: --wrap 'library:function(types)' "
		     "(kymo help wrappers)");
}

json_t *avail_wrappers_to_json(const struct effective_settings *settings,
			       const struct avail_listing_filter *filter)
{
	json_t *array = json_array();

	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		json_t *object;

		if (!lists_is_matching_wrapper_setting((enum setting_id)id, filter))
			continue;
		object = json_object();
		json_object_set_new(object, "setting", json_string(settings_table[id].name));
		json_object_set_new(
			object, "on",
			json_boolean(effective_setting_bool(settings, SETTING_USE_WRAPPERS) &&
				     effective_setting_bool(settings, (enum setting_id)id)));
		json_object_set_new(object, "description", json_string(settings_table[id].help));
		json_array_append_new(array, object);
	}
	return array;
}

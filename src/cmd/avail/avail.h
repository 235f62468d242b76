/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Parts of `kymo avail` that have files of their own.
 */
#ifndef KYMO_CMD_AVAIL_AVAIL_H
#define KYMO_CMD_AVAIL_AVAIL_H

#include <jansson.h>
#include <regex.h>
#include <stdio.h>

#include "settings/command.h"
#include "settings/effective.h"

extern const struct command avail_command_description;

/* Which settings to list. */
struct avail_listing_filter {
	enum setting_visibility visibility_max;
	const regex_t *expression; /* NULL: all */
};

bool avail_setting_matches_filter(const struct avail_listing_filter *filter, enum setting_id id);

/* One listing: for people and as an array. */
struct avail_section {
	const char *name;
	void (*print)(const struct effective_settings *settings,
		      const struct avail_listing_filter *filter);
	json_t *(*json)(const struct effective_settings *settings,
			const struct avail_listing_filter *filter);
};

/* Ends with a name of NULL; the first one are the settings. */
extern const struct avail_section avail_sections[];

void avail_print_generic_perf_events(const struct effective_settings *settings,
				     const struct avail_listing_filter *filter);
void avail_print_all_perf_events(const struct effective_settings *settings,
				 const struct avail_listing_filter *filter);
void avail_print_region_components(const struct effective_settings *settings,
				   const struct avail_listing_filter *filter);
void avail_print_region_categories(const struct effective_settings *settings,
				   const struct avail_listing_filter *filter);
void avail_print_wrappers(const struct effective_settings *settings,
			  const struct avail_listing_filter *filter);
void avail_print_presets(const struct effective_settings *settings,
			 const struct avail_listing_filter *filter);
json_t *avail_presets_to_json(const struct effective_settings *settings,
			      const struct avail_listing_filter *filter);
json_t *avail_settings_to_json(const struct effective_settings *settings,
			       const struct avail_listing_filter *filter);
json_t *avail_formats_to_json(const struct effective_settings *settings,
			      const struct avail_listing_filter *filter);
json_t *avail_sampling_sources_to_json(const struct effective_settings *settings,
				       const struct avail_listing_filter *filter);
json_t *avail_generic_perf_events_to_json(const struct effective_settings *settings,
					  const struct avail_listing_filter *filter);
json_t *avail_all_perf_events_to_json(const struct effective_settings *settings,
				      const struct avail_listing_filter *filter);
json_t *avail_region_components_to_json(const struct effective_settings *settings,
					const struct avail_listing_filter *filter);
json_t *avail_region_categories_to_json(const struct effective_settings *settings,
					const struct avail_listing_filter *filter);
json_t *avail_wrappers_to_json(const struct effective_settings *settings,
			       const struct avail_listing_filter *filter);

/* Counters of devices (`agent` by its number, NULL: all), as text or JSON, to standard output. */
int avail_print_device_counters(const struct effective_settings *settings,
				const struct avail_listing_filter *filter, const char *agent,
				bool json, struct problem *problem);
/* Everything, or one section, as one JSON object. */
int avail_print_json(const struct effective_settings *settings,
		     const struct avail_listing_filter *filter, const char *section, FILE *out,
		     struct problem *problem);
/* The effective values as a configuration file: JSON when `path` ends in .json; "-": standard
 * output. */
int avail_write_config(const struct effective_settings *settings,
		       const struct avail_listing_filter *filter, const char *path, bool force,
		       struct problem *problem);

#endif

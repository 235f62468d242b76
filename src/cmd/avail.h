/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Parts of `kymo avail` that have files of their own.
 */
#ifndef KYMO_CMD_AVAIL_H
#define KYMO_CMD_AVAIL_H

#include <jansson.h>
#include <regex.h>
#include <stdio.h>

#include "cmd/resolved.h"

/* Which settings to list. */
struct avail_filter {
	enum setting_visibility up_to;
	const regex_t *expression; /* NULL: all */
};

bool avail_matches(const struct avail_filter *filter, enum setting_id id);

/* One listing: for people and as an array. */
struct avail_section {
	const char *name;
	void (*print)(const struct resolved *settings, const struct avail_filter *filter);
	json_t *(*json)(const struct resolved *settings, const struct avail_filter *filter);
};

/* Ends with a name of NULL; the first one are the settings. */
extern const struct avail_section avail_sections[];

void avail_print_events(const struct resolved *settings, const struct avail_filter *filter);
void avail_print_counters(const struct resolved *settings, const struct avail_filter *filter);
void avail_print_components(const struct resolved *settings, const struct avail_filter *filter);
void avail_print_categories(const struct resolved *settings, const struct avail_filter *filter);
void avail_print_wrappers(const struct resolved *settings, const struct avail_filter *filter);
json_t *avail_json_settings(const struct resolved *settings, const struct avail_filter *filter);
json_t *avail_json_formats(const struct resolved *settings, const struct avail_filter *filter);
json_t *avail_json_sources(const struct resolved *settings, const struct avail_filter *filter);
json_t *avail_json_events(const struct resolved *settings, const struct avail_filter *filter);
json_t *avail_json_counters(const struct resolved *settings, const struct avail_filter *filter);
json_t *avail_json_components(const struct resolved *settings, const struct avail_filter *filter);
json_t *avail_json_categories(const struct resolved *settings, const struct avail_filter *filter);
json_t *avail_json_wrappers(const struct resolved *settings, const struct avail_filter *filter);

/* Counters of devices (`agent` by its number, NULL: all), as text or JSON, to standard output. */
int avail_device_counters(const struct resolved *settings, const struct avail_filter *filter,
			  const char *agent, bool json, struct problem *problem);
/* Everything, or one section, as one JSON object. */
int avail_print_json(const struct resolved *settings, const struct avail_filter *filter,
		     const char *section, FILE *out, struct problem *problem);
/* The effective values as a configuration file: JSON when `path` ends in .json; "-": standard
 * output. */
int avail_write_config(const struct resolved *settings, const struct avail_filter *filter,
		       const char *path, bool force, struct problem *problem);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Parts of `kymo avail` that have files of their own.
 */
#ifndef KYMO_CMD_AVAIL_H
#define KYMO_CMD_AVAIL_H

#include <regex.h>
#include <stdio.h>

#include "cmd/resolved.h"

/* Which settings to list. */
struct avail_filter {
	enum setting_visibility up_to;
	const regex_t *expression; /* NULL: all */
};

bool avail_matches(const struct avail_filter *filter, enum setting_id id);

/* Everything, or one section ("settings", "formats", "sources", "events"), as one JSON object. */
int avail_print_json(const struct resolved *settings, const struct avail_filter *filter,
		     const char *section, FILE *out, struct problem *problem);
/* The effective values as a configuration file: JSON when `path` ends in .json; "-": standard
 * output. */
int avail_write_config(const struct resolved *settings, const struct avail_filter *filter,
		       const char *path, bool force, struct problem *problem);

#endif

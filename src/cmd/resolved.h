/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Resolved settings: for every setting the value that counts and where it came from.
 *
 * Sources may come in any order: a weaker source never replaces a stronger one (option >
 * environment > configuration file > default). Every value is checked when it is offered, whether
 * it counts or not.
 */
#ifndef KYMO_CMD_RESOLVED_H
#define KYMO_CMD_RESOLVED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/problem.h"
#include "common/settings.h"

enum resolved_origin {
	ORIGIN_DEFAULT,
	ORIGIN_CONFIG,
	ORIGIN_ALIAS, /* environment, under the name of another tool */
	ORIGIN_ENVIRONMENT,
	ORIGIN_OPTION
};

struct resolved_value {
	char *text;   /* never NULL */
	char *source; /* "--freq", "KYMO_SAMPLING_FREQ", "kymo.conf:3:1"; NULL for defaults */
	enum resolved_origin origin;
};

struct resolved {
	struct resolved_value values[SETTING_COUNT];
};

int resolved_init(struct resolved *settings, struct problem *problem);
void resolved_deinit(struct resolved *settings);

/* Offers a value; 0, or -EINVAL when the setting does not take it. */
int resolved_set(struct resolved *settings, enum setting_id id, const char *text,
		 enum resolved_origin origin, const char *source, struct problem *problem);
/* Reads KYMO_* and the aliases of other tools. Unknown KYMO_ names are errors. */
int resolved_read_environment(struct resolved *settings, char **environment,
			      struct problem *problem);
/* "default", "option --freq", "environment KYMO_TRACE", "file kymo.conf:3:1". */
const char *resolved_describe(const struct resolved_value *value, char *text, size_t size);
const char *resolved_origin_name(enum resolved_origin origin);

/* Values; an unset one (empty text) counts as that of the setting it inherits from. */
const char *resolved_text(const struct resolved *settings, enum setting_id id);
bool resolved_bool(const struct resolved *settings, enum setting_id id);
int64_t resolved_integer(const struct resolved *settings, enum setting_id id);
bool resolved_is_default(const struct resolved *settings, enum setting_id id);

/* The setting of that name (any case, `-` for `_`, with or without KYMO_); SETTING_COUNT: none.
 * Internal settings are not found. */
enum setting_id resolved_find(const char *name, size_t length);
/* "unknown setting 'X'; did you mean 'Y'?" */
int resolved_unknown(const char *name, size_t length, const char *prefix, const char *where,
		     struct problem *problem);
/* A setting's name as an option, without dashes in front: made from the name; or its own one, where
 * it has one. */
const char *resolved_dashed_name(enum setting_id id, char *text, size_t size);
const char *resolved_option_name(enum setting_id id, char *text, size_t size);

#endif

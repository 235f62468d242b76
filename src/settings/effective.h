/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Resolved settings: for every setting the value that counts and where it came from.
 *
 * Sources may come in any order: a weaker source never replaces a stronger one (option >
 * environment > configuration file > preset > default). Every value is checked when it is offered,
 * whether it counts or not.
 */
#ifndef KYMO_SETTINGS_EFFECTIVE_H
#define KYMO_SETTINGS_EFFECTIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/problem.h"
#include "common/settings.h"

enum effective_origin {
	ORIGIN_DEFAULT,
	ORIGIN_PRESET, /* presets.h */
	ORIGIN_CONFIG,
	ORIGIN_ALIAS, /* environment, under the name of another tool */
	ORIGIN_ENVIRONMENT,
	ORIGIN_OPTION
};

struct effective_value {
	char *text;   /* never NULL */
	char *source; /* "--freq", "KYMO_SAMPLING_FREQ", "kymo.conf:3:1"; NULL for defaults */
	enum effective_origin origin;
};

struct effective_settings {
	struct effective_value values[SETTING_COUNT];
};

int effective_init(struct effective_settings *settings, struct problem *problem);
void effective_deinit(struct effective_settings *settings);

/* Offers a value; 0, or -EINVAL when the setting does not take it. */
int effective_set_if_not_overridden(struct effective_settings *settings, enum setting_id id,
				    const char *text, enum effective_origin origin,
				    const char *source, struct problem *problem);
/* Reads KYMO_* and the aliases of other tools. Names that no setting has are passed over. */
int effective_read_environment(struct effective_settings *settings, char **environment,
			       struct problem *problem);
/* The next of the environment's variables that begins with KYMO_ and is no setting, from *variable
 * on, which moves behind it: what is wrong with it is in PROBLEM. False: there is none. */
bool effective_find_next_unknown_variable(char ***variable, struct problem *problem);
/* "default", "option --freq", "environment KYMO_TRACE", "file kymo.conf:3:1". */
const char *effective_describe_origin(const struct effective_value *value, char *text, size_t size);
const char *effective_get_origin_name(enum effective_origin origin);

/* Values; an unset one (empty text) counts as that of the setting it inherits from. */
const char *effective_setting_text(const struct effective_settings *settings, enum setting_id id);
bool effective_setting_bool(const struct effective_settings *settings, enum setting_id id);
int64_t effective_setting_integer(const struct effective_settings *settings, enum setting_id id);
bool effective_setting_is_default(const struct effective_settings *settings, enum setting_id id);

/* The setting of that name (any case, `-` for `_`, with or without KYMO_); SETTING_COUNT: none.
 * Internal settings are not found. */
enum setting_id effective_find_setting(const char *name, size_t length);
/* "unknown setting 'X'; did you mean 'Y'?" */
int effective_set_unknown_name_problem(const char *name, size_t length, const char *prefix,
				       const char *where, struct problem *problem);
/* A setting's name as an option, without dashes in front: made from the name; or its own one, where
 * it has one. */
const char *effective_build_dashed_setting_name(enum setting_id id, char *text, size_t size);
const char *effective_format_option_name(enum setting_id id, char *text, size_t size);

#endif

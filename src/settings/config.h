/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Configuration files: `NAME = value` lines, or JSON.
 *
 *   text  := (blank | comment | NAME '=' value [comment])*  with '#' comments, "…" or '…' quotes,
 *            $env:VARIABLE inside values
 *   JSON  := {"NAME": value, …} or {"kymo": {"settings": {"NAME": value, …}}}; a value is a string,
 *            number, boolean, an array of those (a list), or {"value": …}
 *
 * Names are taken in any case, with or without KYMO_. Errors say file:line:column.
 */
#ifndef KYMO_SETTINGS_CONFIG_H
#define KYMO_SETTINGS_CONFIG_H

#include "settings/effective.h"

/* Reads the files that CONFIG_FILE names (else the user's own, where there is one) into
 * `settings`. Call it after options and environment. 0 or negative errno. */
int config_read_all_files(struct effective_settings *settings, struct problem *problem);
int config_read_file(struct effective_settings *settings, const char *path,
		     struct problem *problem);
/* `name` stands for the file in messages. `text` need not be terminated. */
int config_read_text(struct effective_settings *settings, const char *name, const char *text,
		     size_t length, struct problem *problem);
int config_read_json(struct effective_settings *settings, const char *name, const char *text,
		     size_t length, struct problem *problem);

/* One setting as found at `where` (file:line:column); unknown ones are errors or, without
 * STRICT_CONFIG, warnings. */
int config_apply_setting(struct effective_settings *settings, const char *name, size_t name_length,
			 const char *value, const char *where, struct problem *problem);

#endif

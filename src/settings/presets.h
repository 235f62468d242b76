/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Presets: names for sets of values that fit a kind of program. A value of a preset counts before
 * the default only: whatever the user sets, on the command line, in the environment or in a file,
 * counts before it. Of several presets the later one counts.
 */
#ifndef KYMO_SETTINGS_PRESETS_H
#define KYMO_SETTINGS_PRESETS_H

#include "settings/effective.h"

#define PRESET_VALUES_MAX 16

struct preset_value {
	enum setting_id id;
	const char *value; /* NULL: the list has ended */
};

struct preset {
	const char *name;
	const char *explanation; /* one line */
	struct preset_value values[PRESET_VALUES_MAX];
};

/* In the order of PRESET's choices. */
extern const struct preset presets[];
extern const size_t preset_count;

/* Sets what the presets named by PRESET have, of settings for which `accepts` says so (NULL: of
 * all). The settings' other sources have been read. */
int presets_apply(struct effective_settings *settings, bool (*accepts)(enum setting_id id),
		  struct problem *problem);
/* Whether a preset that PRESET names has a value for the setting. */
bool presets_have_value(const struct effective_settings *settings, enum setting_id id);

#endif

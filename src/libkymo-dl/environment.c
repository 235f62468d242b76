/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See environment.h.
 */
#include "libkymo-dl/environment.h"

#include <stdlib.h>
#include <string.h>

#include "common/settings_value.h"

static const char *find_environment_setting(enum setting_id id)
{
	static const char *const prefixes[] = {"KYMO_", "ROCPROFSYS_", "OMNITRACE_"};
	const struct setting *setting = &settings_table[id];
	size_t count = setting->has_peer_aliases ? 3 : 1;

	for (size_t i = 0; i < count; i++) {
		char name[96];
		const char *text;
		size_t length = strlen(prefixes[i]);

		if (length + strlen(setting->name) >= sizeof(name))
			return NULL;
		memcpy(name, prefixes[i], length);
		memcpy(name + length, setting->name, strlen(setting->name) + 1);
		text = secure_getenv(name);
		if (text && *text)
			return text;
	}
	return NULL;
}

const char *environment_get_setting_text(enum setting_id id)
{
	const char *text = find_environment_setting(id);

	return text ? text : settings_table[id].default_value;
}

bool environment_setting_is_on(enum setting_id id)
{
	bool value = false;

	if (setting_parse_bool(setting_slice_from_text(environment_get_setting_text(id)), &value))
		setting_parse_bool(setting_slice_from_text(settings_table[id].default_value),
				   &value);
	return value;
}

uint64_t environment_get_setting_natural(enum setting_id id)
{
	int64_t value;

	if (setting_parse_integer(setting_slice_from_text(environment_get_setting_text(id)),
				  &value) ||
	    value < 0)
		return 0;
	return (uint64_t)value;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See environment.h.
 */
#include "libkymo-dl/environment.h"

#include <stdlib.h>
#include <string.h>

#include "common/settings_value.h"

static const char *environment_given(enum setting_id id)
{
	static const char *const prefixes[] = {"KYMO_", "ROCPROFSYS_", "OMNITRACE_"};
	const struct setting *setting = &settings_table[id];
	size_t count = setting->alias ? 3 : 1;

	for (size_t i = 0; i < count; i++) {
		char name[96];
		const char *text;
		size_t length = strlen(prefixes[i]);

		if (length + strlen(setting->name) >= sizeof(name))
			return NULL;
		memcpy(name, prefixes[i], length);
		memcpy(name + length, setting->name, strlen(setting->name) + 1);
		text = getenv(name);
		if (text && *text)
			return text;
	}
	return NULL;
}

const char *environment_text(enum setting_id id)
{
	const char *text = environment_given(id);

	return text ? text : settings_table[id].default_value;
}

bool environment_on(enum setting_id id)
{
	bool value = false;

	if (setting_parse_bool(setting_slice(environment_text(id)), &value))
		setting_parse_bool(setting_slice(settings_table[id].default_value), &value);
	return value;
}

uint64_t environment_natural(enum setting_id id)
{
	int64_t value;

	if (setting_parse_integer(setting_slice(environment_text(id)), &value) || value < 0)
		return 0;
	return (uint64_t)value;
}

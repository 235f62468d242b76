/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Configuration files from anybody: the first byte chooses text or JSON, the rest is the file.
 * Every setting that comes out of it must be one that its own check accepts.
 */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/settings_check.h"
#include "console/message.h"
#include "launch/result_path.h"
#include "settings/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_settings(const struct effective_settings *settings)
{
	struct text_slice culprit;
	struct problem problem;
	struct result_key_values keys = {"program", {0}, 1};
	char *path;

	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		if (setting_check_value_text(&settings_table[id], settings->values[id].text,
					     &culprit))
			abort();
	}
	if (!result_path_expand_keys(effective_setting_text(settings, SETTING_OUTPUT_PATH), &keys,
				     &path, &problem))
		free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct effective_settings settings;
	struct problem problem;

	message_set_verbosity(-1);
	if (!size || effective_init(&settings, &problem))
		return 0;
	if (data[0] & 1)
		config_read_json(&settings, "f", (const char *)data + 1, size - 1, &problem);
	else
		config_read_text(&settings, "f", (const char *)data + 1, size - 1, &problem);
	check_settings(&settings);
	effective_deinit(&settings);
	return 0;
}

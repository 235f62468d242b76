/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo avail -G`: a configuration file with the effective values; see avail.h.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/avail/avail.h"
#include "common/cleanup.h"
#include "common/trusted_path.h"
#include "files/atomic_file.h"
#include "settings/listing.h"
#include "settings/presets.h"

static void avail_print_value_quoted_if_needed(FILE *out, const char *value)
{
	const char *quote = "";

	if (strpbrk(value, " \t#'"))
		quote = "\"";
	else if (strchr(value, '"') || strstr(value, "$env:"))
		quote = "'";
	fprintf(out, "%s%s%s", quote, value, quote);
}

/* With a preset, what the preset sets; a file that names itself would say nothing. */
static bool avail_is_written_to_config(const struct effective_settings *settings,
				       const struct avail_listing_filter *filter, unsigned id)
{
	if (id == SETTING_CONFIG_FILE || id == SETTING_PRESET)
		return false;
	return effective_setting_is_default(settings, SETTING_PRESET)
		       ? avail_setting_matches_filter(filter, (enum setting_id)id)
		       : presets_have_value(settings, (enum setting_id)id);
}

static int avail_write_config_text(const struct effective_settings *settings,
				   const struct avail_listing_filter *filter, FILE *out)
{
	const char *category = "";

	fprintf(out, "# Settings of kymo %s. NAME = value; see kymo help config.\n", KYMO_VERSION);
	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		const struct setting *setting = &settings_table[id];

		if (!avail_is_written_to_config(settings, filter, id))
			continue;
		if (strcmp(category, setting->category)) {
			category = setting->category;
			fprintf(out, "\n# ---- %s ----\n", listing_get_category_title(category));
		}
		fprintf(out, "\n# %s\n", setting->help);
		if (setting->choices)
			fprintf(out, "# Choices: %s\n", setting->choices);
		if (!settings->values[id].text[0]) {
			fprintf(out, "# %s =\n", setting->name);
			continue;
		}
		fprintf(out, "%s = ", setting->name);
		avail_print_value_quoted_if_needed(out, settings->values[id].text);
		fputc('\n', out);
	}
	return ferror(out) ? -EIO : 0;
}

static int avail_write_config_json(const struct effective_settings *settings,
				   const struct avail_listing_filter *filter, FILE *out)
{
	json_t *root = json_object(), *kymo = json_object(), *list = json_object();
	int error;

	for (unsigned id = 0; id < SETTING_COUNT; id++) {
		if (avail_is_written_to_config(settings, filter, id) &&
		    settings->values[id].text[0])
			json_object_set_new(list, settings_table[id].name,
					    json_string(settings->values[id].text));
	}
	json_object_set_new(kymo, "settings", list);
	json_object_set_new(root, "kymo", kymo);
	error = json_dumpf(root, out, JSON_INDENT(2)) ? -EIO : 0;
	fputc('\n', out);
	json_decref(root);
	return error;
}

static bool avail_is_json_path(const char *path)
{
	size_t length = strlen(path);

	return length > 5 && !strcmp(path + length - 5, ".json");
}

int avail_write_config(const struct effective_settings *settings,
		       const struct avail_listing_filter *filter, const char *path, bool force,
		       struct problem *problem)
{
	struct stat status;
	bool in_place; /* a device, pipe or link: renaming would replace it by a file */
	_cleanup_(cleanup_free) char *text = NULL;
	size_t size = 0;
	FILE *out;
	int error;

	if (!strcmp(path, "-"))
		return avail_write_config_text(settings, filter, stdout);
	if (!force && !access(path, F_OK))
		return problem_set(problem, -EEXIST, "'%s' exists; --force overwrites it", path);
	in_place = !lstat(path, &status) && !S_ISREG(status.st_mode);
	if (in_place && !is_trusted_owner(status.st_uid))
		return problem_set(problem, -EPERM,
				   "will not write to '%s': it is a link, pipe or device of user "
				   "%u; choose another name",
				   path, (unsigned)status.st_uid);
	out = in_place ? fopen(path, "we") : open_memstream(&text, &size);
	if (!out) {
		error = -errno;
	} else {
		error = avail_is_json_path(path) ? avail_write_config_json(settings, filter, out)
						 : avail_write_config_text(settings, filter, out);
		if (fclose(out) && !error)
			error = -errno;
		if (!error && !in_place)
			error = atomic_file_write_parts(path, ATOMIC_FILE_MODE_BY_UMASK,
							&(struct atomic_file_part){text, size}, 1);
	}
	return error ? problem_set(problem, error, "cannot write '%s': %s", path, strerror(-error))
		     : 0;
}

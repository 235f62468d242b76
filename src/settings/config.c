/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Configuration files: finding them, and the text form; see config.h. JSON is in config_json.c.
 */
#include "settings/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/foreign_file.h"
#include "common/settings_value.h"
#include "console/message.h"

enum { CONFIG_BYTES_MAX = 4 << 20 }; /* no configuration is larger: somebody named another file */

/* A line under the reader's eye. */
struct config_line {
	const char *file;
	const char *start, *end;
	unsigned number;
};

static const char *config_format_line_and_column(const struct config_line *line, const char *at,
						 char *text, size_t size)
{
	snprintf(text, size, "%s:%u:%u", line->file, line->number,
		 (unsigned)(at - line->start) + 1);
	return text;
}

int config_apply_setting(struct effective_settings *settings, const char *name, size_t name_length,
			 const char *value, const char *where, struct problem *problem)
{
	enum setting_id id = effective_find_setting(name, name_length);

	if (id != SETTING_COUNT)
		return effective_set_if_not_overridden(settings, id, value, ORIGIN_CONFIG, where,
						       problem);
	if (effective_setting_bool(settings, SETTING_STRICT_CONFIG))
		return effective_set_unknown_name_problem(name, name_length, "", where, problem);
	struct problem note;

	effective_set_unknown_name_problem(name, name_length, "", where, &note);
	message_warning("%s", note.text);
	return 0;
}

/* Appends the value of the variable named at *at, behind `$env:`. */
static void config_expand_variable(FILE *out, const char **at, const char *end)
{
	const char *start = *at;
	char name[256];

	while (*at < end && (setting_is_letter(**at) || setting_is_digit(**at) || **at == '_'))
		(*at)++;
	snprintf(name, sizeof(name), "%.*s", (int)(*at - start), start);
	fputs(getenv(name) ? getenv(name) : "", out);
}

/* The value between `at` and the end of the line, quotes and variables resolved, comment cut. */
static int config_parse_value(const struct config_line *line, const char *at, FILE *out,
			      struct problem *problem)
{
	static const char variable[] = "$env:";
	char where[512], quote = 0;
	const char *opened = NULL;
	size_t blanks = 0;

	for (; at < line->end; at++) {
		if (quote && *at == quote) {
			quote = 0;
		} else if (!quote && (*at == '"' || *at == '\'')) {
			quote = *at;
			opened = at;
		} else if (!quote && *at == '#' && setting_is_blank_character(at[-1])) {
			break;
		} else if (!quote && setting_is_blank_character(*at)) {
			blanks++;
			continue;
		} else {
			for (; blanks; blanks--)
				fputc(' ', out);
			if (quote != '\'' && (size_t)(line->end - at) > sizeof(variable) - 1 &&
			    !strncmp(at, variable, sizeof(variable) - 1)) {
				at += sizeof(variable) - 1;
				config_expand_variable(out, &at, line->end);
				at--;
				continue;
			}
			fputc(*at, out);
			continue;
		}
	}
	if (quote)
		return problem_set(
			problem, -EINVAL, "%s: this quote is never closed",
			config_format_line_and_column(line, opened, where, sizeof(where)));
	return 0;
}

static bool config_is_name_character(char c)
{
	return setting_is_letter(c) || setting_is_digit(c) || c == '_' || c == '-';
}

static int config_apply_line(struct effective_settings *settings, const struct config_line *line,
			     struct problem *problem)
{
	const char *at = line->start, *name, *name_end;
	char where[512], *value = NULL;
	size_t size = 0;
	FILE *out;
	int error;

	while (at < line->end && setting_is_blank_character(*at))
		at++;
	if (at == line->end || *at == '#')
		return 0;
	name = at;
	while (at < line->end && config_is_name_character(*at))
		at++;
	name_end = at;
	while (at < line->end && setting_is_blank_character(*at))
		at++;
	if (name == name_end || at == line->end || *at != '=')
		return problem_set(problem, -EINVAL,
				   "%s: expected NAME = value, or a comment that begins with #",
				   config_format_line_and_column(line, at, where, sizeof(where)));
	at++;
	while (at < line->end && setting_is_blank_character(*at))
		at++;
	out = open_memstream(&value, &size);
	if (!out)
		return problem_set(problem, -ENOMEM, "out of memory");
	error = config_parse_value(line, at, out, problem);
	if (fclose(out) && !error)
		error = problem_set(problem, -ENOMEM, "out of memory");
	if (!error)
		error = config_apply_setting(
			settings, name, (size_t)(name_end - name), value,
			config_format_line_and_column(line, name, where, sizeof(where)), problem);
	free(value);
	return error;
}

int config_read_text(struct effective_settings *settings, const char *name, const char *text,
		     size_t length, struct problem *problem)
{
	struct config_line line = {.file = name, .start = text};
	const char *end = text + length;

	while (line.start < end) {
		const char *newline = memchr(line.start, '\n', (size_t)(end - line.start));
		int error;

		line.number++;
		line.end = newline ? newline : end;
		if (memchr(line.start, '\0', (size_t)(line.end - line.start)))
			return problem_set(problem, -EINVAL, "%s:%u:1: this is not a text file",
					   name, line.number);
		error = config_apply_line(settings, &line, problem);
		if (error)
			return error;
		line.start = line.end + (newline != NULL);
		if (!newline)
			break;
	}
	return 0;
}

/* *ret is malloc'ed. */
static int config_read_whole_file(FILE *file, const char *path, char **ret, size_t *ret_length,
				  struct problem *problem)
{
	int error = errno;
	char *text = malloc(CONFIG_BYTES_MAX + 1);

	if (!file || !text) {
		free(text);
		if (file)
			fclose(file);
		return problem_set(problem, -error, "cannot read configuration file '%s': %s", path,
				   foreign_error_to_text(file ? ENOMEM : error));
	}
	*ret_length = fread(text, 1, CONFIG_BYTES_MAX + 1, file);
	error = ferror(file) ? errno : 0;
	fclose(file);
	if (!error && *ret_length > CONFIG_BYTES_MAX)
		error = EFBIG;
	if (error) {
		free(text);
		return problem_set(problem, -error, "cannot read configuration file '%s': %s", path,
				   strerror(error));
	}
	*ret = text;
	return 0;
}

static int config_read_stream(struct effective_settings *settings, FILE *file, const char *path,
			      struct problem *problem)
{
	char *text = NULL;
	size_t length = 0, first = 0;
	int error = config_read_whole_file(file, path, &text, &length, problem);

	if (error)
		return error;
	while (first < length && setting_is_blank_character(text[first]))
		first++;
	error = first < length && text[first] == '{'
			? config_read_json(settings, path, text, length, problem)
			: config_read_text(settings, path, text, length, problem);
	free(text);
	return error;
}

int config_read_file(struct effective_settings *settings, const char *path, struct problem *problem)
{
	return config_read_stream(settings, foreign_open_user_named_stream(path), path, problem);
}

/* $XDG_CONFIG_HOME/kymo/config or ~/.config/kymo/config; it need not exist. One of
 * another user (sudo that keeps HOME) does not say what we do and where we write. */
static int config_read_user_file(struct effective_settings *settings, struct problem *problem)
{
	const struct foreign_open_policy how = {.directory = AT_FDCWD,
						.trust_flags = FOREIGN_ONLY_OWN_LINKS |
							       FOREIGN_ONLY_OWNER_OR_ROOT,
						.owner = geteuid()};
	const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char path[4096];
	FILE *file;

	if (base && *base == '/')
		snprintf(path, sizeof(path), "%s/kymo/config", base);
	else if (home && *home == '/')
		snprintf(path, sizeof(path), "%s/.config/kymo/config", home);
	else
		return 0;
	file = foreign_open_stream(&how, path);
	if (file)
		return config_read_stream(settings, file, path, problem);
	if (errno == EPERM || errno == ELOOP || errno == ENODEV)
		message_warning("'%s' is not read: %s", path,
				errno == EPERM ? "it belongs to another user"
					       : foreign_error_to_text(errno));
	return 0;
}

int config_read_all_files(struct effective_settings *settings, struct problem *problem)
{
	char *paths, *rest;
	int error = 0;

	if (!settings->values[SETTING_CONFIG_FILE].text[0])
		return config_read_user_file(settings, problem);
	rest = paths = strdup(settings->values[SETTING_CONFIG_FILE].text);
	if (!paths)
		return problem_set(problem, -ENOMEM, "out of memory");
	for (char *path; !error && (path = strsep(&rest, ":;"));) {
		if (*path)
			error = config_read_file(settings, path, problem);
	}
	free(paths);
	return error;
}

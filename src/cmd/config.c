/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Configuration files: finding them, and the text form; see config.h. JSON is in config_json.c.
 */
#include "cmd/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/message.h"
#include "common/settings_value.h"

enum { CONFIG_SIZE_MAX = 4 << 20 }; /* no configuration is larger: somebody named another file */

/* A line under the reader's eye. */
struct config_line {
	const char *file;
	const char *start, *end;
	unsigned number;
};

static const char *config_where(const struct config_line *line, const char *at, char *text,
				size_t size)
{
	snprintf(text, size, "%s:%u:%u", line->file, line->number,
		 (unsigned)(at - line->start) + 1);
	return text;
}

int config_offer(struct resolved *settings, const char *name, size_t name_length, const char *value,
		 const char *where, struct problem *problem)
{
	enum setting_id id = resolved_find(name, name_length);

	if (id != SETTING_COUNT)
		return resolved_set(settings, id, value, ORIGIN_CONFIG, where, problem);
	if (resolved_bool(settings, SETTING_STRICT_CONFIG))
		return resolved_unknown(name, name_length, "", where, problem);
	struct problem note;

	resolved_unknown(name, name_length, "", where, &note);
	message_warning("%s", note.text);
	return 0;
}

/* Appends the value of the variable named at *at, behind `$env:`. */
static void config_expand(FILE *out, const char **at, const char *end)
{
	const char *start = *at;
	char name[256];

	while (*at < end && (setting_is_letter(**at) || setting_is_digit(**at) || **at == '_'))
		(*at)++;
	snprintf(name, sizeof(name), "%.*s", (int)(*at - start), start);
	fputs(getenv(name) ? getenv(name) : "", out);
}

/* The value between `at` and the end of the line, quotes and variables resolved, comment cut. */
static int config_value(const struct config_line *line, const char *at, FILE *out,
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
		} else if (!quote && *at == '#' && setting_is_blank(at[-1])) {
			break;
		} else if (!quote && setting_is_blank(*at)) {
			blanks++;
			continue;
		} else {
			for (; blanks; blanks--)
				fputc(' ', out);
			if (quote != '\'' && (size_t)(line->end - at) > sizeof(variable) - 1 &&
			    !strncmp(at, variable, sizeof(variable) - 1)) {
				at += sizeof(variable) - 1;
				config_expand(out, &at, line->end);
				at--;
				continue;
			}
			fputc(*at, out);
			continue;
		}
	}
	if (quote)
		return problem_set(problem, -EINVAL, "%s: this quote is never closed",
				   config_where(line, opened, where, sizeof(where)));
	return 0;
}

static bool config_is_name(char c)
{
	return setting_is_letter(c) || setting_is_digit(c) || c == '_' || c == '-';
}

static int config_line(struct resolved *settings, const struct config_line *line,
		       struct problem *problem)
{
	const char *at = line->start, *name, *name_end;
	char where[512], *value = NULL;
	size_t size = 0;
	FILE *out;
	int error;

	while (at < line->end && setting_is_blank(*at))
		at++;
	if (at == line->end || *at == '#')
		return 0;
	name = at;
	while (at < line->end && config_is_name(*at))
		at++;
	name_end = at;
	while (at < line->end && setting_is_blank(*at))
		at++;
	if (name == name_end || at == line->end || *at != '=')
		return problem_set(problem, -EINVAL,
				   "%s: expected NAME = value, or a comment that begins with #",
				   config_where(line, at, where, sizeof(where)));
	at++;
	while (at < line->end && setting_is_blank(*at))
		at++;
	out = open_memstream(&value, &size);
	if (!out)
		return problem_set(problem, -ENOMEM, "out of memory");
	error = config_value(line, at, out, problem);
	if (fclose(out) && !error)
		error = problem_set(problem, -ENOMEM, "out of memory");
	if (!error)
		error = config_offer(settings, name, (size_t)(name_end - name), value,
				     config_where(line, name, where, sizeof(where)), problem);
	free(value);
	return error;
}

int config_read_text(struct resolved *settings, const char *name, const char *text, size_t length,
		     struct problem *problem)
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
		error = config_line(settings, &line, problem);
		if (error)
			return error;
		line.start = line.end + (newline != NULL);
		if (!newline)
			break;
	}
	return 0;
}

/* *ret is malloc'ed. */
static int config_load(const char *path, char **ret, size_t *ret_length, struct problem *problem)
{
	FILE *file = fopen(path, "re");
	char *text = malloc(CONFIG_SIZE_MAX + 1);
	int error = errno;

	if (!file || !text) {
		free(text);
		if (file)
			fclose(file);
		return problem_set(problem, -error, "cannot read configuration file '%s': %s", path,
				   strerror(error));
	}
	*ret_length = fread(text, 1, CONFIG_SIZE_MAX + 1, file);
	error = ferror(file) ? errno : 0;
	fclose(file);
	if (!error && *ret_length > CONFIG_SIZE_MAX)
		error = EFBIG;
	if (error) {
		free(text);
		return problem_set(problem, -error, "cannot read configuration file '%s': %s", path,
				   strerror(error));
	}
	*ret = text;
	return 0;
}

int config_read_file(struct resolved *settings, const char *path, struct problem *problem)
{
	char *text = NULL;
	size_t length = 0, first = 0;
	int error = config_load(path, &text, &length, problem);

	if (error)
		return error;
	while (first < length && setting_is_blank(text[first]))
		first++;
	error = first < length && text[first] == '{'
			? config_read_json(settings, path, text, length, problem)
			: config_read_text(settings, path, text, length, problem);
	free(text);
	return error;
}

/* $XDG_CONFIG_HOME/kymo/config or ~/.config/kymo/config; it need not exist. */
static int config_read_own(struct resolved *settings, struct problem *problem)
{
	const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	char path[4096];

	if (base && *base == '/')
		snprintf(path, sizeof(path), "%s/kymo/config", base);
	else if (home && *home == '/')
		snprintf(path, sizeof(path), "%s/.config/kymo/config", home);
	else
		return 0;
	return access(path, R_OK) ? 0 : config_read_file(settings, path, problem);
}

int config_read_all(struct resolved *settings, struct problem *problem)
{
	char *paths, *rest;
	int error = 0;

	if (!settings->values[SETTING_CONFIG_FILE].text[0])
		return config_read_own(settings, problem);
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

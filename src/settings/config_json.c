/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Configuration files in JSON; see config.h.
 *
 * Jansson says where syntax errors are, but not where a good value stood; for messages about values
 * the place of the quoted name in the text does.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "settings/config.h"

struct json_config_text {
	const char *name, *text;
	size_t length;
};

static const char *format_key_line_and_column(const struct json_config_text *file, const char *key,
					      char *text, size_t size)
{
	char quoted[256];
	const char *found;
	unsigned line = 1, column = 1;

	snprintf(quoted, sizeof(quoted), "\"%s\"", key);
	found = memmem(file->text, file->length, quoted, strlen(quoted));
	for (const char *at = file->text; found && at < found; at++) {
		column = *at == '\n' ? 1 : column + 1;
		line += *at == '\n';
	}
	snprintf(text, size, "%s:%u:%u", file->name, line, column);
	return text;
}

/* A scalar as the text a user would have written; false for anything else. */
static bool write_scalar_as_text(const json_t *value, FILE *out)
{
	switch (json_typeof(value)) {
	case JSON_STRING:
		fputs(json_string_value(value), out);
		return true;
	case JSON_INTEGER:
		fprintf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
		return true;
	case JSON_REAL:
		fprintf(out, "%.17g", json_real_value(value));
		return true;
	case JSON_TRUE:
	case JSON_FALSE:
		fputs(json_is_true(value) ? "on" : "off", out);
		return true;
	default:
		return false;
	}
}

static bool write_value_as_text(const json_t *value, FILE *out)
{
	const json_t *inner = json_object_get(value, "value"), *item;
	size_t index;

	if (inner)
		value = inner;
	if (!json_is_array(value))
		return write_scalar_as_text(value, out);
	json_array_foreach(value, index, item)
	{
		if (index)
			fputc(',', out);
		if (!write_scalar_as_text(item, out))
			return false;
	}
	return true;
}

static int json_apply_setting(struct effective_settings *settings,
			      const struct json_config_text *file, const char *key,
			      const json_t *value, struct problem *problem)
{
	char where[512], *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool good;
	int error;

	if (!out)
		return problem_set(problem, -ENOMEM, "out of memory");
	format_key_line_and_column(file, key, where, sizeof(where));
	good = write_value_as_text(value, out);
	if (fclose(out))
		error = problem_set(problem, -ENOMEM, "out of memory");
	else if (!good)
		error = problem_set(problem, -EINVAL,
				    "%s: %s: expected a string, a number, true, false or a list",
				    where, key);
	else
		error = config_apply_setting(settings, key, strlen(key), text, where, problem);
	free(text);
	return error;
}

int config_read_json(struct effective_settings *settings, const char *name, const char *text,
		     size_t length, struct problem *problem)
{
	struct json_config_text file = {name, text, length};
	json_error_t bad;
	json_t *root = json_loadb(text, length, JSON_REJECT_DUPLICATES, &bad), *list, *value;
	const char *key;
	int error = 0;

	if (!root)
		return problem_set(problem, -EINVAL, "%s:%d:%d: %s", name, bad.line, bad.column,
				   bad.text);
	list = json_object_get(root, "kymo");
	list = list ? json_object_get(list, "settings") : root;
	if (!json_is_object(list))
		error = problem_set(problem, -EINVAL,
				    "%s:1:1: expected {\"NAME\": value, …} or "
				    "{\"kymo\": {\"settings\": {…}}}",
				    name);
	else
		json_object_foreach(list, key, value)
		{
			error = json_apply_setting(settings, &file, key, value, problem);
			if (error)
				break;
		}
	json_decref(root);
	return error;
}

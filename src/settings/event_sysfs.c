/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See event_sysfs.h. Documentation/ABI/testing/sysfs-bus-event_source-devices-{events,format}: an
 * event's file holds terms, a term's file says which bits of which word it is.
 */
#include "settings/event_sysfs.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SYSFS_NAME_SIZE = 64, SYSFS_LINE_SIZE = 512 };

static char sysfs_error_text_buffer[SYSFS_NAME_SIZE + 64];

/* Nothing that leads out of the directory. */
static bool sysfs_is_plain_name(const char *text, size_t length)
{
	if (!length || length >= SYSFS_NAME_SIZE || text[0] == '.')
		return false;
	for (size_t i = 0; i < length; i++) {
		if (text[i] == '/' || (unsigned char)text[i] <= ' ')
			return false;
	}
	return true;
}

/* First line of a small file. */
static int sysfs_read_line(char *text, const char *root, const char *pmu, const char *directory,
			   const char *name)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s/%s%s", root, pmu, directory, name);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	text[0] = '\0';
	if (!fgets(text, SYSFS_LINE_SIZE, file))
		text[0] = '\0';
	fclose(file);
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

/* Puts the low bits of `value` where "config1:0-7,21" says. */
static int sysfs_set_config_bits(const char *format, uint64_t value, struct perf_event_code *ret)
{
	uint64_t *word = !strncmp(format, "config:", 7)    ? &ret->config
			 : !strncmp(format, "config1:", 8) ? &ret->config1
			 : !strncmp(format, "config2:", 8) ? &ret->config2
							   : NULL;
	const char *at = strchr(format, ':');

	if (!word)
		return -EINVAL;
	while (*at) {
		char *end;
		unsigned long first = strtoul(at + 1, &end, 10), last = first;

		if (end == at + 1)
			return -EINVAL;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (first > last || last > 63)
			return -EINVAL;
		for (unsigned long bit = first; bit <= last; bit++, value >>= 1)
			*word |= (value & 1) << bit;
		if (*end && *end != ',')
			return -EINVAL;
		at = end;
	}
	return value ? -ERANGE : 0;
}

static int sysfs_apply_term(const char *root, const char *pmu, char *term,
			    struct perf_event_code *ret)
{
	static const char *const words[] = {"config", "config1", "config2"};
	uint64_t *const places[] = {&ret->config, &ret->config1, &ret->config2}, value = 1;
	char format[SYSFS_LINE_SIZE], *equals = strchr(term, '='), *end;
	int error;

	if (equals) {
		*equals = '\0';
		errno = 0;
		value = strtoull(equals + 1, &end, 0);
		if (end == equals + 1 || *end || errno)
			return -EINVAL;
	}
	for (unsigned i = 0; i < 3; i++) {
		if (!strcmp(term, words[i])) {
			*places[i] |= value;
			return 0;
		}
	}
	if (!sysfs_is_plain_name(term, strlen(term)))
		return -EINVAL;
	error = sysfs_read_line(format, root, pmu, "format/", term);
	return error ? error : sysfs_set_config_bits(format, value, ret);
}

static int sysfs_apply_terms(const char *root, const char *pmu, char *terms,
			     struct perf_event_code *ret, const char **ret_why)
{
	char *rest = terms;
	int error = 0;

	for (char *term; !error && (term = strsep(&rest, ",:"));) {
		if (!*term)
			continue;
		error = sysfs_apply_term(root, pmu, term, ret);
		if (error)
			snprintf(sysfs_error_text_buffer, sizeof(sysfs_error_text_buffer),
				 "%s '%.*s'",
				 error == -ERANGE ? "the value is too large for"
						  : "no such event or term:",
				 SYSFS_NAME_SIZE, term);
	}
	*ret_why = sysfs_error_text_buffer;
	return error ? -EINVAL : 0;
}

int event_sysfs_find(const char *root, const char *name, struct perf_event_code *ret,
		     const char **ret_why)
{
	const char *slash = strchr(name, '/');
	char pmu[SYSFS_NAME_SIZE], text[SYSFS_LINE_SIZE], type[SYSFS_LINE_SIZE];
	size_t length;

	*ret = (struct perf_event_code){0};
	if (!slash || !sysfs_is_plain_name(name, (size_t)(slash - name)))
		return -ENOENT;
	snprintf(pmu, sizeof(pmu), "%.*s", (int)(slash - name), name);
	length = strcspn(slash + 1, "/");
	if (length >= sizeof(text) || (slash[1 + length] && slash[2 + length]))
		return -ENOENT;
	snprintf(text, sizeof(text), "%.*s", (int)length, slash + 1);
	if (sysfs_read_line(type, root, pmu, "", "type"))
		return -ENOENT;
	ret->type = (uint32_t)strtoul(type, NULL, 10);
	if (sysfs_is_plain_name(text, length)) {
		char terms[SYSFS_LINE_SIZE];

		if (!sysfs_read_line(terms, root, pmu, "events/", text))
			return sysfs_apply_terms(root, pmu, terms, ret, ret_why);
	}
	return sysfs_apply_terms(root, pmu, text, ret, ret_why);
}

void event_sysfs_for_each_event(const char *root, void (*each)(const char *name, void *context),
				void *context)
{
	char pattern[PATH_MAX];
	glob_t files;

	snprintf(pattern, sizeof(pattern), "%s/*/events/*", root);
	if (glob(pattern, 0, NULL, &files))
		return;
	for (size_t i = 0; i < files.gl_pathc; i++) {
		const char *pmu = files.gl_pathv[i] + strlen(root) + 1,
			   *event = strrchr(pmu, '/') + 1;
		char name[2 * SYSFS_NAME_SIZE + 3];

		if (strchr(event, '.')) /* .scale and .unit of the event */
			continue;
		snprintf(name, sizeof(name), "%.*s/%s/", (int)strcspn(pmu, "/"), pmu, event);
		each(name, context);
	}
	globfree(&files);
}

int event_tracepoint_find(const char *name, struct perf_event_code *ret)
{
	static const char *const roots[] = {"/sys/kernel/tracing/events",
					    "/sys/kernel/debug/tracing/events"};
	const char *colon = strchr(name, ':');
	char system[SYSFS_NAME_SIZE], id[SYSFS_LINE_SIZE];
	int error = -ENOENT;

	*ret = (struct perf_event_code){.type = PERF_TYPE_TRACEPOINT};
	if (!colon || !sysfs_is_plain_name(name, (size_t)(colon - name)) ||
	    !sysfs_is_plain_name(colon + 1, strlen(colon + 1)))
		return -ENOENT;
	snprintf(system, sizeof(system), "%.*s/", (int)(colon - name), name);
	for (unsigned i = 0; error && i < 2; i++) {
		char directory[2 * SYSFS_NAME_SIZE];
		int result;

		snprintf(directory, sizeof(directory), "%s/", colon + 1);
		result = sysfs_read_line(id, roots[i], system, directory, "id");
		if (result != -ENOENT || error == -ENOENT)
			error = result;
	}
	ret->config = error ? 0 : strtoull(id, NULL, 10);
	return error;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See kernel_filter.h. Patterns are looked for in the name as the runtime has it and in the plain
 * one: a demangler has no place in the program's process.
 */
#include "libkymo-gpu/kernel_filter.h"

#include <ctype.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/settings_value.h"

#define RANGES_MAX 64
#define NAME_SIZE  512

struct kernel_filter {
	bool has_include, has_exclude;
	regex_t include, exclude;
	struct {
		uint64_t first, last;
	} ranges[RANGES_MAX];
	size_t range_count;
};

static const char *const communication[] = {"nccl", "rccl", "mscclKernel", "mscclShort", "nvshmem"};

/* Takes <length><identifier> off *name into *plain; false: there is none. */
static bool take_identifier(const char **name, char **plain, size_t *room)
{
	size_t length = 0;
	const char *at = *name;

	for (; isdigit((unsigned char)*at) && length < NAME_SIZE; at++)
		length = length * 10 + (size_t)(*at - '0');
	if (at == *name || length == 0 || strnlen(at, length) < length || length >= *room)
		return false;
	memcpy(*plain, at, length);
	*plain += length;
	*room -= length;
	*name = at + length;
	return true;
}

void kernel_filter_plain_name(const char *name, char *plain, size_t size)
{
	const char *at = name + 2;
	char *to = plain;
	size_t room = size;
	bool nested;

	snprintf(plain, size, "%s", name);
	if (strncmp(name, "_Z", 2) != 0)
		return;
	nested = *at == 'N';
	at += nested || *at == 'L'; /* L: local to its file */
	if (!take_identifier(&at, &to, &room))
		return;
	while (nested && room > 3 && isdigit((unsigned char)*at)) {
		memcpy(to, "::", 2);
		to += 2;
		room -= 2;
		if (!take_identifier(&at, &to, &room)) {
			to -= 2;
			break;
		}
	}
	*to = '\0';
}

static void add_range(uint64_t first, uint64_t last, void *context)
{
	struct kernel_filter *filter = context;

	if (filter->range_count == RANGES_MAX)
		return;
	filter->ranges[filter->range_count].first = first;
	filter->ranges[filter->range_count].last = last;
	filter->range_count++;
}

/* The command has looked at the expression already; a tool library alone is told here. */
static bool compile(regex_t *expression, const char *variable, const char *text, bool *has)
{
	char why[128];
	int error;

	if (text == NULL || *text == '\0')
		return true;
	error = regcomp(expression, text, REG_EXTENDED | REG_NOSUB);
	*has = error == 0;
	if (error == 0)
		return true;
	regerror(error, expression, why, sizeof(why));
	fprintf(stderr, "kymo: %s: '%s' is no regular expression: %s\n", variable, text, why);
	return false;
}

struct kernel_filter *kernel_filter_create(const char *include, const char *exclude,
					   const char *range)
{
	struct kernel_filter *filter = calloc(1, sizeof(*filter));
	bool fine = filter != NULL;

	fine = fine &&
	       compile(&filter->include, "KYMO_KERNEL_INCLUDE", include, &filter->has_include) &&
	       compile(&filter->exclude, "KYMO_KERNEL_EXCLUDE", exclude, &filter->has_exclude);
	if (fine && range != NULL && *range != '\0' &&
	    setting_parse_tids(setting_slice(range), add_range, filter) != SETTING_VALID) {
		fprintf(stderr, "kymo: KYMO_KERNEL_RANGE: '%s' is no list such as 2-5,8\n", range);
		fine = false;
	}
	if (!fine) {
		kernel_filter_destroy(filter);
		return NULL;
	}
	return filter;
}

void kernel_filter_destroy(struct kernel_filter *filter)
{
	if (filter == NULL)
		return;
	if (filter->has_include)
		regfree(&filter->include);
	if (filter->has_exclude)
		regfree(&filter->exclude);
	free(filter);
}

static bool is_in(const regex_t *expression, const char *name, const char *plain)
{
	return regexec(expression, name, 0, NULL, 0) == 0 ||
	       regexec(expression, plain, 0, NULL, 0) == 0;
}

static bool is_communication(const char *plain)
{
	for (size_t i = 0; i < sizeof(communication) / sizeof(*communication); i++) {
		if (strncmp(plain, communication[i], strlen(communication[i])) == 0)
			return true;
	}
	return false;
}

bool kernel_filter_takes_name(const struct kernel_filter *filter, const char *name)
{
	char plain[NAME_SIZE];

	kernel_filter_plain_name(name, plain, sizeof(plain));
	if (filter->has_exclude && is_in(&filter->exclude, name, plain))
		return false;
	return filter->has_include ? is_in(&filter->include, name, plain)
				   : !is_communication(plain);
}

bool kernel_filter_takes_launch(const struct kernel_filter *filter, uint64_t launch)
{
	for (size_t i = 0; i < filter->range_count; i++) {
		if (launch >= filter->ranges[i].first && launch <= filter->ranges[i].last)
			return true;
	}
	return filter->range_count == 0;
}

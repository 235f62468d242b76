/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See kernel_filter.h.
 */
#include "device/kernel_filter.h"

#include <pthread.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pattern.h"
#include "common/settings_value.h"

/* NCCL's and RCCL's kernels and NVSHMEM's, also where a framework has put them into a namespace. */
#define COMMUNICATION "(^|[^A-Za-z])(nccl|rccl|nvshmem)"

struct pattern {
	regex_t expression;
	bool is_there, is_wrong;
};

static pthread_once_t read_once = PTHREAD_ONCE_INIT;
static struct pattern include, exclude, communication;
static struct range {
	uint64_t first, last;
} * ranges;
static size_t range_count;
static bool range_is_wrong;

static void say(const char *name, const char *text, const char *why)
{
	const struct device_sink *sink = device_sink();
	char line[512];

	snprintf(line, sizeof(line), "%s=\"%.200s\": %s; no kernel is counted", name, text, why);
	if (sink != NULL)
		sink->say(DEVICE_RUNTIME_HOST, line);
}

static void compile(struct pattern *pattern, const char *name, const char *text)
{
	char why[160];
	int error;

	if (pattern->is_there)
		regfree(&pattern->expression);
	pattern->is_there = pattern->is_wrong = false;
	if (text == NULL || text[0] == '\0')
		return;
	error = pattern_compile(&pattern->expression, text, 0, why, sizeof(why));
	pattern->is_there = error == 0;
	pattern->is_wrong = error != 0;
	if (error != 0)
		say(name, text, why);
}

/* "3", "2-5", "4-"; with ':' as well. */
static bool read_range(struct setting_slice item)
{
	struct range range, *grown;

	if (setting_take_digits(&item, &range.first) != SETTING_VALID)
		return false;
	range.last = range.first;
	if (item.length != 0) {
		if (*item.text != '-' && *item.text != ':')
			return false;
		item.text++;
		item.length--;
		range.last = UINT64_MAX;
		if (item.length != 0 &&
		    (setting_take_digits(&item, &range.last) != SETTING_VALID || item.length != 0))
			return false;
	}
	if (range.first == 0 || range.last < range.first)
		return false;
	grown = realloc(ranges, (range_count + 1) * sizeof(*grown));
	if (grown == NULL)
		return false;
	ranges = grown;
	ranges[range_count++] = range;
	return true;
}

/* A list as those of all settings; the command has looked at it before (counters_request.c).
 * rocprofv3 writes it in brackets. */
static void read_ranges(const char *text)
{
	struct setting_slice rest = setting_slice(text), item;

	range_count = 0;
	range_is_wrong = false;
	if (rest.length == 0)
		return;
	if (rest.text[0] == '[' && rest.text[rest.length - 1] == ']')
		rest = (struct setting_slice){rest.text + 1, rest.length - 2};
	while (!range_is_wrong && setting_list_next(&rest, &item))
		range_is_wrong = !read_range(item);
	range_is_wrong = range_is_wrong || range_count == 0;
	if (range_is_wrong)
		say("KYMO_KERNEL_RANGE", text, "not numbers of launches such as 3, 2-5 or 1,8-12");
}

void kernel_filter_read(void)
{
	compile(&include, "KYMO_KERNEL_INCLUDE", getenv("KYMO_KERNEL_INCLUDE"));
	compile(&exclude, "KYMO_KERNEL_EXCLUDE", getenv("KYMO_KERNEL_EXCLUDE"));
	compile(&communication, "", COMMUNICATION);
	read_ranges(getenv("KYMO_KERNEL_RANGE"));
}

static bool matches(const struct pattern *pattern, const char *name)
{
	return pattern->is_there && regexec(&pattern->expression, name, 0, NULL, 0) == 0;
}

static bool is_in_range(uint64_t launch)
{
	for (size_t i = 0; i < range_count; i++) {
		if (launch >= ranges[i].first && launch <= ranges[i].last)
			return true;
	}
	return range_count == 0;
}

const char *kernel_filter_why_not(const char *name, uint64_t launch)
{
	pthread_once(&read_once, kernel_filter_read);
	if (include.is_wrong || exclude.is_wrong || range_is_wrong)
		return "the filter is not valid";
	if (include.is_there && !matches(&include, name))
		return "KYMO_KERNEL_INCLUDE does not name it";
	if (matches(&exclude, name))
		return "KYMO_KERNEL_EXCLUDE names it";
	if (!include.is_there && matches(&communication, name))
		return "it communicates with other devices and would wait for their kernels "
		       "(KYMO_KERNEL_INCLUDE can name it)";
	if (!is_in_range(launch))
		return "KYMO_KERNEL_RANGE leaves this launch out";
	return NULL;
}

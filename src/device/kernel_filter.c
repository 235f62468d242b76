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

#define RANGES_MAX 64
/* NCCL's and RCCL's kernels and NVSHMEM's, also where a framework has put them into a namespace. */
#define COMMUNICATION "(^|[^A-Za-z])(nccl|rccl|nvshmem)"

struct pattern {
	regex_t expression;
	bool is_there, is_wrong;
};

static pthread_once_t read_once = PTHREAD_ONCE_INIT;
static struct pattern include, exclude, communication;
static struct {
	uint64_t first, last;
} ranges[RANGES_MAX];
static unsigned range_count;
static bool range_is_wrong;

static void say(const char *name, const char *text, const char *why)
{
	const struct device_sink *sink = device_sink();
	char line[512];

	snprintf(line, sizeof(line), "%s=\"%s\": %s; no kernel is counted", name, text, why);
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
	error = regcomp(&pattern->expression, text, REG_EXTENDED | REG_NOSUB);
	pattern->is_there = error == 0;
	pattern->is_wrong = error != 0;
	if (error == 0)
		return;
	regerror(error, &pattern->expression, why, sizeof(why));
	say(name, text, why);
}

static bool read_range(const char **at)
{
	char *end;
	uint64_t first, last;

	if (**at < '0' || **at > '9' || range_count == RANGES_MAX)
		return false;
	first = last = strtoull(*at, &end, 10);
	if (*end == '-' || *end == ':') {
		const char *rest = end + 1;

		last = strtoull(rest, &end, 10);
		if (end == rest)
			last = UINT64_MAX;
	}
	if (first == 0 || last < first)
		return false;
	ranges[range_count].first = first;
	ranges[range_count++].last = last;
	*at = end;
	return true;
}

/* rocprofv3 writes the list in brackets. */
static void read_ranges(const char *text)
{
	const char *at = text;

	range_count = 0;
	range_is_wrong = false;
	if (text == NULL || text[0] == '\0')
		return;
	at += *at == '[';
	while (read_range(&at)) {
		if (*at != ',')
			break;
		at++;
		at += *at == ' ';
	}
	at += *at == ']';
	range_is_wrong = *at != '\0' || range_count == 0;
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
	for (unsigned i = 0; i < range_count; i++) {
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

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
#define COMMUNICATION_KERNEL_PATTERN "(^|[^A-Za-z])(nccl|rccl|nvshmem)"

struct kernel_name_pattern {
	regex_t expression;
	bool is_set, is_invalid;
};

static pthread_once_t kernel_filter_once_control = PTHREAD_ONCE_INIT;
static struct kernel_name_pattern included_kernels_pattern, excluded_kernels_pattern,
	communication_kernels_pattern;
static struct launch_range {
	uint64_t first, last;
} * launch_range_list;
static size_t launch_range_list_count;
static bool launch_ranges_invalid_flag;

static void report_filter_problem(const char *name, const char *text, const char *why)
{
	const struct device_sink *sink = device_get_sink();
	char line[512];

	snprintf(line, sizeof(line), "%s=\"%.200s\": %s; no kernel is counted", name, text, why);
	if (sink != NULL)
		sink->say(DEVICE_RUNTIME_HOST, line);
}

static void compile_kernel_name_pattern(struct kernel_name_pattern *pattern, const char *name,
					const char *text)
{
	char why[160];
	int error;

	if (pattern->is_set)
		regfree(&pattern->expression);
	pattern->is_set = pattern->is_invalid = false;
	if (text == NULL || text[0] == '\0')
		return;
	error = pattern_compile(&pattern->expression, text, 0, why, sizeof(why));
	pattern->is_set = error == 0;
	pattern->is_invalid = error != 0;
	if (error != 0)
		report_filter_problem(name, text, why);
}

/* "3", "2-5", "4-"; with ':' as well. */
static bool parse_and_add_launch_range(struct text_slice item)
{
	struct launch_range range, *grown;

	if (setting_parse_leading_digits(&item, &range.first) != SETTING_VALID)
		return false;
	range.last = range.first;
	if (item.length != 0) {
		if (*item.text != '-' && *item.text != ':')
			return false;
		item.text++;
		item.length--;
		range.last = UINT64_MAX;
		if (item.length != 0 &&
		    (setting_parse_leading_digits(&item, &range.last) != SETTING_VALID ||
		     item.length != 0))
			return false;
	}
	if (range.first == 0 || range.last < range.first)
		return false;
	grown = realloc(launch_range_list, (launch_range_list_count + 1) * sizeof(*grown));
	if (grown == NULL)
		return false;
	launch_range_list = grown;
	launch_range_list[launch_range_list_count++] = range;
	return true;
}

/* A list as those of all settings; the command has looked at it before (counting/request.c).
 * rocprofv3 writes it in brackets. */
static void parse_launch_ranges(const char *text)
{
	struct text_slice rest = setting_slice_from_text(text), item;

	launch_range_list_count = 0;
	launch_ranges_invalid_flag = false;
	if (rest.length == 0)
		return;
	if (rest.text[0] == '[' && rest.text[rest.length - 1] == ']')
		rest = (struct text_slice){rest.text + 1, rest.length - 2};
	while (!launch_ranges_invalid_flag && setting_next_list_word(&rest, &item))
		launch_ranges_invalid_flag = !parse_and_add_launch_range(item);
	launch_ranges_invalid_flag = launch_ranges_invalid_flag || launch_range_list_count == 0;
	if (launch_ranges_invalid_flag)
		report_filter_problem("KYMO_KERNEL_RANGE", text,
				      "not numbers of launches such as 3, 2-5 or 1,8-12");
}

void kernel_filter_read_environment(void)
{
	compile_kernel_name_pattern(&included_kernels_pattern, "KYMO_KERNEL_INCLUDE",
				    secure_getenv("KYMO_KERNEL_INCLUDE"));
	compile_kernel_name_pattern(&excluded_kernels_pattern, "KYMO_KERNEL_EXCLUDE",
				    secure_getenv("KYMO_KERNEL_EXCLUDE"));
	compile_kernel_name_pattern(&communication_kernels_pattern, "",
				    COMMUNICATION_KERNEL_PATTERN);
	parse_launch_ranges(secure_getenv("KYMO_KERNEL_RANGE"));
}

static bool pattern_matches(const struct kernel_name_pattern *pattern, const char *name)
{
	return pattern->is_set && regexec(&pattern->expression, name, 0, NULL, 0) == 0;
}

static bool launch_is_in_ranges(uint64_t launch)
{
	for (size_t i = 0; i < launch_range_list_count; i++) {
		if (launch >= launch_range_list[i].first && launch <= launch_range_list[i].last)
			return true;
	}
	return launch_range_list_count == 0;
}

const char *kernel_filter_get_exclusion_reason(const char *name, uint64_t launch)
{
	pthread_once(&kernel_filter_once_control, kernel_filter_read_environment);
	if (included_kernels_pattern.is_invalid || excluded_kernels_pattern.is_invalid ||
	    launch_ranges_invalid_flag)
		return "the filter is not valid";
	if (included_kernels_pattern.is_set && !pattern_matches(&included_kernels_pattern, name))
		return "KYMO_KERNEL_INCLUDE does not name it";
	if (pattern_matches(&excluded_kernels_pattern, name))
		return "KYMO_KERNEL_EXCLUDE names it";
	if (!included_kernels_pattern.is_set &&
	    pattern_matches(&communication_kernels_pattern, name))
		return "it communicates with other devices and would wait for their kernels "
		       "(KYMO_KERNEL_INCLUDE can name it)";
	if (!launch_is_in_ranges(launch))
		return "KYMO_KERNEL_RANGE leaves this launch out";
	return NULL;
}

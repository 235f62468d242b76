/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo avail --counters`: what devices count, for --counters and --device-counters.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/avail/avail.h"
#include "counting/query.h"
#include "counting/request.h"
#include "settings/listing.h"

enum { DEVICES_LINE_WIDTH = 100, DEVICES_DESCRIPTION_COLUMN = 32 };

static const char *json_get_text_or_empty(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static bool devices_counter_matches_filter(const struct avail_listing_filter *filter,
					   const json_t *counter)
{
	return !filter->expression ||
	       !regexec(filter->expression, json_get_text_or_empty(counter, "name"), 0, NULL, 0) ||
	       !regexec(filter->expression, json_get_text_or_empty(counter, "description"), 0, NULL,
			0);
}

/* Leaves only what was asked for. False: the agent is not. */
static bool devices_drop_unmatched_counters(json_t *agent,
					    const struct avail_listing_filter *filter, long node)
{
	json_t *counters = json_object_get(agent, "counters");

	if (node >= 0 && json_integer_value(json_object_get(agent, "node")) != node)
		return false;
	for (size_t i = json_array_size(counters); i-- > 0;) {
		if (!devices_counter_matches_filter(filter, json_array_get(counters, i)))
			json_array_remove(counters, i);
	}
	return true;
}

/* " [XCC 8 x INSTANCE 16]"; nothing where there is one value. */
static void devices_format_dimensions(const json_t *counter, char *text, size_t size)
{
	const json_t *dimensions = json_object_get(counter, "dimensions"), *dimension;
	size_t used = 0, i;
	json_int_t values = 1;

	text[0] = '\0';
	json_array_foreach(dimensions, i, dimension)
	{
		const char *name = json_get_text_or_empty(dimension, "name");
		json_int_t count = json_integer_value(json_object_get(dimension, "size"));

		values *= count;
		if (!strncmp(name, "DIMENSION_", 10))
			name += 10;
		if (used + 40 < size)
			used += (size_t)snprintf(text + used, size - used, "%s%.24s %lld",
						 used ? " x " : " [", name, (long long)count);
	}
	if (values > 1)
		snprintf(text + used, size - used, "]");
	else
		text[0] = '\0';
}

static void devices_print_counter(const json_t *counter)
{
	char dimensions[320], text[1024];
	const char *expression = json_get_text_or_empty(counter, "expression");
	int column = printf("    ") + (int)listing_print_sanitized_text(
					      stdout, json_get_text_or_empty(counter, "name"));

	devices_format_dimensions(counter, dimensions, sizeof(dimensions));
	snprintf(text, sizeof(text), "%s%s%s%s", json_get_text_or_empty(counter, "description"),
		 *expression ? " = " : "", expression, dimensions);
	if (column >= DEVICES_DESCRIPTION_COLUMN)
		column = printf("\n") - 1;
	printf("%*s", DEVICES_DESCRIPTION_COLUMN - column, "");
	listing_print_wrapped(stdout, text, DEVICES_DESCRIPTION_COLUMN, DEVICES_DESCRIPTION_COLUMN,
			      DEVICES_LINE_WIDTH);
}

static void devices_print_indented_line(const char *text)
{
	fputs("  ", stdout);
	listing_print_sanitized_text(stdout, text);
	putchar('\n');
}

/* Counters of hardware by their block, derived ones behind. */
static void devices_print_counters_of_block(const json_t *counters, const char *block)
{
	const json_t *counter;
	bool any = false;
	size_t i;

	json_array_foreach(counters, i, counter)
	{
		if (strcmp(json_get_text_or_empty(counter, "block"), block))
			continue;
		if (!any)
			devices_print_indented_line(
				*block ? block : "Derived, and properties of the agent");
		any = true;
		devices_print_counter(counter);
	}
}

static bool devices_is_first_counter_of_block(const json_t *counters, size_t place)
{
	const char *block = json_get_text_or_empty(json_array_get(counters, place), "block");

	for (size_t i = 0; i < place; i++) {
		if (!strcmp(json_get_text_or_empty(json_array_get(counters, i), "block"), block))
			return false;
	}
	return true;
}

static void devices_print_agent(const json_t *agent)
{
	const json_t *counters = json_object_get(agent, "counters"), *counter;
	const char *problem = json_get_text_or_empty(agent, "problem");
	char text[1024];
	size_t i;

	snprintf(text, sizeof(text), "Agent %lld: %s, %s (%s)",
		 (long long)json_integer_value(json_object_get(agent, "node")),
		 json_get_text_or_empty(agent, "product"), json_get_text_or_empty(agent, "type"),
		 json_get_text_or_empty(agent, "name"));
	listing_print_sanitized_text(stdout, text);
	putchar('\n');
	snprintf(text, sizeof(text), "no counters: %s", problem);
	if (*problem)
		devices_print_indented_line(text);
	json_array_foreach(counters, i, counter)
	{
		if (*json_get_text_or_empty(counter, "block") &&
		    devices_is_first_counter_of_block(counters, i))
			devices_print_counters_of_block(counters,
							json_get_text_or_empty(counter, "block"));
	}
	devices_print_counters_of_block(counters, "");
}

static int devices_parse_agent_number(const char *text, long *ret, struct problem *problem)
{
	char *end;

	*ret = -1;
	if (!text)
		return 0;
	errno = 0;
	*ret = strtol(text, &end, 10);
	if (*end || end == text || *ret < 0 || errno)
		return problem_set(problem, -EINVAL, "--agent: '%s' is not the number of an agent",
				   text);
	return 0;
}

int avail_print_device_counters(const struct effective_settings *settings,
				const struct avail_listing_filter *filter, const char *agent,
				bool json, struct problem *problem)
{
	json_t *answer, *agents;
	long node;
	int error = devices_parse_agent_number(agent, &node, problem);

	if (!error)
		error = counters_request_check_def_files(settings, problem);
	if (!error)
		error = counter_query_devices(settings, NULL, &answer, problem);
	if (error)
		return error;
	agents = json_object_get(answer, "agents");
	for (size_t i = json_array_size(agents); i-- > 0;) {
		if (!devices_drop_unmatched_counters(json_array_get(agents, i), filter, node))
			json_array_remove(agents, i);
	}
	if (!json_array_size(agents))
		error = problem_set(problem, -ENOENT,
				    "there is no agent %ld (kymo avail --counters lists them)",
				    node);
	json_object_set_new(answer, "schema", json_string("kymo.avail.counters/1"));
	if (!error && json && json_dumpf(answer, stdout, JSON_INDENT(2)))
		error = problem_set(problem, -EIO, "cannot write JSON");
	if (json && !error)
		putchar('\n');
	for (size_t i = 0; !error && !json && i < json_array_size(agents); i++)
		devices_print_agent(json_array_get(agents, i));
	json_decref(answer);
	return error;
}

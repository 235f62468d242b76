/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See request.h.
 */
#include "counting/request.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/settings_value.h"
#include "console/message.h"
#include "counting/query.h"
#include "settings/suggest.h"

static const enum setting_id counter_list_setting_ids[COUNTER_LIST_SETTING_COUNT] = {
	SETTING_COUNTERS, SETTING_DEVICE_COUNTERS};

bool counters_are_requested(const struct effective_settings *settings)
{
	return *effective_setting_text(settings, SETTING_COUNTERS) ||
	       *effective_setting_text(settings, SETTING_DEVICE_COUNTERS);
}

/* 3, 2-5, 4-; a list of them. */
static bool is_launch_number_range(struct text_slice item)
{
	uint64_t first, last;

	if (setting_parse_leading_digits(&item, &first) || !first)
		return false;
	if (!item.length)
		return true;
	if (item.text[0] != '-')
		return false;
	item.text++;
	item.length--;
	return !item.length ||
	       (!setting_parse_leading_digits(&item, &last) && !item.length && last >= first);
}

int counters_request_check_kernel_range(const struct effective_settings *settings,
					struct problem *problem)
{
	const struct effective_value *value = &settings->values[SETTING_KERNEL_RANGE];
	struct text_slice rest = setting_slice_from_text(value->text), item = rest;
	bool is_right = !rest.length;

	while (setting_next_list_word(&rest, &item)) {
		is_right = is_launch_number_range(item);
		if (!is_right)
			break;
	}
	if (is_right)
		return 0;
	if (!item.length)
		item = setting_slice_from_text(value->text);
	return problem_set(
		problem, -EINVAL,
		"%s: '%.*s' is neither the number of a launch, from 1, nor a range (3, 2-5, 4-)",
		value->source ? value->source : "KERNEL_RANGE",
		(int)(item.length < 100 ? item.length : 100), item.text);
}

int counters_request_check_def_files(const struct effective_settings *settings,
				     struct problem *problem)
{
	const struct effective_value *value = &settings->values[SETTING_COUNTER_DEFS];
	const char *at = effective_setting_text(settings, SETTING_COUNTER_DEFS);
	char path[PATH_MAX];
	struct stat status;

	for (; *at; at += *at == ':') {
		size_t length = strcspn(at, ":");
		int error = 0;

		if (length && length < sizeof(path)) {
			memcpy(path, at, length);
			path[length] = '\0';
			if (stat(path, &status) || access(path, R_OK))
				error = errno;
			else if (S_ISDIR(status.st_mode))
				error = EISDIR;
		} else if (length) {
			error = ENAMETOOLONG;
		}
		if (error)
			return problem_set(problem, -EINVAL, "%s: cannot read '%.*s': %s",
					   value->source ? value->source : "COUNTER_DEFS",
					   (int)(length < 1000 ? length : 1000), at,
					   strerror(error));
		at += length;
	}
	return 0;
}

static const char *get_json_text_or_empty(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static const json_t *find_counter_by_name_of_agent(const json_t *agent, struct text_slice name)
{
	const json_t *counter;
	size_t i;

	json_array_foreach(json_object_get(agent, "counters"), i, counter)
	{
		const char *text = get_json_text_or_empty(counter, "name");

		if (strlen(text) == name.length && !memcmp(text, name.text, name.length))
			return counter;
	}
	return NULL;
}

/* What is in the way of a counter that some device has. */
enum counting_obstacle { OBSTACLE_NONE, OBSTACLE_ONLY_ON_HOST, OBSTACLE_NEEDS_OTHER_LIST };

/* Kernels of the host are regions of threads, if those are to be counted. */
static enum counting_obstacle find_counter_obstacle(const struct effective_settings *settings,
						    const json_t *agent, const json_t *counter,
						    enum setting_id list)
{
	bool is_host = json_is_true(json_object_get(agent, "early")) &&
		       !strcmp(get_json_text_or_empty(agent, "type"), "cpu");

	if (!json_is_true(json_object_get(counter,
					  list == SETTING_DEVICE_COUNTERS ? "devices" : "kernels")))
		return OBSTACLE_NEEDS_OTHER_LIST;
	return is_host && list == SETTING_COUNTERS &&
			       !effective_setting_bool(settings, SETTING_COUNT_REGIONS)
		       ? OBSTACLE_ONLY_ON_HOST
		       : OBSTACLE_NONE;
}

static int set_impossible_counter_problem(const struct effective_value *value,
					  struct text_slice name, enum setting_id list,
					  enum counting_obstacle obstacle, struct problem *problem)
{
	int length = (int)(name.length < 100 ? name.length : 100);
	const char *source = value->source ? value->source : settings_table[list].name;

	if (obstacle == OBSTACLE_ONLY_ON_HOST)
		return problem_set(problem, -EINVAL,
				   "%s: only the host has '%.*s': use --device-counters to count "
				   "over time, or --count-regions=on to count ranges of threads",
				   source, length, name.text);
	return problem_set(problem, -EINVAL,
			   list == SETTING_DEVICE_COUNTERS
				   ? "%s: '%.*s' counts single kernels: use --counters"
				   : "%s: '%.*s' counts a device over time: use --device-counters",
			   source, length, name.text);
}

static int set_unknown_counter_problem(const json_t *agents, const struct effective_value *value,
				       struct text_slice name, struct problem *problem)
{
	const json_t *agent, *counter;
	struct suggestion suggestion;
	char hint[256];
	size_t i, k;

	suggestion_init(&suggestion, name.text, name.length);
	json_array_foreach(agents, i, agent)
	{
		json_array_foreach(json_object_get(agent, "counters"), k, counter)
		{
			const char *text = get_json_text_or_empty(counter, "name");

			suggestion_offer(&suggestion, text, strlen(text));
		}
	}
	return problem_set(problem, -EINVAL,
			   "%s: no device here has a counter '%.*s'%s (kymo avail --counters lists "
			   "them)",
			   value->source ? value->source : "COUNTERS",
			   (int)(name.length < 100 ? name.length : 100), name.text,
			   suggestion_format_hint(&suggestion, "", hint, sizeof(hint)));
}

/* Every name is that of a counter of some device, which can count it. *early: of one that is there
 * early. */
static int check_counter_list_names(const struct effective_settings *settings, const json_t *agents,
				    enum setting_id list, bool *early, struct problem *problem)
{
	const struct effective_value *value = &settings->values[list];
	struct text_slice rest = setting_slice_from_text(value->text), name;
	const json_t *agent;
	size_t i;

	*early = *value->text;
	while (setting_next_list_word(&rest, &name)) {
		enum counting_obstacle least = OBSTACLE_NEEDS_OTHER_LIST;
		bool found = false, found_early = false;

		json_array_foreach(agents, i, agent)
		{
			const json_t *counter = find_counter_by_name_of_agent(agent, name);
			enum counting_obstacle obstacle =
				counter ? find_counter_obstacle(settings, agent, counter, list)
					: least;

			found |= counter != NULL;
			found_early |= counter && json_is_true(json_object_get(agent, "early"));
			least = obstacle < least ? obstacle : least;
		}
		if (!found)
			return set_unknown_counter_problem(agents, value, name, problem);
		if (least != OBSTACLE_NONE)
			return set_impossible_counter_problem(value, name, list, least, problem);
		*early &= found_early;
	}
	return 0;
}

/* What is refused then is not refused for others. */
static bool counter_is_asked_for_alone(const struct effective_settings *settings)
{
	size_t words = 0;

	for (int list = 0; list < COUNTER_LIST_SETTING_COUNT; list++) {
		struct text_slice word, rest = setting_slice_from_text(effective_setting_text(
						settings, counter_list_setting_ids[list]));

		while (setting_next_list_word(&rest, &word))
			words++;
	}
	return words == 1;
}

static int set_problem_of_refused_counters(const json_t *agent,
					   const struct effective_settings *settings,
					   struct problem *problem)
{
	const json_t *one;
	char names[512] = "", why[512] = "";
	size_t i, used = 0;
	enum setting_id id = SETTING_COUNTERS;

	json_array_foreach(json_object_get(agent, "refused"), i, one)
	{
		if (json_is_true(json_object_get(one, "fits"))) {
			message_warning("%s cannot be counted on %s: %s",
					get_json_text_or_empty(one, "name"),
					get_json_text_or_empty(agent, "product"),
					get_json_text_or_empty(one, "why"));
			continue;
		}
		id = counter_list_setting_ids[json_integer_value(json_object_get(one, "list")) !=
					      0];
		if (used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
						 used ? ", " : "",
						 get_json_text_or_empty(one, "name"));
		snprintf(why, sizeof(why), "%s", get_json_text_or_empty(one, "why"));
	}
	if (!used)
		return 0;
	if (counter_is_asked_for_alone(settings))
		return problem_set(problem, -EINVAL, "%s: %s cannot be counted on %s: %s",
				   settings->values[id].source ? settings->values[id].source
							       : settings_table[id].name,
				   names, get_json_text_or_empty(agent, "product"), why);
	return problem_set(problem, -EINVAL,
			   "%s: %s cannot be counted together with the others on %s (%s); count "
			   "in several runs: kymo run -i FILE with a line 'pmc: ...' for each",
			   settings->values[id].source ? settings->values[id].source
						       : settings_table[id].name,
			   names, get_json_text_or_empty(agent, "product"), why);
}

int counters_request_check_names(const struct effective_settings *settings, const json_t *agents,
				 bool *early, struct problem *problem)
{
	bool unused;
	int error = check_counter_list_names(settings, agents, SETTING_COUNTERS, &unused, problem);

	return error ? error
		     : check_counter_list_names(settings, agents, SETTING_DEVICE_COUNTERS, early,
						problem);
}

int counters_request_check_on_devices(const struct effective_settings *settings, bool *early,
				      struct problem *problem)
{
	const char *lists[COUNTER_LIST_SETTING_COUNT];
	const json_t *agents, *agent;
	json_t *answer;
	size_t i;
	int error;

	*early = false;
	for (int list = 0; list < COUNTER_LIST_SETTING_COUNT; list++)
		lists[list] = effective_setting_text(settings, counter_list_setting_ids[list]);
	if (!counters_are_requested(settings))
		return 0;
	if (counter_query_devices(settings, lists, &answer, problem)) {
		message_warning("%s; kymo could not check whether these counters exist",
				problem->text);
		return 0;
	}
	agents = json_object_get(answer, "agents");
	error = counters_request_check_names(settings, agents, early, problem);
	json_array_foreach(agents, i, agent)
	{
		if (!error)
			error = set_problem_of_refused_counters(agent, settings, problem);
	}
	json_decref(answer);
	return error;
}

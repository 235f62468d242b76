/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See counters_request.h.
 */
#include "cmd/counters_request.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/counter_query.h"
#include "cmd/message.h"
#include "cmd/nearest.h"
#include "common/settings_value.h"

static const enum setting_id request_lists[COUNTER_LISTS] = {SETTING_COUNTERS,
							     SETTING_DEVICE_COUNTERS};

bool counters_are_requested(const struct resolved *settings)
{
	return *resolved_text(settings, SETTING_COUNTERS) ||
	       *resolved_text(settings, SETTING_DEVICE_COUNTERS);
}

/* 3, 2-5, 4-; a list of them. */
static bool request_is_range(struct setting_slice item)
{
	uint64_t first, last;

	if (setting_take_digits(&item, &first) || !first)
		return false;
	if (!item.length)
		return true;
	if (item.text[0] != '-')
		return false;
	item.text++;
	item.length--;
	return !item.length ||
	       (!setting_take_digits(&item, &last) && !item.length && last >= first);
}

int counters_request_check_range(const struct resolved *settings, struct problem *problem)
{
	const struct resolved_value *value = &settings->values[SETTING_KERNEL_RANGE];
	struct setting_slice rest = setting_slice(value->text), item = rest;
	bool is_right = !rest.length;

	while (setting_list_next(&rest, &item)) {
		is_right = request_is_range(item);
		if (!is_right)
			break;
	}
	if (is_right)
		return 0;
	if (!item.length)
		item = setting_slice(value->text);
	return problem_set(problem, -EINVAL,
			   "%s: '%.*s' is no number of a launch, from 1, and no range of them (3, "
			   "2-5, 4-)",
			   value->source ? value->source : "KERNEL_RANGE",
			   (int)(item.length < 100 ? item.length : 100), item.text);
}

int counters_request_check_files(const struct resolved *settings, struct problem *problem)
{
	const struct resolved_value *value = &settings->values[SETTING_COUNTER_DEFS];
	const char *at = resolved_text(settings, SETTING_COUNTER_DEFS);
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

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static const json_t *request_find(const json_t *agent, struct setting_slice name)
{
	const json_t *counter;
	size_t i;

	json_array_foreach(json_object_get(agent, "counters"), i, counter)
	{
		const char *text = text_of(counter, "name");

		if (strlen(text) == name.length && !memcmp(text, name.text, name.length))
			return counter;
	}
	return NULL;
}

/* What is in the way of a counter that some device has. */
enum obstacle { OBSTACLE_NONE, OBSTACLE_ONLY_HOST, OBSTACLE_OTHER_LIST };

/* Kernels of the host are regions of threads, if those are to be counted. */
static enum obstacle request_obstacle(const struct resolved *settings, const json_t *agent,
				      const json_t *counter, enum setting_id list)
{
	bool is_host = json_is_true(json_object_get(agent, "early")) &&
		       !strcmp(text_of(agent, "type"), "cpu");

	if (!json_is_true(json_object_get(counter,
					  list == SETTING_DEVICE_COUNTERS ? "devices" : "kernels")))
		return OBSTACLE_OTHER_LIST;
	return is_host && list == SETTING_COUNTERS &&
			       !resolved_bool(settings, SETTING_COUNT_REGIONS)
		       ? OBSTACLE_ONLY_HOST
		       : OBSTACLE_NONE;
}

static int request_impossible(const struct resolved_value *value, struct setting_slice name,
			      enum setting_id list, enum obstacle obstacle, struct problem *problem)
{
	int length = (int)(name.length < 100 ? name.length : 100);
	const char *source = value->source ? value->source : settings_table[list].name;

	if (obstacle == OBSTACLE_ONLY_HOST)
		return problem_set(problem, -EINVAL,
				   "%s: only the host has '%.*s': it counts over time "
				   "(--device-counters), and ranges of threads with "
				   "--count-regions=on",
				   source, length, name.text);
	return problem_set(problem, -EINVAL,
			   list == SETTING_DEVICE_COUNTERS
				   ? "%s: '%.*s' is of single kernels (--counters), not of devices "
				     "over time"
				   : "%s: '%.*s' is of devices over time (--device-counters), not "
				     "of single kernels",
			   source, length, name.text);
}

static int request_unknown(const json_t *agents, const struct resolved_value *value,
			   struct setting_slice name, struct problem *problem)
{
	const json_t *agent, *counter;
	struct nearest nearest;
	char hint[256];
	size_t i, k;

	nearest_init(&nearest, name.text, name.length);
	json_array_foreach(agents, i, agent)
	{
		json_array_foreach(json_object_get(agent, "counters"), k, counter)
		{
			const char *text = text_of(counter, "name");

			nearest_offer(&nearest, text, strlen(text));
		}
	}
	return problem_set(problem, -EINVAL,
			   "%s: no device here has a counter '%.*s'%s (kymo avail --counters lists "
			   "them)",
			   value->source ? value->source : "COUNTERS",
			   (int)(name.length < 100 ? name.length : 100), name.text,
			   nearest_hint(&nearest, "", hint, sizeof(hint)));
}

/* Every name is that of a counter of some device, which can count it. *early: of one that is there
 * early. */
static int request_check_names(const struct resolved *settings, const json_t *agents,
			       enum setting_id list, bool *early, struct problem *problem)
{
	const struct resolved_value *value = &settings->values[list];
	struct setting_slice rest = setting_slice(value->text), name;
	const json_t *agent;
	size_t i;

	*early = *value->text;
	while (setting_list_next(&rest, &name)) {
		enum obstacle least = OBSTACLE_OTHER_LIST;
		bool found = false, found_early = false;

		json_array_foreach(agents, i, agent)
		{
			const json_t *counter = request_find(agent, name);
			enum obstacle obstacle =
				counter ? request_obstacle(settings, agent, counter, list) : least;

			found |= counter != NULL;
			found_early |= counter && json_is_true(json_object_get(agent, "early"));
			least = obstacle < least ? obstacle : least;
		}
		if (!found)
			return request_unknown(agents, value, name, problem);
		if (least != OBSTACLE_NONE)
			return request_impossible(value, name, list, least, problem);
		*early &= found_early;
	}
	return 0;
}

static int request_check_refused(const json_t *agent, const struct resolved *settings,
				 struct problem *problem)
{
	const json_t *one;
	char names[512] = "", why[512] = "";
	size_t i, used = 0;
	enum setting_id id = SETTING_COUNTERS;

	json_array_foreach(json_object_get(agent, "refused"), i, one)
	{
		if (json_is_true(json_object_get(one, "fits"))) {
			message_warning("%s cannot be counted on %s: %s", text_of(one, "name"),
					text_of(agent, "product"), text_of(one, "why"));
			continue;
		}
		id = request_lists[json_integer_value(json_object_get(one, "list")) != 0];
		if (used < sizeof(names))
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
						 used ? ", " : "", text_of(one, "name"));
		snprintf(why, sizeof(why), "%s", text_of(one, "why"));
	}
	if (!used)
		return 0;
	return problem_set(problem, -EINVAL,
			   "%s: %s cannot be counted together with the others on %s (%s); count "
			   "in several runs: kymo run -i FILE with a line 'pmc: ...' for each",
			   settings->values[id].source ? settings->values[id].source
						       : settings_table[id].name,
			   names, text_of(agent, "product"), why);
}

int counters_request_check_names(const struct resolved *settings, const json_t *agents, bool *early,
				 struct problem *problem)
{
	bool unused;
	int error = request_check_names(settings, agents, SETTING_COUNTERS, &unused, problem);

	return error ? error
		     : request_check_names(settings, agents, SETTING_DEVICE_COUNTERS, early,
					   problem);
}

int counters_request_check(const struct resolved *settings, bool *early, struct problem *problem)
{
	const char *lists[COUNTER_LISTS];
	const json_t *agents, *agent;
	json_t *answer;
	size_t i;
	int error;

	*early = false;
	for (int list = 0; list < COUNTER_LISTS; list++)
		lists[list] = resolved_text(settings, request_lists[list]);
	if (!counters_are_requested(settings))
		return 0;
	if (counter_query(settings, lists, &answer, problem)) {
		message_warning("%s; whether there are such counters is not known", problem->text);
		return 0;
	}
	agents = json_object_get(answer, "agents");
	error = counters_request_check_names(settings, agents, early, problem);
	json_array_foreach(agents, i, agent)
	{
		if (!error)
			error = request_check_refused(agent, settings, problem);
	}
	json_decref(answer);
	return error;
}

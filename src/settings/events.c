/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See events.h.
 */
#include "settings/events.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/components.h"
#include "console/message.h"
#include "settings/event_pfm.h"
#include "settings/event_sysfs.h"
#include "settings/probe.h"
#include "settings/suggest.h"

enum { EVENT_NAME_SIZE = 512, EVENT_CODE_SIZE = 72 };

bool events_next_list_item(struct text_slice *rest, struct text_slice *item)
{
	const char *end = rest->text + rest->length;

	if (!setting_next_list_word(rest, item))
		return false;
	for (;;) {
		const char *slash = memchr(item->text, '/', item->length), *close;

		/* An open slash: the item goes on to the next one. */
		if (!slash ||
		    memchr(slash + 1, '/', (size_t)(item->text + item->length - slash - 1)))
			return true;
		close = memchr(slash + 1, '/', (size_t)(end - slash - 1));
		if (!close || memchr(slash, ' ', (size_t)(close - slash)))
			return true;
		item->length = (size_t)(close + 1 - item->text);
		*rest = (struct text_slice){close + 1, (size_t)(end - close - 1)};
	}
}

static void offer_event_suggestion(const char *pmu, const char *event, const char *unit,
				   const char *description, void *context)
{
	(void)pmu;
	(void)description;
	if (!unit)
		suggestion_offer(context, event, strlen(event));
}

static int set_unknown_event_problem(struct text_slice word, const char *source,
				     struct problem *problem)
{
	struct suggestion suggestion;
	char hint[128];
	const char *name, *description;

	suggestion_init(&suggestion, word.text, word.length);
	for (unsigned i = 0; (name = perf_event_get_name_by_index(i, &description)); i++)
		suggestion_offer(&suggestion, name, strlen(name));
	event_pfm_for_each_event_and_unit(offer_event_suggestion, &suggestion);
	return problem_set(problem, -EINVAL,
			   "%s: unknown perf event '%.*s'%s (kymo avail counters lists them)",
			   source, (int)(word.length < 100 ? word.length : 100), word.text,
			   suggestion_format_hint(&suggestion, "", hint, sizeof(hint)));
}

int events_find_by_name(struct text_slice word, const char *source, struct perf_event_code *ret,
			struct problem *problem)
{
	char name[EVENT_NAME_SIZE];
	const char *why = "";
	int error;

	if (!perf_event_find_by_name(word.text, word.length, ret))
		return 0;
	if (word.length >= sizeof(name))
		return set_unknown_event_problem(word, source, problem);
	snprintf(name, sizeof(name), "%.*s", (int)word.length, word.text);
	error = strchr(name, '/') ? event_sysfs_find(EVENT_SYSFS_ROOT, name, ret, &why)
				  : event_pfm_find(name, ret, &why);
	if (error == -ENOENT) {
		error = event_tracepoint_find(name, ret);
		if (error == -EACCES || error == -EPERM)
			return problem_set(problem, -EINVAL,
					   "%s: cannot read the tracepoint '%s': run as root, or "
					   "make /sys/kernel/tracing readable",
					   source, name);
	}
	if (error == -EINVAL)
		return problem_set(problem, -EINVAL, "%s: perf event '%s': %s", source, name, why);
	return error ? set_unknown_event_problem(word, source, problem) : 0;
}

int events_check_list(const char *list, const char *source, struct problem *problem)
{
	struct text_slice rest = setting_slice_from_text(list), word;
	struct perf_event_code event;
	int error = 0;

	while (!error && events_next_list_item(&rest, &word))
		error = events_find_by_name(word, source, &event, problem);
	return error;
}

static bool is_component_name(struct text_slice word)
{
	for (unsigned i = 0; i < COMPONENT_ID_COUNT; i++) {
		if (setting_slice_equals_word(word, component_table[i].name))
			return true;
	}
	return false;
}

/* A word that is neither a component nor an event was most likely meant to be a component. */
static int set_unknown_component_problem_if_near(struct text_slice word, const char *source,
						 struct problem *problem)
{
	struct suggestion suggestion;
	char hint[128];

	suggestion_init(&suggestion, word.text, word.length);
	for (unsigned i = 0; i < COMPONENT_ID_COUNT; i++)
		suggestion_offer(&suggestion, component_table[i].name,
				 strlen(component_table[i].name));
	if (!suggestion.best_candidate)
		return -ENOENT;
	return problem_set(problem, -EINVAL,
			   "%s: unknown component '%.*s'%s (kymo avail components lists them)",
			   source, (int)(word.length < 100 ? word.length : 100), word.text,
			   suggestion_format_hint(&suggestion, "", hint, sizeof(hint)));
}

int events_check_component_list(const char *list, const char *source, struct problem *problem)
{
	struct text_slice rest = setting_slice_from_text(list), word;
	struct perf_event_code event;
	unsigned count = 0, event_count = 0;

	while (events_next_list_item(&rest, &word)) {
		count++;
		if (is_component_name(word))
			continue;
		event_count++;
		if (!events_find_by_name(word, source, &event, problem))
			continue;
		set_unknown_component_problem_if_near(word, source, problem);
		return -EINVAL;
	}
	if (count > COMPONENTS_PER_PROFILE_MAX)
		return problem_set(problem, -EINVAL, "%s: %u components; at most %d are possible",
				   source, count, COMPONENTS_PER_PROFILE_MAX);
	if (event_count > PERF_EVENT_COMPONENTS_PER_PROFILE_MAX)
		return problem_set(problem, -EINVAL, "%s: %u perf events; at most %d are possible",
				   source, event_count, PERF_EVENT_COMPONENTS_PER_PROFILE_MAX);
	return 0;
}

char *events_replace_commas_in_items(const char *list)
{
	struct text_slice rest = setting_slice_from_text(list), word;
	char *text = malloc(strlen(list) + 2), *to = text;

	while (text && events_next_list_item(&rest, &word)) {
		if (to != text)
			*to++ = ',';
		for (size_t i = 0; i < word.length; i++)
			*to++ = word.text[i] == ',' ? ':' : word.text[i];
	}
	if (text)
		*to = '\0';
	return text;
}

static void warn_of_unopenable_event(struct text_slice word, int error)
{
	message_warning("cannot open the perf event '%.*s' (%s): it counts nothing (kymo avail "
			"counters shows what works)",
			(int)word.length, word.text, probe_event_error_to_text(error));
}

char *events_format_code_list(const char *list)
{
	struct text_slice rest = setting_slice_from_text(list), word;
	size_t room = 1;
	char *text = calloc(1, room);

	while (text && events_next_list_item(&rest, &word)) {
		struct perf_event_code event;
		size_t length = strlen(text);
		char *longer;
		int error;

		if (is_component_name(word) || events_find_by_name(word, "", &event, NULL))
			continue;
		error = probe_get_perf_event_open_error(&event);
		if (error)
			warn_of_unopenable_event(word, error);
		room = length + EVENT_CODE_SIZE;
		longer = realloc(text, room);
		if (!longer) {
			free(text);
			return NULL;
		}
		text = longer;
		length += (size_t)snprintf(text + length, room - length, "%s%" PRIx32 ":%" PRIx64,
					   length ? "," : "", event.type, event.config);
		if (event.config1 || event.config2)
			length += (size_t)snprintf(text + length, room - length, ":%" PRIx64,
						   event.config1);
		if (event.config2)
			snprintf(text + length, room - length, ":%" PRIx64, event.config2);
	}
	return text;
}

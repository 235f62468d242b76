/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See events.h.
 */
#include "cmd/events.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/event_pfm.h"
#include "cmd/event_sysfs.h"
#include "cmd/message.h"
#include "cmd/nearest.h"
#include "cmd/probe.h"
#include "common/components.h"

enum { EVENT_NAME = 512, EVENT_CODE = 72 };

bool events_next(struct setting_slice *rest, struct setting_slice *item)
{
	const char *end = rest->text + rest->length;

	if (!setting_list_next(rest, item))
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
		*rest = (struct setting_slice){close + 1, (size_t)(end - close - 1)};
	}
}

static void events_offer(const char *pmu, const char *event, const char *unit,
			 const char *description, void *context)
{
	(void)pmu;
	(void)description;
	if (!unit)
		nearest_offer(context, event, strlen(event));
}

static int events_unknown(struct setting_slice word, const char *source, struct problem *problem)
{
	struct nearest nearest;
	char hint[128];
	const char *name, *description;

	nearest_init(&nearest, word.text, word.length);
	for (unsigned i = 0; (name = perf_event_listed(i, &description)); i++)
		nearest_offer(&nearest, name, strlen(name));
	event_pfm_each(events_offer, &nearest);
	return problem_set(problem, -EINVAL,
			   "%s: unknown perf event '%.*s'%s (kymo avail counters lists them)",
			   source, (int)(word.length < 100 ? word.length : 100), word.text,
			   nearest_hint(&nearest, "", hint, sizeof(hint)));
}

int events_find(struct setting_slice word, const char *source, struct perf_event_name *ret,
		struct problem *problem)
{
	char name[EVENT_NAME];
	const char *why = "";
	int error;

	if (!perf_event_find(word.text, word.length, ret))
		return 0;
	if (word.length >= sizeof(name))
		return events_unknown(word, source, problem);
	snprintf(name, sizeof(name), "%.*s", (int)word.length, word.text);
	error = strchr(name, '/') ? event_sysfs_find(EVENT_SYSFS_ROOT, name, ret, &why)
				  : event_pfm_find(name, ret, &why);
	if (error == -ENOENT) {
		error = event_tracepoint_find(name, ret);
		if (error == -EACCES || error == -EPERM)
			return problem_set(problem, -EINVAL,
					   "%s: the tracepoint '%s' cannot be read: be root, or "
					   "make /sys/kernel/tracing readable",
					   source, name);
	}
	if (error == -EINVAL)
		return problem_set(problem, -EINVAL, "%s: perf event '%s': %s", source, name, why);
	return error ? events_unknown(word, source, problem) : 0;
}

int events_check(const char *list, const char *source, struct problem *problem)
{
	struct setting_slice rest = setting_slice(list), word;
	struct perf_event_name event;
	int error = 0;

	while (!error && events_next(&rest, &word))
		error = events_find(word, source, &event, problem);
	return error;
}

static bool events_is_component(struct setting_slice word)
{
	for (unsigned i = 0; i < COMPONENT_ID_COUNT; i++) {
		if (setting_slice_is(word, component_table[i].name))
			return true;
	}
	return false;
}

/* A word that is neither a component nor an event was most likely meant to be a component. */
static int events_unknown_component(struct setting_slice word, const char *source,
				    struct problem *problem)
{
	struct nearest nearest;
	char hint[128];

	nearest_init(&nearest, word.text, word.length);
	for (unsigned i = 0; i < COMPONENT_ID_COUNT; i++)
		nearest_offer(&nearest, component_table[i].name, strlen(component_table[i].name));
	if (!nearest.best)
		return -ENOENT;
	return problem_set(problem, -EINVAL,
			   "%s: unknown component '%.*s'%s (kymo avail components lists them)",
			   source, (int)(word.length < 100 ? word.length : 100), word.text,
			   nearest_hint(&nearest, "", hint, sizeof(hint)));
}

int events_check_components(const char *list, const char *source, struct problem *problem)
{
	struct setting_slice rest = setting_slice(list), word;
	struct perf_event_name event;
	unsigned count = 0, event_count = 0;

	while (events_next(&rest, &word)) {
		count++;
		if (events_is_component(word))
			continue;
		event_count++;
		if (!events_find(word, source, &event, problem))
			continue;
		events_unknown_component(word, source, problem);
		return -EINVAL;
	}
	if (count > COMPONENTS_MAX)
		return problem_set(problem, -EINVAL, "%s: %u components; at most %d can be had",
				   source, count, COMPONENTS_MAX);
	if (event_count > COMPONENT_EVENTS_MAX)
		return problem_set(problem, -EINVAL, "%s: %u perf events; at most %d can be had",
				   source, event_count, COMPONENT_EVENTS_MAX);
	return 0;
}

char *events_plain_list(const char *list)
{
	struct setting_slice rest = setting_slice(list), word;
	char *text = malloc(strlen(list) + 2), *to = text;

	while (text && events_next(&rest, &word)) {
		if (to != text)
			*to++ = ',';
		for (size_t i = 0; i < word.length; i++)
			*to++ = word.text[i] == ',' ? ':' : word.text[i];
	}
	if (text)
		*to = '\0';
	return text;
}

static void events_say_closed(struct setting_slice word, int error)
{
	message_warning("the perf event '%.*s' cannot be opened here (%s): nothing is counted "
			"(kymo avail counters shows what works)",
			(int)word.length, word.text, probe_event_why(error));
}

char *events_codes(const char *list)
{
	struct setting_slice rest = setting_slice(list), word;
	size_t room = 1;
	char *text = calloc(1, room);

	while (text && events_next(&rest, &word)) {
		struct perf_event_name event;
		size_t length = strlen(text);
		char *longer;
		int error;

		if (events_is_component(word) || events_find(word, "", &event, NULL))
			continue;
		error = probe_event(&event);
		if (error)
			events_say_closed(word, error);
		room = length + EVENT_CODE;
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

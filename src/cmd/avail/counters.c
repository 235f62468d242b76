/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo avail events`: the kernel's generic perf events and whether they work here. `kymo avail
 * counters`: these, what PMUs describe in sysfs, and what libpfm4 knows about this machine.
 */
#include <errno.h>
#include <string.h>

#include "cmd/avail/avail.h"
#include "settings/event_pfm.h"
#include "settings/event_sysfs.h"
#include "settings/listing.h"
#include "settings/probe.h"

enum { COUNTERS_LINE_WIDTH = 100, COUNTERS_DESCRIPTION_COLUMN = 32, COUNTER_NAME_SIZE = 256 };

/* A listing under way: to the terminal, or into `array`. */
struct counter_listing_state {
	const struct avail_listing_filter *filter;
	json_t *json_items;
	const char *origin, *pending_heading; /* not printed yet */
};

static bool counters_item_matches_filter(const struct avail_listing_filter *filter,
					 const char *name, const char *description)
{
	return !filter->expression || !regexec(filter->expression, name, 0, NULL, 0) ||
	       !regexec(filter->expression, description, 0, NULL, 0);
}

static void counters_print_item(struct counter_listing_state *walk, const char *name,
				const char *description, int error)
{
	char text[512];
	int column;

	if (walk->pending_heading)
		puts(walk->pending_heading);
	walk->pending_heading = NULL;
	column = printf("  %-24s ", name);
	if (error >= 0)
		column += printf("%-4s", error ? "no" : "yes");
	printf("%*s",
	       column < COUNTERS_DESCRIPTION_COLUMN ? COUNTERS_DESCRIPTION_COLUMN - column : 1, "");
	column = column < COUNTERS_DESCRIPTION_COLUMN ? COUNTERS_DESCRIPTION_COLUMN : column + 1;
	snprintf(text, sizeof(text), "%s%s%s%s", description, error > 0 ? " (" : "",
		 error > 0 ? probe_event_error_to_text(error) : "", error > 0 ? ")" : "");
	listing_print_wrapped(stdout, text, (size_t)column, COUNTERS_DESCRIPTION_COLUMN,
			      COUNTERS_LINE_WIDTH);
}

static void counters_add_item_to_json(json_t *array, const char *origin, const char *name,
				      const char *description, int error)
{
	json_t *object = json_object();

	json_object_set_new(object, "name", json_string(name));
	json_object_set_new(object, "origin", json_string(origin));
	json_object_set_new(object, "description", json_string(description));
	if (error >= 0)
		json_object_set_new(object, "works", json_boolean(!error));
	json_array_append_new(array, object);
}

/* `error`: 0 works, an errno, or -1: not tried. */
static void counters_print_or_add_item(struct counter_listing_state *walk, const char *name,
				       const char *description, int error)
{
	if (walk->json_items)
		counters_add_item_to_json(walk->json_items, walk->origin, name, description, error);
	else
		counters_print_item(walk, name, description, error);
}

static void counters_print_or_add_generic_events(struct counter_listing_state *walk)
{
	const char *name, *description;

	walk->origin = "kernel";
	walk->pending_heading = "Generic perf events";
	for (unsigned i = 0; (name = perf_event_get_name_by_index(i, &description)); i++) {
		struct perf_event_code event;
		int error = ENOENT;

		if (!counters_item_matches_filter(walk->filter, name, description))
			continue;
		if (!perf_event_find_by_name(name, strlen(name), &event))
			error = probe_get_perf_event_open_error(&event);
		counters_print_or_add_item(walk, name, description, error);
	}
}

static void counters_print_or_add_sysfs_event(const char *name, void *context)
{
	struct counter_listing_state *walk = context;
	struct perf_event_code event;
	const char *why;

	if (counters_item_matches_filter(walk->filter, name, "") &&
	    !event_sysfs_find(EVENT_SYSFS_ROOT, name, &event, &why))
		counters_print_or_add_item(walk, name, "", probe_get_perf_event_open_error(&event));
}

static void counters_print_or_add_pfm_event(const char *pmu, const char *event, const char *unit,
					    const char *description, void *context)
{
	struct counter_listing_state *walk = context;
	char name[COUNTER_NAME_SIZE];

	snprintf(name, sizeof(name), "%s::%s%s%s", pmu, event, unit ? ":" : "", unit ? unit : "");
	if (counters_item_matches_filter(walk->filter, name, description))
		counters_print_or_add_item(walk, name, description, -1);
}

static void counters_print_or_add_all_events(struct counter_listing_state *walk)
{
	counters_print_or_add_generic_events(walk);
	walk->origin = "sysfs";
	walk->pending_heading = "Events of PMUs (/sys/bus/event_source/devices)";
	event_sysfs_for_each_event(EVENT_SYSFS_ROOT, counters_print_or_add_sysfs_event, walk);
	walk->origin = "libpfm4";
	walk->pending_heading = "Events that libpfm4 knows for this machine";
	event_pfm_for_each_event_and_unit(counters_print_or_add_pfm_event, walk);
}

void avail_print_generic_perf_events(const struct effective_settings *settings,
				     const struct avail_listing_filter *filter)
{
	struct counter_listing_state walk = {.filter = filter};

	(void)settings;
	counters_print_or_add_generic_events(&walk);
	if (!filter->expression)
		puts("  L1-dcache-load-misses … cache events, rNNN raw events, pmu/event/, names "
		     "of libpfm4: kymo avail counters");
}

json_t *avail_generic_perf_events_to_json(const struct effective_settings *settings,
					  const struct avail_listing_filter *filter)
{
	struct counter_listing_state walk = {.filter = filter, .json_items = json_array()};

	(void)settings;
	counters_print_or_add_generic_events(&walk);
	return walk.json_items;
}

void avail_print_all_perf_events(const struct effective_settings *settings,
				 const struct avail_listing_filter *filter)
{
	struct counter_listing_state walk = {.filter = filter};

	(void)settings;
	puts("perf events for --components, --sampling-counters and --sampling-overflow-event");
	counters_print_or_add_all_events(&walk);
	if (filter->expression)
		return;
	if (!event_pfm_is_available())
		puts("libpfm4 is not installed: names of this processor's events are not known");
	puts("Also: L1-dcache-load-misses, LLC-stores, dTLB-prefetch-misses … cache events; rNNN "
	     "raw events;\npmu/term=value,term/; tracepoints subsystem:event");
}

json_t *avail_all_perf_events_to_json(const struct effective_settings *settings,
				      const struct avail_listing_filter *filter)
{
	struct counter_listing_state walk = {.filter = filter, .json_items = json_array()};

	(void)settings;
	counters_print_or_add_all_events(&walk);
	return walk.json_items;
}

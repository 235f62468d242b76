/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * `kymo avail events`: the kernel's generic perf events and whether they work here. `kymo avail
 * counters`: these, what PMUs describe in sysfs, and what libpfm4 knows about this machine.
 */
#include <errno.h>
#include <string.h>

#include "cmd/avail.h"
#include "cmd/event_pfm.h"
#include "cmd/event_sysfs.h"
#include "cmd/listing.h"
#include "cmd/probe.h"

enum { COUNTERS_WIDTH = 100, COUNTERS_COLUMN = 32, COUNTER_NAME = 256 };

/* A listing under way: to the terminal, or into `array`. */
struct counters_walk {
	const struct avail_filter *filter;
	json_t *array;
	const char *origin, *heading; /* not printed yet */
};

static bool counters_match(const struct avail_filter *filter, const char *name,
			   const char *description)
{
	return !filter->expression || !regexec(filter->expression, name, 0, NULL, 0) ||
	       !regexec(filter->expression, description, 0, NULL, 0);
}

static void counters_print(struct counters_walk *walk, const char *name, const char *description,
			   int error)
{
	char text[512];
	int column;

	if (walk->heading)
		puts(walk->heading);
	walk->heading = NULL;
	column = printf("  %-24s ", name);
	if (error >= 0)
		column += printf("%-4s", error ? "no" : "yes");
	printf("%*s", column < COUNTERS_COLUMN ? COUNTERS_COLUMN - column : 1, "");
	column = column < COUNTERS_COLUMN ? COUNTERS_COLUMN : column + 1;
	snprintf(text, sizeof(text), "%s%s%s%s", description, error > 0 ? " (" : "",
		 error > 0 ? probe_event_why(error) : "", error > 0 ? ")" : "");
	listing_wrap(stdout, text, (size_t)column, COUNTERS_COLUMN, COUNTERS_WIDTH);
}

static void counters_add(json_t *array, const char *origin, const char *name,
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
static void counters_item(struct counters_walk *walk, const char *name, const char *description,
			  int error)
{
	if (walk->array)
		counters_add(walk->array, walk->origin, name, description, error);
	else
		counters_print(walk, name, description, error);
}

static void counters_generic(struct counters_walk *walk)
{
	const char *name, *description;

	walk->origin = "kernel";
	walk->heading = "Generic perf events";
	for (unsigned i = 0; (name = perf_event_listed(i, &description)); i++) {
		struct perf_event_name event;
		int error = ENOENT;

		if (!counters_match(walk->filter, name, description))
			continue;
		if (!perf_event_find(name, strlen(name), &event))
			error = probe_event(&event);
		counters_item(walk, name, description, error);
	}
}

static void counters_sysfs_item(const char *name, void *context)
{
	struct counters_walk *walk = context;
	struct perf_event_name event;
	const char *why;

	if (counters_match(walk->filter, name, "") &&
	    !event_sysfs_find(EVENT_SYSFS_ROOT, name, &event, &why))
		counters_item(walk, name, "", probe_event(&event));
}

static void counters_pfm_item(const char *pmu, const char *event, const char *unit,
			      const char *description, void *context)
{
	struct counters_walk *walk = context;
	char name[COUNTER_NAME];

	snprintf(name, sizeof(name), "%s::%s%s%s", pmu, event, unit ? ":" : "", unit ? unit : "");
	if (counters_match(walk->filter, name, description))
		counters_item(walk, name, description, -1);
}

static void counters_everything(struct counters_walk *walk)
{
	counters_generic(walk);
	walk->origin = "sysfs";
	walk->heading = "Events of PMUs (/sys/bus/event_source/devices)";
	event_sysfs_each(EVENT_SYSFS_ROOT, counters_sysfs_item, walk);
	walk->origin = "libpfm4";
	walk->heading = "Events that libpfm4 knows for this machine";
	event_pfm_each(counters_pfm_item, walk);
}

void avail_print_events(const struct resolved *settings, const struct avail_filter *filter)
{
	struct counters_walk walk = {.filter = filter};

	(void)settings;
	counters_generic(&walk);
	if (!filter->expression)
		puts("  L1-dcache-load-misses … cache events, rNNN raw events, pmu/event/, names "
		     "of libpfm4: kymo avail counters");
}

json_t *avail_json_events(const struct resolved *settings, const struct avail_filter *filter)
{
	struct counters_walk walk = {.filter = filter, .array = json_array()};

	(void)settings;
	counters_generic(&walk);
	return walk.array;
}

void avail_print_counters(const struct resolved *settings, const struct avail_filter *filter)
{
	struct counters_walk walk = {.filter = filter};

	(void)settings;
	puts("perf events for --components, --sampling-counters and --sampling-overflow-event");
	counters_everything(&walk);
	if (filter->expression)
		return;
	if (!event_pfm_available())
		puts("libpfm4 is not installed: names of this processor's events are not known");
	puts("Also: L1-dcache-load-misses, LLC-stores, dTLB-prefetch-misses … cache events; rNNN "
	     "raw events;\npmu/term=value,term/; tracepoints subsystem:event");
}

json_t *avail_json_counters(const struct resolved *settings, const struct avail_filter *filter)
{
	struct counters_walk walk = {.filter = filter, .array = json_array()};

	(void)settings;
	counters_everything(&walk);
	return walk.array;
}

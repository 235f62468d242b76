/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counters that are asked for by the vendor's own name of a form of an event, as NVIDIA's tools
 * write it (dram__bytes_read.sum, sm__warps_active.avg.pct_of_peak_sustained_active). A device has
 * dozens of forms of each event, so they are not listed; those named in KYMO_COUNTERS and
 * KYMO_DEVICE_COUNTERS become counters of that very name.
 */
#include <stdlib.h>
#include <string.h>

#include "libkymo-sdk/counters/counters.h"

#define EVENT_NAME_BYTES_MAX 256

static void add_event_as_counter(struct sdk_agent_kind_with_counters *kind, const char *name)
{
	struct counting_event_info event = {.name = ""};

	if (catalogue_find(&kind->catalogue, name) != NULL ||
	    kind->counting->event(kind->agent->id.handle, "", name, &event) != COUNTING_OK)
		return;
	event.name = name;
	if (sdk_counter_event_is_valid(&event))
		catalogue_add_event(&kind->catalogue, &event);
}

/* Names with a dot are of no definition: there they are expressions' names. */
static void add_dotted_names_of_list(struct sdk_agent_kind_with_counters *kind, const char *list)
{
	static const char separators[] = ", \t\n";
	char name[EVENT_NAME_BYTES_MAX];

	while (*list != '\0') {
		size_t length = strcspn(list, separators);

		if (length > 0 && length < sizeof(name) && memchr(list, '.', length) != NULL) {
			memcpy(name, list, length);
			name[length] = '\0';
			add_event_as_counter(kind, name);
		}
		list += length;
		list += strspn(list, separators);
	}
}

void sdk_agent_kind_add_requested_events(struct sdk_agent_kind_with_counters *kind)
{
	static const char *const variables[] = {"KYMO_COUNTERS", "KYMO_DEVICE_COUNTERS"};

	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
		const char *list = secure_getenv(variables[i]);

		if (list != NULL)
			add_dotted_names_of_list(kind, list);
	}
}

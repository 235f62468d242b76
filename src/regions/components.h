/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The measuring components (common/components.h) as verbs, and the bundle that COMPONENTS asks for.
 *
 * At one event all components read the same moment: a source is read at most once, and only if a
 * component wants it.
 */
#ifndef KYMO_REGIONS_COMPONENTS_H
#define KYMO_REGIONS_COMPONENTS_H

#include <stdbool.h>

#include "regions/bundle.h"

struct region_thread_state;

struct component_readings_at_moment {
	uint64_t ticks;
	struct region_thread_state *thread;
	uint32_t read_source_bits; /* bit per component_source that has been read */
	uint64_t thread_resource_usage[8], process_resource_usage[8];
};

/* Fills the bundle from the list (component names and perf events, in order; quotients bring their
 * two components with them). *ret_probes: descriptors are needed, probe_start_background_thread()
 * must be called. */
void components_fill_bundle(struct component_bundle *bundle, const char *list, bool *ret_probes);
/* The COMPONENTS record of the spool. Returns bytes written to `record`, 0 when there is no room.
 */
uint32_t components_encode_descriptions(const struct component_bundle *bundle, uint8_t *record,
					uint32_t size);

#endif

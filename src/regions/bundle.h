/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Components and bundles. A component is a table of functions ("verbs") of which it has those that
 * make sense for it; a bundle is a list of components made once. For each verb the bundle keeps the
 * components that have it, so that a call touches no others: starting a bundle of which one
 * component can start costs one call.
 *
 * A verb with an argument goes, in the order of the components, to those that take the argument and
 * to those that can do without it; a verb without one goes only to those that need none. (start is
 * the exception: a component that can only start with a value is started with 0.)
 *
 * `data` is one word a component, in bundle order: what the component keeps between its verbs.
 * Signal-safe as far as the components are; nothing is allocated.
 */
#ifndef KYMO_REGIONS_BUNDLE_H
#define KYMO_REGIONS_BUNDLE_H

#include <stddef.h>
#include <stdint.h>

#include "common/components.h"

struct component_readings_at_moment;
struct bundle_component;

/* `moment`: what has been read at this event so far (components.h), shared by all components. */
typedef void (*component_verb)(const struct bundle_component *self, uint64_t *data,
			       struct component_readings_at_moment *moment);
typedef void (*component_verb_value)(const struct bundle_component *self, uint64_t *data,
				     struct component_readings_at_moment *moment, int64_t value);
typedef void (*component_verb_audit)(const struct bundle_component *self, uint64_t *data,
				     struct component_readings_at_moment *moment,
				     const uint64_t *values, size_t count);

struct bundle_component {
	const char *name;
	const struct component_description *description; /* NULL for those that measure nothing */
	uint32_t source_field_index;                     /* of the source that it reads */
	component_verb start, stop, sample;
	component_verb_value start_with_value, sample_with_value;
	component_verb_audit audit_enter,
		audit_exit; /* arguments before, result after a wrapped call */
	void *context;      /* the component's own */
};

enum bundle_verb {
	BUNDLE_VERB_START,
	BUNDLE_VERB_STOP,
	BUNDLE_VERB_SAMPLE,
	BUNDLE_VERB_SAMPLE_VALUE,
	BUNDLE_VERB_AUDIT_ENTER,
	BUNDLE_VERB_AUDIT_EXIT,
	BUNDLE_VERB_COUNT
};

struct component_bundle {
	struct bundle_component components[COMPONENTS_PER_PROFILE_MAX];
	uint32_t count;
	/* Per verb, places in `components` of those that have it. */
	uint8_t component_indices_by_verb[BUNDLE_VERB_COUNT][COMPONENTS_PER_PROFILE_MAX];
	uint8_t component_count_by_verb[BUNDLE_VERB_COUNT];
};

/* Adds a component; returns its place, or -1 when the bundle is full. */
int component_bundle_add(struct component_bundle *bundle, const struct bundle_component *component);

void component_bundle_call_all_starts(const struct component_bundle *bundle, uint64_t *data,
				      struct component_readings_at_moment *moment);
void component_bundle_call_all_stops(const struct component_bundle *bundle, uint64_t *data,
				     struct component_readings_at_moment *moment);
void component_bundle_call_all_samples(const struct component_bundle *bundle, uint64_t *data,
				       struct component_readings_at_moment *moment);
void component_bundle_call_all_sample_values(const struct component_bundle *bundle, uint64_t *data,
					     struct component_readings_at_moment *moment,
					     int64_t value);
void component_bundle_call_all_audit_enters(const struct component_bundle *bundle, uint64_t *data,
					    struct component_readings_at_moment *moment,
					    const uint64_t *arguments, size_t count);
void component_bundle_call_all_audit_exits(const struct component_bundle *bundle, uint64_t *data,
					   struct component_readings_at_moment *moment,
					   const uint64_t *results, size_t count);

#endif

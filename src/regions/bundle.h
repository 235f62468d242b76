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

struct moment;
struct component;

/* `moment`: what has been read at this event so far (components.h), shared by all components. */
typedef void (*component_verb)(const struct component *self, uint64_t *data, struct moment *moment);
typedef void (*component_verb_value)(const struct component *self, uint64_t *data,
				     struct moment *moment, int64_t value);
typedef void (*component_verb_audit)(const struct component *self, uint64_t *data,
				     struct moment *moment, const uint64_t *values, size_t count);

struct component {
	const char *name;
	const struct component_description *description; /* NULL for those that measure nothing */
	uint32_t field;                                  /* of the source that it reads */
	component_verb start, stop, sample;
	component_verb_value start_value, sample_value;
	component_verb_audit audit_enter,
		audit_exit; /* arguments before, result after a wrapped call */
	void *context;      /* the component's own */
};

enum bundle_verb {
	BUNDLE_START,
	BUNDLE_STOP,
	BUNDLE_SAMPLE,
	BUNDLE_SAMPLE_VALUE,
	BUNDLE_AUDIT_ENTER,
	BUNDLE_AUDIT_EXIT,
	BUNDLE_VERB_COUNT
};

struct bundle {
	struct component components[COMPONENTS_MAX];
	uint32_t count;
	/* Per verb, places in `components` of those that have it. */
	uint8_t with[BUNDLE_VERB_COUNT][COMPONENTS_MAX];
	uint8_t with_count[BUNDLE_VERB_COUNT];
};

/* Adds a component; returns its place, or -1 when the bundle is full. */
int bundle_add(struct bundle *bundle, const struct component *component);

void bundle_start(const struct bundle *bundle, uint64_t *data, struct moment *moment);
void bundle_stop(const struct bundle *bundle, uint64_t *data, struct moment *moment);
void bundle_sample(const struct bundle *bundle, uint64_t *data, struct moment *moment);
void bundle_sample_value(const struct bundle *bundle, uint64_t *data, struct moment *moment,
			 int64_t value);
void bundle_audit_enter(const struct bundle *bundle, uint64_t *data, struct moment *moment,
			const uint64_t *arguments, size_t count);
void bundle_audit_exit(const struct bundle *bundle, uint64_t *data, struct moment *moment,
		       const uint64_t *results, size_t count);

#endif

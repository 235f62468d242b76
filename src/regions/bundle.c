/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See bundle.h.
 */
#include "regions/bundle.h"

#include <stdbool.h>

static bool component_has_verb(const struct bundle_component *component, enum bundle_verb verb)
{
	switch (verb) {
	case BUNDLE_VERB_START:
		return component->start || component->start_with_value;
	case BUNDLE_VERB_STOP:
		return component->stop;
	case BUNDLE_VERB_SAMPLE:
		return component->sample;
	case BUNDLE_VERB_SAMPLE_VALUE:
		return component->sample || component->sample_with_value;
	case BUNDLE_VERB_AUDIT_ENTER:
		return component->audit_enter;
	case BUNDLE_VERB_AUDIT_EXIT:
		return component->audit_exit;
	default:
		return false;
	}
}

int component_bundle_add(struct component_bundle *bundle, const struct bundle_component *component)
{
	uint32_t place = bundle->count;

	if (place == COMPONENTS_PER_PROFILE_MAX)
		return -1;
	bundle->components[place] = *component;
	bundle->count++;
	for (int verb = 0; verb < BUNDLE_VERB_COUNT; verb++) {
		if (component_has_verb(component, (enum bundle_verb)verb))
			bundle->component_indices_by_verb[verb]
							 [bundle->component_count_by_verb[verb]++] =
				(uint8_t)place;
	}
	return (int)place;
}

void component_bundle_call_all_starts(const struct component_bundle *bundle, uint64_t *data,
				      struct component_readings_at_moment *moment)
{
	for (uint32_t i = 0; i < bundle->component_count_by_verb[BUNDLE_VERB_START]; i++) {
		uint32_t place = bundle->component_indices_by_verb[BUNDLE_VERB_START][i];
		const struct bundle_component *component = &bundle->components[place];

		if (component->start)
			component->start(component, &data[place], moment);
		else
			component->start_with_value(component, &data[place], moment, 0);
	}
}

void component_bundle_call_all_stops(const struct component_bundle *bundle, uint64_t *data,
				     struct component_readings_at_moment *moment)
{
	for (uint32_t i = 0; i < bundle->component_count_by_verb[BUNDLE_VERB_STOP]; i++) {
		uint32_t place = bundle->component_indices_by_verb[BUNDLE_VERB_STOP][i];
		const struct bundle_component *component = &bundle->components[place];

		component->stop(component, &data[place], moment);
	}
}

void component_bundle_call_all_samples(const struct component_bundle *bundle, uint64_t *data,
				       struct component_readings_at_moment *moment)
{
	for (uint32_t i = 0; i < bundle->component_count_by_verb[BUNDLE_VERB_SAMPLE]; i++) {
		uint32_t place = bundle->component_indices_by_verb[BUNDLE_VERB_SAMPLE][i];
		const struct bundle_component *component = &bundle->components[place];

		component->sample(component, &data[place], moment);
	}
}

void component_bundle_call_all_sample_values(const struct component_bundle *bundle, uint64_t *data,
					     struct component_readings_at_moment *moment,
					     int64_t value)
{
	for (uint32_t i = 0; i < bundle->component_count_by_verb[BUNDLE_VERB_SAMPLE_VALUE]; i++) {
		uint32_t place = bundle->component_indices_by_verb[BUNDLE_VERB_SAMPLE_VALUE][i];
		const struct bundle_component *component = &bundle->components[place];

		if (component->sample_with_value)
			component->sample_with_value(component, &data[place], moment, value);
		else
			component->sample(component, &data[place], moment);
	}
}

void component_bundle_call_all_audit_enters(const struct component_bundle *bundle, uint64_t *data,
					    struct component_readings_at_moment *moment,
					    const uint64_t *arguments, size_t count)
{
	for (uint32_t i = 0; i < bundle->component_count_by_verb[BUNDLE_VERB_AUDIT_ENTER]; i++) {
		uint32_t place = bundle->component_indices_by_verb[BUNDLE_VERB_AUDIT_ENTER][i];
		const struct bundle_component *component = &bundle->components[place];

		component->audit_enter(component, &data[place], moment, arguments, count);
	}
}

void component_bundle_call_all_audit_exits(const struct component_bundle *bundle, uint64_t *data,
					   struct component_readings_at_moment *moment,
					   const uint64_t *results, size_t count)
{
	for (uint32_t i = 0; i < bundle->component_count_by_verb[BUNDLE_VERB_AUDIT_EXIT]; i++) {
		uint32_t place = bundle->component_indices_by_verb[BUNDLE_VERB_AUDIT_EXIT][i];
		const struct bundle_component *component = &bundle->components[place];

		component->audit_exit(component, &data[place], moment, results, count);
	}
}

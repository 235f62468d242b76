/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See bundle.h.
 */
#include "regions/bundle.h"

#include <stdbool.h>

static bool has_verb(const struct component *component, enum bundle_verb verb)
{
	switch (verb) {
	case BUNDLE_START:
		return component->start || component->start_value;
	case BUNDLE_STOP:
		return component->stop;
	case BUNDLE_SAMPLE:
		return component->sample;
	case BUNDLE_SAMPLE_VALUE:
		return component->sample || component->sample_value;
	case BUNDLE_AUDIT_ENTER:
		return component->audit_enter;
	case BUNDLE_AUDIT_EXIT:
		return component->audit_exit;
	default:
		return false;
	}
}

int bundle_add(struct bundle *bundle, const struct component *component)
{
	uint32_t place = bundle->count;

	if (place == COMPONENTS_MAX)
		return -1;
	bundle->components[place] = *component;
	bundle->count++;
	for (int verb = 0; verb < BUNDLE_VERB_COUNT; verb++) {
		if (has_verb(component, (enum bundle_verb)verb))
			bundle->with[verb][bundle->with_count[verb]++] = (uint8_t)place;
	}
	return (int)place;
}

void bundle_start(const struct bundle *bundle, uint64_t *data, struct moment *moment)
{
	for (uint32_t i = 0; i < bundle->with_count[BUNDLE_START]; i++) {
		uint32_t place = bundle->with[BUNDLE_START][i];
		const struct component *component = &bundle->components[place];

		if (component->start)
			component->start(component, &data[place], moment);
		else
			component->start_value(component, &data[place], moment, 0);
	}
}

void bundle_stop(const struct bundle *bundle, uint64_t *data, struct moment *moment)
{
	for (uint32_t i = 0; i < bundle->with_count[BUNDLE_STOP]; i++) {
		uint32_t place = bundle->with[BUNDLE_STOP][i];
		const struct component *component = &bundle->components[place];

		component->stop(component, &data[place], moment);
	}
}

void bundle_sample(const struct bundle *bundle, uint64_t *data, struct moment *moment)
{
	for (uint32_t i = 0; i < bundle->with_count[BUNDLE_SAMPLE]; i++) {
		uint32_t place = bundle->with[BUNDLE_SAMPLE][i];
		const struct component *component = &bundle->components[place];

		component->sample(component, &data[place], moment);
	}
}

void bundle_sample_value(const struct bundle *bundle, uint64_t *data, struct moment *moment,
			 int64_t value)
{
	for (uint32_t i = 0; i < bundle->with_count[BUNDLE_SAMPLE_VALUE]; i++) {
		uint32_t place = bundle->with[BUNDLE_SAMPLE_VALUE][i];
		const struct component *component = &bundle->components[place];

		if (component->sample_value)
			component->sample_value(component, &data[place], moment, value);
		else
			component->sample(component, &data[place], moment);
	}
}

void bundle_audit_enter(const struct bundle *bundle, uint64_t *data, struct moment *moment,
			const uint64_t *arguments, size_t count)
{
	for (uint32_t i = 0; i < bundle->with_count[BUNDLE_AUDIT_ENTER]; i++) {
		uint32_t place = bundle->with[BUNDLE_AUDIT_ENTER][i];
		const struct component *component = &bundle->components[place];

		component->audit_enter(component, &data[place], moment, arguments, count);
	}
}

void bundle_audit_exit(const struct bundle *bundle, uint64_t *data, struct moment *moment,
		       const uint64_t *results, size_t count)
{
	for (uint32_t i = 0; i < bundle->with_count[BUNDLE_AUDIT_EXIT]; i++) {
		uint32_t place = bundle->with[BUNDLE_AUDIT_EXIT][i];
		const struct component *component = &bundle->components[place];

		component->audit_exit(component, &data[place], moment, results, count);
	}
}

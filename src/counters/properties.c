/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See properties.h.
 */
#include "counters/properties.h"

#include "counters/catalogue.h"

#define PROPERTY_NAME_ROW(name) #name,
static const char *const property_names[] = {COUNTER_PROPERTY_LIST(PROPERTY_NAME_ROW)};

const char *counter_property_get_name(uint32_t property)
{
	return property < COUNTER_PROPERTY_COUNT ? property_names[property] : "";
}

void catalogue_add_properties(struct counter_catalogue *catalogue)
{
	for (uint32_t i = 0; i < COUNTER_PROPERTY_COUNT; i++) {
		struct counter *counter = catalogue_add_blank_counter(catalogue, property_names[i]);

		if (counter == NULL)
			return;
		counter->kind = COUNTER_PROPERTY;
		counter->property_index = i;
		counter->description = "Property of the agent";
		counter->ways = COUNTING_BY_DISPATCH | COUNTING_BY_DEVICE;
		counter->shape.count = 1;
		counter->shape.axes[0] = (struct shape_axis){COUNTING_DIMENSION_INSTANCE, 1, NULL};
	}
}

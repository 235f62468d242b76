/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Values of an agent's properties that expressions may name.
 */
#include "counters/properties.h"

#include "libkymo-sdk/counters/counters.h"

double sdk_agent_get_property_value(const rocprofiler_agent_v0_t *agent, uint32_t property)
{
	switch (property) {
#define PROPERTY_VALUE_CASE(name)                                                                  \
	case COUNTER_PROPERTY_##name:                                                              \
		return (double)agent->name;
		COUNTER_PROPERTY_LIST(PROPERTY_VALUE_CASE)
	default:
		return 0;
	}
}

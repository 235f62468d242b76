/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Agents: the host and the devices that backends have told. They are never taken back.
 */
#ifndef KYMO_LIBKYMO_SDK_AGENTS_H
#define KYMO_LIBKYMO_SDK_AGENTS_H

#include "device/device.h"
#include "libkymo-sdk/emit.h"

#define SDK_AGENTS_MAX 1024

/* NULL: no such agent. */
const rocprofiler_agent_v0_t *sdk_agent_find_by_id(uint64_t id);
/* Those there are now, by number. */
uint32_t sdk_agents_get_count(void);
const rocprofiler_agent_v0_t *sdk_agent_get_by_number(uint32_t number);
/* The runtimes that have told it, a bit each. */
uint32_t sdk_agent_get_runtime_bits(uint32_t number);
void sdk_agent_add_runtime(rocprofiler_agent_id_t agent, enum device_runtime_kind runtime);

#endif

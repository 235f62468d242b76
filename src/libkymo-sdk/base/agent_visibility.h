/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which of AMD's devices the program's runtimes can see, by the variables that say so.
 */
#ifndef KYMO_LIBKYMO_SDK_BASE_AGENT_VISIBILITY_H
#define KYMO_LIBKYMO_SDK_BASE_AGENT_VISIBILITY_H

#include <rocprofiler-sdk/agent.h>

/* gpu: its number among the GPUs. Sets the agent's runtime_visibility. */
void sdk_agent_set_visibility_from_env(rocprofiler_agent_v0_t *agent, uint32_t gpu);

#endif

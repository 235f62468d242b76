/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sets of counters to be collected together on an agent.
 */
#ifndef ROCPROFILER_SDK_COUNTER_CONFIG_H
#define ROCPROFILER_SDK_COUNTER_CONFIG_H

#include <rocprofiler-sdk/agent.h>
#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/fwd.h>

ROCPROFILER_EXTERN_C_INIT

/* Where *config_id is a set already, the new one has its counters too; the old one stays as it is.
 */
rocprofiler_status_t
rocprofiler_create_counter_config(rocprofiler_agent_id_t agent_id,
				  rocprofiler_counter_id_t *counters_list, size_t counters_count,
				  rocprofiler_counter_config_id_t *config_id) ROCPROFILER_API
	ROCPROFILER_NONNULL(4);

/* What collects it goes on. */
rocprofiler_status_t
rocprofiler_destroy_counter_config(rocprofiler_counter_config_id_t config_id) ROCPROFILER_API;

ROCPROFILER_EXTERN_C_FINI

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which kinds are ever told (kymo/tools.h). Every kind can be configured; a tool that wants to say
 * what its results lack asks here.
 */
#include <kymo/tools.h>

#include "libkymo-sdk/agents.h"
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/runtimes/runtimes.h"
#include "libkymo-sdk/tables/domains.h"
#include "libkymo-sdk/tables/names.h"

#define HOST_RUNTIME_BIT   (1u << DEVICE_RUNTIME_HOST)
#define OPENCL_RUNTIME_BIT (1u << DEVICE_RUNTIME_OPENCL)
#define CUDA_RUNTIME_BIT   (1u << DEVICE_RUNTIME_CUDA)
#define HSA_RUNTIME_BIT    (1u << DEVICE_RUNTIME_HSA)
#define ALL_RUNTIME_BITS                                                                           \
	(HOST_RUNTIME_BIT | OPENCL_RUNTIME_BIT | CUDA_RUNTIME_BIT | HSA_RUNTIME_BIT)

/* What concerns the host is reported wherever the program runs: markers do not belong to a device.
 */
static const uint8_t runtime_bits_by_domain[SDK_DOMAIN_COUNT] = {
	[SDK_DOMAIN_HSA_CORE] = HSA_RUNTIME_BIT,
	[SDK_DOMAIN_HSA_AMD_EXT] = HSA_RUNTIME_BIT,
	[SDK_DOMAIN_HSA_IMAGE_EXT] = HSA_RUNTIME_BIT,
	[SDK_DOMAIN_HSA_FINALIZE_EXT] = HSA_RUNTIME_BIT,
	[SDK_DOMAIN_HIP_RUNTIME] = CUDA_RUNTIME_BIT | HSA_RUNTIME_BIT,
	[SDK_DOMAIN_HIP_COMPILER] = HSA_RUNTIME_BIT,
	[SDK_DOMAIN_RCCL] = HSA_RUNTIME_BIT,
	[SDK_DOMAIN_ROCDECODE] = HSA_RUNTIME_BIT,
	[SDK_DOMAIN_ROCJPEG] = HSA_RUNTIME_BIT,
	[SDK_DOMAIN_MARKER_CORE] = ALL_RUNTIME_BITS,
	[SDK_DOMAIN_MARKER_CONTROL] = ALL_RUNTIME_BITS,
	[SDK_DOMAIN_MARKER_NAME] = ALL_RUNTIME_BITS,
	[SDK_DOMAIN_MARKER_CORE_RANGE] = ALL_RUNTIME_BITS,
	[SDK_DOMAIN_OMPT] = HOST_RUNTIME_BIT,
	[SDK_DOMAIN_CODE_OBJECT] = OPENCL_RUNTIME_BIT | CUDA_RUNTIME_BIT,
	[SDK_DOMAIN_DISPATCH] = OPENCL_RUNTIME_BIT | CUDA_RUNTIME_BIT,
	[SDK_DOMAIN_COPY] = OPENCL_RUNTIME_BIT | CUDA_RUNTIME_BIT,
	[SDK_DOMAIN_ALLOCATION] = OPENCL_RUNTIME_BIT | CUDA_RUNTIME_BIT,
	[SDK_DOMAIN_RUNTIME] = ALL_RUNTIME_BITS,
	[SDK_DOMAIN_RETIREMENT] = ALL_RUNTIME_BITS,
	[SDK_DOMAIN_CUDA_RUNTIME] = CUDA_RUNTIME_BIT,
	[SDK_DOMAIN_CUDA_DRIVER] = CUDA_RUNTIME_BIT,
	[SDK_DOMAIN_OPENCL] = OPENCL_RUNTIME_BIT,
};

static rocprofiler_status_t find_kind_support(enum sdk_domain domain, bool is_kind,
					      rocprofiler_agent_id_t agent,
					      kymo_kind_support_t *answer)
{
	uint32_t runtimes = 0, count;

	if (!answer)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	count = sdk_agents_get_count_for_tool();
	*answer = KYMO_KIND_SILENT;
	if (!is_kind)
		return ROCPROFILER_STATUS_ERROR_KIND_NOT_FOUND;
	if (agent.handle && !sdk_agent_find_by_id(agent.handle))
		return ROCPROFILER_STATUS_ERROR_AGENT_NOT_FOUND;
	for (uint32_t i = 0; i < count; i++) {
		if (!agent.handle || sdk_agent_get_by_number(i)->id.handle == agent.handle)
			runtimes |= sdk_agent_get_runtime_bits(i);
	}
	if (runtime_bits_by_domain[domain] & runtimes)
		*answer = KYMO_KIND_TOLD;
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t kymo_callback_kind_support(rocprofiler_callback_tracing_kind_t kind,
							   rocprofiler_agent_id_t agent,
							   kymo_kind_support_t *answer)
{
	return find_kind_support(sdk_callback_kind_to_domain((int)kind),
				 kind && sdk_find_callback_kind_by_number((int)kind), agent,
				 answer);
}

SDK_EXPORT rocprofiler_status_t kymo_buffer_kind_support(rocprofiler_buffer_tracing_kind_t kind,
							 rocprofiler_agent_id_t agent,
							 kymo_kind_support_t *answer)
{
	bool is_ext;

	return find_kind_support(sdk_buffer_kind_to_domain((int)kind, &is_ext),
				 kind && sdk_find_buffer_kind_by_number((int)kind), agent, answer);
}

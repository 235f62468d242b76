/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Which kinds are ever told (kymo/tools.h). Every kind can be configured; a tool that wants to say
 * what its results lack asks here.
 */
#include <kymo/tools.h>

#include "libkymo-sdk/agents.h"
#include "libkymo-sdk/domains.h"
#include "libkymo-sdk/names.h"
#include "libkymo-sdk/start.h"
#include "libkymo-sdk/state.h"

#define HOST   (1u << DEVICE_RUNTIME_HOST)
#define OPENCL (1u << DEVICE_RUNTIME_OPENCL)
#define CUDA   (1u << DEVICE_RUNTIME_CUDA)
#define HSA    (1u << DEVICE_RUNTIME_HSA)
#define ALL    (HOST | OPENCL | CUDA | HSA)

/* What is told of the host is told wherever the program runs: markers do not belong to a device. */
static const uint8_t told_by[SDK_DOMAIN_COUNT] = {
	[SDK_DOMAIN_HSA_CORE] = HSA,
	[SDK_DOMAIN_HSA_AMD_EXT] = HSA,
	[SDK_DOMAIN_HSA_IMAGE_EXT] = HSA,
	[SDK_DOMAIN_HSA_FINALIZE_EXT] = HSA,
	[SDK_DOMAIN_HIP_RUNTIME] = CUDA | HSA,
	[SDK_DOMAIN_HIP_COMPILER] = HSA,
	[SDK_DOMAIN_RCCL] = HSA,
	[SDK_DOMAIN_ROCDECODE] = HSA,
	[SDK_DOMAIN_ROCJPEG] = HSA,
	[SDK_DOMAIN_MARKER_CORE] = ALL,
	[SDK_DOMAIN_MARKER_CONTROL] = ALL,
	[SDK_DOMAIN_MARKER_NAME] = ALL,
	[SDK_DOMAIN_MARKER_CORE_RANGE] = ALL,
	[SDK_DOMAIN_OMPT] = HOST,
	[SDK_DOMAIN_CODE_OBJECT] = OPENCL | CUDA,
	[SDK_DOMAIN_DISPATCH] = OPENCL | CUDA,
	[SDK_DOMAIN_COPY] = OPENCL | CUDA,
	[SDK_DOMAIN_ALLOCATION] = OPENCL | CUDA,
	[SDK_DOMAIN_RUNTIME] = ALL,
	[SDK_DOMAIN_RETIREMENT] = ALL,
	[SDK_DOMAIN_CUDA_RUNTIME] = CUDA,
	[SDK_DOMAIN_CUDA_DRIVER] = CUDA,
	[SDK_DOMAIN_OPENCL] = OPENCL,
};

static rocprofiler_status_t support(enum sdk_domain domain, bool is_kind,
				    rocprofiler_agent_id_t agent, kymo_kind_support_t *answer)
{
	uint32_t runtimes = 0, count;

	if (!answer)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	sdk_start();
	count = sdk_agent_count();
	*answer = KYMO_KIND_SILENT;
	if (!is_kind)
		return ROCPROFILER_STATUS_ERROR_KIND_NOT_FOUND;
	if (agent.handle && !sdk_agent_find(agent.handle))
		return ROCPROFILER_STATUS_ERROR_AGENT_NOT_FOUND;
	for (uint32_t i = 0; i < count; i++) {
		if (!agent.handle || sdk_agent_at(i)->id.handle == agent.handle)
			runtimes |= sdk_agent_runtimes(i);
	}
	if (told_by[domain] & runtimes)
		*answer = KYMO_KIND_TOLD;
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t kymo_callback_kind_support(rocprofiler_callback_tracing_kind_t kind,
							   rocprofiler_agent_id_t agent,
							   kymo_kind_support_t *answer)
{
	return support(sdk_domain_of_callback((int)kind), kind && sdk_callback_kind((int)kind),
		       agent, answer);
}

SDK_EXPORT rocprofiler_status_t kymo_buffer_kind_support(rocprofiler_buffer_tracing_kind_t kind,
							 rocprofiler_agent_id_t agent,
							 kymo_kind_support_t *answer)
{
	bool is_ext;

	return support(sdk_domain_of_buffer((int)kind, &is_ext), kind && sdk_buffer_kind((int)kind),
		       agent, answer);
}

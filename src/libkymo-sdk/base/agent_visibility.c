/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See agent_visibility.h. ROCR_VISIBLE_DEVICES says what HSA sees, and in which order; of those HIP
 * sees what HIP_VISIBLE_DEVICES says (else CUDA_VISIBLE_DEVICES, else GPU_DEVICE_ORDINAL), which
 * counts in that order. Entries are numbers, or GPU- and the device's uuid in hexadecimal digits.
 */
#include "libkymo-sdk/base/agent_visibility.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void format_agent_uuid(const rocprofiler_agent_v0_t *agent, char text[48])
{
	size_t length = (size_t)sprintf(text, "GPU-");

	/* AMD's are eight bytes. */
	for (int i = 0; i < 8; i++)
		length += (size_t)sprintf(text + length, "%02x", agent->uuid.bytes[i]);
}

static bool list_entry_matches_agent(const char *entry, size_t length,
				     const rocprofiler_agent_v0_t *agent, uint32_t number)
{
	char text[48], *end;

	if (length > 4 && !strncasecmp(entry, "GPU-", 4)) {
		format_agent_uuid(agent, text);
		return strlen(text) == length && !strncasecmp(entry, text, length);
	}
	return length && strtoul(entry, &end, 10) == number && end == entry + length;
}

/* The device's place in the list, or -1. No list: its number. */
static int find_index_in_visible_list(const char *list, const rocprofiler_agent_v0_t *agent,
				      uint32_t number)
{
	if (!list)
		return (int)number;
	for (int place = 0;; place++) {
		size_t length = strcspn(list, ",");

		if (list_entry_matches_agent(list, length, agent, number))
			return place;
		if (!list[length])
			return -1;
		list += length + 1;
	}
}

static const char *read_first_hip_visibility_variable(void)
{
	static const char *const names[] = {"HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES",
					    "GPU_DEVICE_ORDINAL"};
	const char *list = NULL;

	for (int i = 0; i < 3 && !list; i++)
		list = secure_getenv(names[i]);
	return list;
}

void sdk_agent_set_visibility_from_env(rocprofiler_agent_v0_t *agent, uint32_t gpu)
{
	int place = find_index_in_visible_list(secure_getenv("ROCR_VISIBLE_DEVICES"), agent, gpu);
	bool hip = place >= 0 && find_index_in_visible_list(read_first_hip_visibility_variable(),
							    agent, (uint32_t)place) >= 0;

	agent->runtime_visibility.hsa = place >= 0;
	agent->runtime_visibility.hip = hip;
	agent->runtime_visibility.rccl = hip;
	agent->runtime_visibility.rocdecode = hip;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See counting.h.
 */
#include "device/counting.h"

static const struct device_counting *counting_first;

const char *counting_status_text(enum counting_status status)
{
	static const char *const texts[] = {
		[COUNTING_OK] = "counted",
		[COUNTING_NO_SUCH_EVENT] = "the agent has no such event",
		[COUNTING_DOES_NOT_FIT] = "does not fit in one pass",
		[COUNTING_NOT_PERMITTED] = "not permitted",
		[COUNTING_BUSY] = "somebody else is counting",
		[COUNTING_NOT_SUPPORTED] = "not supported",
		[COUNTING_NOT_READY] = "the runtime is not up yet",
		[COUNTING_NO_MEMORY] = "no memory",
		[COUNTING_FAILED] = "failed",
		[COUNTING_FILTERED] = "excluded by the filter",
		[COUNTING_RELEASED] = "kernels were waiting for each other",
		[COUNTING_NOT_FINISHED] = "still running at the end",
	};

	return (unsigned)status < sizeof(texts) / sizeof(texts[0]) ? texts[status] : "unknown";
}

static bool counting_ignore(void *context, const struct counting_event *event)
{
	(void)context;
	(void)event;
	return false;
}

static bool counting_is_of(const struct device_counting *counting, device_handle agent)
{
	return counting != NULL &&
	       counting->events(agent, counting_ignore, NULL) != COUNTING_NO_SUCH_EVENT;
}

const struct device_counting *device_counting_of(device_handle agent)
{
	const struct device_backend *const *backends;
	size_t count = device_backends(&backends);

	if (counting_is_of(counting_first, agent))
		return counting_first;
	for (size_t i = 0; i < count; i++) {
		if (counting_is_of(backends[i]->counting, agent))
			return backends[i]->counting;
	}
	return NULL;
}

void device_counting_use(const struct device_counting *first)
{
	counting_first = first;
}

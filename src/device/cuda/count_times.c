/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * When a counted kernel ran. CUPTI's record of it would say so, but where it makes records, kernels
 * run instructions of CUPTI's own, which would be counted. So there is none for this launch, and
 * its times are those of two events of the driver's around it, within the range. A graph keeps its
 * record, which takes no instructions.
 */
#include "device/cuda/count_session.h"

#define ATTRIBUTE_SHARED_BYTES 1
#define ATTRIBUTE_LOCAL_BYTES  3
#define WITH_TIMES             0u

static uint64_t queue_of(const struct cuda_going *going)
{
	uint32_t context = 0, stream = 0;

	if (cupti.GetContextId == NULL || cupti.GetStreamIdEx == NULL ||
	    cupti.GetContextId(going->context, &context) != CUPTI_SUCCESS ||
	    cupti.GetStreamIdEx(going->context, going->stream, going->is_of_thread, &stream) !=
		    CUPTI_SUCCESS)
		return 0;
	return cuda_queue(context, stream);
}

static uint32_t attribute(int attribute, const void *function)
{
	int value = 0;

	return session_driver.FuncGetAttribute(&value, attribute, function) == 0 && value > 0
		       ? (uint32_t)value
		       : 0;
}

static void describe(struct cuda_counted *counted, const struct cuda_going *going,
		     const struct device_kernel *kernel)
{
	counted->ran = *kernel;
	counted->ran.queue = queue_of(going);
	counted->ran.group_bytes += attribute(ATTRIBUTE_SHARED_BYTES, going->function);
	counted->ran.private_bytes = attribute(ATTRIBUTE_LOCAL_BYTES, going->function);
}

static bool make(void **event)
{
	if (*event == NULL && session_driver.EventCreate(event, WITH_TIMES) != 0)
		*event = NULL;
	return *event != NULL;
}

static bool record(void **event, void *stream)
{
	return make(event) && session_driver.EventRecord(*event, stream) == 0;
}

/* Asking for attributes has the driver load a function that it has not loaded yet. */
bool times_prepare(struct cuda_session *session, struct cuda_counted *counted,
		   const struct cuda_going *going, const struct device_kernel *kernel)
{
	if (!make(&session->before) || !make(&session->behind) ||
	    !cuda_kernel_records(going->context, false))
		return false;
	atomic_store(&session->is_switched, true);
	if (going->function == NULL)
		return false;
	describe(counted, going, kernel);
	return true;
}

bool times_before(struct cuda_session *session, void *stream)
{
	if (record(&session->before, stream)) {
		session->recorded = session->launched = device_sink()->now();
		return true;
	}
	cuda_kernel_records(atomic_load(&session->context), true);
	return false;
}

void times_returned(struct cuda_session *session)
{
	session->launched = device_sink()->now();
}

void times_launched(const struct cuda_session *session)
{
	if (atomic_load(&session->is_switched))
		cuda_kernel_records(atomic_load(&session->context), true);
}

bool times_behind(struct cuda_session *session, void *stream)
{
	return record(&session->behind, stream);
}

static uint64_t between(void *before, void *behind)
{
	float milliseconds = 0;

	return session_driver.EventElapsedTime(&milliseconds, before, behind) == 0 &&
			       milliseconds > 0
		       ? (uint64_t)((double)milliseconds * 1e6)
		       : 0;
}

/* Nothing else runs, so the device does each of the two as soon as it has been given to the driver:
 * the first event is before the kernel by as much as the launch took. */
void times_of(const struct cuda_session *session, struct cuda_counted *counted, uint64_t end)
{
	uint64_t took = between(session->before, session->behind);
	uint64_t launch = session->launched - session->recorded;

	if (took > launch)
		took -= launch;
	cuda_counted_ran(cuda_counted_handle(counted), &counted->ran, end - took, end);
}

void times_give_up(struct cuda_session *session, struct cuda_counted *counted)
{
	counted->before = session->before;
	counted->behind = session->behind;
	session->before = session->behind = NULL;
	counted->next = session->given_up;
	session->given_up = counted;
}

void times_of_given_up(struct cuda_session *session)
{
	struct cuda_counted *counted, *next;

	for (counted = session->given_up; counted != NULL; counted = next) {
		next = counted->next;
		counted->end = 0; /* not known */
		if (counted->behind != NULL && session_driver.EventQuery(counted->behind) == 0)
			counted->end = counted->start + between(counted->before, counted->behind);
		session_driver.EventDestroy_v2(counted->before);
		session_driver.EventDestroy_v2(counted->behind);
		counted->next = session->ended;
		session->ended = counted;
	}
	session->given_up = NULL;
}

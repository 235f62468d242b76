/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Version, time and thread (rocprofiler-sdk/rocprofiler.h), and threads of ours
 * (internal_threading.h).
 */
#include "core/ticks.h"
#include "libkymo-sdk/emit.h"
#include "libkymo-sdk/keep_loaded.h"
#include "libkymo-sdk/state.h"
#include "libkymo-sdk/thread.h"

#define GENERAL_LISTENERS_MAX 64

struct thread_listener {
	rocprofiler_internal_thread_library_cb_t before, after;
	int libraries;
	void *data;
};

static struct thread_listener listeners[GENERAL_LISTENERS_MAX];
static _Atomic unsigned listener_count;

SDK_EXPORT rocprofiler_status_t rocprofiler_get_version(uint32_t *major, uint32_t *minor,
							uint32_t *patch)
{
	if (major)
		*major = ROCPROFILER_VERSION_MAJOR;
	if (minor)
		*minor = ROCPROFILER_VERSION_MINOR;
	if (patch)
		*patch = ROCPROFILER_VERSION_PATCH;
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_get_version_triplet(rocprofiler_version_triplet_t *info)
{
	if (!info)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	return rocprofiler_get_version(&info->major, &info->minor, &info->patch);
}

SDK_EXPORT rocprofiler_status_t rocprofiler_get_timestamp(rocprofiler_timestamp_t *timestamp)
{
	if (!timestamp)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	*timestamp = sdk_now();
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_get_thread_id(rocprofiler_thread_id_t *thread_id)
{
	const struct sdk_thread *thread = sdk_thread_current;

	if (!thread_id)
		return ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT;
	*thread_id = thread ? thread->tid : (uint64_t)sys_call0(SYS_gettid);
	return ROCPROFILER_STATUS_SUCCESS;
}

/* ---- threads of ours ---- */

SDK_EXPORT rocprofiler_status_t rocprofiler_at_internal_thread_create(
	rocprofiler_internal_thread_library_cb_t precreate,
	rocprofiler_internal_thread_library_cb_t postcreate, int libs, void *data)
{
	unsigned number;

	sdk_keep_loaded((void (*)(void))precreate);
	sdk_keep_loaded((void (*)(void))postcreate);
	sdk_lock();
	number = atomic_load(&listener_count);
	if (number < GENERAL_LISTENERS_MAX) {
		listeners[number] =
			(struct thread_listener){precreate, postcreate, libs ? libs : ~0, data};
		atomic_store(&listener_count, number + 1);
	}
	sdk_unlock();
	return number < GENERAL_LISTENERS_MAX ? ROCPROFILER_STATUS_SUCCESS
					      : ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
}

void sdk_thread_creating(rocprofiler_runtime_library_t library)
{
	for (unsigned i = 0; i < atomic_load(&listener_count); i++) {
		if ((listeners[i].libraries & (int)library) && listeners[i].before)
			listeners[i].before(library, listeners[i].data);
	}
}

void sdk_thread_created(rocprofiler_runtime_library_t library)
{
	for (unsigned i = 0; i < atomic_load(&listener_count); i++) {
		if ((listeners[i].libraries & (int)library) && listeners[i].after)
			listeners[i].after(library, listeners[i].data);
	}
}

void sdk_thread_is_own(void)
{
	struct sdk_thread *thread = sdk_thread_self();

	if (thread)
		thread->is_own = true;
}

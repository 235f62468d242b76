/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Version, time and thread (rocprofiler-sdk/rocprofiler.h), and threads of ours
 * (internal_threading.h).
 */
#include "core/base/ticks.h"
#include "libkymo-sdk/base/keep_loaded.h"
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/base/thread.h"
#include "libkymo-sdk/emit.h"

#define THREAD_CREATION_LISTENERS_MAX 64

struct thread_creation_listener {
	rocprofiler_internal_thread_library_cb_t before, after;
	int library_bits;
	void *data;
};

static struct thread_creation_listener thread_creation_listeners[THREAD_CREATION_LISTENERS_MAX];
static _Atomic unsigned thread_creation_listener_count;

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
	*timestamp = sdk_clock_read_now_ns();
	return ROCPROFILER_STATUS_SUCCESS;
}

SDK_EXPORT rocprofiler_status_t rocprofiler_get_thread_id(rocprofiler_thread_id_t *thread_id)
{
	const struct sdk_thread_state *thread = sdk_current_thread_state;

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

	sdk_keep_library_of_function_loaded((void (*)(void))precreate);
	sdk_keep_library_of_function_loaded((void (*)(void))postcreate);
	sdk_acquire_global_lock();
	number = atomic_load(&thread_creation_listener_count);
	if (number < THREAD_CREATION_LISTENERS_MAX) {
		thread_creation_listeners[number] = (struct thread_creation_listener){
			precreate, postcreate, libs ? libs : ~0, data};
		atomic_store(&thread_creation_listener_count, number + 1);
	}
	sdk_release_global_lock();
	return number < THREAD_CREATION_LISTENERS_MAX ? ROCPROFILER_STATUS_SUCCESS
						      : ROCPROFILER_STATUS_ERROR_OUT_OF_RESOURCES;
}

void sdk_thread_notify_creating(rocprofiler_runtime_library_t library)
{
	for (unsigned i = 0; i < atomic_load(&thread_creation_listener_count); i++) {
		if ((thread_creation_listeners[i].library_bits & (int)library) &&
		    thread_creation_listeners[i].before)
			thread_creation_listeners[i].before(library,
							    thread_creation_listeners[i].data);
	}
}

void sdk_thread_notify_created(rocprofiler_runtime_library_t library)
{
	for (unsigned i = 0; i < atomic_load(&thread_creation_listener_count); i++) {
		if ((thread_creation_listeners[i].library_bits & (int)library) &&
		    thread_creation_listeners[i].after)
			thread_creation_listeners[i].after(library,
							   thread_creation_listeners[i].data);
	}
}

void sdk_thread_exclude_own_from_reports(void)
{
	struct sdk_thread_state *thread = sdk_thread_get_or_create_own_state();

	if (thread)
		thread->is_profiler_thread = true;
}

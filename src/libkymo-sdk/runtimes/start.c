/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See start.h.
 */
#include "libkymo-sdk/runtimes/start.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <strings.h>

#include "device/device.h"
#include "device/registry/devices.h"
#include "libkymo-sdk/base/barrier.h"
#include "libkymo-sdk/base/clock.h"
#include "libkymo-sdk/base/state.h"
#include "libkymo-sdk/base/thread.h"
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/callback_thread.h"
#include "libkymo-sdk/counters/counters.h"
#include "libkymo-sdk/external.h"
#include "libkymo-sdk/fork_gate.h"
#include "libkymo-sdk/runtimes/clients.h"
#include "libkymo-sdk/runtimes/device_sink.h"
#include "libkymo-sdk/runtimes/program_end.h"

static pthread_once_t library_initialization_once = PTHREAD_ONCE_INIT;
static pthread_once_t finalizer_registration_once = PTHREAD_ONCE_INIT;

/* Nothing of ours is half done in the child. */
static void acquire_locks_before_fork(void)
{
	sdk_fork_gate_close();
	sdk_counters_acquire_lock();
	sdk_acquire_global_lock();
}

static void release_locks_in_forking_parent(void)
{
	sdk_release_global_lock();
	sdk_counters_release_lock();
	sdk_fork_gate_open_in_parent();
}

/* Contexts go on as they are; records that the parent has not handed over yet are the parent's;
 * callback threads are made when a buffer needs one. */
static void reset_library_in_forked_child(void)
{
	sdk_release_global_lock();
	sdk_counters_reset_lock_in_child();
	sdk_abandon_clients_of_contexts(sdk_fork_gate_open_in_child());
	sdk_state_reset_after_fork();
	sdk_clock_reset_after_fork();
	sdk_threads_reset_after_fork();
	sdk_external_ids_reset_after_fork();
	sdk_callback_threads_reset_after_fork();
	sdk_buffers_reset_after_fork();
	sdk_work_reset_after_fork();
	sdk_backends_reset_after_fork();
}

static void initialize_library(void)
{
	sdk_memory_barrier_init();
	sdk_counting_register_callbacks();
	sdk_clock_init();
	pthread_atfork(acquire_locks_before_fork, release_locks_in_forking_parent,
		       reset_library_in_forked_child);
	sdk_backends_connect();
}

void sdk_initialize_library_once(void)
{
	pthread_once(&library_initialization_once, initialize_library);
}

static void finalize_at_exit(void)
{
	device_set_process_ending();
	sdk_finalize_all_clients();
}

static void register_finalizers_of_process(void)
{
	(void)at_quick_exit(finalize_at_exit);
	sdk_call_before_libraries_end(finalize_at_exit);
}

/* Tools that come while libraries are being loaded end before libraries do; those that come later,
 * whose static objects are destroyed by what was registered before this, end before those. */
void sdk_register_finalizers(void)
{
	pthread_once(&finalizer_registration_once, register_finalizers_of_process);
	atexit(finalize_at_exit);
}

static bool is_environment_variable_true(const char *name)
{
	const char *value = secure_getenv(name);

	return value && (atoi(value) > 0 || !strcasecmp(value, "on") ||
			 !strcasecmp(value, "true") || !strcasecmp(value, "yes"));
}

/* Tools are not looked for yet: their own static objects have not been made. Who preloads the
 * library for a program that has no runtime to announce itself says so. */
__attribute__((constructor)) static void initialize_at_load(void)
{
	sdk_initialize_library_once();
	if (is_environment_variable_true("ROCPROFILER_LIBRARY_CTOR"))
		sdk_register_tools_once(NULL);
}

__attribute__((destructor)) static void finalize_at_unload(void)
{
	finalize_at_exit();
}

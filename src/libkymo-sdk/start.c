/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See start.h.
 */
#include "libkymo-sdk/start.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <strings.h>

#include "device/device.h"
#include "libkymo-sdk/barrier.h"
#include "libkymo-sdk/buffer.h"
#include "libkymo-sdk/callback_thread.h"
#include "libkymo-sdk/clients.h"
#include "libkymo-sdk/clock.h"
#include "libkymo-sdk/counters/counters.h"
#include "libkymo-sdk/device_sink.h"
#include "libkymo-sdk/external.h"
#include "libkymo-sdk/state.h"
#include "libkymo-sdk/thread.h"

static pthread_once_t start_once = PTHREAD_ONCE_INIT;
static pthread_once_t start_finalizers_once = PTHREAD_ONCE_INIT;

/* Nothing of ours is half done in the child. */
static void start_before_fork(void)
{
	sdk_counters_lock();
	sdk_lock();
}

static void start_in_parent(void)
{
	sdk_unlock();
	sdk_counters_unlock();
}

/* Contexts go on as they are; records that the parent has not handed over yet are the parent's;
 * callback threads are made when a buffer needs one. */
static void start_in_child(void)
{
	sdk_unlock();
	sdk_counters_unlock_in_child();
	sdk_state_forked();
	sdk_clock_forked();
	sdk_thread_forked();
	sdk_external_forked();
	sdk_callback_thread_forked();
	sdk_buffer_forked();
	sdk_work_forked();
	sdk_device_forked();
}

static void start_run(void)
{
	sdk_barrier_start();
	sdk_clock_start();
	pthread_atfork(start_before_fork, start_in_parent, start_in_child);
	sdk_device_start();
}

void sdk_start(void)
{
	pthread_once(&start_once, start_run);
}

static void start_finalize_at_exit(void)
{
	device_process_ends();
	sdk_finalize();
}

/* Registered last thing, so that it runs before what the program and its runtimes have registered
 * by then. */
static void start_register_finalizers(void)
{
	atexit(start_finalize_at_exit);
	(void)at_quick_exit(start_finalize_at_exit);
}

void sdk_start_finalizers(void)
{
	pthread_once(&start_finalizers_once, start_register_finalizers);
}

void sdk_start_finalizers_again(void)
{
	atexit(start_finalize_at_exit);
}

static bool start_is_true(const char *name)
{
	const char *value = getenv(name);

	return value && (atoi(value) > 0 || !strcasecmp(value, "on") ||
			 !strcasecmp(value, "true") || !strcasecmp(value, "yes"));
}

/* Tools are not looked for yet: their own static objects have not been made. Who preloads the
 * library for a program that has no runtime to announce itself says so. */
__attribute__((constructor)) static void start_load(void)
{
	sdk_start();
	if (start_is_true("ROCPROFILER_LIBRARY_CTOR"))
		sdk_register(NULL);
}

__attribute__((destructor)) static void start_unload(void)
{
	start_finalize_at_exit();
}

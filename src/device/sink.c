/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The one sink that all backends report to, and the state that goes with it.
 */
#include <stdatomic.h>

#include "common/hot.h"
#include "device/device.h"

static _Atomic(const struct device_sink *) current_sink;
static void (*_Atomic runtime_found_callback)(enum device_runtime_kind);
static _Atomic bool process_ending_flag;

void device_set_sink(const struct device_sink *sink,
		     void (*runtime_found)(enum device_runtime_kind))
{
	atomic_store(&runtime_found_callback, runtime_found);
	atomic_store(&current_sink, sink);
}

KYMO_HOT const struct device_sink *device_get_sink(void)
{
	return atomic_load_explicit(&current_sink, memory_order_acquire);
}

void device_report_runtime_found(enum device_runtime_kind runtime)
{
	void (*call)(enum device_runtime_kind) = atomic_load(&runtime_found_callback);

	if (call != NULL)
		call(runtime);
}

void device_set_process_ending(void)
{
	atomic_store(&process_ending_flag, true);
}

bool device_process_is_ending(void)
{
	return atomic_load(&process_ending_flag);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The table of functions for libkymo-dl; see api.h. It is there as soon as the library is mapped:
 * before the runtime starts, and where it never does, everything in it does nothing.
 */
#include "libkymo/api.h"

#include <errno.h>

#include "causal/causal.h"
#include "causal/coz.h"
#include "core/base/ticks.h"
#include "core/control.h"
#include "core/runtime.h"
#include "instrument/instrument.h"
#include "launches/launches.h"
#include "libkymo/dormant.h"
#include "libkymo/real.h"

/* A flush waits for the disk at most this long. */
#define FLUSH_TIMEOUT_NS 2000000000ull

/* The program calls kymo: it wants more than an announcement, and so do its children. */
static void use(void)
{
	dormant_wake();
	dormant_forbid_for_children();
}

static int api_start_trace(void)
{
	use();
	if (!runtime_is_active())
		return -ENOTCONN;
	control_start_collection(&kymo_runtime.control);
	return 0;
}

static int api_stop_trace(void)
{
	use();
	if (!runtime_is_active())
		return -ENOTCONN;
	control_stop_collection(&kymo_runtime.control);
	return 0;
}

static int api_start_thread_trace(void)
{
	use();
	if (!runtime_is_active())
		return -ENOTCONN;
	regions_start_in_this_thread();
	return 0;
}

static int api_stop_thread_trace(void)
{
	use();
	if (!runtime_is_active())
		return -ENOTCONN;
	regions_stop_in_this_thread();
	return 0;
}

static int api_flush(void)
{
	int error = errno;

	use();
	if (!runtime_is_active())
		return -ENOTCONN;
	background_request_flush_and_wait(&kymo_runtime.background, FLUSH_TIMEOUT_NS);
	errno = error;
	return 0;
}

static bool api_is_active(void)
{
	use();
	return runtime_is_active();
}

static const struct wrapper_options *api_get_wrapper_options(void)
{
	return &kymo_runtime.options.wrappers;
}

static uint64_t api_get_ticks_now(void)
{
	return ticks_now();
}

_Static_assert((int)SPOOL_PROGRESS_POINT == (int)CAUSAL_POINT_PROGRESS &&
		       (int)SPOOL_PROGRESS_BEGIN == (int)CAUSAL_POINT_BEGIN &&
		       (int)SPOOL_PROGRESS_END == (int)CAUSAL_POINT_END,
	       "one numbering");

static void api_record_progress_by_name(const char *name, enum spool_progress kind)
{
	use();
	if (causal_is_active())
		causal_record_visit_by_name(name, (enum causal_point_kind)kind, CAUSAL_ORIGIN_USER);
	region_write_progress(region_find_or_add_name(REGION_USER, name), kind);
}

static region_id api_find_or_add_named_region(enum region_category category, const char *name)
{
	use();
	return region_find_or_add_name(category, name);
}

static region_id api_find_or_add_region_in_category(const char *category, const char *name)
{
	use();
	return region_find_or_add_name_in(category, name);
}

static region_id api_find_or_add_function_region(enum region_category category, uint64_t address)
{
	use();
	return region_find_or_add_function(category, address);
}

static int api_begin_region_by_name(const char *category, const char *name)
{
	use();
	return region_begin_by_name(category, name);
}

/* A frame of its own: what the walk begins with is the caller's. */
__attribute__((noinline)) static uint32_t api_find_launch_path(void)
{
	const uint64_t *frame = __builtin_frame_address(0);
	struct unwind_start_registers caller = {
		.ip = frame[1], .sp = (uint64_t)(frame + 2), .bp = frame[0]};

	if (!runtime_is_active())
		use();
	return launch_find_path(&caller);
}

EXPORTED const struct runtime_api *kymo_runtime_api(void)
{
	static const struct runtime_api table = {
		.size = sizeof(table),
		.region_find_or_add_name = api_find_or_add_named_region,
		.region_find_or_add_name_in = api_find_or_add_region_in_category,
		.region_find_or_add_function = api_find_or_add_function_region,
		.region_begin = region_begin,
		.region_end = region_end,
		.region_begin_by_name = api_begin_region_by_name,
		.region_end_by_name = region_end_by_name,
		.region_values = region_values,
		.region_write_mark = region_write_mark,
		.region_write_counter = region_write_counter,
		.region_write_progress = region_write_progress,
		.region_category_is_recorded = region_category_is_recorded,
		.trace_start = api_start_trace,
		.trace_stop = api_stop_trace,
		.thread_trace_start = api_start_thread_trace,
		.thread_trace_stop = api_stop_thread_trace,
		.flush = api_flush,
		.active = api_is_active,
		.get_wrapper_options = api_get_wrapper_options,
		.region_write_whole_call = region_write_whole_call,
		.ticks = api_get_ticks_now,
		.rewritten_library_opened = instrument_start_for_opened_library,
		.region_write_progress_by_name = api_record_progress_by_name,
		.causal_find_or_add_counter = causal_coz_find_or_add_counter,
		.causal_before_block = causal_coz_before_blocking,
		.causal_after_block = causal_coz_after_blocking,
		.causal_pay_delay = causal_pay_delay,
		.find_launch_path = api_find_launch_path,
	};

	return &table;
}

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
#include "core/control.h"
#include "core/runtime.h"
#include "core/ticks.h"
#include "instrument/instrument.h"
#include "libkymo/real.h"

/* A flush waits for the disk at most this long. */
#define FLUSH_TIMEOUT_NS 2000000000ull

static int api_trace_start(void)
{
	if (!runtime_active())
		return -ENOTCONN;
	control_start();
	return 0;
}

static int api_trace_stop(void)
{
	if (!runtime_active())
		return -ENOTCONN;
	control_stop();
	return 0;
}

static int api_thread_trace_start(void)
{
	if (!runtime_active())
		return -ENOTCONN;
	regions_thread_start();
	return 0;
}

static int api_thread_trace_stop(void)
{
	if (!runtime_active())
		return -ENOTCONN;
	regions_thread_stop();
	return 0;
}

static int api_flush(void)
{
	int error = errno;

	if (!runtime_active())
		return -ENOTCONN;
	background_flush(&kymo_runtime.background, FLUSH_TIMEOUT_NS);
	errno = error;
	return 0;
}

static bool api_active(void)
{
	return runtime_active();
}

static const struct options_wrappers *api_wrapper_options(void)
{
	return &kymo_runtime.options.wrappers;
}

static uint64_t api_ticks(void)
{
	return ticks_now();
}

_Static_assert((int)SPOOL_PROGRESS_POINT == (int)CAUSAL_POINT_PROGRESS &&
		       (int)SPOOL_PROGRESS_BEGIN == (int)CAUSAL_POINT_BEGIN &&
		       (int)SPOOL_PROGRESS_END == (int)CAUSAL_POINT_END,
	       "one numbering");

static void api_progress_name(const char *name, enum spool_progress kind)
{
	if (causal_on())
		causal_visit_named(name, (enum causal_point_kind)kind, CAUSAL_ORIGIN_USER);
	region_progress(region_named(REGION_USER, name), kind);
}

EXPORTED const struct kymo_runtime_api *kymo_runtime_api(void)
{
	static const struct kymo_runtime_api table = {
		.size = sizeof(table),
		.region_named = region_named,
		.region_named_in = region_named_in,
		.region_function = region_function,
		.region_begin = region_begin,
		.region_end = region_end,
		.region_begin_name = region_begin_name,
		.region_end_name = region_end_name,
		.region_values = region_values,
		.region_mark = region_mark,
		.region_counter = region_counter,
		.region_progress = region_progress,
		.region_recording = region_recording,
		.trace_start = api_trace_start,
		.trace_stop = api_trace_stop,
		.thread_trace_start = api_thread_trace_start,
		.thread_trace_stop = api_thread_trace_stop,
		.flush = api_flush,
		.active = api_active,
		.wrapper_options = api_wrapper_options,
		.region_whole = region_whole,
		.ticks = api_ticks,
		.rewritten_opened = instrument_opened,
		.progress_name = api_progress_name,
		.causal_counter = causal_coz_counter,
		.causal_before_block = causal_coz_before_block,
		.causal_after_block = causal_coz_after_block,
		.causal_pay = causal_pay,
	};

	return &table;
}

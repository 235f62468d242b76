/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sleeps and clocks in causal profiling. Nobody of the session ends a sleep: what others were
 * delayed meanwhile is unapplied at its end. A program that sleeps until a time has a timetable: it
 * is put off by the pauses that the thread has made since it last read a clock, for whoever reads
 * the clock and then reckons has them in its times already. What a clock says is never changed.
 */
#include <sys/time.h>
#include <threads.h>
#include <unistd.h>

#include "core/base/ticks.h"
#include "wrappers/causal/paced.h"

#define NS_PER_S 1000000000

static bool clock_measures_real_time(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME ||
	       clock == CLOCK_TAI || clock == CLOCK_REALTIME_ALARM ||
	       clock == CLOCK_BOOTTIME_ALARM || clock == CLOCK_MONOTONIC_RAW;
}

/* A copy of what the original would not refuse. */
static bool copy_timespec_if_valid(const struct timespec *from, struct timespec *ret)
{
	return paced_copy_readable_memory(ret, from, sizeof(*ret)) && ret->tv_sec >= 0 &&
	       ret->tv_nsec >= 0 && ret->tv_nsec < NS_PER_S &&
	       ret->tv_sec <= INT64_MAX / NS_PER_S / 2;
}

static const struct timespec *add_ns_to_timespec(struct timespec *space, uint64_t late)
{
	uint64_t ns = (uint64_t)space->tv_nsec + late;

	space->tv_sec += (time_t)(ns / NS_PER_S);
	space->tv_nsec = (long)(ns % NS_PER_S);
	return space;
}

const struct timespec *paced_extend_deadline(clockid_t clock, const struct timespec *end,
					     struct timespec *space)
{
	uint64_t late =
		end && clock_measures_real_time(clock) ? causal_compute_deadline_extension_ns() : 0;

	return late && copy_timespec_if_valid(end, space) ? add_ns_to_timespec(space, late) : end;
}

static const struct timespec *extend_sleep_deadline(clockid_t clock, const struct timespec *end,
						    struct timespec *space)
{
	int64_t now;

	if (!end || !clock_measures_real_time(clock) || !copy_timespec_if_valid(end, space))
		return end;
	now = (int64_t)read_posix_clock_ns(clock);
	return add_ns_to_timespec(space,
				  causal_get_sleep_until_extension_ns(
					  clock, space->tv_sec * NS_PER_S + space->tv_nsec, now));
}

/* ---- sleeps ---- */

DEFINE_PACED_WAIT(unsigned, sleep, false, PARENTHESIZED_PARAMETERS(unsigned seconds),
		  PARENTHESIZED_ARGUMENTS(seconds))
DEFINE_PACED_WAIT(int, usleep, false, PARENTHESIZED_PARAMETERS(useconds_t time),
		  PARENTHESIZED_ARGUMENTS(time))
DEFINE_PACED_WAIT(int, nanosleep, false,
		  PARENTHESIZED_PARAMETERS(const struct timespec *time, struct timespec *left),
		  PARENTHESIZED_ARGUMENTS(time, left))
DEFINE_PACED_WAIT(int, thrd_sleep, false,
		  PARENTHESIZED_PARAMETERS(const struct timespec *time, struct timespec *left),
		  PARENTHESIZED_ARGUMENTS(time, left))

DEFINE_ORIGINAL_POINTER(clock_nanosleep);
static int paced_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
				 struct timespec *left)
{
	struct causal_wait_state wait;
	struct timespec space;
	int error;

	if (!causal_is_active())
		return ORIGINAL(clock_nanosleep)(clock, flags, time, left);
	causal_apply_delay_and_begin_wait(&wait);
	if (flags & TIMER_ABSTIME)
		time = extend_sleep_deadline(clock, time, &space);
	error = ORIGINAL(clock_nanosleep)(clock, flags, time, left);
	causal_end_wait_at_site(&wait, CAUSAL_WAKER_OUTSIDE, CAUSAL_GET_CALL_SITE);
	return error;
}

/* ---- clocks ---- */

#define DEFINE_PACED_CLOCK_READING(type, symbol, if_of_time, parameters, arguments)                \
	DEFINE_ORIGINAL_POINTER(symbol);                                                           \
	static type paced_##symbol parameters                                                      \
	{                                                                                          \
		if (causal_is_active() && (if_of_time))                                            \
			causal_record_clock_reading();                                             \
		return ORIGINAL(symbol) arguments;                                                 \
	}

DEFINE_PACED_CLOCK_READING(int, clock_gettime, clock_measures_real_time(clock),
			   PARENTHESIZED_PARAMETERS(clockid_t clock, struct timespec *ret),
			   PARENTHESIZED_ARGUMENTS(clock, ret))
DEFINE_PACED_CLOCK_READING(int, gettimeofday, true,
			   PARENTHESIZED_PARAMETERS(struct timeval *restrict ret,
						    void *restrict zone),
			   PARENTHESIZED_ARGUMENTS(ret, zone))
DEFINE_PACED_CLOCK_READING(time_t, time, true, PARENTHESIZED_PARAMETERS(time_t *ret),
			   PARENTHESIZED_ARGUMENTS(ret))
DEFINE_PACED_CLOCK_READING(int, timespec_get, true,
			   PARENTHESIZED_PARAMETERS(struct timespec *ret, int base),
			   PARENTHESIZED_ARGUMENTS(ret, base))

int causal_add_sleep_wrappers(void)
{
	static struct got_wrapper rows[] = {
		PACED_TABLE_ROW(sleep),           PACED_TABLE_ROW(usleep),
		PACED_TABLE_ROW(nanosleep),       PACED_TABLE_ROW(thrd_sleep),
		PACED_TABLE_ROW(clock_nanosleep), PACED_TABLE_ROW(clock_gettime),
		PACED_TABLE_ROW(gettimeofday),    PACED_TABLE_ROW(time),
		PACED_TABLE_ROW(timespec_get)};

	return got_add_wrappers(TABLE_ROWS_AND_COUNT(rows));
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Sleeps and clocks in causal profiling. Nobody of the session ends a sleep: what others were
 * delayed meanwhile is owed at its end. A program that sleeps until a time has a timetable: it is
 * put off by the pauses that the thread has made since it last read a clock, for whoever reads the
 * clock and then reckons has them in its times already. What a clock says is never changed.
 */
#include <sys/time.h>
#include <threads.h>
#include <unistd.h>

#include "core/ticks.h"
#include "wrappers/causal_paced.h"
#include "wrappers/wrappers.h"

#define NS_PER_S 1000000000

static bool is_clock_of_time(clockid_t clock)
{
	return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME ||
	       clock == CLOCK_TAI || clock == CLOCK_REALTIME_ALARM ||
	       clock == CLOCK_BOOTTIME_ALARM || clock == CLOCK_MONOTONIC_RAW;
}

/* A copy of what the original would not refuse. */
static bool read_time(const struct timespec *from, struct timespec *ret)
{
	return paced_read_memory(ret, from, sizeof(*ret)) && ret->tv_sec >= 0 &&
	       ret->tv_nsec >= 0 && ret->tv_nsec < NS_PER_S &&
	       ret->tv_sec <= INT64_MAX / NS_PER_S / 2;
}

static const struct timespec *put_off(struct timespec *space, uint64_t late)
{
	uint64_t ns = (uint64_t)space->tv_nsec + late;

	space->tv_sec += (time_t)(ns / NS_PER_S);
	space->tv_nsec = (long)(ns % NS_PER_S);
	return space;
}

const struct timespec *paced_deadline(clockid_t clock, const struct timespec *end,
				      struct timespec *space)
{
	uint64_t late = end && is_clock_of_time(clock) ? causal_lateness_ns() : 0;

	return late && read_time(end, space) ? put_off(space, late) : end;
}

static const struct timespec *sleep_deadline(clockid_t clock, const struct timespec *end,
					     struct timespec *space)
{
	int64_t now;

	if (!end || !is_clock_of_time(clock) || !read_time(end, space))
		return end;
	now = (int64_t)ticks_clock_ns(clock);
	return put_off(space,
		       causal_put_off_ns(clock, space->tv_sec * NS_PER_S + space->tv_nsec, now));
}

/* ---- sleeps ---- */

PACED_WAIT(unsigned, sleep, false, PARAMETERS(unsigned seconds), ARGUMENTS(seconds))
PACED_WAIT(int, usleep, false, PARAMETERS(useconds_t time), ARGUMENTS(time))
PACED_WAIT(int, nanosleep, false, PARAMETERS(const struct timespec *time, struct timespec *left),
	   ARGUMENTS(time, left))
PACED_WAIT(int, thrd_sleep, false, PARAMETERS(const struct timespec *time, struct timespec *left),
	   ARGUMENTS(time, left))

PACED_ORIGINAL(clock_nanosleep);
static int paced_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
				 struct timespec *left)
{
	struct causal_wait wait;
	struct timespec space;
	int error;

	if (!causal_on())
		return ORIGINAL(clock_nanosleep)(clock, flags, time, left);
	causal_before_wait(&wait);
	if (flags & TIMER_ABSTIME)
		time = sleep_deadline(clock, time, &space);
	error = ORIGINAL(clock_nanosleep)(clock, flags, time, left);
	causal_after_wait_at(&wait, CAUSAL_WAKER_OUTSIDE, CAUSAL_SITE);
	return error;
}

/* ---- clocks ---- */

#define PACED_CLOCK(type, symbol, if_of_time, parameters, arguments)                               \
	PACED_ORIGINAL(symbol);                                                                    \
	static type paced_##symbol parameters                                                      \
	{                                                                                          \
		if (causal_on() && (if_of_time))                                                   \
			causal_clock_was_read();                                                   \
		return ORIGINAL(symbol) arguments;                                                 \
	}

PACED_CLOCK(int, clock_gettime, is_clock_of_time(clock),
	    PARAMETERS(clockid_t clock, struct timespec *ret), ARGUMENTS(clock, ret))
PACED_CLOCK(int, gettimeofday, true, PARAMETERS(struct timeval *restrict ret, void *restrict zone),
	    ARGUMENTS(ret, zone))
PACED_CLOCK(time_t, time, true, PARAMETERS(time_t *ret), ARGUMENTS(ret))
PACED_CLOCK(int, timespec_get, true, PARAMETERS(struct timespec *ret, int base),
	    ARGUMENTS(ret, base))

int causal_sleeps_add(void)
{
	static struct got_wrapper rows[] = {PACED_ROW(sleep),           PACED_ROW(usleep),
					    PACED_ROW(nanosleep),       PACED_ROW(thrd_sleep),
					    PACED_ROW(clock_nanosleep), PACED_ROW(clock_gettime),
					    PACED_ROW(gettimeofday),    PACED_ROW(time),
					    PACED_ROW(timespec_get)};

	return got_add(TABLE(rows));
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See clock.h. One line, time = ns + (ticks - tick) * rate, published by a sequence lock; whoever
 * finds it older than its period draws the next one.
 */
#include "libkymo-sdk/base/clock.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "common/hot.h"
#include "core/base/ticks.h"

#define CLOCK_CALIBRATION_FIRST_PERIOD_NS 200000u    /* the rate is not known well: soon again */
#define CLOCK_CALIBRATION_LAST_PERIOD_NS  100000000u /* steered clocks change their rate slowly */
#define CLOCK_STEP_ERROR_THRESHOLD_NS     1000000    /* further off than this: the machine slept */

struct clock_conversion_line {
	_Atomic uint64_t base_ticks, base_ns;
	_Atomic uint64_t
		ns_per_tick_fixed_point; /* ns per tick, 32 bits behind the point; 0: no line yet */
	_Atomic uint64_t period_ticks;   /* ticks until the next is due */
};

/* Two lines: one is in use, the other is where the next one is drawn. */
static struct clock_conversion_line clock_conversion_lines[2];
static _Atomic uint32_t clock_conversion_line_sequence; /* of the line in use */
static atomic_flag clock_conversion_line_update_lock = ATOMIC_FLAG_INIT;
/* The last measurement; the drawer's. */
static uint64_t last_clock_measurement_tick, last_clock_measurement_ns, clock_calibration_period_ns;

static bool clock_uses_tsc_flag;

static uint64_t clock_read_boottime_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_BOOTTIME, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Both clocks at one moment: the closest of a few tries, as an interrupt may come between. */
static void clock_measure_tick_and_ns(uint64_t *tick, uint64_t *ns)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 4; i++) {
		uint64_t before = __rdtsc(), real = clock_read_boottime_ns(), after = __rdtsc();

		if (after - before < best) {
			best = after - before;
			*tick = before + (after - before) / 2;
			*ns = real;
		}
	}
}

static bool is_kernel_clock_source_tsc(void)
{
	char name[16] = "";
	int file = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
			O_RDONLY | O_CLOEXEC);
	ssize_t length = file < 0 ? -1 : read(file, name, sizeof(name) - 1);

	if (file >= 0)
		close(file);
	return length >= 3 && !memcmp(name, "tsc", 3) && (name[3] == '\n' || !name[3]);
}

void sdk_clock_init(void)
{
	ticks_init_and_get_hz();
	if (kymo_ticks_are_ns || !is_kernel_clock_source_tsc())
		return;
	clock_measure_tick_and_ns(&last_clock_measurement_tick, &last_clock_measurement_ns);
	clock_calibration_period_ns = CLOCK_CALIBRATION_FIRST_PERIOD_NS;
	clock_uses_tsc_flag = true;
}

#define LOAD_CONVERSION_LINE_MEMBER(line, member)                                                  \
	atomic_load_explicit(&(line)->member, memory_order_relaxed)
#define STORE_CONVERSION_LINE_MEMBER(line, member, value)                                          \
	atomic_store_explicit(&(line)->member, value, memory_order_relaxed)

static uint64_t convert_tick_to_ns_by_line(uint64_t tick, uint64_t begin, uint64_t ns,
					   uint64_t rate)
{
	uint64_t passed =
		tick > begin ? tick - begin : 0; /* the TSC may be read ahead of the line */

	return ns + (uint64_t)((unsigned __int128)passed * rate >> 32);
}

/* By the one thread that holds clock_conversion_line_update_lock. false: too early to tell the
 * rate. */
static bool clock_update_conversion_line(uint64_t *time)
{
	uint32_t sequence =
		atomic_load_explicit(&clock_conversion_line_sequence, memory_order_relaxed);
	struct clock_conversion_line *old = &clock_conversion_lines[sequence & 1],
				     *line = &clock_conversion_lines[~sequence & 1];
	uint64_t tick = 0, real = 0, rate, ns;
	bool first = !LOAD_CONVERSION_LINE_MEMBER(old, ns_per_tick_fixed_point), idle;
	int64_t error;

	clock_measure_tick_and_ns(&tick, &real);
	if (real < last_clock_measurement_ns + CLOCK_CALIBRATION_FIRST_PERIOD_NS ||
	    tick <= last_clock_measurement_tick)
		return false;
	rate = (uint64_t)(((unsigned __int128)(real - last_clock_measurement_ns) << 32) /
			  (tick - last_clock_measurement_tick));
	ns = first ? real
		   : convert_tick_to_ns_by_line(
			     tick, LOAD_CONVERSION_LINE_MEMBER(old, base_ticks),
			     LOAD_CONVERSION_LINE_MEMBER(old, base_ns),
			     LOAD_CONVERSION_LINE_MEMBER(old, ns_per_tick_fixed_point));
	error = (int64_t)(real - ns);
	/* Where nobody asked for long, nobody sees a small step. */
	idle = !first && tick - LOAD_CONVERSION_LINE_MEMBER(old, base_ticks) >
				 2 * LOAD_CONVERSION_LINE_MEMBER(old, period_ticks);
	if (first || idle || error > CLOCK_STEP_ERROR_THRESHOLD_NS ||
	    error < -CLOCK_STEP_ERROR_THRESHOLD_NS) {
		ns = real;
		error = 0;
	}
	if (clock_calibration_period_ns < CLOCK_CALIBRATION_LAST_PERIOD_NS)
		clock_calibration_period_ns *= 2;
	last_clock_measurement_tick = tick;
	last_clock_measurement_ns = real;
	STORE_CONVERSION_LINE_MEMBER(line, base_ticks, tick);
	STORE_CONVERSION_LINE_MEMBER(line, base_ns, ns);
	STORE_CONVERSION_LINE_MEMBER(
		line, ns_per_tick_fixed_point,
		rate + (uint64_t)((int64_t)rate / (int64_t)clock_calibration_period_ns * error));
	STORE_CONVERSION_LINE_MEMBER(
		line, period_ticks,
		(uint64_t)(((unsigned __int128)clock_calibration_period_ns << 32) / rate));
	atomic_store_explicit(&clock_conversion_line_sequence, sequence + 1, memory_order_release);
	*time = ns;
	return true;
}

/* The line is out of date. Another thread may be about to draw the next one: the old one will do
 * that long, once there is one. */
static uint64_t clock_renew_conversion_line_and_read_ns(uint64_t from_old)
{
	uint64_t time = from_old;

	if (!atomic_flag_test_and_set_explicit(&clock_conversion_line_update_lock,
					       memory_order_acquire)) {
		if (!clock_update_conversion_line(&time) && !time)
			time = clock_read_boottime_ns();
		atomic_flag_clear_explicit(&clock_conversion_line_update_lock,
					   memory_order_release);
	}
	return time ? time : clock_read_boottime_ns();
}

KYMO_HOT uint64_t sdk_clock_read_now_ns(void)
{
	uint64_t now, begin, ns, rate, period;
	const struct clock_conversion_line *line;
	uint32_t sequence;

	if (__builtin_expect(!clock_uses_tsc_flag, 0))
		return clock_read_boottime_ns();
	do {
		sequence =
			atomic_load_explicit(&clock_conversion_line_sequence, memory_order_acquire);
		line = &clock_conversion_lines[sequence & 1];
		begin = LOAD_CONVERSION_LINE_MEMBER(line, base_ticks);
		ns = LOAD_CONVERSION_LINE_MEMBER(line, base_ns);
		rate = LOAD_CONVERSION_LINE_MEMBER(line, ns_per_tick_fixed_point);
		period = LOAD_CONVERSION_LINE_MEMBER(line, period_ticks);
		now = __rdtsc();
		atomic_thread_fence(memory_order_acquire);
	} while (__builtin_expect(sequence != atomic_load_explicit(&clock_conversion_line_sequence,
								   memory_order_relaxed),
				  0));
	if (__builtin_expect(now > begin && now - begin > period, 0))
		return clock_renew_conversion_line_and_read_ns(
			rate ? convert_tick_to_ns_by_line(now, begin, ns, rate) : 0);
	return convert_tick_to_ns_by_line(now, begin, ns, rate);
}

/* Whoever was drawing is not in the child. */
void sdk_clock_reset_after_fork(void)
{
	atomic_flag_clear_explicit(&clock_conversion_line_update_lock, memory_order_release);
}

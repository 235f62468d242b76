/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See clock.h. One line, time = ns + (ticks - tick) * rate, published by a sequence lock; whoever
 * finds it older than its period draws the next one.
 */
#include "libkymo-sdk/clock.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#include "common/hot.h"
#include "core/ticks.h"
#include "libkymo-sdk/emit.h"

#define CLOCK_FIRST_PERIOD_NS 200000u    /* the rate is not known well: soon again */
#define CLOCK_LAST_PERIOD_NS  100000000u /* steered clocks change their rate slowly */
#define CLOCK_STEP_NS         1000000    /* further off than this: the machine slept */

struct clock_line {
	_Atomic uint64_t tick, ns;
	_Atomic uint64_t rate;   /* ns per tick, 32 bits behind the point; 0: no line yet */
	_Atomic uint64_t period; /* ticks until the next is due */
};

/* Two lines: one is in use, the other is where the next one is drawn. */
static struct clock_line clock_lines[2];
static _Atomic uint32_t clock_sequence; /* of the line in use */
static atomic_flag clock_drawing = ATOMIC_FLAG_INIT;
/* The last measurement; the drawer's. */
static uint64_t clock_real_tick, clock_real_ns, clock_period_ns;

static bool clock_is_tsc;

static uint64_t clock_real(void)
{
	struct timespec time;

	clock_gettime(CLOCK_BOOTTIME, &time);
	return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Both clocks at one moment: the closest of a few tries, as an interrupt may come between. */
static void clock_measure(uint64_t *tick, uint64_t *ns)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 4; i++) {
		uint64_t before = __rdtsc(), real = clock_real(), after = __rdtsc();

		if (after - before < best) {
			best = after - before;
			*tick = before + (after - before) / 2;
			*ns = real;
		}
	}
}

static bool clock_source_is_tsc(void)
{
	char name[16] = "";
	int file = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
			O_RDONLY | O_CLOEXEC);
	ssize_t length = file < 0 ? -1 : read(file, name, sizeof(name) - 1);

	if (file >= 0)
		close(file);
	return length >= 3 && !memcmp(name, "tsc", 3) && (name[3] == '\n' || !name[3]);
}

void sdk_clock_start(void)
{
	ticks_init();
	if (kymo_ticks_are_ns || !clock_source_is_tsc())
		return;
	clock_measure(&clock_real_tick, &clock_real_ns);
	clock_period_ns = CLOCK_FIRST_PERIOD_NS;
	clock_is_tsc = true;
}

#define LOAD(line, member) atomic_load_explicit(&(line)->member, memory_order_relaxed)
#define STORE(line, member, value)                                                                 \
	atomic_store_explicit(&(line)->member, value, memory_order_relaxed)

static uint64_t clock_at(uint64_t tick, uint64_t begin, uint64_t ns, uint64_t rate)
{
	uint64_t passed =
		tick > begin ? tick - begin : 0; /* the TSC may be read ahead of the line */

	return ns + (uint64_t)((unsigned __int128)passed * rate >> 32);
}

/* By the one thread that holds clock_drawing. false: too early to tell the rate. */
static bool clock_draw(uint64_t *time)
{
	uint32_t sequence = atomic_load_explicit(&clock_sequence, memory_order_relaxed);
	struct clock_line *old = &clock_lines[sequence & 1], *line = &clock_lines[~sequence & 1];
	uint64_t tick = 0, real = 0, rate, ns;
	bool first = !LOAD(old, rate), idle;
	int64_t error;

	clock_measure(&tick, &real);
	if (real < clock_real_ns + CLOCK_FIRST_PERIOD_NS || tick <= clock_real_tick)
		return false;
	rate = (uint64_t)(((unsigned __int128)(real - clock_real_ns) << 32) /
			  (tick - clock_real_tick));
	ns = first ? real : clock_at(tick, LOAD(old, tick), LOAD(old, ns), LOAD(old, rate));
	error = (int64_t)(real - ns);
	/* Where nobody asked for long, nobody sees a small step. */
	idle = !first && tick - LOAD(old, tick) > 2 * LOAD(old, period);
	if (first || idle || error > CLOCK_STEP_NS || error < -CLOCK_STEP_NS) {
		ns = real;
		error = 0;
	}
	if (clock_period_ns < CLOCK_LAST_PERIOD_NS)
		clock_period_ns *= 2;
	clock_real_tick = tick;
	clock_real_ns = real;
	STORE(line, tick, tick);
	STORE(line, ns, ns);
	STORE(line, rate, rate + (uint64_t)((int64_t)rate / (int64_t)clock_period_ns * error));
	STORE(line, period, (uint64_t)(((unsigned __int128)clock_period_ns << 32) / rate));
	atomic_store_explicit(&clock_sequence, sequence + 1, memory_order_release);
	*time = ns;
	return true;
}

/* The line is out of date. Another thread may be about to draw the next one: the old one will do
 * that long, once there is one. */
static uint64_t clock_renew(uint64_t from_old)
{
	uint64_t time = from_old;

	if (!atomic_flag_test_and_set_explicit(&clock_drawing, memory_order_acquire)) {
		if (!clock_draw(&time) && !time)
			time = clock_real();
		atomic_flag_clear_explicit(&clock_drawing, memory_order_release);
	}
	return time ? time : clock_real();
}

KYMO_HOT uint64_t sdk_now(void)
{
	uint64_t now, begin, ns, rate, period;
	const struct clock_line *line;
	uint32_t sequence;

	if (__builtin_expect(!clock_is_tsc, 0))
		return clock_real();
	do {
		sequence = atomic_load_explicit(&clock_sequence, memory_order_acquire);
		line = &clock_lines[sequence & 1];
		begin = LOAD(line, tick);
		ns = LOAD(line, ns);
		rate = LOAD(line, rate);
		period = LOAD(line, period);
		now = __rdtsc();
		atomic_thread_fence(memory_order_acquire);
	} while (__builtin_expect(
		sequence != atomic_load_explicit(&clock_sequence, memory_order_relaxed), 0));
	if (__builtin_expect(now > begin && now - begin > period, 0))
		return clock_renew(rate ? clock_at(now, begin, ns, rate) : 0);
	return clock_at(now, begin, ns, rate);
}

/* Whoever was drawing is not in the child. */
void sdk_clock_forked(void)
{
	atomic_flag_clear_explicit(&clock_drawing, memory_order_release);
}

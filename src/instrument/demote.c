/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See demote.h. The distance at a stub's entry is changed through /proc/self/mem: one byte, which
 * every thread sees as it was or as it is.
 */
#include "instrument/demote.h"

#include <fcntl.h>
#include <stdatomic.h>

#include "common/syscalls.h"
#include "core/ticks.h"
#include "instrument/arena.h"
#include "kymo/spool.h"

#define WORDS_LOOKED_AT 2048u
#define FUNCTIONS       64u /* seen at a time */
#define QUEUE           256u
#define NS_A_SECOND     1000000000ull

struct seen {
	uint32_t id, calls;
	uint64_t ticks;
};

static struct {
	_Atomic uint32_t ids[QUEUE]; /* 0: free */
	_Atomic uint32_t pending;
} queue;

static void enqueue(uint32_t id)
{
	for (uint32_t i = 0; i < QUEUE; i++) {
		uint32_t place = (id + i) % QUEUE, none = 0;

		if (atomic_compare_exchange_strong(&queue.ids[place], &none, id)) {
			atomic_store(&queue.pending, 1);
			background_wake(&kymo_runtime.background);
			return;
		}
		if (none == id)
			return;
	}
}

static struct seen *place_of(struct seen *seen, uint32_t id)
{
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		struct seen *place = &seen[(id + i) % FUNCTIONS];

		if (!place->id)
			place->id = id;
		if (place->id == id)
			return place;
	}
	return NULL;
}

static uint32_t id_of(uint64_t word)
{
	return (uint32_t)word >> SPOOL_CALL_ID_SHIFT & PLAN_ID_MAX;
}

static void note_calls(struct seen *seen, const uint64_t *words, size_t count)
{
	for (size_t i = 0; i + 1 < count; i++) {
		struct seen *place;

		if (words[i] & SPOOL_CALL_EXIT || !(words[i + 1] & SPOOL_CALL_EXIT) ||
		    id_of(words[i]) != id_of(words[i + 1]))
			continue;
		place = place_of(seen, id_of(words[i]));
		if (!place)
			continue;
		place->calls++;
		place->ticks += (words[i + 1] >> SPOOL_CALL_TICK_SHIFT) -
				(words[i] >> SPOOL_CALL_TICK_SHIFT);
	}
}

void demote_judge(const uint64_t *words, size_t count, uint64_t ticks)
{
	const struct options_instrument *options = &kymo_runtime.options.instrument;
	uint64_t hz = kymo_runtime.sampling.tick_hz, longest, looked = count;
	struct seen seen[FUNCTIONS] = {{0}};

	if (!options->demote_rate || !count || !ticks || !hz)
		return;
	if (looked > WORDS_LOOKED_AT)
		looked = WORDS_LOOKED_AT;
	longest = (uint64_t)((unsigned __int128)options->demote_ns * hz / NS_A_SECOND);
	note_calls(seen, words + count - looked, looked);
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		/* calls a second = calls * count / looked / (ticks / hz) */
		unsigned __int128 rate = (unsigned __int128)seen[i].calls * count * hz;

		if (seen[i].calls && seen[i].ticks <= longest * seen[i].calls &&
		    rate >= (unsigned __int128)options->demote_rate * looked * ticks)
			enqueue(seen[i].id);
	}
}

static void demote(struct runtime *runtime, long memory, uint32_t id)
{
	static const uint8_t to_count = PLAN_STUB_TO_COUNT;
	uint64_t mode = arena_exit_address(id) - PLAN_STUB_EXIT + PLAN_STUB_MODE;

	/* Several threads may have found it, or one before it was done. */
	if (*(const volatile uint8_t *)(uintptr_t)mode == to_count)
		return;
	if (sys_call4(SYS_pwrite64, memory, (long)&to_count, 1, (long)mode) != 1)
		return;
	track_begin(&runtime->track, SPOOL_RECORD_CALL_DEMOTED);
	track_unsigned(&runtime->track, id);
	track_unsigned(&runtime->track, PLAN_MODE_COUNT);
	track_fixed(&runtime->track, ticks_now());
	track_end(&runtime->track);
}

void demote_round(struct runtime *runtime)
{
	long memory;

	if (!atomic_exchange(&queue.pending, 0))
		return;
	memory = sys_open("/proc/self/mem", O_RDWR | O_CLOEXEC, 0);
	if (memory < 0)
		return;
	for (uint32_t i = 0; i < QUEUE; i++) {
		uint32_t id = atomic_exchange(&queue.ids[i], 0);

		if (id)
			demote(runtime, memory, id);
	}
	sys_close((int)memory);
}

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
#include "common/time_units.h"
#include "core/base/ticks.h"
#include "instrument/arena.h"
#include "instrument/state.h"
#include "kymo/spool.h"

#define CALL_WORDS_EXAMINED_MAX 2048u
#define FUNCTIONS_EXAMINED_MAX  64u /* seen at a time */
#define DEMOTION_QUEUE_LENGTH   256u

struct leaf_call_sums {
	uint32_t id, calls;
	uint64_t ticks;
};

static struct {
	_Atomic uint32_t ids[DEMOTION_QUEUE_LENGTH]; /* 0: free */
	_Atomic uint32_t has_pending_ids;
} demotion_queue;

static void enqueue_demotion(uint32_t id)
{
	for (uint32_t i = 0; i < DEMOTION_QUEUE_LENGTH; i++) {
		uint32_t place = (id + i) % DEMOTION_QUEUE_LENGTH, none = 0;

		if (atomic_compare_exchange_strong(&demotion_queue.ids[place], &none, id)) {
			atomic_store(&demotion_queue.has_pending_ids, 1);
			background_wake(kymo_instrument.background);
			return;
		}
		if (none == id)
			return;
	}
}

static struct leaf_call_sums *find_or_add_leaf_call_sums(struct leaf_call_sums *seen, uint32_t id)
{
	for (uint32_t i = 0; i < FUNCTIONS_EXAMINED_MAX; i++) {
		struct leaf_call_sums *place = &seen[(id + i) % FUNCTIONS_EXAMINED_MAX];

		if (!place->id)
			place->id = id;
		if (place->id == id)
			return place;
	}
	return NULL;
}

static uint32_t get_call_word_function_id(uint64_t word)
{
	return (uint32_t)word >> SPOOL_CALL_ID_SHIFT & PLAN_ID_MAX;
}

static void sum_leaf_call_durations(struct leaf_call_sums *seen, const uint64_t *words,
				    size_t count)
{
	for (size_t i = 0; i + 1 < count; i++) {
		struct leaf_call_sums *place;

		if (words[i] & SPOOL_CALL_EXIT || !(words[i + 1] & SPOOL_CALL_EXIT) ||
		    get_call_word_function_id(words[i]) != get_call_word_function_id(words[i + 1]))
			continue;
		place = find_or_add_leaf_call_sums(seen, get_call_word_function_id(words[i]));
		if (!place)
			continue;
		place->calls++;
		place->ticks += (words[i + 1] >> SPOOL_CALL_TICK_SHIFT) -
				(words[i] >> SPOOL_CALL_TICK_SHIFT);
	}
}

void demote_enqueue_short_functions(const uint64_t *words, size_t count, uint64_t ticks)
{
	const struct instrument_options *options = kymo_instrument.options;
	uint64_t hz = kymo_instrument.sampler->tick_hz, longest, looked = count;
	struct leaf_call_sums seen[FUNCTIONS_EXAMINED_MAX] = {{0}};

	if (!options->demote_calls_per_second || !count || !ticks || !hz)
		return;
	if (looked > CALL_WORDS_EXAMINED_MAX)
		looked = CALL_WORDS_EXAMINED_MAX;
	longest =
		(uint64_t)((unsigned __int128)options->demote_below_mean_call_ns * hz / SECOND_NS);
	sum_leaf_call_durations(seen, words + count - looked, looked);
	for (uint32_t i = 0; i < FUNCTIONS_EXAMINED_MAX; i++) {
		/* calls a second = calls * count / looked / (ticks / hz) */
		unsigned __int128 rate = (unsigned __int128)seen[i].calls * count * hz;

		if (seen[i].calls && seen[i].ticks <= longest * seen[i].calls &&
		    rate >= (unsigned __int128)options->demote_calls_per_second * looked * ticks)
			enqueue_demotion(seen[i].id);
	}
}

static void demote_function_to_counting(long memory, uint32_t id)
{
	static const uint8_t to_count = PLAN_STUB_TO_COUNT;
	uint64_t mode = arena_get_stub_exit_of_function(id) - PLAN_STUB_EXIT + PLAN_STUB_MODE;

	/* Several threads may have found it, or one before it was done. */
	if (*(const volatile uint8_t *)(uintptr_t)mode == to_count)
		return;
	if (sys_call4(SYS_pwrite64, memory, (long)&to_count, 1, (long)mode) != 1)
		return;
	process_record_begin(kymo_instrument.records, SPOOL_RECORD_CALL_DEMOTED);
	process_record_append_unsigned(kymo_instrument.records, id);
	process_record_append_unsigned(kymo_instrument.records, PLAN_MODE_COUNT);
	process_record_append_fixed64(kymo_instrument.records, ticks_now());
	process_record_end_and_commit(kymo_instrument.records);
}

void demote_queued_functions(void)
{
	long memory;

	if (!atomic_exchange(&demotion_queue.has_pending_ids, 0))
		return;
	memory = sys_open("/proc/self/mem", O_RDWR | O_CLOEXEC, 0);
	if (memory < 0)
		return;
	for (uint32_t i = 0; i < DEMOTION_QUEUE_LENGTH; i++) {
		uint32_t id = atomic_exchange(&demotion_queue.ids[i], 0);

		if (id)
			demote_function_to_counting(memory, id);
	}
	sys_close((int)memory);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See stack_copies.h. Closing all trampolines is a store an arena, and no thread begins a recorded
 * call after that; that stubs count instead takes a write to each, through /proc/self/mem, in which
 * time their calls pass through uncounted.
 */
#include "instrument/stack_copies.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>

#include "common/syscalls.h"
#include "core/notices.h"
#include "instrument/arena.h"
#include "instrument/instrument.h"
#include "instrument/state.h"
#include "regions/reentry_guard.h"

static _Atomic bool copies_are_made;
static _Atomic uint32_t lock;

static const char *get_last_path_component(const char *path)
{
	const char *name = path;

	for (const char *at = path; *at; at++)
		name = *at == '/' ? at + 1 : name;
	return name;
}

static bool begins_with(const char *text, const char *prefix)
{
	while (*prefix && *text == *prefix) {
		text++;
		prefix++;
	}
	return !*prefix;
}

/* greenlet's extension module of Python, and that of Ruby's continuations, which callcc is in. */
bool stack_copies_are_made_by_file(const char *path)
{
	static const char *const names[] = {"_greenlet.", "greenlet.cpython-", "continuation.so"};
	const char *name = get_last_path_component(path);

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (begins_with(name, names[i]))
			return true;
	}
	return false;
}

bool stack_copies_are_made(void)
{
	return atomic_load_explicit(&copies_are_made, memory_order_relaxed);
}

void stack_copies_switch_to_counting(const char *reason, const char *more)
{
	if (atomic_exchange(&copies_are_made, true))
		return;
	instrument_update_trampolines();
	notices_post(kymo_instrument.background, SPOOL_NOTICE_FALLBACK, 0, reason, more);
}

static void make_stubs_of_arena_count(long memory, const struct arena *arena)
{
	static const uint8_t to_count = PLAN_STUB_TO_COUNT;
	const struct plan_function *functions =
		(const void *)((const char *)arena->plan + arena->plan->functions.offset);

	for (uint32_t i = 0; i < arena->count; i++) {
		uint64_t mode =
			(uint64_t)(uintptr_t)arena->data + functions[i].stub + PLAN_STUB_MODE;

		if (!functions[i].stub || arena->modes[i] == PLAN_MODE_OFF ||
		    functions[i].flags & PLAN_PLACES ||
		    *(const volatile uint8_t *)(uintptr_t)mode == to_count)
			continue;
		sys_call4(SYS_pwrite64, memory, (long)&to_count, 1, (long)mode);
	}
}

static struct arena *find_arena_to_make_count(void)
{
	for (uint32_t i = 0; i < arenas_get_count(); i++) {
		struct arena *arena = arenas_get_one_by_index(i);

		/* An arena within a rewritten file is gone with its module. */
		if (!arena->are_stubs_counting && !arena->is_module_unloaded)
			return arena;
	}
	return NULL;
}

void stack_copies_make_stubs_count(void)
{
	struct arena *arena;
	long memory;

	if (!stack_copies_are_made() || !find_arena_to_make_count() ||
	    !region_acquire_lock_if_not_holder(&lock))
		return;
	memory = sys_open("/proc/self/mem", O_RDWR | O_CLOEXEC, 0);
	while (memory >= 0 && (arena = find_arena_to_make_count())) {
		make_stubs_of_arena_count(memory, arena);
		arena->are_stubs_counting = true;
	}
	if (memory >= 0)
		sys_close((int)memory);
	region_release_lock(&lock);
}

void stack_copies_reset_in_forked_child(void)
{
	atomic_store(&lock, 0);
}

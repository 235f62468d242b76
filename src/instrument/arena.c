/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See arena.h. An entry is complete before the count includes it, so readers need no lock.
 */
#include "instrument/arena.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "common/syscalls.h"
#include "instrument/calls.h"
#include "instrument/gate_frames.h"
#include "instrument/jit.h"
#include "instrument/shadow.h"

#define TURNS_TO_END 1000 /* of who writes gates, and may have been killed by fork */

extern const uint8_t instrument_gate_begin[], instrument_gate_end[], instrument_gate_foreign[];

static struct {
	struct arena *list; /* ARENAS_MAX, reserved */
	_Atomic uint32_t count;
	uint32_t next_id;
	_Atomic uint32_t gate;
	_Atomic uint32_t held, writing; /* threads that are at gates */
	bool arguments;
} arenas = {.next_id = 1};

static uint64_t thread_offset(void)
{
	uint64_t base;

	/* %fs:0 holds the thread pointer itself (System V ABI, TLS variant II). */
	__asm__("mov %%fs:0, %0" : "=r"(base));
	return (uint64_t)(uintptr_t)&kymo_calls - base;
}

static void copy(uint8_t *to, const uint8_t *from, size_t size)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

/* The jump to where the entry looks whether its caller is foreign code becomes a nop. */
static void skip_foreign(uint8_t *gate)
{
	static const uint8_t nop[] = {0x0f, 0x1f, 0x44, 0, 0};

	copy(gate + ((uintptr_t)instrument_gate_foreign - (uintptr_t)instrument_gate_begin), nop,
	     sizeof(nop));
}

/* The gate pages are not executable while they are written. */
static long fill_gate(uint8_t *start, uint64_t id_base, const struct plan_header *plan)
{
	struct plan_gate_constants *constants = (void *)(start + PLAN_GATE_CONSTANTS);

	copy(start + PLAN_DATA_SIZE, instrument_gate_begin,
	     (uintptr_t)instrument_gate_end - (uintptr_t)instrument_gate_begin);
	gate_frames_write(start + PLAN_DATA_SIZE);
	if (plan)
		jit_write(start, plan);
	constants->id_base = id_base;
	constants->first_count = id_base * sizeof(*kymo_calls.counts);
	constants->thread_offset = thread_offset();
	constants->entry_slow = (uint64_t)(uintptr_t)calls_entry_slow;
	constants->exit_slow = (uint64_t)(uintptr_t)calls_exit_slow;
	constants->count_slow = (uint64_t)(uintptr_t)calls_count_slow;
	constants->shadow_nodes = (uint64_t)(uintptr_t)&kymo_shadow_nodes;
	if (plan) {
		constants->foreign_low =
			(uint64_t)(uintptr_t)start - plan->arena_vaddr + plan->foreign_low;
		constants->foreign_size = plan->foreign_high - plan->foreign_low;
		constants->stubs_size = plan->frames.count
						? plan->frames.offset - plan->stubs.offset
						: plan->stubs.count;
	}
	if (!constants->foreign_size)
		skip_foreign(start + PLAN_DATA_SIZE);
	return sys_call3(SYS_mprotect, (long)(start + PLAN_DATA_SIZE), PLAN_GATE_SIZE,
			 PROT_READ | PROT_EXEC);
}

/* Anonymous, so that forked children can have it wiped. */
static long map_steering(uint8_t *start, int placing)
{
	uint8_t *pages = sys_mmap(start, PLAN_STUBS, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | placing, -1, 0);

	if (sys_failed(pages))
		return (long)pages;
	return sys_call3(SYS_madvise, (long)pages, PLAN_DATA_SIZE, MADV_WIPEONFORK);
}

int arena_map(const struct plan_header *plan, int plan_fd, uint64_t bias, struct arena *arena)
{
	uint8_t *start = (uint8_t *)(uintptr_t)(plan->arena_vaddr + bias);
	size_t stubs = (plan->stubs.count + PLAN_PAGE - 1) & ~(size_t)(PLAN_PAGE - 1);
	void *place =
		sys_mmap(start, PLAN_STUBS + stubs, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	long error;

	if (sys_failed(place))
		return (int)(long)place;
	if (place != start) { /* kernels before 4.17 take it for a hint */
		sys_munmap(place, PLAN_STUBS + stubs);
		return -EEXIST;
	}
	error = map_steering(start, MAP_FIXED);
	if (!error && stubs) {
		place = sys_mmap(start + PLAN_STUBS, stubs, PROT_READ | PROT_EXEC,
				 MAP_PRIVATE | MAP_FIXED, plan_fd, plan->stubs.offset);
		error = sys_failed(place) ? (long)place : 0;
	}
	if (!error)
		error = fill_gate(start, arenas.next_id, plan);
	if (error) {
		sys_munmap(start, PLAN_STUBS + stubs);
		return (int)error;
	}
	arena->data = (void *)start;
	arena->size = PLAN_STUBS + stubs;
	arena->bias = bias;
	arena->low = plan->low + bias;
	arena->high = plan->high + bias;
	arena->plan = plan;
	return 0;
}

int arena_adopt(struct arena *arena)
{
	uint8_t *start = (uint8_t *)arena->data;
	long error = map_steering(start, MAP_FIXED);

	return (int)(error ? error : fill_gate(start, arenas.next_id, arena->plan));
}

/* V8 asks it for each frame that it walks, most of which are not of stubs; in signal handlers, too.
 */
static uint64_t resolve(uint64_t slot)
{
	if (!arena_find(*(const uint64_t *)(uintptr_t)slot))
		return slot;
	return (uint64_t)(uintptr_t)shadow_return_place(slot);
}

static void set_resolver(const struct arena *arena)
{
	void (*set)(uint64_t(*)(uint64_t)) =
		(void (*)(uint64_t(*)(uint64_t)))(arena->bias + arena->plan->set_resolver);

	if (arena->plan->set_resolver)
		set(resolve);
}

/* Threads may be in its stubs. */
static void write_gate(const struct arena *arena, uint32_t gate)
{
	volatile struct plan_arena_data *data = arena->data;
	uint64_t counts = thread_offset() + offsetof(struct calls_thread, counts);

	data->counts = gate == PLAN_GATE_CLOSED ? 0 : counts;
	data->gate = gate;
}

struct arena *arena_add(const struct arena *arena)
{
	uint32_t count = atomic_load_explicit(&arenas.count, memory_order_relaxed);
	struct arena *entry;

	if (!arenas.list) {
		void *list =
			sys_mmap(NULL, ARENAS_MAX * sizeof(*arenas.list), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (sys_failed(list))
			return NULL;
		arenas.list = list;
	}
	if (count >= ARENAS_MAX || arena->count > PLAN_ID_MAX - arenas.next_id)
		return NULL;
	entry = &arenas.list[count];
	*entry = *arena;
	entry->first_id = arenas.next_id;
	arenas.next_id += arena->count;
	write_gate(entry, atomic_load_explicit(&arenas.gate, memory_order_relaxed));
	atomic_store_explicit(&arenas.count, count + 1, memory_order_release);
	jit_register(entry);
	set_resolver(entry);
	return entry;
}

struct arena *arena_again(const struct plan_header *plan, uint64_t bias)
{
	uint32_t count = arena_count();

	for (uint32_t i = 0; i < count; i++) {
		struct arena *arena = &arenas.list[i];
		bool same = arena->bias == bias && arena->count == plan->functions.count &&
			    arena->plan->build_id_size == plan->build_id_size &&
			    arena->plan->arena_vaddr == plan->arena_vaddr &&
			    arena->plan->plan_size == plan->plan_size;

		for (uint32_t j = 0; same && j < plan->build_id_size; j++)
			same = arena->plan->build_id[j] == plan->build_id[j];
		if (!same || (arena->gone && !plan->build_id_size))
			continue;
		arena->gone = false;
		write_gate(arena, atomic_load_explicit(&arenas.gate, memory_order_relaxed));
		return arena;
	}
	return NULL;
}

uint32_t arena_count(void)
{
	return atomic_load_explicit(&arenas.count, memory_order_acquire);
}

struct arena *arena_at(uint32_t index)
{
	return &arenas.list[index];
}

struct arena *arena_find(uint64_t address)
{
	uint32_t count = arena_count();

	for (uint32_t i = 0; i < count; i++) {
		struct arena *arena = &arenas.list[i];

		if (!arena->gone && address - (uint64_t)(uintptr_t)arena->data < arena->size)
			return arena;
	}
	return NULL;
}

/* Ids rise with the place in the list. */
static const struct arena *arena_of(uint32_t id)
{
	uint32_t low = 0, high = arena_count();

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (arenas.list[middle].first_id + arenas.list[middle].count <= id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < arena_count() && id >= arenas.list[low].first_id ? &arenas.list[low] : NULL;
}

static const struct plan_function *function_of(const struct arena *arena, uint32_t id)
{
	const struct plan_function *functions =
		(const void *)((const char *)arena->plan + arena->plan->functions.offset);

	return &functions[id - arena->first_id];
}

uint64_t arena_exit_address(uint32_t id)
{
	const struct arena *arena = arena_of(id);

	if (!arena)
		return 0;
	return (uint64_t)(uintptr_t)arena->data + function_of(arena, id)->stub + PLAN_STUB_EXIT;
}

uint64_t arena_function_address(uint32_t id)
{
	const struct arena *arena = arena_of(id);

	return arena ? function_of(arena, id)->vaddr + arena->bias : 0;
}

bool arena_is_foreign(uint32_t id, uint64_t address)
{
	const struct arena *arena = arena_of(id);

	return arena && address - arena->bias - arena->plan->foreign_low <
				arena->plan->foreign_high - arena->plan->foreign_low;
}

bool arena_wants_arguments(uint32_t id)
{
	const struct arena *arena = arena_of(id);

	return arena && arena->modes[id - arena->first_id] == PLAN_MODE_ARGUMENTS;
}

bool arenas_want_arguments(void)
{
	return arenas.arguments;
}

void arenas_set_arguments(bool wanted)
{
	arenas.arguments = wanted;
}

/* Whoever is last to write has seen the last state. */
static void write_gates(void)
{
	uint32_t count = arena_count(), gate;

	do {
		gate = atomic_load(&arenas.gate);
		for (uint32_t i = 0; i < count; i++) {
			if (!arenas.list[i].gone)
				write_gate(&arenas.list[i], gate);
		}
	} while (gate != atomic_load(&arenas.gate));
}

void arenas_set_gate(enum plan_gate gate)
{
	atomic_store(&arenas.gate, gate);
	atomic_fetch_add(&arenas.writing, 1);
	if (!atomic_load(&arenas.held))
		write_gates();
	atomic_fetch_sub(&arenas.writing, 1);
}

void arenas_hold_gates(void)
{
	atomic_store(&arenas.held, 1);
	for (int i = 0; i < TURNS_TO_END && atomic_load(&arenas.writing); i++)
		sys_call0(SYS_sched_yield);
}

void arenas_release_gates(void)
{
	atomic_store(&arenas.held, 0);
	arenas_set_gate((enum plan_gate)atomic_load(&arenas.gate));
}

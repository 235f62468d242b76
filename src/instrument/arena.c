/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See arena.h. An entry is complete before the count includes it, so readers need no lock.
 */
#include "instrument/arena.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "common/syscalls.h"
#include "core/base/fork_state.h"
#include "instrument/calls.h"
#include "instrument/jit.h"
#include "instrument/shadow.h"
#include "instrument/trampoline_frames.h"

#define YIELD_TURNS_MAX 1000 /* of who writes trampolines, and may have been killed by fork */

extern const uint8_t instrument_trampoline_begin[], instrument_trampoline_end[],
	instrument_trampoline_foreign[];

static struct {
	struct arena *list; /* ARENAS_MAX, reserved */
	_Atomic uint32_t count;
	uint32_t next_function_id;
	_Atomic uint32_t trampoline_mode;
	_Atomic uint32_t are_trampoline_modes_frozen,
		mode_writer_count; /* threads that are at trampolines */
	/* Code of any module whose unwinding asks for frame addresses: what it calls may be
	 * anywhere. */
	uint64_t foreign_low, foreign_high;
} arenas = {.next_function_id = 1};

bool kymo_arenas_record_arguments;

static uint64_t compute_calls_thread_offset(void)
{
	uint64_t base;

	/* %fs:0 holds the thread pointer itself (System V ABI, TLS variant II). */
	__asm__("mov %%fs:0, %0" : "=r"(base));
	return (uint64_t)(uintptr_t)&kymo_calls - base;
}

static void copy_bytes(uint8_t *to, const uint8_t *from, size_t size)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

/* The second byte of the jump to where the entry looks whether its caller is foreign code: behind a
 * comparison that found "above", and one byte, so that threads may be there. */
#define FOREIGN_JUMP_ALWAYS 0x87u

static uint8_t *get_foreign_jump_byte(uint8_t *trampoline)
{
	return trampoline +
	       ((uintptr_t)instrument_trampoline_foreign - (uintptr_t)instrument_trampoline_begin) +
	       1;
}

/* [*low, *high) grows so that it holds the other range. */
static void extend_range(uint64_t *low, uint64_t *high, uint64_t other_low, uint64_t other_high)
{
	if (other_low >= other_high)
		return;
	if (*low >= *high) {
		*low = other_low;
		*high = other_high;
		return;
	}
	*low = other_low < *low ? other_low : *low;
	*high = other_high > *high ? other_high : *high;
}

static void set_foreign_range_constants(struct plan_trampoline_constants *constants, uint64_t bias,
					const struct plan_header *plan)
{
	uint64_t low = bias + plan->foreign_low, high = bias + plan->foreign_high;

	extend_range(&low, &high, arenas.foreign_low, arenas.foreign_high);
	constants->foreign_low = low;
	constants->foreign_size = high - low;
}

/* The trampoline pages are not executable while they are written. */
static long fill_trampoline(uint8_t *start, uint64_t id_base, const struct plan_header *plan)
{
	struct plan_trampoline_constants *constants = (void *)(start + PLAN_TRAMPOLINE_CONSTANTS);

	copy_bytes(start + PLAN_DATA_SIZE, instrument_trampoline_begin,
		   (uintptr_t)instrument_trampoline_end - (uintptr_t)instrument_trampoline_begin);
	trampoline_frames_write(start + PLAN_DATA_SIZE);
	if (plan)
		jit_write_stub_image_for_debuggers(start, plan);
	constants->id_base = id_base;
	constants->first_count = id_base * sizeof(*kymo_calls.counts);
	constants->thread_offset = compute_calls_thread_offset();
	constants->entry_slow = (uint64_t)(uintptr_t)calls_handle_entry_slow_path;
	constants->exit_slow = (uint64_t)(uintptr_t)calls_handle_exit_slow_path;
	constants->count_slow = (uint64_t)(uintptr_t)calls_handle_count_slow_path;
	constants->entry_sums = (uint64_t)(uintptr_t)calls_sum_entry;
	constants->exit_sums = (uint64_t)(uintptr_t)calls_sum_exit;
	constants->shadow_nodes = (uint64_t)(uintptr_t)&kymo_shadow_nodes;
	if (plan) {
		set_foreign_range_constants(constants,
					    (uint64_t)(uintptr_t)start - plan->arena_vaddr, plan);
		constants->stubs_size = plan->frames.count
						? plan->frames.offset - plan->stubs.offset
						: plan->stubs.count;
	}
	if (constants->foreign_size)
		*get_foreign_jump_byte(start + PLAN_DATA_SIZE) = FOREIGN_JUMP_ALWAYS;
	return sys_call3(SYS_mprotect, (long)(start + PLAN_DATA_SIZE), PLAN_TRAMPOLINE_SIZE,
			 PROT_READ | PROT_EXEC);
}

/* Anonymous, so that forked children can have it wiped. */
static long map_data_and_trampoline_pages(uint8_t *start, int placing)
{
	uint8_t *pages = sys_mmap(start, PLAN_STUBS, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | placing, -1, 0);

	if (sys_mmap_failed(pages))
		return (long)pages;
	return sys_call3(SYS_madvise, (long)pages, PLAN_DATA_SIZE, MADV_WIPEONFORK);
}

static long copy_stubs(uint8_t *place, size_t size, const struct plan_header *plan)
{
	long error = sys_call3(SYS_mprotect, (long)place, (long)size, PROT_READ | PROT_WRITE);

	if (error)
		return error;
	copy_bytes(place, (const uint8_t *)plan + plan->stubs.offset, plan->stubs.count);
	return sys_call3(SYS_mprotect, (long)place, (long)size, PROT_READ | PROT_EXEC);
}

int arena_map_at_planned_address(const struct plan_header *plan, uint64_t bias, struct arena *arena)
{
	uint8_t *start = (uint8_t *)(uintptr_t)(plan->arena_vaddr + bias);
	size_t stubs = (plan->stubs.count + PLAN_PAGE - 1) & ~(size_t)(PLAN_PAGE - 1);
	void *place =
		sys_mmap(start, PLAN_STUBS + stubs, PROT_NONE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	long error;

	if (sys_mmap_failed(place))
		return (int)(long)place;
	if (place != start) { /* kernels before 4.17 take it for a hint */
		sys_munmap(place, PLAN_STUBS + stubs);
		return -EEXIST;
	}
	error = map_data_and_trampoline_pages(start, MAP_FIXED);
	if (!error && stubs) {
		error = copy_stubs(start + PLAN_STUBS, stubs, plan);
	}
	if (!error)
		error = fill_trampoline(start, arenas.next_function_id, plan);
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

int arena_fill_mapped(struct arena *arena)
{
	uint8_t *start = (uint8_t *)arena->data;
	long error = map_data_and_trampoline_pages(start, MAP_FIXED);

	return (int)(error ? error : fill_trampoline(start, arenas.next_function_id, arena->plan));
}

/* V8 asks it for each frame that it walks, most of which are not of stubs; in signal handlers, too.
 */
static uint64_t find_true_slot_of_return_address(uint64_t slot)
{
	if (!arena_find_by_address(*(const uint64_t *)(uintptr_t)slot))
		return slot;
	return (uint64_t)(uintptr_t)shadow_find_return_address_slot(slot);
}

static void register_our_resolver_with_v8(const struct arena *arena)
{
	void (*set)(uint64_t(*)(uint64_t)) =
		(void (*)(uint64_t(*)(uint64_t)))(arena->bias + arena->plan->set_resolver);

	if (arena->plan->set_resolver)
		set(find_true_slot_of_return_address);
}

/* Threads may be in its stubs. */
static void arena_set_trampoline_mode(const struct arena *arena, uint32_t trampoline)
{
	volatile struct plan_arena_data *data = arena->data;
	uint64_t counts =
		compute_calls_thread_offset() + offsetof(struct calls_thread_state, counts);

	data->counts = trampoline == PLAN_TRAMPOLINE_CLOSED ? 0 : counts;
	data->trampoline =
		trampoline == PLAN_TRAMPOLINE_COUNTS ? PLAN_TRAMPOLINE_CLOSED : trampoline;
}

static void write_foreign_range_to_trampoline(long memory, const struct arena *arena)
{
	static const uint8_t jump_always = FOREIGN_JUMP_ALWAYS;
	uint8_t *start = (uint8_t *)arena->data;
	const struct plan_trampoline_constants *constants =
		(const void *)(start + PLAN_TRAMPOLINE_CONSTANTS);
	struct plan_trampoline_constants wanted = *constants;
	uint64_t none = 0;

	set_foreign_range_constants(&wanted, arena->bias, arena->plan);
	/* In this order: a range that is half written holds nothing. */
	sys_call4(SYS_pwrite64, memory, (long)&none, sizeof(none), (long)&constants->foreign_size);
	sys_call4(SYS_pwrite64, memory, (long)&wanted.foreign_low, sizeof(wanted.foreign_low),
		  (long)&constants->foreign_low);
	sys_call4(SYS_pwrite64, memory, (long)&wanted.foreign_size, sizeof(wanted.foreign_size),
		  (long)&constants->foreign_size);
	sys_call4(SYS_pwrite64, memory, (long)&jump_always, 1,
		  (long)get_foreign_jump_byte(start + PLAN_DATA_SIZE));
}

/* One that was unloaded when the range grew. */
static void make_foreign_range_known_to(struct arena *arena)
{
	long memory;

	if (arenas.foreign_low >= arenas.foreign_high)
		return;
	memory = sys_open("/proc/self/mem", O_RDWR | O_CLOEXEC, 0);
	if (memory < 0)
		return;
	write_foreign_range_to_trampoline(memory, arena);
	sys_close((int)memory);
}

/* What this module calls unhooked may lie in modules that came before it. */
static void make_foreign_range_known_to_all(const struct arena *arena)
{
	uint32_t count = atomic_load_explicit(&arenas.count, memory_order_relaxed);
	long memory;

	if (!(arena->plan->module_flags & PLAN_MODULE_ASKS_FRAME_ADDRESSES))
		return;
	extend_range(&arenas.foreign_low, &arenas.foreign_high,
		     arena->bias + arena->plan->foreign_low,
		     arena->bias + arena->plan->foreign_high);
	memory = sys_open("/proc/self/mem", O_RDWR | O_CLOEXEC, 0);
	if (memory < 0)
		return;
	for (uint32_t i = 0; i < count; i++) {
		if (!arenas.list[i].is_module_unloaded)
			write_foreign_range_to_trampoline(memory, &arenas.list[i]);
	}
	sys_close((int)memory);
}

struct arena *arena_add(const struct arena *arena)
{
	uint32_t count = atomic_load_explicit(&arenas.count, memory_order_relaxed);
	struct arena *entry;

	if (!arenas.list) {
		void *list =
			sys_mmap(NULL, ARENAS_MAX * sizeof(*arenas.list), PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		if (sys_mmap_failed(list))
			return NULL;
		arenas.list = list;
	}
	if (count >= ARENAS_MAX || arena->count > PLAN_ID_MAX - arenas.next_function_id)
		return NULL;
	make_foreign_range_known_to_all(arena);
	entry = &arenas.list[count];
	*entry = *arena;
	entry->first_function_id = arenas.next_function_id;
	arenas.next_function_id += arena->count;
	arena_set_trampoline_mode(
		entry, atomic_load_explicit(&arenas.trampoline_mode, memory_order_relaxed));
	atomic_store_explicit(&arenas.count, count + 1, memory_order_release);
	jit_register_arena(entry);
	register_our_resolver_with_v8(entry);
	return entry;
}

struct arena *arena_reuse_earlier(const struct plan_header *plan, uint64_t bias)
{
	uint32_t count = arenas_get_count();

	for (uint32_t i = 0; i < count; i++) {
		struct arena *arena = &arenas.list[i];
		bool same = arena->bias == bias && arena->count == plan->functions.count &&
			    arena->plan->build_id_size == plan->build_id_size &&
			    arena->plan->arena_vaddr == plan->arena_vaddr &&
			    arena->plan->plan_size == plan->plan_size;

		for (uint32_t j = 0; same && j < plan->build_id_size; j++)
			same = arena->plan->build_id[j] == plan->build_id[j];
		if (!same || (arena->is_module_unloaded && !plan->build_id_size))
			continue;
		if (arena->is_module_unloaded)
			make_foreign_range_known_to(arena);
		arena->is_module_unloaded = false;
		arena_set_trampoline_mode(
			arena, atomic_load_explicit(&arenas.trampoline_mode, memory_order_relaxed));
		return arena;
	}
	return NULL;
}

KYMO_FORK_CODE uint32_t arenas_get_count(void)
{
	return atomic_load_explicit(&arenas.count, memory_order_acquire);
}

struct arena *arenas_get_one_by_index(uint32_t index)
{
	return &arenas.list[index];
}

struct arena *arena_find_by_address(uint64_t address)
{
	uint32_t count = arenas_get_count();

	for (uint32_t i = 0; i < count; i++) {
		struct arena *arena = &arenas.list[i];

		if (!arena->is_module_unloaded &&
		    address - (uint64_t)(uintptr_t)arena->data < arena->size)
			return arena;
	}
	return NULL;
}

/* Ids rise with the place in the list. */
static const struct arena *find_arena_of_function_id(uint32_t id)
{
	uint32_t low = 0, high = arenas_get_count();

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (arenas.list[middle].first_function_id + arenas.list[middle].count <= id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < arenas_get_count() && id >= arenas.list[low].first_function_id
		       ? &arenas.list[low]
		       : NULL;
}

static const struct plan_function *get_plan_function_of_id(const struct arena *arena, uint32_t id)
{
	const struct plan_function *functions =
		(const void *)((const char *)arena->plan + arena->plan->functions.offset);

	return &functions[id - arena->first_function_id];
}

uint64_t arena_get_stub_exit_of_function(uint32_t id)
{
	const struct arena *arena = find_arena_of_function_id(id);

	if (!arena)
		return 0;
	return (uint64_t)(uintptr_t)arena->data + get_plan_function_of_id(arena, id)->stub +
	       PLAN_STUB_EXIT;
}

uint64_t arena_get_original_function_address(uint32_t id)
{
	const struct arena *arena = find_arena_of_function_id(id);

	return arena ? get_plan_function_of_id(arena, id)->vaddr + arena->bias : 0;
}

bool arena_code_may_read_return_addresses(uint32_t id, uint64_t address)
{
	const struct arena *arena = find_arena_of_function_id(id);

	if (address - arenas.foreign_low < arenas.foreign_high - arenas.foreign_low)
		return true;
	return arena && address - arena->bias - arena->plan->foreign_low <
				arena->plan->foreign_high - arena->plan->foreign_low;
}

bool arena_function_wants_arguments(uint32_t id)
{
	const struct arena *arena = find_arena_of_function_id(id);

	return arena && arena->modes[id - arena->first_function_id] == PLAN_MODE_ARGUMENTS;
}

/* Whoever is last to write has seen the last state. */
static void write_all_trampoline_modes(void)
{
	uint32_t count = arenas_get_count(), trampoline;

	do {
		trampoline = atomic_load(&arenas.trampoline_mode);
		for (uint32_t i = 0; i < count; i++) {
			if (!arenas.list[i].is_module_unloaded)
				arena_set_trampoline_mode(&arenas.list[i], trampoline);
		}
	} while (trampoline != atomic_load(&arenas.trampoline_mode));
}

void arenas_set_trampoline_mode(enum plan_trampoline trampoline)
{
	atomic_store(&arenas.trampoline_mode, trampoline);
	atomic_fetch_add(&arenas.mode_writer_count, 1);
	if (!atomic_load(&arenas.are_trampoline_modes_frozen))
		write_all_trampoline_modes();
	atomic_fetch_sub(&arenas.mode_writer_count, 1);
}

void arenas_freeze_trampoline_modes(void)
{
	atomic_store(&arenas.are_trampoline_modes_frozen, 1);
	for (int i = 0; i < YIELD_TURNS_MAX && atomic_load(&arenas.mode_writer_count); i++)
		sys_call0(SYS_sched_yield);
}

void arenas_unfreeze_trampoline_modes(void)
{
	atomic_store(&arenas.are_trampoline_modes_frozen, 0);
	arenas_set_trampoline_mode((enum plan_trampoline)atomic_load(&arenas.trampoline_mode));
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Allocation functions: each block is remembered with its size and the stack that asked for it,
 * until it is freed.
 *
 * Wrapped is what objects of the program call, and what libc calls for them (getline, opendir,
 * asprintf): libc leads its calls through its own table, so that programs can bring an allocator of
 * their own. A block is added after it was allocated and removed before it is freed, so
 * that another thread that gets the same address never meets the old one. `inside` keeps an
 * allocator that is made of another one (calloc of malloc), and signal handlers, from counting
 * twice or waiting for a lock of their own thread.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "common/array.h"
#include "common/loader.h"
#include "core/notices.h"
#include "core/runtime.h"
#include "regions/regions.h"
#include "wrappers/got/got.h"
#include "wrappers/memory/memory.h"
#include "wrappers/memory/private.h"

struct memory_collector_pointers kymo_memory;

static __thread bool thread_is_in_allocation;
static uint32_t site_depth_max;
/* Off between two attachments: what is led here calls on. */
static _Atomic bool is_wanted;
static bool has_tables;

enum allocation_function {
	MALLOC,
	CALLOC,
	REALLOC,
	REALLOCARRAY,
	FREE,
	POSIX_MEMALIGN,
	ALIGNED_ALLOC,
	MEMALIGN,
	VALLOC,
	PVALLOC,
	STRDUP,
	STRNDUP,
	ALLOCATION_FUNCTION_COUNT
};

static _Atomic(void *) originals[ALLOCATION_FUNCTION_COUNT];

#define ORIGINAL(function) atomic_load_explicit(&originals[function], memory_order_relaxed)

/* Must be in the replacement itself: its frame is what is looked at. */
#define LOAD_CALLER_REGISTERS()                                                                    \
	({                                                                                         \
		const uint64_t *frame_ = __builtin_frame_address(0);                               \
		(struct unwind_start_registers){                                                   \
			.ip = frame_[1], .sp = (uint64_t)(frame_ + 2), .bp = frame_[0]};           \
	})

/* Also in a child that was just forked, whose background thread writes the records once it is
 * there.
 */
static bool is_recording(void)
{
	return atomic_load_explicit(&is_wanted, memory_order_relaxed) &&
	       runtime_is_active_or_starting();
}

/* False: this call is not to be looked at. */
static bool try_enter_allocation(void)
{
	if (thread_is_in_allocation || !is_recording() || region_thread_is_in_kymo_code())
		return false;
	thread_is_in_allocation = true;
	return true;
}

static void leave_allocation(void)
{
	thread_is_in_allocation = false;
}

static bool is_collecting(void)
{
	return !(atomic_load_explicit(&kymo_memory.control->closed_reasons, memory_order_relaxed) &
		 ~(uint32_t)CONTROL_CLOSED_NOT_STARTED);
}

static void record_allocated_block(void *address, uint64_t size,
				   const struct unwind_start_registers *caller)
{
	struct memory_block block = {.address = (uint64_t)address}, previous;
	struct memory_thread *thread;

	if (!address || !is_collecting())
		return;
	thread = memory_find_or_add_thread();
	block.size = size & MEMORY_BLOCK_SIZE_MASK;
	block.site =
		memory_find_site_of_caller(thread, caller, site_depth_max) & MEMORY_BLOCK_SITE_MASK;
	memory_thread_note_allocation(thread, block.address, size);
	if (block.site == MEMORY_SITE_NONE || !memory_block_add(&block, &previous)) {
		memory_count_allocated_block(MEMORY_SITE_NONE, size);
		return;
	}
	if (previous.address)
		memory_count_freed_block(previous.site, previous.size, false);
	memory_count_allocated_block(block.site, size);
	if (!*kymo_memory.is_attached)
		memory_counters();
}

static void count_freed_block(const struct memory_block *block)
{
	memory_count_freed_block(
		block->site, block->size,
		memory_thread_note_free(memory_find_or_add_thread(), block->address));
}

static bool remove_freed_block(void *address, struct memory_block *ret)
{
	if (!memory_block_remove((uint64_t)address, ret)) {
		memory_count_freed_block(MEMORY_SITE_NONE, 0, false);
		return false;
	}
	return true;
}

static void *wrapped_malloc(size_t size)
{
	void *(*original)(size_t) = ORIGINAL(MALLOC);
	struct unwind_start_registers caller = LOAD_CALLER_REGISTERS();
	void *address;

	if (!try_enter_allocation())
		return original(size);
	address = original(size);
	record_allocated_block(address, size, &caller);
	leave_allocation();
	return address;
}

static void *wrapped_calloc(size_t count, size_t size)
{
	void *(*original)(size_t, size_t) = ORIGINAL(CALLOC);
	struct unwind_start_registers caller = LOAD_CALLER_REGISTERS();
	void *address;

	if (!try_enter_allocation())
		return original(count, size);
	address = original(count, size);
	record_allocated_block(address, count * size, &caller);
	leave_allocation();
	return address;
}

/* The old block is removed before it may be freed, and put back when it was not. */
static void *reallocate_and_record_block(void *old, size_t size,
					 const struct unwind_start_registers *caller,
					 void *(*original)(void *, size_t, size_t), size_t count)
{
	struct memory_block block, previous;
	bool known = old && remove_freed_block(old, &block);
	void *address = original(old, count, size);

	if (!address && old && size && count) {
		if (known)
			memory_block_add(&block, &previous);
		return NULL;
	}
	if (known)
		count_freed_block(&block);
	record_allocated_block(address, size * count, caller);
	return address;
}

static void *call_original_realloc(void *old, size_t count, size_t size)
{
	void *(*original)(void *, size_t) = ORIGINAL(REALLOC);

	(void)count;
	return original(old, size);
}

static void *call_original_reallocarray(void *old, size_t count, size_t size)
{
	void *(*original)(void *, size_t, size_t) = ORIGINAL(REALLOCARRAY);

	return original(old, count, size);
}

static void *wrapped_realloc(void *old, size_t size)
{
	struct unwind_start_registers caller = LOAD_CALLER_REGISTERS();
	void *address;

	if (!try_enter_allocation())
		return call_original_realloc(old, 1, size);
	address = reallocate_and_record_block(old, size, &caller, call_original_realloc, 1);
	leave_allocation();
	return address;
}

static void *wrapped_reallocarray(void *old, size_t count, size_t size)
{
	struct unwind_start_registers caller = LOAD_CALLER_REGISTERS();
	void *address;

	if (!try_enter_allocation())
		return call_original_reallocarray(old, count, size);
	address =
		reallocate_and_record_block(old, size, &caller, call_original_reallocarray, count);
	leave_allocation();
	return address;
}

static void wrapped_free(void *address)
{
	void (*original)(void *) = ORIGINAL(FREE);
	struct memory_block block;

	if (!address || !try_enter_allocation()) {
		original(address);
		return;
	}
	if (remove_freed_block(address, &block))
		count_freed_block(&block);
	original(address);
	leave_allocation();
}

static int wrapped_posix_memalign(void **ret, size_t alignment, size_t size)
{
	int (*original)(void **, size_t, size_t) = ORIGINAL(POSIX_MEMALIGN);
	struct unwind_start_registers caller = LOAD_CALLER_REGISTERS();
	int error;

	if (!try_enter_allocation())
		return original(ret, alignment, size);
	error = original(ret, alignment, size);
	if (!error)
		record_allocated_block(*ret, size, &caller);
	leave_allocation();
	return error;
}

static void *wrapped_aligned_alloc(size_t alignment, size_t size)
{
	void *(*original)(size_t, size_t) = ORIGINAL(ALIGNED_ALLOC);
	struct unwind_start_registers caller = LOAD_CALLER_REGISTERS();
	void *address;

	if (!try_enter_allocation())
		return original(alignment, size);
	address = original(alignment, size);
	record_allocated_block(address, size, &caller);
	leave_allocation();
	return address;
}

static void *wrapped_memalign(size_t alignment, size_t size)
{
	void *(*original)(size_t, size_t) = ORIGINAL(MEMALIGN);
	struct unwind_start_registers caller = LOAD_CALLER_REGISTERS();
	void *address;

	if (!try_enter_allocation())
		return original(alignment, size);
	address = original(alignment, size);
	record_allocated_block(address, size, &caller);
	leave_allocation();
	return address;
}

static void *wrapped_valloc(size_t size)
{
	void *(*original)(size_t) = ORIGINAL(VALLOC);
	struct unwind_start_registers caller = LOAD_CALLER_REGISTERS();
	void *address;

	if (!try_enter_allocation())
		return original(size);
	address = original(size);
	record_allocated_block(address, size, &caller);
	leave_allocation();
	return address;
}

static void *wrapped_pvalloc(size_t size)
{
	void *(*original)(size_t) = ORIGINAL(PVALLOC);
	struct unwind_start_registers caller = LOAD_CALLER_REGISTERS();
	void *address;

	if (!try_enter_allocation())
		return original(size);
	address = original(size);
	record_allocated_block(address, size, &caller);
	leave_allocation();
	return address;
}

static char *wrapped_strdup(const char *text)
{
	char *(*original)(const char *) = ORIGINAL(STRDUP);
	struct unwind_start_registers caller = LOAD_CALLER_REGISTERS();
	char *copy;

	if (!try_enter_allocation())
		return original(text);
	copy = original(text);
	if (copy)
		record_allocated_block(copy, strlen(copy) + 1, &caller);
	leave_allocation();
	return copy;
}

static char *wrapped_strndup(const char *text, size_t length)
{
	char *(*original)(const char *, size_t) = ORIGINAL(STRNDUP);
	struct unwind_start_registers caller = LOAD_CALLER_REGISTERS();
	char *copy;

	if (!try_enter_allocation())
		return original(text, length);
	copy = original(text, length);
	if (copy)
		record_allocated_block(copy, strlen(copy) + 1, &caller);
	leave_allocation();
	return copy;
}

static struct got_wrapper allocation_wrappers[ALLOCATION_FUNCTION_COUNT] = {
	[MALLOC] = {"malloc", (void *)wrapped_malloc, &originals[MALLOC], NULL, 0, true},
	[CALLOC] = {"calloc", (void *)wrapped_calloc, &originals[CALLOC], NULL, 0, true},
	[REALLOC] = {"realloc", (void *)wrapped_realloc, &originals[REALLOC], NULL, 0, true},
	[REALLOCARRAY] = {"reallocarray", (void *)wrapped_reallocarray, &originals[REALLOCARRAY],
			  NULL, 0, true},
	[FREE] = {"free", (void *)wrapped_free, &originals[FREE], NULL, 0, true},
	[POSIX_MEMALIGN] = {"posix_memalign", (void *)wrapped_posix_memalign,
			    &originals[POSIX_MEMALIGN], NULL, 0, true},
	[ALIGNED_ALLOC] = {"aligned_alloc", (void *)wrapped_aligned_alloc,
			   &originals[ALIGNED_ALLOC], NULL, 0, true},
	[MEMALIGN] = {"memalign", (void *)wrapped_memalign, &originals[MEMALIGN], NULL, 0, true},
	[VALLOC] = {"valloc", (void *)wrapped_valloc, &originals[VALLOC], NULL, 0, true},
	[PVALLOC] = {"pvalloc", (void *)wrapped_pvalloc, &originals[PVALLOC], NULL, 0, true},
	[STRDUP] = {"strdup", (void *)wrapped_strdup, &originals[STRDUP], NULL, 0, true},
	[STRNDUP] = {"strndup", (void *)wrapped_strndup, &originals[STRNDUP], NULL, 0, true},
};

/* Sanitizers' allocators look at their callers' frames and at what is theirs. */
static bool process_has_sanitizer(void)
{
	static const char *const names[] = {"__asan_init", "__tsan_init", "__msan_init",
					    "__lsan_init", "__hwasan_init"};

	void *found[ARRAY_SIZE(names)];

	loader_find_symbols(LOADER_SCOPE_ANY_OBJECT, NULL, names, found, ARRAY_SIZE(names));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (found[i])
			return true;
	}
	return false;
}

/* What such a program calls itself does not go through a global offset table. */
static void warn_if_program_has_allocator(void)
{
	Dl_info where;
	void *function = loader_find_symbol(LOADER_SCOPE_ANY_OBJECT, NULL, "free");

	/* Program headers stand in the first page of the program. */
	if (function && dladdr(function, &where) &&
	    (uint64_t)where.dli_fbase == (getauxval(AT_PHDR) & ~4095ull))
		notices_post(kymo_memory.background, SPOOL_NOTICE_FALLBACK, 0,
			     "the program has its own allocator: kymo does not see the allocator's "
			     "internal calls, so blocks listed as not freed may have been freed",
			     NULL);
}

void memory_remember_collector(struct runtime *runtime)
{
	kymo_memory = (struct memory_collector_pointers){.control = &runtime->control,
							 .background = &runtime->background,
							 .modules = &runtime->modules,
							 .sampler = &runtime->sampler,
							 .is_attached = &runtime->attached,
							 .walker_count = &runtime->walkers,
							 .follow = &runtime->follow_allocations};
}

static int init_tables(void)
{
	int error = memory_sites_init(site_depth_max);

	if (!error)
		error = memory_blocks_init();
	if (!error)
		error = memory_counts_init();
	if (!error)
		error = memory_threads_init();
	return error ? error : memory_records_init();
}

static int init_or_clear_tables(void)
{
	int error;

	if (has_tables) {
		memory_clear_tables();
		return 0;
	}
	error = init_tables();
	if (!error)
		error = got_add_wrappers(allocation_wrappers, ALLOCATION_FUNCTION_COUNT);
	has_tables = !error;
	return error;
}

void memory_clear_tables(void)
{
	if (!has_tables)
		return;
	memory_sites_clear();
	memory_blocks_clear();
	memory_counts_clear();
	memory_threads_clear();
	memory_records_clear();
}

int wrappers_memory_add(const struct wrapper_options *options)
{
	int error;

	atomic_store_explicit(&is_wanted, false, memory_order_relaxed);
	atomic_store_explicit(kymo_memory.follow, NULL, memory_order_release);
	if (!options->wrap_memory)
		return 0;
	if (process_has_sanitizer()) {
		notices_post(kymo_memory.background, SPOOL_NOTICE_DISABLED, 0,
			     "allocations are not counted: the program has a sanitizer", NULL);
		return 0;
	}
	warn_if_program_has_allocator();
	site_depth_max = options->allocation_site_depth_max;
	if (site_depth_max < 1 || site_depth_max > MEMORY_SITE_FRAMES_MAX)
		site_depth_max = MEMORY_SITE_FRAMES_MAX;
	error = init_or_clear_tables();
	if (error)
		return error;
	atomic_store_explicit(kymo_memory.follow, memory_write_changed_sites_if_due,
			      memory_order_release);
	atomic_store_explicit(&is_wanted, true, memory_order_release);
	return 0;
}

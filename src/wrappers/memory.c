/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Allocation functions: each block is remembered with its size and the stack that asked for it,
 * until it is freed.
 *
 * Wrapped is what objects of the program call; what libc calls within itself (fopen's buffers,
 * getline) is not seen. A block is added after it was allocated and removed before it is freed, so
 * that another thread that gets the same address never meets the old one. `inside` keeps an
 * allocator that is made of another one (calloc of malloc), and signal handlers, from counting
 * twice or waiting for a lock of their own thread.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include "core/notices.h"
#include "core/runtime.h"
#include "regions/regions.h"
#include "wrappers/got.h"
#include "wrappers/memory_private.h"
#include "wrappers/wrappers.h"

static __thread bool inside;
static uint32_t site_depth;

enum function {
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
	FUNCTIONS
};

static _Atomic(void *) originals[FUNCTIONS];

#define ORIGINAL(function) atomic_load_explicit(&originals[function], memory_order_relaxed)

/* Must be in the replacement itself: its frame is what is looked at. */
#define CALLER()                                                                                   \
	({                                                                                         \
		const uint64_t *frame_ = __builtin_frame_address(0);                               \
		(struct unwind_registers){                                                         \
			.ip = frame_[1], .sp = (uint64_t)(frame_ + 2), .bp = frame_[0]};           \
	})

/* Also in a child that was just forked, whose background thread writes the records once it is
 * there.
 */
static bool is_recording(void)
{
	uint32_t state = atomic_load_explicit(&kymo_runtime.state, memory_order_relaxed);

	return (state == RUNTIME_ACTIVE || state == RUNTIME_STARTING) && *kymo_runtime.same_process;
}

/* False: this call is not to be looked at. */
static bool enter(void)
{
	if (inside || !is_recording() || region_is_own())
		return false;
	inside = true;
	return true;
}

static void leave(void)
{
	inside = false;
}

static void added(void *address, uint64_t size, const struct unwind_registers *caller)
{
	uint64_t frames[MEMORY_DEPTH_MAX];
	struct memory_block block = {.address = (uint64_t)address}, previous;
	uint32_t count;

	if (!address || (atomic_load_explicit(&kymo_runtime.control.closed, memory_order_relaxed) &
			 ~(uint32_t)CONTROL_CLOSED_START))
		return;
	count = memory_walk(caller, frames, site_depth);
	block.size = size & MEMORY_SIZE_MASK;
	block.site = memory_site_of(frames, count) & MEMORY_SITE_MASK;
	if (block.site == MEMORY_SITE_NONE || !memory_block_add(&block, &previous)) {
		memory_site_allocated(MEMORY_SITE_NONE, size);
		return;
	}
	if (previous.address)
		memory_site_freed(previous.site, previous.size);
	memory_site_allocated(block.site, size);
	memory_counters();
}

static bool removed(void *address, struct memory_block *ret)
{
	if (!memory_block_remove((uint64_t)address, ret)) {
		memory_site_freed(MEMORY_SITE_NONE, 0);
		return false;
	}
	return true;
}

static void *wrapped_malloc(size_t size)
{
	void *(*original)(size_t) = ORIGINAL(MALLOC);
	struct unwind_registers caller = CALLER();
	void *address;

	if (!enter())
		return original(size);
	address = original(size);
	added(address, size, &caller);
	leave();
	return address;
}

static void *wrapped_calloc(size_t count, size_t size)
{
	void *(*original)(size_t, size_t) = ORIGINAL(CALLOC);
	struct unwind_registers caller = CALLER();
	void *address;

	if (!enter())
		return original(count, size);
	address = original(count, size);
	added(address, count * size, &caller);
	leave();
	return address;
}

/* The old block is removed before it may be freed, and put back when it was not. */
static void *resize(void *old, size_t size, const struct unwind_registers *caller,
		    void *(*original)(void *, size_t, size_t), size_t count)
{
	struct memory_block block, previous;
	bool known = old && removed(old, &block);
	void *address = original(old, count, size);

	if (!address && old && size && count) {
		if (known)
			memory_block_add(&block, &previous);
		return NULL;
	}
	if (known)
		memory_site_freed(block.site, block.size);
	added(address, size * count, caller);
	return address;
}

static void *call_realloc(void *old, size_t count, size_t size)
{
	void *(*original)(void *, size_t) = ORIGINAL(REALLOC);

	(void)count;
	return original(old, size);
}

static void *call_reallocarray(void *old, size_t count, size_t size)
{
	void *(*original)(void *, size_t, size_t) = ORIGINAL(REALLOCARRAY);

	return original(old, count, size);
}

static void *wrapped_realloc(void *old, size_t size)
{
	struct unwind_registers caller = CALLER();
	void *address;

	if (!enter())
		return call_realloc(old, 1, size);
	address = resize(old, size, &caller, call_realloc, 1);
	leave();
	return address;
}

static void *wrapped_reallocarray(void *old, size_t count, size_t size)
{
	struct unwind_registers caller = CALLER();
	void *address;

	if (!enter())
		return call_reallocarray(old, count, size);
	address = resize(old, size, &caller, call_reallocarray, count);
	leave();
	return address;
}

static void wrapped_free(void *address)
{
	void (*original)(void *) = ORIGINAL(FREE);
	struct memory_block block;

	if (!address || !enter()) {
		original(address);
		return;
	}
	if (removed(address, &block))
		memory_site_freed(block.site, block.size);
	original(address);
	leave();
}

static int wrapped_posix_memalign(void **ret, size_t alignment, size_t size)
{
	int (*original)(void **, size_t, size_t) = ORIGINAL(POSIX_MEMALIGN);
	struct unwind_registers caller = CALLER();
	int error;

	if (!enter())
		return original(ret, alignment, size);
	error = original(ret, alignment, size);
	if (!error)
		added(*ret, size, &caller);
	leave();
	return error;
}

static void *wrapped_aligned_alloc(size_t alignment, size_t size)
{
	void *(*original)(size_t, size_t) = ORIGINAL(ALIGNED_ALLOC);
	struct unwind_registers caller = CALLER();
	void *address;

	if (!enter())
		return original(alignment, size);
	address = original(alignment, size);
	added(address, size, &caller);
	leave();
	return address;
}

static void *wrapped_memalign(size_t alignment, size_t size)
{
	void *(*original)(size_t, size_t) = ORIGINAL(MEMALIGN);
	struct unwind_registers caller = CALLER();
	void *address;

	if (!enter())
		return original(alignment, size);
	address = original(alignment, size);
	added(address, size, &caller);
	leave();
	return address;
}

static void *wrapped_valloc(size_t size)
{
	void *(*original)(size_t) = ORIGINAL(VALLOC);
	struct unwind_registers caller = CALLER();
	void *address;

	if (!enter())
		return original(size);
	address = original(size);
	added(address, size, &caller);
	leave();
	return address;
}

static void *wrapped_pvalloc(size_t size)
{
	void *(*original)(size_t) = ORIGINAL(PVALLOC);
	struct unwind_registers caller = CALLER();
	void *address;

	if (!enter())
		return original(size);
	address = original(size);
	added(address, size, &caller);
	leave();
	return address;
}

static char *wrapped_strdup(const char *text)
{
	char *(*original)(const char *) = ORIGINAL(STRDUP);
	struct unwind_registers caller = CALLER();
	char *copy;

	if (!enter())
		return original(text);
	copy = original(text);
	if (copy)
		added(copy, strlen(copy) + 1, &caller);
	leave();
	return copy;
}

static char *wrapped_strndup(const char *text, size_t length)
{
	char *(*original)(const char *, size_t) = ORIGINAL(STRNDUP);
	struct unwind_registers caller = CALLER();
	char *copy;

	if (!enter())
		return original(text, length);
	copy = original(text, length);
	if (copy)
		added(copy, strlen(copy) + 1, &caller);
	leave();
	return copy;
}

static struct got_wrapper wrappers[FUNCTIONS] = {
	[MALLOC] = {"malloc", (void *)wrapped_malloc, &originals[MALLOC], NULL, 0},
	[CALLOC] = {"calloc", (void *)wrapped_calloc, &originals[CALLOC], NULL, 0},
	[REALLOC] = {"realloc", (void *)wrapped_realloc, &originals[REALLOC], NULL, 0},
	[REALLOCARRAY] = {"reallocarray", (void *)wrapped_reallocarray, &originals[REALLOCARRAY],
			  NULL, 0},
	[FREE] = {"free", (void *)wrapped_free, &originals[FREE], NULL, 0},
	[POSIX_MEMALIGN] = {"posix_memalign", (void *)wrapped_posix_memalign,
			    &originals[POSIX_MEMALIGN], NULL, 0},
	[ALIGNED_ALLOC] = {"aligned_alloc", (void *)wrapped_aligned_alloc,
			   &originals[ALIGNED_ALLOC], NULL, 0},
	[MEMALIGN] = {"memalign", (void *)wrapped_memalign, &originals[MEMALIGN], NULL, 0},
	[VALLOC] = {"valloc", (void *)wrapped_valloc, &originals[VALLOC], NULL, 0},
	[PVALLOC] = {"pvalloc", (void *)wrapped_pvalloc, &originals[PVALLOC], NULL, 0},
	[STRDUP] = {"strdup", (void *)wrapped_strdup, &originals[STRDUP], NULL, 0},
	[STRNDUP] = {"strndup", (void *)wrapped_strndup, &originals[STRNDUP], NULL, 0},
};

/* Sanitizers' allocators look at their callers' frames and at what is theirs. */
static bool is_sanitized(void)
{
	static const char *const names[] = {"__asan_init", "__tsan_init", "__msan_init",
					    "__lsan_init", "__hwasan_init"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (dlsym(RTLD_DEFAULT, names[i]))
			return true;
	}
	return false;
}

/* What such a program calls itself does not go through a global offset table. */
static void tell_own_allocator(void)
{
	Dl_info where;
	void *function = dlsym(RTLD_DEFAULT, "free");

	/* Program headers stand in the first page of the program. */
	if (function && dladdr(function, &where) &&
	    (uint64_t)where.dli_fbase == (getauxval(AT_PHDR) & ~4095ull))
		notices_post(&kymo_runtime.background, SPOOL_NOTICE_FALLBACK, 0,
			     "the program has an allocator of its own: what it calls itself is not "
			     "seen, and what seems not to be freed may have been",
			     NULL);
}

int wrappers_memory_add(const struct options_wrappers *options)
{
	int error;

	if (!options->memory)
		return 0;
	if (is_sanitized()) {
		notices_post(&kymo_runtime.background, SPOOL_NOTICE_DISABLED, 0,
			     "allocations are not counted: the program has a sanitizer", NULL);
		return 0;
	}
	tell_own_allocator();
	site_depth = options->memory_site_depth;
	if (site_depth < 1 || site_depth > MEMORY_DEPTH_MAX)
		site_depth = MEMORY_DEPTH_MAX;
	error = memory_sites_init(site_depth);
	if (!error)
		error = memory_blocks_init();
	if (error)
		return error;
	atomic_store_explicit(&kymo_runtime.follow_allocations, memory_follow,
			      memory_order_release);
	return got_add(wrappers, FUNCTIONS);
}

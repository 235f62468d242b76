/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See got.h. A scan goes through the loader's list twice: first for definitions, then for slots.
 * All memory of an object is read inside dl_iterate_phdr, which keeps it from being unloaded; in
 * there no function of the loader is called, because the loader takes its locks in the other order.
 */
#include "wrappers/got.h"

#include <link.h>
#include <pthread.h>
#include <string.h>

#include "core/futex.h"
#include "core/runtime.h"
#include "core/ticks.h"
#include "regions/regions.h"
#include "wrappers/got_engine.h"
#include "wrappers/got_names.h"
#include "wrappers/got_objects.h"
#include "wrappers/got_slots.h"

#define NS_PER_MS        1000000u
#define SETTLED_ATTEMPTS 3

static struct {
	struct got_names names;
	struct got_objects objects;
	uint64_t adds, subs; /* the loader's counters at the last scan */
	uint32_t scan;       /* number of the last one */
	uint32_t generation; /* changes when slots have to be looked at again */
	uint32_t pending;    /* objects that the last scan could not finish */
	bool complete;       /* the last scan knew all names there are */
	bool started;        /* what was loaded at the start has been seen */
	bool stopped;        /* detached: nothing is rewritten any more */
	bool own_hidden;     /* our definitions are nobody's */
	bool undefined;      /* names lost their definition with an object */
	bool rpaths;         /* an object but the program has DT_RPATH */
} got = {.generation = 1};

/* 0 free, 1 taken, 2 taken and waited for */
static _Atomic uint32_t lock_word;
static _Atomic uint32_t loads_under_way;

/* Of this thread: it takes the lock, or has it. */
static __thread bool at_lock;

static bool lock_until(uint64_t timeout_ns)
{
	uint32_t state = 0;

	at_lock = true;
	__asm__ volatile("" : : : "memory"); /* who borrows the thread in between is to know */
	if (atomic_compare_exchange_strong_explicit(&lock_word, &state, 1, memory_order_acquire,
						    memory_order_relaxed))
		return true;
	for (uint64_t end = timeout_ns ? ticks_clock_ns(CLOCK_MONOTONIC) + timeout_ns : 0;;) {
		if (!atomic_exchange_explicit(&lock_word, 2, memory_order_acquire))
			return true;
		futex_wait(&lock_word, 2, 20 * NS_PER_MS);
		if (end && ticks_clock_ns(CLOCK_MONOTONIC) > end) {
			at_lock = false;
			return false;
		}
	}
}

static void unlock(void)
{
	if (atomic_exchange_explicit(&lock_word, 0, memory_order_release) == 2)
		futex_wake(&lock_word);
	__asm__ volatile("" : : : "memory");
	at_lock = false;
}

/* A child of fork must not find the loader's list locked by a scan of another thread, so fork waits
 * for scans. Not for ever: the thread that forks may hold the loader's lock itself. */
static __thread bool fork_holds_lock;

static void before_fork(void)
{
	fork_holds_lock = lock_until(100 * NS_PER_MS);
}

static void after_fork(void)
{
	if (fork_holds_lock)
		unlock();
	fork_holds_lock = false;
}

static void after_fork_in_child(void)
{
	fork_holds_lock = at_lock = false;
	atomic_store_explicit(&lock_word, 0, memory_order_relaxed);
	atomic_store_explicit(&loads_under_way, 0, memory_order_relaxed);
}

void got_follow_forks(void)
{
	static atomic_bool followed;

	if (!atomic_exchange(&followed, true))
		pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

bool got_is_busy_here(void)
{
	return at_lock;
}

void got_hide_own(void)
{
	got.own_hidden = true;
}

int got_add(struct got_wrapper *table, size_t count)
{
	int error = 0;

	lock_until(0);
	for (size_t i = 0; i < count && !error; i++)
		error = got_names_add(&got.names, &table[i]);
	got.generation++;
	got.complete = false;
	unlock();
	return error;
}

static bool begins_with_any(const char *file, const char *const *prefixes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!strncmp(file, prefixes[i], strlen(prefixes[i])))
			return true;
	}
	return false;
}

/* The kernel's object defines nothing that callers are bound to, and calls nothing. */
static bool is_kernels(const char *file)
{
	static const char *const names[] = {"linux-vdso", "linux-gate"};

	return begins_with_any(file, names, sizeof(names) / sizeof(names[0]));
}

/* The loader and sanitizers' run times work below libc, as kymo does. */
static bool is_left_alone(const char *file)
{
	static const char *const names[] = {"libkymo", "libc.so", "libc-2.", "ld-linux", "ld-2.",
					    "libasan", "libtsan", "liblsan", "libubsan"};

	return begins_with_any(file, names, sizeof(names) / sizeof(names[0]));
}

static bool is_hidden(const struct got_object *object)
{
	uint64_t here = (uint64_t)&got;

	return got.own_hidden && here >= object->low && here < object->high;
}

static bool counters_changed(const struct dl_phdr_info *info)
{
	return info->dlpi_adds != got.adds || info->dlpi_subs != got.subs;
}

struct look {
	bool first;
	bool unloaded; /* since the last scan */
	bool again;    /* all objects, not only new ones */
};

/* Definitions of one object. An object that can be unloaded may be another one at the same place,
 * if anything was unloaded since the last scan. */
static int look_at_definitions(struct dl_phdr_info *info, size_t size, void *data)
{
	struct look *look = data;
	struct got_record *record;
	struct got_object object;

	(void)size;
	if (look->first) {
		look->first = false;
		if (got.complete && !got.pending && !counters_changed(info))
			return 1;
		look->unloaded = info->dlpi_subs != got.subs;
		got.adds = info->dlpi_adds;
		got.subs = info->dlpi_subs;
		got.scan++;
	}
	if (!got_object_read(&object, info) || is_kernels(got_object_file(&object)) ||
	    is_hidden(&object))
		return 0;
	record = got_objects_get(&got.objects, object.base, object.dynamic, got_hash(object.name));
	if (!record)
		return 0;
	if (!record->seen)
		record->start = !got.started;
	record->seen = got.scan;
	if (look->unloaded && !record->start) {
		record->defined = record->done = 0;
		got_names_forget(&got.names, record->base, record->dynamic);
	}
	got.rpaths |= object.has_rpath && object.name[0];
	if (record->defined == got.names.hooks && !look->again)
		return 0;
	record->defined = got.names.hooks;
	if (got_names_define(&got.names, &object, record->start))
		got.generation++;
	return 0;
}

static int look_at_slots(struct dl_phdr_info *info, size_t size, void *data)
{
	struct got_record *record;
	struct got_object object;

	(void)size;
	(void)data;
	if (!got_object_read(&object, info) || is_kernels(got_object_file(&object)) ||
	    is_left_alone(got_object_file(&object)))
		return 0;
	record = got_objects_find(&got.objects, object.base, object.dynamic, got_hash(object.name));
	if (!record || record->done == got.generation)
		return 0;
	switch (got_slots_rewrite(&object, &got.names, record->attempts >= SETTLED_ATTEMPTS)) {
	case GOT_SLOTS_NOT_YET:
		record->attempts++;
		got.pending++;
		return 0;
	case GOT_SLOTS_REFUSED:
		spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_WRAPPER);
		break;
	case GOT_SLOTS_DONE:
		break;
	}
	/* An object that another thread is loading right now may not be relocated yet. */
	if (atomic_load_explicit(&loads_under_way, memory_order_relaxed) && !record->start)
		got.pending++;
	else
		record->done = got.generation;
	return 0;
}

/* What else defines these names is to be looked up anew. */
static void forget(const struct got_record *record)
{
	if (got_names_forget(&got.names, record->base, record->dynamic))
		got.undefined = true;
}

static void look_again_at_definitions(void)
{
	struct look look = {.again = true};

	got.undefined = false;
	dl_iterate_phdr(look_at_definitions, &look);
}

void got_scan(void)
{
	struct look look = {.first = true};

	/* In a seccomp filter any system call of ours may be deadly. The program's own fork
	 * handlers may open libraries. */
	if (kymo_runtime.sealed || fork_holds_lock)
		return;
	region_enter_own();
	lock_until(0);
	if (!got.stopped && got.names.count && !dl_iterate_phdr(look_at_definitions, &look)) {
		got_objects_sweep(&got.objects, got.scan, forget);
		if (got.undefined)
			look_again_at_definitions();
		got.pending = 0;
		dl_iterate_phdr(look_at_slots, NULL);
		got.complete = got.started = true;
	}
	unlock();
	region_leave_own();
}

static int restore(struct dl_phdr_info *info, size_t size, void *data)
{
	struct got_object object;

	(void)size;
	(void)data;
	if (got_object_read(&object, info) && !is_kernels(got_object_file(&object)) &&
	    !is_left_alone(got_object_file(&object)))
		got_slots_restore(&object, &got.names);
	return 0;
}

void got_restore(void)
{
	lock_until(0);
	got.stopped = true;
	dl_iterate_phdr(restore, NULL);
	unlock();
}

void got_resume(void)
{
	lock_until(0);
	if (got.stopped) {
		got.stopped = got.complete = false;
		got.generation++;
	}
	unlock();
}

/* Without the lock: a program may look up symbols inside dl_iterate_phdr, for which a scan waits.
 * Names are added before the first look-up. */
void *got_replacement_of(const char *symbol, void *function)
{
	const struct got_name *name = got.stopped ? NULL : got_names_find(&got.names, symbol);
	void *target = name ? name->target : NULL;

	return target && got_name_is(name, function) ? target : function;
}

bool got_wants(const char *symbol)
{
	return !got.stopped && got_names_find(&got.names, symbol);
}

void got_load_begins(void)
{
	atomic_fetch_add_explicit(&loads_under_way, 1, memory_order_relaxed);
}

void got_load_ends(void)
{
	atomic_fetch_sub_explicit(&loads_under_way, 1, memory_order_relaxed);
}

struct search_path {
	uint64_t address;
	bool found;
};

static int look_at_search_path(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search_path *path = data;
	struct got_object object;

	(void)size;
	if (!got_object_read(&object, info) || path->address < object.low ||
	    path->address >= object.high)
		return 0;
	path->found = object.has_search_path;
	return 1;
}

/* Objects inherit DT_RPATH from what loaded them: once one of them has it, who knows. An address in
 * no object belongs to code made at run time, whose look-up the loader does as the program's. */
bool got_has_search_path(const void *code)
{
	struct search_path path = {.address = (uint64_t)code};

	if (got.rpaths)
		return true;
	return dl_iterate_phdr(look_at_search_path, &path) ? path.found : true;
}

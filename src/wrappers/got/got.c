/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See got.h. A scan goes through the loader's list twice: first for definitions, then for slots.
 * All memory of an object is read inside dl_iterate_phdr, which keeps it from being unloaded; in
 * there no function of the loader is called, because the loader takes its locks in the other order.
 */
#include "wrappers/got/got.h"

#include <link.h>
#include <pthread.h>
#include <string.h>

#include "common/array.h"
#include "core/base/fork_state.h"
#include "core/base/futex.h"
#include "core/base/ticks.h"
#include "core/runtime.h"
#include "regions/regions.h"
#include "wrappers/got/engine.h"
#include "wrappers/got/names.h"
#include "wrappers/got/objects.h"
#include "wrappers/got/slots.h"

#define NS_PER_MS                     1000000u
#define SETTLED_OBJECT_ATTEMPTS_LEAST 3

static struct {
	struct spool_writer *spool; /* counts what could not be rewritten */
	struct got_name_table names;
	struct got_object_table objects;
	uint64_t loader_add_count, loader_remove_count; /* the loader's counters at the last scan */
	uint32_t last_scan_number;                      /* number of the last one */
	uint32_t generation;             /* changes when slots have to be looked at again */
	uint32_t pending;                /* objects that the last scan could not finish */
	bool was_scan_complete;          /* the last scan knew all names there are */
	bool started;                    /* what was loaded at the start has been seen */
	bool is_stopped;                 /* detached: nothing is rewritten any more */
	bool are_own_definitions_hidden; /* our definitions are nobody's */
	bool has_undefined_names;        /* names lost their definition with an object */
	bool has_library_with_rpath;     /* an object but the program has DT_RPATH */
} got = {.spool = &spool_writer_without_file, .generation = 1};

/* 0 free, 1 taken, 2 taken and waited for */
KYMO_FORK_STATE static _Atomic uint32_t got_lock_futex_word;
KYMO_FORK_STATE static _Atomic uint32_t dlopens_in_progress_count;

/* This thread takes the lock, or has it. */
static __thread bool current_thread_at_got_lock_flag;

static bool got_lock_with_timeout(uint64_t timeout_ns)
{
	uint32_t state = 0;

	current_thread_at_got_lock_flag = true;
	__asm__ volatile("" : : : "memory"); /* who borrows the thread in between is to know */
	if (atomic_compare_exchange_strong_explicit(&got_lock_futex_word, &state, 1,
						    memory_order_acquire, memory_order_relaxed))
		return true;
	for (uint64_t end = timeout_ns ? read_posix_clock_ns(CLOCK_MONOTONIC) + timeout_ns : 0;;) {
		if (!atomic_exchange_explicit(&got_lock_futex_word, 2, memory_order_acquire))
			return true;
		futex_wait(&got_lock_futex_word, 2, 20 * NS_PER_MS);
		if (end && read_posix_clock_ns(CLOCK_MONOTONIC) > end) {
			current_thread_at_got_lock_flag = false;
			return false;
		}
	}
}

static void got_unlock(void)
{
	if (atomic_exchange_explicit(&got_lock_futex_word, 0, memory_order_release) == 2)
		futex_wake_all_waiters(&got_lock_futex_word);
	__asm__ volatile("" : : : "memory");
	current_thread_at_got_lock_flag = false;
}

/* A child of fork must not find the loader's list locked by a scan of another thread, so fork waits
 * for scans. Not for ever: the thread that forks may hold the loader's lock itself. */
static __thread bool current_fork_holds_got_lock_flag;

static void got_lock_before_fork(void)
{
	current_fork_holds_got_lock_flag = got_lock_with_timeout(100 * NS_PER_MS);
}

KYMO_FORK_CODE static void got_unlock_after_fork(void)
{
	if (current_fork_holds_got_lock_flag)
		got_unlock();
	current_fork_holds_got_lock_flag = false;
}

KYMO_FORK_CODE static void reset_lock_in_forked_child(void)
{
	current_fork_holds_got_lock_flag = current_thread_at_got_lock_flag = false;
	atomic_store_explicit(&got_lock_futex_word, 0, memory_order_relaxed);
	atomic_store_explicit(&dlopens_in_progress_count, 0, memory_order_relaxed);
}

void got_register_fork_handlers(void)
{
	static atomic_bool followed;

	if (!atomic_exchange(&followed, true))
		pthread_atfork(got_lock_before_fork, got_unlock_after_fork,
			       reset_lock_in_forked_child);
}

bool got_thread_is_at_lock(void)
{
	return current_thread_at_got_lock_flag;
}

void got_ignore_own_definitions(void)
{
	got.are_own_definitions_hidden = true;
}

int got_add_wrappers(struct got_wrapper *table, size_t count)
{
	int error = 0;

	got_lock_with_timeout(0);
	for (size_t i = 0; i < count && !error; i++)
		error = got_names_add_wrapper(&got.names, &table[i]);
	got.generation++;
	got.was_scan_complete = false;
	got_unlock();
	return error;
}

/* The kernel's object defines nothing that callers are bound to, and calls nothing. */
static bool file_is_vdso(const char *file)
{
	static const char *const names[] = {"linux-vdso", "linux-gate"};

	return got_file_name_has_any_prefix(file, names, ARRAY_SIZE(names));
}

/* The loader and sanitizers' run times work below libc, as kymo does. libc's slots are looked at
 * for what libc lets others replace (slots.c). */
static bool object_is_never_rewritten(const char *file)
{
	static const char *const names[] = {"libkymo", "libasan", "libtsan", "liblsan", "libubsan"};

	return (got_file_is_libc_or_loader(file) && !got_file_is_libc(file)) ||
	       got_file_name_has_any_prefix(file, names, ARRAY_SIZE(names));
}

static bool is_own_hidden_object(const struct got_object *object)
{
	uint64_t here = (uint64_t)&got;

	return got.are_own_definitions_hidden && here >= object->low && here < object->high;
}

static bool loader_counters_changed(const struct dl_phdr_info *info)
{
	return info->dlpi_adds != got.loader_add_count ||
	       info->dlpi_subs != got.loader_remove_count;
}

struct object_walk_state {
	bool first;
	bool has_unloaded_objects;   /* since the last scan */
	bool revisits_known_objects; /* all objects, not only new ones */
};

/* Definitions of one object. An object that can be unloaded may be another one at the same place,
 * if anything was unloaded since the last scan. */
static int update_names_from_object(struct dl_phdr_info *info, size_t size, void *data)
{
	struct object_walk_state *look = data;
	struct got_object_record *record;
	struct got_object object;

	(void)size;
	if (look->first) {
		look->first = false;
		if (got.was_scan_complete && !got.pending && !loader_counters_changed(info))
			return 1;
		look->has_unloaded_objects = info->dlpi_subs != got.loader_remove_count;
		got.loader_add_count = info->dlpi_adds;
		got.loader_remove_count = info->dlpi_subs;
		got.last_scan_number++;
	}
	if (!got_object_read(&object, info) || file_is_vdso(got_object_get_file_name(&object)) ||
	    is_own_hidden_object(&object))
		return 0;
	record = got_objects_find_or_add_record(&got.objects, object.base,
						object.dynamic_section_address,
						got_hash_name(object.name));
	if (!record)
		return 0;
	if (!record->seen)
		record->start = !got.started;
	record->seen = got.last_scan_number;
	if (look->has_unloaded_objects && !record->start) {
		record->wrapper_count_when_noted = record->done = 0;
		got_names_forget_gone_object(&got.names, record->base,
					     record->dynamic_section_address);
	}
	got.has_library_with_rpath |= object.has_rpath && object.name[0];
	if (record->wrapper_count_when_noted == got.names.wrapper_count &&
	    !look->revisits_known_objects)
		return 0;
	record->wrapper_count_when_noted = got.names.wrapper_count;
	if (got_names_update_definitions(&got.names, &object, record->start))
		got.generation++;
	return 0;
}

static int rewrite_object_slots(struct dl_phdr_info *info, size_t size, void *data)
{
	struct got_object_record *record;
	struct got_object object;

	(void)size;
	(void)data;
	if (!got_object_read(&object, info) || file_is_vdso(got_object_get_file_name(&object)) ||
	    object_is_never_rewritten(got_object_get_file_name(&object)))
		return 0;
	record = got_objects_find_record(&got.objects, object.base, object.dynamic_section_address,
					 got_hash_name(object.name));
	if (!record || record->done == got.generation)
		return 0;
	switch (got_slots_rewrite(&object, &got.names,
				  record->loader_busy_scan_count >=
					  SETTLED_OBJECT_ATTEMPTS_LEAST)) {
	case GOT_SLOTS_LOADER_BUSY:
		record->loader_busy_scan_count++;
		got.pending++;
		return 0;
	case GOT_SLOTS_WRITE_REFUSED:
		spool_count_loss(got.spool, SPOOL_LOSS_WRAPPER);
		break;
	case GOT_SLOTS_REWRITTEN:
		break;
	}
	/* An object that another thread is loading right now may not be relocated yet. */
	if (atomic_load_explicit(&dlopens_in_progress_count, memory_order_relaxed) &&
	    !record->start)
		got.pending++;
	else
		record->done = got.generation;
	return 0;
}

/* What else defines these names is to be looked up again. */
static void drop_definitions_of_removed_object(const struct got_object_record *record)
{
	if (got_names_forget_gone_object(&got.names, record->base, record->dynamic_section_address))
		got.has_undefined_names = true;
}

static void find_definitions_again(void)
{
	struct object_walk_state look = {.revisits_known_objects = true};

	got.has_undefined_names = false;
	dl_iterate_phdr(update_names_from_object, &look);
}

void got_set_spool(struct spool_writer *spool)
{
	got.spool = spool;
}

void got_scan_and_rewrite(void)
{
	struct object_walk_state look = {.first = true};

	/* In a seccomp filter any system call of ours may be deadly. The program's own fork
	 * handlers may open libraries. */
	if (process_has_seccomp_thread() || current_fork_holds_got_lock_flag)
		return;
	region_enter_kymo_code();
	got_lock_with_timeout(0);
	if (!got.is_stopped && got.names.count &&
	    !dl_iterate_phdr(update_names_from_object, &look)) {
		got_objects_remove_unseen(&got.objects, got.last_scan_number,
					  drop_definitions_of_removed_object);
		if (got.has_undefined_names)
			find_definitions_again();
		got.pending = 0;
		dl_iterate_phdr(rewrite_object_slots, NULL);
		got.was_scan_complete = got.started = true;
	}
	got_unlock();
	region_leave_kymo_code();
}

static int restore_object_slots(struct dl_phdr_info *info, size_t size, void *data)
{
	struct got_object object;

	(void)size;
	(void)data;
	if (got_object_read(&object, info) && !file_is_vdso(got_object_get_file_name(&object)) &&
	    !object_is_never_rewritten(got_object_get_file_name(&object)))
		got_slots_restore(&object, &got.names);
	return 0;
}

void got_restore_originals(void)
{
	got_lock_with_timeout(0);
	got.is_stopped = true;
	dl_iterate_phdr(restore_object_slots, NULL);
	got_unlock();
}

void got_allow_rewriting_again(void)
{
	got_lock_with_timeout(0);
	if (got.is_stopped) {
		got.is_stopped = got.was_scan_complete = false;
		got.generation++;
	}
	got_unlock();
}

/* Without the lock: a program may look up symbols inside dl_iterate_phdr, for which a scan waits.
 * Names are added before the first look-up. */
void *got_find_replacement(const char *symbol, void *function)
{
	const struct got_wrapped_name *name =
		got.is_stopped ? NULL : got_names_find(&got.names, symbol);
	void *target = name ? name->target : NULL;

	return target && got_function_is_of_name_or_wrapper(name, function) ? target : function;
}

struct next_definition_state {
	const struct got_wrapped_name *name;
	uint64_t caller;
	uint32_t definition_count;
	bool has_passed_caller;
	bool is_known_one_next; /* the first definition after the caller is the one that is known */
	bool has_next;
};

static int visit_object_to_find_next_definition(struct dl_phdr_info *info, size_t size, void *data)
{
	struct next_definition_state *look = data;
	struct got_object object;

	(void)size;
	if (!got_object_read(&object, info) || is_own_hidden_object(&object))
		return 0;
	if (look->caller >= object.low && look->caller < object.high) {
		look->has_passed_caller = true;
		if (look->name->base == object.base)
			return 1;
		return 0;
	}
	if (!got_object_find_definition(&object, look->name->symbol, look->name->hash))
		return 0;
	look->definition_count++;
	if (look->has_passed_caller && !look->has_next) {
		look->has_next = true;
		look->is_known_one_next =
			look->name->base == object.base &&
			look->name->dynamic_section_address == object.dynamic_section_address;
	}
	return 0;
}

/* What was loaded at the start is looked through in the order of the loader's list. Objects that
 * were opened later stand behind it and have a scope of their own, in which the only definition
 * that there is is found as well. */
void *got_find_next_replacement(const char *symbol, const void *caller)
{
	struct next_definition_state look = {.caller = (uint64_t)caller};

	look.name = got.is_stopped ? NULL : got_names_find(&got.names, symbol);
	if (!look.name || !look.name->target ||
	    dl_iterate_phdr(visit_object_to_find_next_definition, &look) || !look.has_passed_caller)
		return NULL;
	if (look.has_next)
		return look.is_known_one_next && look.name->start ? look.name->target : NULL;
	return look.definition_count == 1 ? look.name->target : NULL;
}

bool got_name_is_wrapped(const char *symbol)
{
	return !got.is_stopped && got_names_find(&got.names, symbol);
}

bool got_name_has_foreign_interposer(const char *symbol)
{
	const struct got_wrapped_name *name = got_names_find(&got.names, symbol);

	return name && name->is_interposer;
}

uint64_t got_get_object_change_count(void)
{
	return got.loader_add_count + got.loader_remove_count;
}

void got_count_load_begin(void)
{
	atomic_fetch_add_explicit(&dlopens_in_progress_count, 1, memory_order_relaxed);
}

void got_count_load_end(void)
{
	atomic_fetch_sub_explicit(&dlopens_in_progress_count, 1, memory_order_relaxed);
}

struct caller_search_path_state {
	uint64_t address;
	bool found;
};

static int visit_object_to_query_search_path(struct dl_phdr_info *info, size_t size, void *data)
{
	struct caller_search_path_state *path = data;
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
bool got_caller_has_search_path(const void *code)
{
	struct caller_search_path_state path = {.address = (uint64_t)code};

	if (got.has_library_with_rpath)
		return true;
	return dl_iterate_phdr(visit_object_to_query_search_path, &path) ? path.found : true;
}

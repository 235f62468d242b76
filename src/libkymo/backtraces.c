/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Backtraces that a program takes of itself are those that it would take without stubs.
 *
 * glibc's backtrace() finds libgcc's unwinder behind our back, so ours does what glibc's does
 * (2.36, debug/backtrace.c) with a walk that leaves stubs out. Where there are no arenas, calls go
 * straight on.
 *
 * Once the real functions are found, nothing here allocates or takes a lock.
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unwind.h>

#include "instrument/unwind.h"
#include "libkymo/find_object.h"
#include "libkymo/real.h"

/* An unwinder's functions, of one library: each knows its own contexts alone. */
struct unwinder {
	_Atomic(void *) walk, get_ip, set_ip, get_cfa;
};

static struct unwinder of_program, of_libc;

#define CALL(unwinder, member, name)                                                               \
	((__typeof__(&(name)))atomic_load_explicit(&(unwinder)->member, memory_order_relaxed))

/* Where the frame of the exported function that this is in begins: unwinders say that of callers
 * about the frames that they called. */
#define OWN_END ((uint64_t)(uintptr_t)__builtin_frame_address(0) + 16)

/* ---- the real ones ---- */

static bool find_in(struct unwinder *unwinder, void *library)
{
	void *walk = dlsym(library, "_Unwind_Backtrace"), *get_ip = dlsym(library, "_Unwind_GetIP"),
	     *set_ip = dlsym(library, "_Unwind_SetIP"), *get_cfa = dlsym(library, "_Unwind_GetCFA");

	if (!walk || !get_ip || !set_ip || !get_cfa) {
		dlerror(); /* is not the program's to see */
		return false;
	}
	atomic_store_explicit(&unwinder->get_ip, get_ip, memory_order_relaxed);
	atomic_store_explicit(&unwinder->set_ip, set_ip, memory_order_relaxed);
	atomic_store_explicit(&unwinder->get_cfa, get_cfa, memory_order_relaxed);
	atomic_store_explicit(&unwinder->walk, walk, memory_order_release);
	return true;
}

static bool is_found(struct unwinder *unwinder)
{
	return atomic_load_explicit(&unwinder->walk, memory_order_acquire) != NULL;
}

/* It may have been loaded later, or for somebody else. It stays loaded from now on. */
static bool find_libgcc(struct unwinder *unwinder)
{
	void *library = dlopen(LIBGCC, RTLD_LAZY | RTLD_NOLOAD);

	if (!library)
		dlerror();
	return library && find_in(unwinder, library);
}

static bool find_of_program(void)
{
	return is_found(&of_program) || find_in(&of_program, RTLD_NEXT) || find_libgcc(&of_program);
}

static __typeof__(&backtrace) find_backtrace(void)
{
	static _Atomic(void *) found;
	void *function = atomic_load_explicit(&found, memory_order_relaxed);

	if (!function) {
		function = dlsym(RTLD_NEXT, "backtrace");
		atomic_store_explicit(&found, function, memory_order_relaxed);
	}
	return (__typeof__(&backtrace))function;
}

/* libc loads the unwinder when it is first needed. */
static bool find_of_libc(__typeof__(&backtrace) real)
{
	void *address;

	return is_found(&of_libc) || (real(&address, 1) && find_libgcc(&of_libc));
}

/* ---- _Unwind_Backtrace ---- */

struct walk {
	_Unwind_Trace_Fn trace;
	void *argument;
	uint64_t own_end;
	bool inside; /* the program's frames */
};

/* A frame that is in a stub of its function's has its place in the function while it is looked at.
 */
static _Unwind_Reason_Code show(struct _Unwind_Context *context, void *argument)
{
	struct walk *walk = argument;
	uint64_t ip = CALL(&of_program, get_ip, _Unwind_GetIP)(context), shown;
	_Unwind_Reason_Code result;

	if (!walk->inside && CALL(&of_program, get_cfa, _Unwind_GetCFA)(context) < walk->own_end)
		return _URC_NO_REASON;
	walk->inside = true;
	if (!instrument_unwind_shown(ip, &shown))
		return _URC_NO_REASON;
	if (shown == ip)
		return walk->trace(context, walk->argument);
	CALL(&of_program, set_ip, _Unwind_SetIP)(context, shown);
	result = walk->trace(context, walk->argument);
	CALL(&of_program, set_ip, _Unwind_SetIP)(context, ip);
	return result;
}

/* Not part of the exported function, whose calls straight on are jumps: it has nothing on the stack
 * then. */
__attribute__((noinline)) static _Unwind_Reason_Code show_frames(struct walk walk)
{
	return CALL(&of_program, walk, _Unwind_Backtrace)(show, &walk);
}

EXPORTED _Unwind_Reason_Code _Unwind_Backtrace(_Unwind_Trace_Fn trace, void *argument)
{
	if (!find_of_program())
		return _URC_END_OF_STACK;
	if (!instrument_unwind_hides())
		return CALL(&of_program, walk, _Unwind_Backtrace)(trace, argument);
	return show_frames((struct walk){.trace = trace, .argument = argument, .own_end = OWN_END});
}

/* ---- backtrace ---- */

struct list {
	void **addresses;
	int count, size;
	uint64_t own_end;
	bool inside;
	_Unwind_Word cfa;
};

static _Unwind_Reason_Code note(struct _Unwind_Context *context, void *argument)
{
	struct list *list = argument;
	uint64_t ip = CALL(&of_libc, get_ip, _Unwind_GetIP)(context), shown;
	_Unwind_Word cfa = CALL(&of_libc, get_cfa, _Unwind_GetCFA)(context);

	if (!list->inside && cfa < list->own_end)
		return _URC_NO_REASON;
	list->inside = true;
	if (!instrument_unwind_shown(ip, &shown))
		return _URC_NO_REASON;
	list->addresses[list->count] = (void *)(uintptr_t)shown;
	/* a walk that gets nowhere */
	if (list->count && list->addresses[list->count - 1] == (void *)(uintptr_t)shown &&
	    cfa == list->cfa)
		return _URC_END_OF_STACK;
	list->cfa = cfa;
	return ++list->count == list->size ? _URC_END_OF_STACK : _URC_NO_REASON;
}

__attribute__((noinline)) static int list_frames(struct list list)
{
	CALL(&of_libc, walk, _Unwind_Backtrace)(note, &list);
	if (list.count > 1 && !list.addresses[list.count - 1])
		list.count--; /* what is above _start */
	return list.count;
}

EXPORTED int backtrace(void **addresses, int size)
{
	__typeof__(&backtrace) real = find_backtrace();

	if (!real || size <= 0)
		return 0;
	if (!instrument_unwind_hides() || !find_of_libc(real))
		return real(addresses, size);
	return list_frames((struct list){.addresses = addresses, .size = size, .own_end = OWN_END});
}

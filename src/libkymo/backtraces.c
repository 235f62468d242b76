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

#include "common/loader.h"
#include "common/loader_state.h"
#include "instrument/unwind.h"
#include "libkymo/find_object.h"
#include "libkymo/real.h"

/* An unwinder's functions, of one library: each knows its own contexts alone. */
struct unwinder_function_pointers {
	_Atomic(void *) walk, get_ip, set_ip, get_cfa;
};

static struct unwinder_function_pointers program_unwinder_functions, libc_unwinder_functions;

#define GET_UNWINDER_FUNCTION(unwinder, member, name)                                              \
	((__typeof__(&(name)))atomic_load_explicit(&(unwinder)->member, memory_order_relaxed))

/* Where the frame of the exported function that this is in begins: unwinders say that of callers
 * about the frames that they called. */
#define COMPUTE_OWN_FRAME_END ((uint64_t)(uintptr_t)__builtin_frame_address(0) + 16)

/* ---- the real ones ---- */

enum {
	UNWINDER_FUNCTION_BACKTRACE,
	UNWINDER_FUNCTION_GET_IP,
	UNWINDER_FUNCTION_SET_IP,
	UNWINDER_FUNCTION_GET_CFA,
	UNWINDER_FUNCTION_COUNT
};
static const char *const looked_up_unwinder_function_names[UNWINDER_FUNCTION_COUNT] = {
	"_Unwind_Backtrace", "_Unwind_GetIP", "_Unwind_SetIP", "_Unwind_GetCFA"};

static bool store_unwinder_functions(struct unwinder_function_pointers *unwinder,
				     void *const found[UNWINDER_FUNCTION_COUNT])
{
	for (size_t i = 0; i < UNWINDER_FUNCTION_COUNT; i++) {
		if (!found[i])
			return false;
	}
	atomic_store_explicit(&unwinder->get_ip, found[UNWINDER_FUNCTION_GET_IP],
			      memory_order_relaxed);
	atomic_store_explicit(&unwinder->set_ip, found[UNWINDER_FUNCTION_SET_IP],
			      memory_order_relaxed);
	atomic_store_explicit(&unwinder->get_cfa, found[UNWINDER_FUNCTION_GET_CFA],
			      memory_order_relaxed);
	atomic_store_explicit(&unwinder->walk, found[UNWINDER_FUNCTION_BACKTRACE],
			      memory_order_release);
	return true;
}

static bool find_next_linked_unwinder(struct unwinder_function_pointers *unwinder)
{
	void *found[UNWINDER_FUNCTION_COUNT];

	loader_find_symbols(LOADER_SCOPE_AFTER_OWN_OBJECT, &program_unwinder_functions,
			    looked_up_unwinder_function_names, found, UNWINDER_FUNCTION_COUNT);
	return store_unwinder_functions(unwinder, found);
}

static bool unwinder_is_found(struct unwinder_function_pointers *unwinder)
{
	return atomic_load_explicit(&unwinder->walk, memory_order_acquire) != NULL;
}

/* It may have been loaded later, or for somebody else. It stays loaded from now on. */
static bool find_libgcc_unwinder(struct unwinder_function_pointers *unwinder)
{
	void *library = loader_dlopen_keeping_dlerror(LIBGCC_FILE_NAME, RTLD_LAZY | RTLD_NOLOAD),
	     *found[UNWINDER_FUNCTION_COUNT];

	if (!library)
		return false;
	for (size_t i = 0; i < UNWINDER_FUNCTION_COUNT; i++)
		found[i] =
			loader_find_symbol_in_handle(library, looked_up_unwinder_function_names[i]);
	return store_unwinder_functions(unwinder, found);
}

static bool ensure_program_unwinder(void)
{
	return unwinder_is_found(&program_unwinder_functions) ||
	       find_next_linked_unwinder(&program_unwinder_functions) ||
	       find_libgcc_unwinder(&program_unwinder_functions);
}

static __typeof__(&backtrace) find_real_backtrace_function(void)
{
	return (__typeof__(&backtrace))real_find_function_or_null(&real_backtrace, "backtrace");
}

/* libc loads the unwinder when it is first needed. */
static bool ensure_libc_unwinder(__typeof__(&backtrace) real)
{
	void *address;

	return unwinder_is_found(&libc_unwinder_functions) ||
	       (real(&address, 1) && find_libgcc_unwinder(&libc_unwinder_functions));
}

/* ---- _Unwind_Backtrace ---- */

struct backtrace_walk_state {
	_Unwind_Trace_Fn trace_function;
	void *argument;
	uint64_t own_frame_end;
	bool is_past_own_frames; /* the program's frames */
};

/* A frame that is in a stub of its function's has its place in the function while it is looked at.
 */
static _Unwind_Reason_Code pass_frame_to_program(struct _Unwind_Context *context, void *argument)
{
	struct backtrace_walk_state *walk = argument;
	uint64_t ip = GET_UNWINDER_FUNCTION(&program_unwinder_functions, get_ip,
					    _Unwind_GetIP)(context),
		 shown;
	_Unwind_Reason_Code result;

	if (!walk->is_past_own_frames &&
	    GET_UNWINDER_FUNCTION(&program_unwinder_functions, get_cfa, _Unwind_GetCFA)(context) <
		    walk->own_frame_end)
		return _URC_NO_REASON;
	walk->is_past_own_frames = true;
	if (!instrument_find_address_without_stubs(ip, &shown))
		return _URC_NO_REASON;
	if (shown == ip)
		return walk->trace_function(context, walk->argument);
	GET_UNWINDER_FUNCTION(&program_unwinder_functions, set_ip, _Unwind_SetIP)(context, shown);
	result = walk->trace_function(context, walk->argument);
	GET_UNWINDER_FUNCTION(&program_unwinder_functions, set_ip, _Unwind_SetIP)(context, ip);
	return result;
}

/* Not part of the exported function, whose calls straight on are jumps: it has nothing on the stack
 * then. */
__attribute__((noinline)) static _Unwind_Reason_Code
walk_frames_for_program(struct backtrace_walk_state walk)
{
	return GET_UNWINDER_FUNCTION(&program_unwinder_functions, walk,
				     _Unwind_Backtrace)(pass_frame_to_program, &walk);
}

EXPORTED _Unwind_Reason_Code _Unwind_Backtrace(_Unwind_Trace_Fn trace, void *argument)
{
	if (!ensure_program_unwinder())
		return _URC_END_OF_STACK;
	if (!instrument_has_arenas())
		return GET_UNWINDER_FUNCTION(&program_unwinder_functions, walk,
					     _Unwind_Backtrace)(trace, argument);
	return walk_frames_for_program(
		(struct backtrace_walk_state){.trace_function = trace,
					      .argument = argument,
					      .own_frame_end = COMPUTE_OWN_FRAME_END});
}

/* ---- backtrace ---- */

struct frame_address_list {
	void **addresses;
	int count, size;
	uint64_t own_frame_end;
	bool is_past_own_frames;
	_Unwind_Word last_frame_cfa;
};

static _Unwind_Reason_Code append_frame_address(struct _Unwind_Context *context, void *argument)
{
	struct frame_address_list *list = argument;
	uint64_t ip = GET_UNWINDER_FUNCTION(&libc_unwinder_functions, get_ip,
					    _Unwind_GetIP)(context),
		 shown;
	_Unwind_Word cfa =
		GET_UNWINDER_FUNCTION(&libc_unwinder_functions, get_cfa, _Unwind_GetCFA)(context);

	if (!list->is_past_own_frames && cfa < list->own_frame_end)
		return _URC_NO_REASON;
	list->is_past_own_frames = true;
	if (!instrument_find_address_without_stubs(ip, &shown))
		return _URC_NO_REASON;
	list->addresses[list->count] = (void *)(uintptr_t)shown;
	/* a walk that gets nowhere */
	if (list->count && list->addresses[list->count - 1] == (void *)(uintptr_t)shown &&
	    cfa == list->last_frame_cfa)
		return _URC_END_OF_STACK;
	list->last_frame_cfa = cfa;
	return ++list->count == list->size ? _URC_END_OF_STACK : _URC_NO_REASON;
}

__attribute__((noinline)) static int list_frame_addresses(struct frame_address_list list)
{
	GET_UNWINDER_FUNCTION(&libc_unwinder_functions, walk, _Unwind_Backtrace)
	(append_frame_address, &list);
	if (list.count > 1 && !list.addresses[list.count - 1])
		list.count--; /* what is above _start */
	return list.count;
}

EXPORTED int backtrace(void **addresses, int size)
{
	__typeof__(&backtrace) real = find_real_backtrace_function();

	if (!real || size <= 0)
		return 0;
	if (!instrument_has_arenas() || !ensure_libc_unwinder(real))
		return real(addresses, size);
	return list_frame_addresses((struct frame_address_list){
		.addresses = addresses, .size = size, .own_frame_end = COMPUTE_OWN_FRAME_END});
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What kymo attach calls in a process that it loaded us into.
 *
 * The program's calls are led to our wrappers (opened.h) for as long as somebody is attached. When
 * kymo is gone without a word they stay, and do nothing but call on.
 */
#include "libkymo/attach.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "common/loader_state.h"
#include "common/syscalls.h"
#include "core/attach.h"
#include "core/helper.h"
#include "core/runtime.h"
#include "instrument/instrument.h"
#include "libkymo/dormant.h"
#include "libkymo/find_object.h"
#include "libkymo/hooks.h"
#include "libkymo/opened.h"
#include "libkymo/real.h"
#include "libkymo/session_reach.h"
#include "wrappers/got/engine.h"
#include "wrappers/got/got.h"
#include "wrappers/wrappers.h"

#define HELPER_END_TIMEOUT_NS 200000000ull

/* The settings of this run; those of the one before are no longer looked at. */
static struct {
	void *memory;
	size_t size;
} attached_settings_memory;

static void handle_fork_in_parent(void)
{
	session_reach_warn_after_fork(&kymo_runtime);
}

static void handle_fork_in_child(void)
{
	runtime_restart_in_forked_child();
}

/* The preloaded library does this in its constructor. */
static void add_fork_handlers_and_wrappers(void)
{
	static bool done;

	if (!done) {
		session_reach_remember_user();
		pthread_atfork(NULL, handle_fork_in_parent, handle_fork_in_child);
	}
	done = true;
	if (!kymo_runtime.opened)
		return;
	opened_libkymo_add_wrappers();
	wrappers_add_for_attachment(&kymo_runtime);
	got_scan_and_rewrite();
}

/* libc and libraries that are opened later load libgcc when they first unwind. It has to be there
 * before, because its slots are looked at now. */
static void load_unwinder_early(void)
{
	static bool done;

	if (done || !kymo_runtime.options.instrument.socket[0])
		return;
	done = true;
	loader_dlopen_keeping_dlerror(LIBGCC_FILE_NAME, RTLD_LAZY);
	find_object_resolve_real_function();
	got_scan_and_rewrite();
}

/* "NAME=value\0NAME=value\0\0" to a list of strings, in memory of its own. */
static char **copy_environment_block(const char *block)
{
	size_t count = 0, length = 0, size;
	char **list, *text;

	for (const char *at = block; *at; at += strlen(at) + 1)
		count++;
	while (block[length] || block[length + 1])
		length++;
	length += 2;
	size = (count + 1) * sizeof(*list) + length;
	list = sys_mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sys_mmap_failed(list))
		return NULL;
	text = (char *)(list + count + 1);
	memcpy(text, block, length);
	for (size_t i = 0; i < count; i++) {
		list[i] = text;
		text += strlen(text) + 1;
	}
	if (attached_settings_memory.memory)
		sys_munmap(attached_settings_memory.memory, attached_settings_memory.size);
	attached_settings_memory.memory = list;
	attached_settings_memory.size = size;
	return list;
}

EXPORTED int kymo_attach(const char *block)
{
	char **environment;
	int result;

	if (runtime_is_active() || dormant_is_this_process())
		return -EALREADY;
	if (got_thread_is_at_lock())
		return -EAGAIN;
	environment = copy_environment_block(block);
	if (!environment)
		return -ENOMEM;
	kymo_runtime.hooks = &libkymo_hook_table;
	result = attach_start_profiling(&kymo_runtime, environment);
	if (result)
		return result;
	add_fork_handlers_and_wrappers();
	load_unwinder_early();
	instrument_start(true);
	return 0;
}

/* A dormant process that somebody wants to ask something (kymo ctl). */
EXPORTED int kymo_wake(const char *block)
{
	(void)block;
	if (dormant_is_this_process())
		dormant_wake_now();
	return runtime_is_active() ? 0 : -ENOENT;
}

EXPORTED int kymo_detach(const char *block)
{
	(void)block;
	if (runtime_is_active())
		return -EBUSY;
	helper_wait_until_gone(HELPER_END_TIMEOUT_NS);
	if (got_thread_is_at_lock())
		return -EAGAIN;
	if (kymo_runtime.opened) {
		opened_libkymo_restore_originals();
		wrappers_forget_attachment();
	}
	return 0;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What kymo attach calls in a process that it loaded us into.
 *
 * The program's calls do not find our wrappers by themselves, so those that the program could not
 * do without are put into the global offset tables of what is loaded: calls after which our system
 * calls would be deadly (seccomp) or our threads have rights that the program gave up (set-id),
 * exec, the program's view of our signal, and unwinding through instrumented functions. They stay
 * when kymo leaves, and then do nothing but call on.
 */
#include "libkymo/attach.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <unwind.h>

#include "common/syscalls.h"
#include "core/attach.h"
#include "core/runtime.h"
#include "instrument/instrument.h"
#include "libkymo/find_object.h"
#include "libkymo/hooks.h"
#include "libkymo/real.h"
#include "wrappers/got.h"
#include "wrappers/got_engine.h"

/* The settings of this run; those of the one before are no longer looked at. */
static struct {
	void *memory;
	size_t size;
} settings;

static void after_fork_in_child(void)
{
	runtime_restart_in_child();
}

#define CALLS(call)                                                                                \
	call(_Exit) call(_Unwind_Backtrace) call(_dl_find_object) call(_exit) call(                \
		backtrace) call(execl) call(execle) call(execlp) call(execv) call(execve)          \
		call(execveat) call(execvp) call(execvpe) call(fexecve) call(initgroups) call(     \
			prctl) call(pthread_sigmask) call(setegid) call(seteuid) call(setgid)      \
			call(setgroups) call(setns) call(setregid) call(setresgid) call(setresuid) \
				call(setreuid) call(setuid) call(sigaction) call(signal)           \
					call(signalfd) call(sigpending) call(sigprocmask)          \
						call(sigtimedwait) call(sigwait) call(sigwaitinfo) \
							call(syscall) call(unshare)

/* What the slots held: our wrappers find the functions of libc by themselves. */
#define SLOT(name)  static _Atomic(void *) slot_##name;
#define ENTRY(name) {.symbol = #name, .replacement = (void *)name, .original = &slot_##name},
CALLS(SLOT)
static struct got_wrapper calls[] = {CALLS(ENTRY)};

/* The preloaded library does this in its constructor. */
static void join_program(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	pthread_atfork(NULL, NULL, after_fork_in_child);
	pthread_atfork(got_before_fork, got_after_fork, got_after_fork_in_child);
	if (!got_add(calls, sizeof(calls) / sizeof(calls[0])))
		got_scan();
}

/* libc and libraries that are opened later load libgcc when they first unwind. It has to be there
 * before, because its slots are looked at now. */
static void prepare_unwinding(void)
{
	static bool done;

	if (done || !kymo_runtime.options.instrument.socket[0])
		return;
	done = true;
	if (!dlopen(LIBGCC, RTLD_LAZY))
		dlerror();
	find_object_start();
	got_scan();
}

/* "NAME=value\0NAME=value\0\0" to a list of strings, in memory of its own. */
static char **keep(const char *block)
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
	if (sys_failed(list))
		return NULL;
	text = (char *)(list + count + 1);
	memcpy(text, block, length);
	for (size_t i = 0; i < count; i++) {
		list[i] = text;
		text += strlen(text) + 1;
	}
	if (settings.memory)
		sys_munmap(settings.memory, settings.size);
	settings.memory = list;
	settings.size = size;
	return list;
}

EXPORTED int kymo_attach(const char *block)
{
	char **environment;
	int result;

	if (runtime_active())
		return -EALREADY;
	environment = keep(block);
	if (!environment)
		return -ENOMEM;
	kymo_runtime.hooks = &libkymo_hooks;
	result = attach_start(environment);
	if (result)
		return result;
	join_program();
	prepare_unwinding();
	instrument_start(&kymo_runtime);
	return 0;
}

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

#include "common/syscalls.h"
#include "core/attach.h"
#include "core/runtime.h"
#include "instrument/instrument.h"
#include "libkymo/find_object.h"
#include "libkymo/hooks.h"
#include "libkymo/opened.h"
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

/* The preloaded library does this in its constructor. */
static void join_program(void)
{
	static bool done;

	if (!done)
		pthread_atfork(NULL, NULL, after_fork_in_child);
	done = true;
	if (!kymo_runtime.opened)
		return;
	opened_add();
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
	if (got_is_busy_here())
		return -EAGAIN;
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

EXPORTED int kymo_detach(const char *block)
{
	(void)block;
	if (runtime_active())
		return -EBUSY;
	if (got_is_busy_here())
		return -EAGAIN;
	if (kymo_runtime.opened)
		opened_restore();
	return 0;
}

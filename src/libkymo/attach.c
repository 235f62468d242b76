/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What kymo attach calls in a process that it loaded us into.
 */
#include "libkymo/attach.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "common/syscalls.h"
#include "core/attach.h"
#include "core/runtime.h"
#include "libkymo/real.h"
#include "regions/regions.h"

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
static void follow_forks(void)
{
	static bool done;

	if (!done)
		pthread_atfork(NULL, NULL, after_fork_in_child);
	done = true;
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
	kymo_runtime.hooks = &regions_hooks;
	result = attach_start(environment);
	if (!result)
		follow_forks();
	return result;
}

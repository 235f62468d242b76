/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A library that is opened and closed again and again, with calls and exceptions across; calls are
 * made into it by its constructor, by a thread and by way of it back into the program.
 */
#include "nasty.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>

#define ROUNDS 60
static char library[4096];
static long loads; /* in the first round */

/* It stays where it has symbols that are unique in a process (with libstdc++ linked statically). */
static bool is_loaded(void)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_NOLOAD);

	if (handle)
		dlclose(handle);
	return handle != NULL;
}

NASTY_KEEP int dl_back(int value)
{
	NASTY_OPAQUE();
	return value + 1;
}

NASTY_KEEP int dl_round(int depth)
{
	int (*catches)(int, int (*)(int));
	void *handle;
	int value;

	if (nasty_round == 0 && !is_loaded())
		loads++;
	handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	if (!handle)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(handle);
	catches = (int (*)(int, int (*)(int)))dlsym(handle, "plugin_catch");
	CHECK(catches);
	value = catches(depth, dl_back);
	CHECK(dlclose(handle) == 0);
	return value;
}

static void *in_thread(void *result)
{
	for (int i = 0; i < 10; i++)
		*(int *)result += dl_round(3);
	return NULL;
}

static void work(void)
{
	pthread_t thread;
	int sum = 0, other = 0;

	for (int i = 0; i < ROUNDS; i++)
		sum += dl_round(i % 8);
	CHECK(pthread_create(&thread, NULL, in_thread, &other) == 0);
	pthread_join(thread, NULL);
	nasty_say("sum %d %d\n", sum, other);
	nasty_count("dl_round", ROUNDS + 10);
	nasty_count("dl_back", 2 * (ROUNDS + 10));
	nasty_count("plugin_catch", ROUNDS + 10);
	nasty_count("plugin_begins", loads);
	nasty_count("plugin_ends", loads);
}

int main(int argc, char **argv)
{
	ssize_t length = readlink("/proc/self/exe", library, sizeof(library) - 32);

	CHECK(length > 0);
	library[length] = '\0';
	strcpy(strrchr(library, '/') + 1, "libnasty_plugin.so");
	return nasty_run(argc, argv, work);
}

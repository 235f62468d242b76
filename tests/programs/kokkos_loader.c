/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What Kokkos does with a tool (core/src/impl/Kokkos_Profiling.cpp), without Kokkos, which no
 * Debian package has: the library that KOKKOS_TOOLS_LIBS names is opened, its functions are looked
 * up one by one, and called where they are there.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct space {
	char name[64];
};

static void *tool;

#define HOOK(name, parameters, arguments)                                                          \
	do {                                                                                       \
		union {                                                                            \
			void *symbol;                                                              \
			void(*function) parameters;                                                \
		} hook_ = {.symbol = tool ? dlsym(tool, "kokkosp_" #name) : NULL};                 \
		if (hook_.symbol)                                                                  \
			hook_.function arguments;                                                  \
	} while (0)

static double kernel(const char *name, int size)
{
	uint64_t id = 0;
	double sum = 0;

	HOOK(begin_parallel_for, (const char *, uint32_t, uint64_t *), (name, 0, &id));
	for (int i = 0; i < size; i++)
		sum += i;
	HOOK(end_parallel_for, (uint64_t), (id));
	return sum;
}

static void *steps(void *unused)
{
	struct space host = {"Host"};
	double sum = 0;

	for (int step = 0; step < 50; step++) {
		HOOK(push_profile_region, (const char *), ("step"));
		sum += kernel("axpy", 1000) + kernel("dot", 500);
		HOOK(begin_deep_copy,
		     (struct space, const char *, const void *, struct space, const char *,
		      const void *, uint64_t),
		     (host, "to", &sum, host, "from", &sum, 8));
		HOOK(end_deep_copy, (void), ());
		HOOK(allocate_data, (struct space, const char *, const void *, uint64_t),
		     (host, "view", &sum, 800));
		HOOK(pop_profile_region, (void), ());
	}
	printf("%.0f\n", sum);
	return unused;
}

int main(void)
{
	const char *name = getenv("KOKKOS_TOOLS_LIBS");
	pthread_t thread;

	tool = name ? dlopen(name, RTLD_NOW | RTLD_GLOBAL) : NULL;
	HOOK(init_library, (int, uint64_t, uint32_t, void *), (0, 20240906, 0, NULL));
	pthread_create(&thread, NULL, steps, NULL);
	pthread_join(thread, NULL);
	steps(NULL);
	HOOK(finalize_library, (void), ());
	return 0;
}

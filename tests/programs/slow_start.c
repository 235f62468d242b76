/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Preloaded: 20 ms of CPU time pass in each registration of a fork handler, so that whatever a
 * timer does to a process that starts happens in the midst of that.
 */
#include <dlfcn.h>
#include <time.h>

#define BUSY_NS 20000000

static long read_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000 + now.tv_nsec;
}

/* What pthread_atfork() calls in glibc. */
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *dso);
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *dso)
{
	int (*real)(void (*)(void), void (*)(void), void (*)(void), void *) =
		dlsym(RTLD_NEXT, "__register_atfork");
	long begin = read_cpu_ns();

	while (read_cpu_ns() - begin < BUSY_NS)
		;
	return real(prepare, parent, child, dso);
}

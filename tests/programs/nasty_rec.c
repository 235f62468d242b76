/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Recursion, 150,000 deep on a thread's stack of 64 MiB.
 */
#include "nasty.h"
#include <pthread.h>

#define DEPTH 150000

/* Opaque behind the call as well, or compilers make loops of it. */
NASTY_KEEP long rec_down(long depth)
{
	long below = depth == 0 ? 0 : rec_down(depth - 1);

	NASTY_OPAQUE();
	return below + (depth & 3);
}

NASTY_KEEP long rec_left(long depth);

NASTY_KEEP long rec_right(long depth)
{
	long below = depth <= 0 ? 1 : rec_left(depth - 1);

	NASTY_OPAQUE();
	return below + 1;
}

NASTY_KEEP long rec_left(long depth)
{
	long below = depth <= 0 ? 2 : rec_right(depth - 1);

	NASTY_OPAQUE();
	return below + 1;
}

static void *deep(void *result)
{
	for (int i = 0; i < 3; i++)
		*(long *)result += rec_down(DEPTH);
	*(long *)result += rec_left(DEPTH);
	return NULL;
}

static void work(void)
{
	pthread_attr_t attributes;
	pthread_t thread;
	long result = 0;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64u << 20);
	CHECK(pthread_create(&thread, &attributes, deep, &result) == 0);
	pthread_join(thread, NULL);
	nasty_say("result %ld\n", result);
	nasty_count("rec_down", 3 * (DEPTH + 1));
	nasty_count("rec_left", DEPTH / 2 + 1);
	nasty_count("rec_right", DEPTH / 2);
}

int main(int argc, char **argv)
{
	return nasty_run(argc, argv, work);
}

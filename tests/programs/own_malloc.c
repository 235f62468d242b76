/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A program with an allocator of its own, as linked-in jemalloc and the like are: libraries and
 * libc call it, and nobody else's memory may reach it.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { ARENA = 256 << 20 };

static _Alignas(64) unsigned char arena[ARENA];
static _Atomic size_t used = 64;
static _Atomic long live;

void *malloc(size_t size)
{
	size_t whole = (size + 31) & ~(size_t)15, at = used;

	do {
		if (at + whole > ARENA) {
			errno = ENOMEM;
			return NULL;
		}
	} while (!__atomic_compare_exchange_n((size_t *)&used, &at, at + whole, 0, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	memcpy(arena + at, &size, sizeof(size));
	live++;
	return arena + at + 16;
}

void free(void *block)
{
	if (!block)
		return;
	if ((uintptr_t)block < (uintptr_t)arena || (uintptr_t)block >= (uintptr_t)arena + ARENA)
		abort(); /* not ours */
	live--;
}

void *calloc(size_t count, size_t size)
{
	return malloc(count * size); /* the arena is zero and never used twice */
}

void *realloc(void *old, size_t size)
{
	void *block = malloc(size);
	size_t before;

	if (!old || !block)
		return block;
	memcpy(&before, (unsigned char *)old - 16, sizeof(before));
	memcpy(block, old, before < size ? before : size);
	free(old);
	return block;
}

static void *thread(void *argument)
{
	for (int i = 0; i < 200; i++) {
		unsigned char text[1000] = "text", packed[2000];
		unsigned long size = sizeof(packed);
		char *line = NULL;

		if (compress(packed, &size, text, sizeof(text)) != Z_OK)
			abort();
		if (asprintf(&line, "%d", i) < 0)
			abort();
		free(line);
		free(strdup("text"));
	}
	return argument;
}

int main(void)
{
	pthread_t ids[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&ids[i], NULL, thread, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(ids[i], NULL);
	puts("ok");
	return 0;
}

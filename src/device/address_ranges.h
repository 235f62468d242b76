/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Pieces of memory, found by any address in them. They do not overlap: what is added takes the
 * place of what was there, because its memory has been given away again.
 */
#ifndef KYMO_DEVICE_ADDRESS_RANGES_H
#define KYMO_DEVICE_ADDRESS_RANGES_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct address_range {
	uintptr_t begin;
	size_t bytes;
};

/* Zeroed, but for the mutex: {.mutex = PTHREAD_MUTEX_INITIALIZER}. */
struct address_ranges {
	pthread_mutex_t mutex;
	struct address_range *sorted; /* by their begins */
	size_t count, room;
};

/* false: no memory, and it is not known. */
bool address_ranges_add(struct address_ranges *ranges, const void *begin, size_t bytes);
/* Of the one that begins there. Returns its size; 0: there is none. */
size_t address_ranges_remove(struct address_ranges *ranges, const void *begin);
bool address_ranges_contain(struct address_ranges *ranges, const void *address);
/* In a child of fork: another thread may have been in here. What is known is forgotten. */
void address_ranges_reset_forked(struct address_ranges *ranges);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Numbers of launch paths, by two independent hashes of their frames, which count as the path. The
 * table only grows and has no lock: a path that two threads add at once may get two numbers, each
 * with a record of its own, which readers join by what they say.
 *
 * Signal-safe.
 */
#ifndef KYMO_LAUNCHES_PATH_TABLE_H
#define KYMO_LAUNCHES_PATH_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#define PATH_TABLE_SLOTS     (1u << 17)
#define PATH_TABLE_PATHS_MAX (3u * (PATH_TABLE_SLOTS / 4))

struct path_identity {
	uint64_t first_hash, second_hash;
};

/* `variant` tells apart stacks that are the same by their frames. */
struct path_identity path_identity_of_frames(const uint64_t *frames, uint32_t count,
					     uint64_t variant);
/* Maps the table; false: no memory. Again: does nothing. */
bool path_table_create(void);
/* Forgets all paths. */
void path_table_clear(void);
/* 0: it is not known. */
uint32_t path_table_find(struct path_identity path);
/* A number that nobody has; 0: there are too many. */
uint32_t path_table_allocate_number(void);
/* From now on the path has this number, whose record is written. */
void path_table_add(struct path_identity path, uint32_t number);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A pool of strings in which equal ones are the same pointer.
 */
#ifndef KYMO_BINARY_STRING_POOL_H
#define KYMO_BINARY_STRING_POOL_H

#include <stddef.h>

struct string_pool;

int string_pool_create(struct string_pool **ret);
void string_pool_destroy(struct string_pool *pool);

/* The pool's copy, which lives as long as the pool; NULL: no memory. Equal text gives an equal
 * pointer. */
const char *string_pool_intern(struct string_pool *pool, const char *text);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions of a program that wait by looking again and again: a spin lock's, a barrier's. Known by
 * their code: it has `pause`, in a loop that reads memory; it has no other loop, and calls nothing,
 * so that what takes time in it can only be the wait.
 */
#ifndef KYMO_BINARY_CAUSAL_SPINS_H
#define KYMO_BINARY_CAUSAL_SPINS_H

#include "binary/causal/places.h"

/* More than this would be a run time system, which has better ways to be followed. */
#define CAUSAL_SPIN_FUNCTIONS_MAX 8u

/* Is this the code of one? */
bool causal_is_spin_function_code(const uint8_t *code, size_t size, uint64_t address);
/* Adds those of the program's file that have a name, as places of the kind CAUSAL_POINT_SPIN. A
 * file that cannot be read has none. -ENOMEM. */
int causal_places_add_spin_functions(struct causal_places *places, const char *path,
				     struct problem *problem);

#endif

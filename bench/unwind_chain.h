/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Chains of calls through 256 generated functions with frames of different sizes, compiled twice:
 * without and with frame pointers.
 */
#ifndef KYMO_BENCH_UNWIND_CHAIN_H
#define KYMO_BENCH_UNWIND_CHAIN_H

#include <stdint.h>

/* Calls `depth` functions, each choosing the next one by `seed`, and `bottom` in the innermost. */
uint64_t chain_without_pointers(unsigned depth, uint64_t seed, void (*bottom)(void));
uint64_t chain_with_pointers(unsigned depth, uint64_t seed, void (*bottom)(void));

#endif

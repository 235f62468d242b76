/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The group of all functions that wait and wake, where causal profiling is asked for.
 */
#ifndef KYMO_WRAPPERS_CAUSAL_WRAPPERS_H
#define KYMO_WRAPPERS_CAUSAL_WRAPPERS_H

#include <stdint.h>

/* 0 or negative errno. */
int wrappers_causal_add(uint64_t ticks_per_second);

#endif

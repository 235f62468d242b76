/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Runs loop_pairs() on some threads and prints the ns of a thread's time that one pair took.
 */
#ifndef KYMO_BENCH_LOOP_H
#define KYMO_BENCH_LOOP_H

void loop_pairs(unsigned long count);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counters of kernels (KYMO_COUNTERS): dispatch counting of the tool library.
 */
#ifndef KYMO_LIBKYMO_GPU_COUNT_KERNELS_H
#define KYMO_LIBKYMO_GPU_COUNT_KERNELS_H

/* While the tool is initialized. What goes wrong is a notice; everything else is recorded. */
void count_kernels_configure(void);
void count_kernels_start(void);
void count_kernels_forked(void);
/* What the library says of counting, of kernels and of devices, becomes notices. */
void counting_problems_follow(void);
/* What was left out or lost becomes part of the file. What is said later is in these sums. */
void counting_problems_end(void);
/* What was to be counted and was not becomes known. */
void count_kernels_end(void);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Counters of kernels (KYMO_COUNTERS): dispatch counting of the tool library.
 */
#ifndef KYMO_LIBKYMO_GPU_COUNT_KERNELS_H
#define KYMO_LIBKYMO_GPU_COUNT_KERNELS_H

/* While the tool is initialized. What goes wrong is a notice; everything else is recorded. */
void kernel_counting_configure_if_env_asks(void);
void kernel_counting_start(void);
void kernel_counting_reset_after_fork(void);
/* What the library says of counting, of kernels and of devices, becomes notices. */
void counting_problems_register_notice_writer(void);
/* What was left out or lost becomes part of the file. What is said later is in these sums. */
void counting_add_filtered_and_loss_counts_to_file(void);
/* What was to be counted and was not becomes known. */
void kernel_counting_add_loss_of_uncounted_kernels(void);

#endif

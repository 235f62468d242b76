/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The file of a process (kymo/gpu_records.h). Writers are threads of the tool library and of ours,
 * and the program's threads where they mark; a lock of our own keeps them apart.
 */
#ifndef KYMO_LIBKYMO_GPU_FILE_H
#define KYMO_LIBKYMO_GPU_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kymo/gpu_records.h"

/* false: there is no session, or no file can be made (said once on standard error). */
bool gpu_file_open(void);
/* In a child of fork: a file of its own. */
void gpu_file_drop_after_fork(void);
void gpu_file_close(void);
void gpu_file_lock(void);
void gpu_file_unlock(void);
/* With the lock held for long: lets go of it if a thread of the program's waits (gpu_file_lock()).
 */
void gpu_file_yield_lock_if_awaited(void);
/* With the lock held. head: of a record whose size is set; it is padded to 8 bytes. */
void gpu_file_write_record(const struct gpu_record_head *head);
/* With the lock held: the id of a string, written when it is new; 0: no memory. */
uint32_t gpu_file_find_or_write_string(const char *text);
void gpu_file_write_notice(const char *text);
void gpu_file_add_loss_count(enum gpu_loss loss, uint64_t count);
void gpu_file_add_filtered_kernel_count(uint64_t kernels);
void gpu_file_add_own_cpu_time(uint64_t ns); /* used by the calling thread since it last told */
uint64_t gpu_read_boottime_ns(void);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What is new in the store goes into its file. Raw system calls alone: for the keeper, or for the
 * own thread where there is no keeper; one at a time.
 */
#ifndef KYMO_NCCL_WRITE_OUT_H
#define KYMO_NCCL_WRITE_OUT_H

#include <stdbool.h>

/* `file`: of the store, in the calling task's descriptor table. True: chunks were written. */
bool write_out_new_records(int file);
/* The same, with the file opened for it. */
void write_out_with_file_opened(void);

#endif

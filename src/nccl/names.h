/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names of functions, data types, algorithms and protocols: NCCL gives addresses of its own
 * constant strings, records have a number of the table in the file (kymo/nccl_records.h).
 */
#ifndef KYMO_NCCL_NAMES_H
#define KYMO_NCCL_NAMES_H

#include <stdint.h>

/* Once, when there is a file. */
void names_begin(void);
/* Any thread, no lock once a name is known; NULL is 0, and so is what the table has no room for. */
uint8_t names_intern(const char *name);
/* The names of an operation at once: mostly those of the thread's last one. */
#define NAMES_OF_OPERATION 4
void names_intern_all(const char *const names[NAMES_OF_OPERATION], uint8_t ret[NAMES_OF_OPERATION]);
/* NCCL may have been loaded anew: addresses stand for other names now. */
void names_forget_addresses(void);
/* Never NULL. */
const char *names_get(uint8_t name);
/* Bytes of an element; 0: not a data type that NCCL has, 1 for "Unknown", which is ncclUint8. */
unsigned names_element_size(uint8_t data_type);

#endif

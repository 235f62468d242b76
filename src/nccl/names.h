/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names of functions, data types, algorithms and protocols: NCCL gives addresses of its own
 * constant strings, records have a number of the table in the file (kymo/nccl_records.h).
 */
#ifndef KYMO_NCCL_NAMES_H
#define KYMO_NCCL_NAMES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Once, when there is a file. */
void names_begin(void);
/* Any thread, no lock once a name is known; NULL is 0, and so is what the table has no room for. */
uint8_t names_intern(const char *name);

/* The names of an operation, as a thread knows them from its last one. */
struct names {
	const char *function, *data_type, *algorithm, *protocol;
	uint32_t forgotten; /* names_forgotten at that time */
	uint32_t numbers;   /* a byte each, in this order from the lowest */
	uint32_t element_size;
	bool type_unknown, counts_bytes;
};

extern _Atomic uint32_t names_forgotten;
void names_renew(struct names *names, const char *function, const char *data_type,
		 const char *algorithm, const char *protocol);

static inline void names_use(struct names *names, const char *function, const char *data_type,
			     const char *algorithm, const char *protocol)
{
	if (__builtin_expect(names->function != function || names->data_type != data_type ||
				     names->algorithm != algorithm || names->protocol != protocol ||
				     names->forgotten != atomic_load_explicit(&names_forgotten,
									      memory_order_acquire),
			     0))
		names_renew(names, function, data_type, algorithm, protocol);
}

/* NCCL may have been loaded anew: addresses stand for other names now. */
void names_forget_addresses(void);
/* Never NULL. */
const char *names_get(uint8_t name);
/* Bytes of an element; 0: not a data type that NCCL has, 1 for "Unknown", which is ncclUint8. */
unsigned names_element_size(uint8_t data_type);

#endif

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
void names_write_predefined(void);
/* Any thread, no lock once a name is known; NULL is 0, and so is what the table has no room for. */
uint8_t names_intern_to_number(const char *name);

/* The names of an operation, as a thread knows them from its last one. */
struct last_operation_names {
	const char *function, *data_type, *algorithm, *protocol;
	uint32_t cache_generation;    /* names_cache_generation at that time */
	uint32_t packed_name_numbers; /* a byte each, in this order from the lowest */
	uint32_t element_bytes;
	bool is_data_type_unknown, is_counted_in_bytes;
};

extern _Atomic uint32_t names_cache_generation;
void names_update_last_operation_names(struct last_operation_names *names, const char *function,
				       const char *data_type, const char *algorithm,
				       const char *protocol);

static inline void names_update_last_operation_names_if_changed(struct last_operation_names *names,
								const char *function,
								const char *data_type,
								const char *algorithm,
								const char *protocol)
{
	if (__builtin_expect(names->function != function || names->data_type != data_type ||
				     names->algorithm != algorithm || names->protocol != protocol ||
				     names->cache_generation !=
					     atomic_load_explicit(&names_cache_generation,
								  memory_order_acquire),
			     0))
		names_update_last_operation_names(names, function, data_type, algorithm, protocol);
}

/* NCCL may have been loaded again: addresses stand for other names now. */
void names_clear_address_cache(void);
/* Never NULL. */
const char *names_get_by_number(uint8_t name);
/* Bytes of an element; 0: not a data type that NCCL has, 1 for "Unknown", which is ncclUint8. */
unsigned names_get_data_type_size(uint8_t data_type);

#endif

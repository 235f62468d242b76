/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See names.h. An address is looked up in a small cache first: one word an entry, the address above
 * and the number below, so that a reader never sees half of one.
 */
#include "nccl/names.h"

#include <pthread.h>
#include <string.h>

#include "common/array.h"
#include "nccl/store.h"

#define NAME_CACHE_SLOT_COUNT 256u

static _Atomic uint64_t name_numbers_by_address[NAME_CACHE_SLOT_COUNT];
_Atomic uint32_t names_cache_generation; /* times, from 1 */
static _Atomic uint32_t known_name_count;
static pthread_mutex_t interned_names_lock = PTHREAD_MUTEX_INITIALIZER;

/* The first ones have fixed numbers: ncclDatatypeToString() of NCCL, and the sizes of its types. */
static const struct {
	const char *name;
	uint8_t size;
} predefined_names[] = {
	{"", 0},
	{"Unknown", 1},
	{"ncclInt8", 1},
	{"ncclUint8", 1},
	{"ncclInt32", 4},
	{"ncclUint32", 4},
	{"ncclInt64", 8},
	{"ncclUint64", 8},
	{"ncclFloat16", 2},
	{"ncclFloat32", 4},
	{"ncclFloat64", 8},
	{"ncclBfloat16", 2},
	{"ncclFloat8e4m3", 1},
	{"ncclFloat8e5m2", 1},
};

#define PREDEFINED_NAME_COUNT ARRAY_SIZE(predefined_names)

static char *get_name_address_in_file(uint32_t number)
{
	return (char *)store.base + NCCL_HEADER_SIZE + number * NCCL_NAME_SIZE;
}

void names_write_predefined(void)
{
	for (uint32_t i = 0; i < PREDEFINED_NAME_COUNT; i++)
		strncpy(get_name_address_in_file(i), predefined_names[i].name, NCCL_NAME_SIZE - 1);
	atomic_store_explicit(&known_name_count, PREDEFINED_NAME_COUNT, memory_order_release);
	names_clear_address_cache();
}

static uint32_t find_name_number_in_file(const char *name, uint32_t end)
{
	for (uint32_t i = 1; i < end; i++) {
		if (!strncmp(get_name_address_in_file(i), name, NCCL_NAME_SIZE - 1))
			return i;
	}
	return 0;
}

static uint32_t find_or_add_name_number(const char *name)
{
	uint32_t number, end;

	pthread_mutex_lock(&interned_names_lock);
	end = atomic_load_explicit(&known_name_count, memory_order_relaxed);
	number = find_name_number_in_file(name, end);
	if (!number && end < NCCL_NAMES) {
		strncpy(get_name_address_in_file(end), name, NCCL_NAME_SIZE - 1);
		atomic_store_explicit(&known_name_count, end + 1, memory_order_release);
		number = end;
	}
	pthread_mutex_unlock(&interned_names_lock);
	if (!number)
		store_count_loss(NCCL_LOSS_NAMES);
	return number;
}

uint8_t names_intern_to_number(const char *name)
{
	uint64_t address = (uint64_t)(uintptr_t)name, seen;
	_Atomic uint64_t *slot =
		&name_numbers_by_address[(address >> 2 ^ address >> 10) % NAME_CACHE_SLOT_COUNT];
	uint32_t number;

	if (!name || !*name)
		return 0;
	seen = atomic_load_explicit(slot, memory_order_acquire);
	if (seen >> 8 == (address & 0xffffffffffffff))
		return (uint8_t)seen;
	number = find_name_number_in_file(
		name, atomic_load_explicit(&known_name_count, memory_order_acquire));
	if (!number)
		number = find_or_add_name_number(name);
	if (number)
		atomic_store_explicit(slot, address << 8 | number, memory_order_release);
	return (uint8_t)number;
}

/* "AllGather" and "Broadcast" come with the data type ncclInt8 and count in bytes. */
static bool function_element_count_is_in_bytes(const char *function)
{
	return function && (function[0] == 'B' || (function[0] == 'A' && function[1] == 'l' &&
						   function[2] == 'l' && function[3] == 'G'));
}

void names_update_last_operation_names(struct last_operation_names *names, const char *function,
				       const char *data_type, const char *algorithm,
				       const char *protocol)
{
	uint8_t type;

	names->cache_generation =
		atomic_load_explicit(&names_cache_generation, memory_order_acquire);
	names->function = function;
	names->data_type = data_type;
	names->algorithm = algorithm;
	names->protocol = protocol;
	type = names_intern_to_number(data_type);
	names->packed_name_numbers = names_intern_to_number(function) | (uint32_t)type << 8 |
				     (uint32_t)names_intern_to_number(algorithm) << 16 |
				     (uint32_t)names_intern_to_number(protocol) << 24;
	names->element_bytes = names_get_data_type_size(type);
	names->is_data_type_unknown = type == 1; /* "Unknown" */
	names->is_counted_in_bytes = function_element_count_is_in_bytes(function);
}

void names_clear_address_cache(void)
{
	atomic_fetch_add_explicit(&names_cache_generation, 1, memory_order_release);
	for (unsigned i = 0; i < NAME_CACHE_SLOT_COUNT; i++)
		atomic_store_explicit(&name_numbers_by_address[i], 0, memory_order_relaxed);
}

const char *names_get_by_number(uint8_t name)
{
	return name < atomic_load_explicit(&known_name_count, memory_order_acquire)
		       ? get_name_address_in_file(name)
		       : "";
}

unsigned names_get_data_type_size(uint8_t data_type)
{
	return data_type < PREDEFINED_NAME_COUNT ? predefined_names[data_type].size : 0;
}

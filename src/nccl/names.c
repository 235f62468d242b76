/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See names.h. An address is looked up in a small cache first: one word an entry, the address above
 * and the number below, so that a reader never sees half of one.
 */
#include "nccl/names.h"

#include <pthread.h>
#include <string.h>

#include "nccl/store.h"

#define CACHE 256u

static _Atomic uint64_t cache[CACHE];
_Atomic uint32_t names_forgotten; /* times, from 1 */
static _Atomic uint32_t count;
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;

/* The first ones have fixed numbers: ncclDatatypeToString() of NCCL, and the sizes of its types. */
static const struct {
	const char *name;
	uint8_t size;
} known[] = {
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

#define KNOWN (sizeof(known) / sizeof(known[0]))

static char *entry(uint32_t number)
{
	return (char *)store.base + NCCL_HEADER_SIZE + number * NCCL_NAME_SIZE;
}

void names_begin(void)
{
	for (uint32_t i = 0; i < KNOWN; i++)
		strncpy(entry(i), known[i].name, NCCL_NAME_SIZE - 1);
	atomic_store_explicit(&count, KNOWN, memory_order_release);
	names_forget_addresses();
}

static uint32_t find(const char *name, uint32_t end)
{
	for (uint32_t i = 1; i < end; i++) {
		if (!strncmp(entry(i), name, NCCL_NAME_SIZE - 1))
			return i;
	}
	return 0;
}

static uint32_t add(const char *name)
{
	uint32_t number, end;

	pthread_mutex_lock(&adding);
	end = atomic_load_explicit(&count, memory_order_relaxed);
	number = find(name, end);
	if (!number && end < NCCL_NAMES) {
		strncpy(entry(end), name, NCCL_NAME_SIZE - 1);
		atomic_store_explicit(&count, end + 1, memory_order_release);
		number = end;
	}
	pthread_mutex_unlock(&adding);
	if (!number)
		store_count(NCCL_LOSS_NAMES);
	return number;
}

uint8_t names_intern(const char *name)
{
	uint64_t address = (uint64_t)(uintptr_t)name, seen;
	_Atomic uint64_t *slot = &cache[(address >> 2 ^ address >> 10) % CACHE];
	uint32_t number;

	if (!name || !*name)
		return 0;
	seen = atomic_load_explicit(slot, memory_order_acquire);
	if (seen >> 8 == (address & 0xffffffffffffff))
		return (uint8_t)seen;
	number = find(name, atomic_load_explicit(&count, memory_order_acquire));
	if (!number)
		number = add(name);
	if (number)
		atomic_store_explicit(slot, address << 8 | number, memory_order_release);
	return (uint8_t)number;
}

/* "AllGather" and "Broadcast" come with the data type ncclInt8 and count in bytes. */
static bool counts_bytes(const char *function)
{
	return function && (function[0] == 'B' || (function[0] == 'A' && function[1] == 'l' &&
						   function[2] == 'l' && function[3] == 'G'));
}

void names_renew(struct names *names, const char *function, const char *data_type,
		 const char *algorithm, const char *protocol)
{
	uint8_t type;

	names->forgotten = atomic_load_explicit(&names_forgotten, memory_order_acquire);
	names->function = function;
	names->data_type = data_type;
	names->algorithm = algorithm;
	names->protocol = protocol;
	type = names_intern(data_type);
	names->numbers = names_intern(function) | (uint32_t)type << 8 |
			 (uint32_t)names_intern(algorithm) << 16 |
			 (uint32_t)names_intern(protocol) << 24;
	names->element_size = names_element_size(type);
	names->type_unknown = type == 1; /* "Unknown" */
	names->counts_bytes = counts_bytes(function);
}

void names_forget_addresses(void)
{
	atomic_fetch_add_explicit(&names_forgotten, 1, memory_order_release);
	for (unsigned i = 0; i < CACHE; i++)
		atomic_store_explicit(&cache[i], 0, memory_order_relaxed);
}

const char *names_get(uint8_t name)
{
	return name < atomic_load_explicit(&count, memory_order_acquire) ? entry(name) : "";
}

unsigned names_element_size(uint8_t data_type)
{
	return data_type < KNOWN ? known[data_type].size : 0;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Kernels by name. A launch has the function's handle and a record the address of its name; both
 * lead by one look into a table to the symbol, which is one a distinct name. Names come with the
 * module that has them (cubin.c), or with their first launch.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hot.h"
#include "device/cuda/cuda.h"
#include "device/pointer_map.h"
#include "device/turns.h"

#define BUCKETS 8192u

struct symbol {
	struct symbol *next;
	uint64_t hash;
	device_handle handle;
	char name[];
};

static struct symbol *_Atomic symbols[BUCKETS];
static struct pointer_map by_function, by_address, graphs, modules;
static _Atomic device_handle general;

static uint64_t hash_name(const char *name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	while (*name != '\0')
		hash = (hash ^ (unsigned char)*name++) * UINT64_C(0x100000001b3);
	return hash;
}

static device_handle find(const struct symbol *at, uint64_t hash, const char *name)
{
	while (at != NULL && (at->hash != hash || strcmp(at->name, name) != 0))
		at = at->next;
	return at != NULL ? at->handle : DEVICE_NONE;
}

/* The program of kernels whose module was not seen. */
static device_handle general_program(const struct device_sink *sink)
{
	device_handle program = atomic_load(&general), none = DEVICE_NONE;
	struct device_program told = {.agent = cuda_agent(0), .uri = "cuda://kernels"};

	if (program != DEVICE_NONE)
		return program;
	program = sink->program_load(&told);
	return atomic_compare_exchange_strong(&general, &none, program) ? program : none;
}

static device_handle symbol_in(const char *name, device_handle program)
{
	const struct device_sink *sink = device_sink();
	uint64_t hash = hash_name(name);
	struct symbol *_Atomic *bucket = &symbols[hash % BUCKETS];
	struct symbol *first = atomic_load(bucket), *fresh;
	device_handle handle = find(first, hash, name);
	struct device_symbol told = {.name = name};

	if (handle != DEVICE_NONE)
		return handle;
	told.program = program != DEVICE_NONE ? program : general_program(sink);
	handle = sink->kernel_symbol(&told);
	turn_kernel_named(handle, name);
	fresh = malloc(sizeof(*fresh) + strlen(name) + 1);
	if (fresh == NULL)
		return handle;
	fresh->hash = hash;
	fresh->handle = handle;
	strcpy(fresh->name, name);
	do {
		fresh->next = first;
	} while (!atomic_compare_exchange_weak(bucket, &first, fresh));
	return handle;
}

device_handle cuda_symbol_of_name(const char *name)
{
	device_handle handle;

	if (name == NULL)
		name = "(kernel without a name)";
	handle = pointer_map_get(&by_address, name);
	if (handle == DEVICE_NONE) {
		handle = symbol_in(name, DEVICE_NONE);
		pointer_map_set(&by_address, name, handle);
	}
	return handle;
}

KYMO_HOT device_handle cuda_symbol_of_function(const void *function, const char *name)
{
	device_handle handle = pointer_map_get(&by_function, function);

	if (handle == DEVICE_NONE && function != NULL) {
		handle = name != NULL ? symbol_in(name, DEVICE_NONE) : cuda_symbol_of_name(NULL);
		pointer_map_set(&by_function, function, handle);
	}
	return handle;
}

device_handle cuda_symbol_of_graph(uint32_t graph)
{
	const void *key = (const void *)((uintptr_t)graph + 1);
	device_handle handle = pointer_map_get(&graphs, key);
	char name[48];

	if (handle == DEVICE_NONE) {
		snprintf(name, sizeof(name), "[CUDA graph %u]", graph);
		handle = symbol_in(name, DEVICE_NONE);
		pointer_map_set(&graphs, key, handle);
	}
	return handle;
}

static void found_kernel(void *context, const char *name)
{
	symbol_in(name, *(const device_handle *)context);
}

void cuda_module_loaded(const struct cupti_module *module, void *context)
{
	const struct device_sink *sink = device_sink();
	struct device_program told = {.image = module->cubin, .image_size = module->cubin_size};
	device_handle program;
	uint32_t device = 0;
	char uri[64];

	if (!sink->wants(DEVICE_SERVICE_PROGRAMS, -1))
		return;
	if (cupti.GetDeviceId != NULL && context != NULL)
		cupti.GetDeviceId(context, &device);
	snprintf(uri, sizeof(uri), "cuda://module/%u", module->module_id);
	told.uri = uri;
	told.agent = cuda_agent(device);
	program = sink->program_load(&told);
	if (program == DEVICE_NONE)
		return;
	pointer_map_set(&modules, (const void *)((uintptr_t)module->module_id + 1), program);
	if (module->cubin != NULL)
		cubin_each_kernel(module->cubin, module->cubin_size, found_kernel, &program);
}

/* Handles of functions and addresses of names may be used again. */
void cuda_module_unloaded(const struct cupti_module *module)
{
	const void *key = (const void *)((uintptr_t)module->module_id + 1);
	device_handle program = pointer_map_get(&modules, key);

	pointer_map_clear(&by_function);
	pointer_map_clear(&by_address);
	if (program == DEVICE_NONE)
		return;
	pointer_map_set(&modules, key, DEVICE_NONE);
	device_sink()->program_unload(program);
}

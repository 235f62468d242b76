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
#include "common/text_hash.h"
#include "device/cuda/cuda.h"
#include "device/kernel_serializer.h"
#include "device/pointer_map.h"

#define SYMBOL_BUCKET_COUNT 8192u

struct kernel_symbol {
	struct kernel_symbol *next;
	uint64_t hash;
	device_handle handle;
	char name[];
};

static struct kernel_symbol *_Atomic symbol_buckets[SYMBOL_BUCKET_COUNT];
static struct pointer_map symbols_by_function, symbols_by_name_address, symbols_by_graph,
	program_handles_by_module_id;
static _Atomic device_handle program_handle_of_unseen_modules;

static device_handle find_symbol_handle_by_name_in_chain(const struct kernel_symbol *at,
							 uint64_t hash, const char *name)
{
	while (at != NULL && (at->hash != hash || strcmp(at->name, name) != 0))
		at = at->next;
	return at != NULL ? at->handle : DEVICE_HANDLE_NONE;
}

/* The program of kernels whose module was not seen. */
static device_handle find_or_add_unseen_module_program(const struct device_sink *sink)
{
	device_handle program = atomic_load(&program_handle_of_unseen_modules),
		      none = DEVICE_HANDLE_NONE;
	struct device_program told = {.agent = cuda_find_agent_by_ordinal(0),
				      .uri = "cuda://kernels"};

	if (program != DEVICE_HANDLE_NONE)
		return program;
	program = sink->program_load(&told);
	return atomic_compare_exchange_strong(&program_handle_of_unseen_modules, &none, program)
		       ? program
		       : none;
}

static device_handle find_or_add_symbol(const char *name, device_handle program)
{
	const struct device_sink *sink = device_get_sink();
	uint64_t hash = text_hash_append(TEXT_HASH_OF_NOTHING, name);
	struct kernel_symbol *_Atomic *bucket = &symbol_buckets[hash % SYMBOL_BUCKET_COUNT];
	struct kernel_symbol *first = atomic_load(bucket), *fresh;
	device_handle handle = find_symbol_handle_by_name_in_chain(first, hash, name);
	struct device_symbol told = {.name = name};

	if (handle != DEVICE_HANDLE_NONE)
		return handle;
	told.program =
		program != DEVICE_HANDLE_NONE ? program : find_or_add_unseen_module_program(sink);
	handle = sink->kernel_symbol(&told);
	serializer_add_kernel_name(handle, name);
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

device_handle cuda_symbol_find_or_add_by_name(const char *name)
{
	device_handle handle;

	if (name == NULL)
		name = "(kernel without a name)";
	handle = pointer_map_get(&symbols_by_name_address, name);
	if (handle == DEVICE_HANDLE_NONE) {
		handle = find_or_add_symbol(name, DEVICE_HANDLE_NONE);
		pointer_map_set(&symbols_by_name_address, name, handle);
	}
	return handle;
}

KYMO_HOT device_handle cuda_symbol_find_or_add_by_function(const void *function, const char *name)
{
	device_handle handle = pointer_map_get(&symbols_by_function, function);

	if (handle == DEVICE_HANDLE_NONE && function != NULL) {
		handle = name != NULL ? find_or_add_symbol(name, DEVICE_HANDLE_NONE)
				      : cuda_symbol_find_or_add_by_name(NULL);
		pointer_map_set(&symbols_by_function, function, handle);
	}
	return handle;
}

device_handle cuda_symbol_find_or_add_by_graph(uint32_t graph)
{
	const void *key = (const void *)((uintptr_t)graph + 1);
	device_handle handle = pointer_map_get(&symbols_by_graph, key);
	char name[48];

	if (handle == DEVICE_HANDLE_NONE) {
		snprintf(name, sizeof(name), "[CUDA graph %u]", graph);
		handle = find_or_add_symbol(name, DEVICE_HANDLE_NONE);
		pointer_map_set(&symbols_by_graph, key, handle);
	}
	return handle;
}

static void add_kernel_symbol(void *context, const char *name)
{
	find_or_add_symbol(name, *(const device_handle *)context);
}

void cuda_handle_module_loaded(const struct cupti_module *module, void *context)
{
	const struct device_sink *sink = device_get_sink();
	struct device_program told = {.image = module->cubin, .image_size = module->cubin_size};
	device_handle program;
	uint32_t device = 0;
	char uri[64];

	if (!sink->is_wanted(DEVICE_SERVICE_PROGRAMS, -1))
		return;
	if (cupti.GetDeviceId != NULL && context != NULL)
		cupti.GetDeviceId(context, &device);
	snprintf(uri, sizeof(uri), "cuda://module/%u", module->module_id);
	told.uri = uri;
	told.agent = cuda_find_agent_by_ordinal(device);
	program = sink->program_load(&told);
	if (program == DEVICE_HANDLE_NONE)
		return;
	pointer_map_set(&program_handles_by_module_id,
			(const void *)((uintptr_t)module->module_id + 1), program);
	if (module->cubin != NULL)
		cubin_for_each_kernel(module->cubin, module->cubin_size, add_kernel_symbol,
				      &program);
}

/* Handles of functions and addresses of names may be used again. */
void cuda_handle_module_unloaded(const struct cupti_module *module)
{
	const void *key = (const void *)((uintptr_t)module->module_id + 1);
	device_handle program = pointer_map_get(&program_handles_by_module_id, key);

	pointer_map_clear(&symbols_by_function);
	pointer_map_clear(&symbols_by_name_address);
	if (program == DEVICE_HANDLE_NONE)
		return;
	pointer_map_set(&program_handles_by_module_id, key, DEVICE_HANDLE_NONE);
	device_get_sink()->program_unload(program);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Module records to modules and instances; see scan_modules.h.
 */
#include "analysis/scan_modules.h"

#include <errno.h>
#include <string.h>

void scan_modules_init(struct scan_modules *modules, struct session *session, uint32_t process)
{
	struct session_private *private = session_private(session);

	*modules = (struct scan_modules){.session = session,
					 .private = private,
					 .process = &private->processes[process],
					 .process_index = process};
}

void scan_modules_deinit(struct scan_modules *modules)
{
	id_map_deinit(&modules->by_id);
	id_map_deinit(&modules->by_identity);
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ at[i]) * 0x100000001b3;
	return id_map_mix(hash);
}

static uint64_t identity(const struct model_module *module)
{
	uint64_t hash = hash_bytes(module->start, module->build_id, module->build_id_size);

	hash = hash_bytes(hash ^ module->end, &module->file_offset, sizeof(module->file_offset));
	return hash_bytes(hash, module->path, strlen(module->path));
}

static bool same_module(const struct model_module *a, const struct model_module *b)
{
	return a->start == b->start && a->end == b->end && a->file_offset == b->file_offset &&
	       a->build_id_size == b->build_id_size &&
	       memcmp(a->build_id, b->build_id, a->build_id_size) == 0 &&
	       strcmp(a->path, b->path) == 0;
}

/* Memory that no file backs holds what a run-time compiler wrote. */
static bool is_jit_path(const char *path)
{
	return path[0] == 0 || strncmp(path, "//anon", 6) == 0 || strncmp(path, "[anon", 5) == 0 ||
	       strncmp(path, "/memfd:", 7) == 0 || strncmp(path, "/dev/zero", 9) == 0;
}

static const char *module_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static int read_module(struct scan_modules *modules, struct spool_payload *payload,
		       struct model_module *ret)
{
	const uint8_t *build_id, *path;
	size_t build_id_size, path_size;

	*ret = (struct model_module){.process = modules->process_index};
	ret->start = spool_unsigned(payload);
	ret->end = spool_unsigned(payload);
	ret->file_offset = spool_unsigned(payload);
	(void)spool_unsigned(payload); /* device */
	(void)spool_unsigned(payload); /* inode */
	build_id = spool_bytes(payload, &build_id_size);
	path = spool_bytes(payload, &path_size);
	if (payload->bad || ret->end <= ret->start)
		return -EBADMSG;
	if (build_id_size > sizeof(ret->build_id))
		build_id_size = sizeof(ret->build_id);
	memcpy(ret->build_id, build_id, build_id_size);
	ret->build_id_size = (uint32_t)build_id_size;
	ret->path = arena_copy(&modules->private->arena, path, path_size);
	if (!ret->path)
		return -ENOMEM;
	if (is_jit_path(ret->path))
		ret->path = "[jit]";
	ret->path = arena_intern(&modules->private->arena, ret->path);
	if (!ret->path)
		return -ENOMEM;
	ret->name = module_name(ret->path);
	return 0;
}

/* Its index in session.modules, or MODEL_NONE when out of memory. */
static uint32_t module_index(struct scan_modules *modules, const struct model_module *module)
{
	struct session *session = modules->session;
	uint64_t key = identity(module);
	uint32_t index = id_map_get(&modules->by_identity, key);

	if (index != ID_MAP_NONE && same_module(&session->modules[index], module))
		return index;
	index = session->module_count;
	if (array_reserve((void **)&session->modules, &modules->private->module_capacity, index,
			  sizeof(*session->modules)) < 0 ||
	    id_map_set(&modules->by_identity, key, index) < 0)
		return MODEL_NONE;
	session->modules[session->module_count++] = *module;
	return index;
}

int scan_module(struct scan_modules *modules, struct spool_payload *payload)
{
	struct module_map *map = &modules->process->module_map;
	struct module_instance instance = {.unloaded_ns = UINT64_MAX};
	struct model_module module;
	uint64_t id;
	int result;

	instance.loaded_ns = spool_fixed(payload);
	id = spool_unsigned(payload);
	result = read_module(modules, payload, &module);
	if (result < 0)
		return result;
	instance.module = module_index(modules, &module);
	if (instance.module == MODEL_NONE)
		return -ENOMEM;
	instance.start = module.start;
	instance.end = module.end;
	if (module_map_add(map, &instance) < 0)
		return -ENOMEM;
	return id_map_set(&modules->by_id, id, (uint32_t)(map->count - 1));
}

int scan_module_gone(struct scan_modules *modules, struct spool_payload *payload)
{
	uint64_t ticks = spool_fixed(payload);
	uint32_t index = id_map_get(&modules->by_id, spool_unsigned(payload));

	if (payload->bad)
		return -EBADMSG;
	if (index != ID_MAP_NONE)
		modules->process->module_map.instances[index].unloaded_ns = ticks;
	return 0;
}

int scan_modules_finish(struct scan_modules *modules)
{
	struct session *session = modules->session;
	struct model_process *model = &session->processes[modules->process_index];
	struct module_map *map = &modules->process->module_map;

	model->module_count = session->module_count - model->first_module;
	for (uint32_t i = model->first_module; i < session->module_count; i++)
		session->modules[i].loaded_ns = UINT64_MAX;
	for (size_t i = 0; i < map->count; i++) {
		struct module_instance *instance = &map->instances[i];
		struct model_module *module = &session->modules[instance->module];

		instance->loaded_ns =
			clock_map_boottime(&modules->process->clock, instance->loaded_ns);
		if (instance->unloaded_ns != UINT64_MAX)
			instance->unloaded_ns =
				clock_map_boottime(&modules->process->clock, instance->unloaded_ns);
		if (instance->loaded_ns < module->loaded_ns)
			module->loaded_ns = instance->loaded_ns;
		if (instance->unloaded_ns > module->unloaded_ns)
			module->unloaded_ns = instance->unloaded_ns;
	}
	return module_map_finish(map);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Module records to modules and instances; see modules.h.
 */
#include "analysis/scan/modules.h"

#include <errno.h>
#include <string.h>

void module_scan_init(struct module_scan_state *modules, struct session *session, uint32_t process)
{
	struct session_private *private = session_get_private(session);

	*modules = (struct module_scan_state){.session = session,
					      .private = private,
					      .process = &private->processes[process],
					      .process_index = process};
}

void module_scan_deinit(struct module_scan_state *modules)
{
	id_map_deinit(&modules->latest_instance_by_module_id);
	id_map_deinit(&modules->module_index_by_identity);
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ at[i]) * 0x100000001b3;
	return id_map_hash_key(hash);
}

static uint64_t hash_module_identity(const struct model_module *module)
{
	uint64_t hash = hash_bytes(module->start, module->build_id, module->build_id_size);

	hash = hash_bytes(hash ^ module->end, &module->file_offset, sizeof(module->file_offset));
	return hash_bytes(hash, module->path, strlen(module->path));
}

static bool modules_are_equal(const struct model_module *a, const struct model_module *b)
{
	return a->start == b->start && a->end == b->end && a->file_offset == b->file_offset &&
	       a->build_id_size == b->build_id_size && (a->build_id_size || a->inode == b->inode) &&
	       memcmp(a->build_id, b->build_id, a->build_id_size) == 0 &&
	       strcmp(a->path, b->path) == 0;
}

/* Memory that no file backs holds what a run-time compiler wrote. */
static bool is_anonymous_memory_path(const char *path)
{
	return path[0] == 0 || strncmp(path, "//anon", 6) == 0 || strncmp(path, "[anon", 5) == 0 ||
	       strncmp(path, "/memfd:", 7) == 0 || strncmp(path, "/dev/zero", 9) == 0;
}

static const char *find_file_base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static int read_module_record(struct module_scan_state *modules,
			      struct spool_record_payload_cursor *payload, struct model_module *ret)
{
	const uint8_t *build_id, *path;
	size_t build_id_size, path_size;

	*ret = (struct model_module){.process = modules->process_index};
	ret->start = spool_read_unsigned(payload);
	ret->end = spool_read_unsigned(payload);
	ret->file_offset = spool_read_unsigned(payload);
	(void)spool_read_unsigned(payload); /* device */
	ret->inode = spool_read_unsigned(payload);
	build_id = spool_read_length_prefixed_bytes(payload, &build_id_size);
	path = spool_read_length_prefixed_bytes(payload, &path_size);
	if (payload->bad || ret->end <= ret->start)
		return -EBADMSG;
	if (build_id_size > sizeof(ret->build_id))
		build_id_size = sizeof(ret->build_id);
	memcpy(ret->build_id, build_id, build_id_size);
	ret->build_id_size = (uint32_t)build_id_size;
	ret->path = arena_copy_bytes(&modules->private->arena, path, path_size);
	if (!ret->path)
		return -ENOMEM;
	if (is_anonymous_memory_path(ret->path))
		ret->path = "[jit]";
	ret->path = arena_intern_string(&modules->private->arena, ret->path);
	if (!ret->path)
		return -ENOMEM;
	ret->name = find_file_base_name(ret->path);
	return 0;
}

/* Its index in session.modules, or MODEL_ENTRY_INDEX_NONE when out of memory. */
static uint32_t find_or_add_module(struct module_scan_state *modules,
				   const struct model_module *module)
{
	struct session *session = modules->session;
	uint64_t key = hash_module_identity(module);
	uint32_t index = id_map_get(&modules->module_index_by_identity, key);

	if (index != ID_MAP_NONE && modules_are_equal(&session->modules[index], module))
		return index;
	index = session->module_count;
	if (array_reserve_one_more((void **)&session->modules, &modules->private->module_capacity,
				   index, sizeof(*session->modules)) < 0 ||
	    id_map_set(&modules->module_index_by_identity, key, index) < 0)
		return MODEL_ENTRY_INDEX_NONE;
	session->modules[session->module_count++] = *module;
	return index;
}

int scan_module_record(struct module_scan_state *modules,
		       struct spool_record_payload_cursor *payload)
{
	struct module_map *map = &modules->process->module_map;
	struct module_instance instance = {.unloaded_ns = UINT64_MAX};
	struct model_module module;
	uint64_t id;
	int result;

	instance.loaded_ns = spool_read_fixed_u64(payload);
	id = spool_read_unsigned(payload);
	result = read_module_record(modules, payload, &module);
	if (result < 0)
		return result;
	instance.module = find_or_add_module(modules, &module);
	if (instance.module == MODEL_ENTRY_INDEX_NONE)
		return -ENOMEM;
	instance.start = module.start;
	instance.end = module.end;
	if (module_map_add_instance(map, &instance) < 0)
		return -ENOMEM;
	return id_map_set(&modules->latest_instance_by_module_id, id, (uint32_t)(map->count - 1));
}

int scan_module_gone_record(struct module_scan_state *modules,
			    struct spool_record_payload_cursor *payload)
{
	uint64_t ticks = spool_read_fixed_u64(payload);
	uint32_t index =
		id_map_get(&modules->latest_instance_by_module_id, spool_read_unsigned(payload));

	if (payload->bad)
		return -EBADMSG;
	if (index != ID_MAP_NONE)
		modules->process->module_map.instances[index].unloaded_ns = ticks;
	return 0;
}

int module_scan_finish(struct module_scan_state *modules)
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
			clock_map_ticks_to_boottime(&modules->process->clock, instance->loaded_ns);
		if (instance->unloaded_ns != UINT64_MAX)
			instance->unloaded_ns = clock_map_ticks_to_boottime(
				&modules->process->clock, instance->unloaded_ns);
		if (instance->loaded_ns < module->loaded_ns)
			module->loaded_ns = instance->loaded_ns;
		if (instance->unloaded_ns > module->unloaded_ns)
			module->unloaded_ns = instance->unloaded_ns;
	}
	return module_map_sort_instances(map);
}

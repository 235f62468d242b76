/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See names.h.
 */
#include "libkymo-gpu/names.h"

#include <stdlib.h>
#include <string.h>

#include "libkymo-gpu/file.h"

#define AGENTS_MAX                            256
#define CALL_IDS_PER_KIND_MAX                 1024
#define CALL_KINDS_MAX                        8
#define LAUNCH_SHAPE_TABLE_INITIAL_SLOT_COUNT 1024u

/* ---- kernels ---- */

struct kernel_name_entry {
	uint64_t id;
	char *name;
	uint32_t string; /* 0: not in this file yet */
};

static struct kernel_name_entry *kernel_name_entries;
static size_t kernel_name_entry_count, kernel_name_entries_capacity;

/* Ids mostly come in rising order. */
static struct kernel_name_entry *find_kernel_name_entry(uint64_t id)
{
	size_t low = 0, high = kernel_name_entry_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (kernel_name_entries[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < kernel_name_entry_count && kernel_name_entries[low].id == id
		       ? &kernel_name_entries[low]
		       : NULL;
}

static void insert_kernel_name_if_new(uint64_t id, const char *name)
{
	size_t place = kernel_name_entry_count;

	if (find_kernel_name_entry(id) != NULL)
		return;
	if (kernel_name_entry_count == kernel_name_entries_capacity) {
		size_t room =
			kernel_name_entries_capacity != 0 ? kernel_name_entries_capacity * 2 : 256;
		struct kernel_name_entry *larger =
			realloc(kernel_name_entries, room * sizeof(*larger));

		if (larger == NULL)
			return;
		kernel_name_entries = larger;
		kernel_name_entries_capacity = room;
	}
	for (; place > 0 && kernel_name_entries[place - 1].id > id; place--)
		kernel_name_entries[place] = kernel_name_entries[place - 1];
	kernel_name_entries[place] = (struct kernel_name_entry){id, strdup(name), 0};
	kernel_name_entry_count++;
}

void names_add_kernel_name(uint64_t kernel_id, const char *name)
{
	gpu_file_lock();
	insert_kernel_name_if_new(kernel_id, name != NULL ? name : "");
	gpu_file_unlock();
}

static uint32_t find_or_write_kernel_name(uint64_t id)
{
	struct kernel_name_entry *kernel = find_kernel_name_entry(id);

	if (kernel == NULL || kernel->name == NULL)
		return gpu_file_find_or_write_string("(unknown kernel)");
	if (kernel->string == 0)
		kernel->string = gpu_file_find_or_write_string(kernel->name);
	return kernel->string;
}

/* ---- agents ---- */

static struct {
	uint64_t handle;
	uint32_t id;
} written_agents[AGENTS_MAX];
static uint32_t written_agent_count;

static rocprofiler_status_t write_record_of_wanted_agent(rocprofiler_agent_version_t version,
							 const void **list, size_t count,
							 void *wanted)
{
	const rocprofiler_agent_id_t *id = wanted;

	(void)version;
	for (size_t i = 0; i < count; i++) {
		const rocprofiler_agent_v0_t *agent = list[i];
		bool is_gpu = agent->type == ROCPROFILER_AGENT_TYPE_GPU;
		struct gpu_agent record = {
			.head = {GPU_RECORD_AGENT, sizeof(record), written_agent_count + 1},
			.type = is_gpu ? GPU_AGENT_GPU : GPU_AGENT_CPU,
			.compute_units = is_gpu ? agent->cu_count : agent->cpu_cores_count,
			.clock_mhz = agent->max_engine_clk_fcompute,
			.memory_bytes = agent->local_mem_size,
			.ordinal = (uint32_t)agent->logical_node_type_id,
			.node = (uint32_t)agent->logical_node_id};

		if (agent->id.handle != id->handle)
			continue;
		record.name = gpu_file_find_or_write_string(agent->name);
		record.vendor = gpu_file_find_or_write_string(agent->vendor_name);
		record.product = gpu_file_find_or_write_string(agent->product_name);
		gpu_file_write_record(&record.head);
		written_agents[written_agent_count].handle = id->handle;
		written_agents[written_agent_count].id = written_agent_count + 1;
		written_agent_count++;
		break;
	}
	return ROCPROFILER_STATUS_SUCCESS;
}

uint32_t names_find_or_write_agent(rocprofiler_agent_id_t agent)
{
	for (uint32_t i = 0; i < written_agent_count; i++) {
		if (written_agents[i].handle == agent.handle)
			return written_agents[i].id;
	}
	if (agent.handle == 0 || written_agent_count == AGENTS_MAX)
		return 0;
	rocprofiler_query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0,
					   write_record_of_wanted_agent,
					   sizeof(rocprofiler_agent_v0_t), &agent);
	return written_agent_count != 0 &&
			       written_agents[written_agent_count - 1].handle == agent.handle
		       ? written_agents[written_agent_count - 1].id
		       : 0;
}

/* ---- shapes ---- */

struct launch_shape_key {
	uint64_t kernel, agent;
	uint32_t grid[3], group[3];
	uint32_t private_segment_bytes, group_segment_bytes;
};

static struct written_launch_shape {
	struct launch_shape_key key;
	uint32_t id; /* 0: free */
} * written_launch_shape_table, last_used_launch_shape;
static uint32_t launch_shape_count, launch_shape_table_slot_count;

static uint32_t hash_launch_shape_key(const struct launch_shape_key *key)
{
	const unsigned char *bytes = (const unsigned char *)key;
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < sizeof(*key); i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return hash;
}

static struct written_launch_shape *find_launch_shape_slot(struct written_launch_shape *table,
							   uint32_t room,
							   const struct launch_shape_key *key)
{
	uint32_t i = hash_launch_shape_key(key) % room;

	while (table[i].id != 0 && memcmp(&table[i].key, key, sizeof(*key)) != 0)
		i = (i + 1) % room;
	return &table[i];
}

static bool grow_launch_shape_table(void)
{
	uint32_t room = launch_shape_table_slot_count != 0 ? launch_shape_table_slot_count * 2
							   : LAUNCH_SHAPE_TABLE_INITIAL_SLOT_COUNT;
	struct written_launch_shape *larger = calloc(room, sizeof(*larger));

	if (larger == NULL)
		return false;
	for (uint32_t i = 0; i < launch_shape_table_slot_count; i++) {
		if (written_launch_shape_table[i].id != 0)
			*find_launch_shape_slot(larger, room, &written_launch_shape_table[i].key) =
				written_launch_shape_table[i];
	}
	free(written_launch_shape_table);
	written_launch_shape_table = larger;
	launch_shape_table_slot_count = room;
	return true;
}

static void write_launch_shape_record(const struct written_launch_shape *shape)
{
	const struct launch_shape_key *key = &shape->key;
	struct gpu_shape record = {
		.head = {GPU_RECORD_SHAPE, sizeof(record), shape->id},
		.kernel = find_or_write_kernel_name(key->kernel),
		.agent = names_find_or_write_agent((rocprofiler_agent_id_t){key->agent}),
		.private_bytes = key->private_segment_bytes,
		.group_bytes = key->group_segment_bytes};

	memcpy(record.grid, key->grid, sizeof(record.grid));
	memcpy(record.group, key->group, sizeof(record.group));
	gpu_file_write_record(&record.head);
}

uint32_t names_find_or_write_launch_shape(const rocprofiler_kernel_dispatch_info_t *info)
{
	struct launch_shape_key key = {
		.kernel = info->kernel_id,
		.agent = info->agent_id.handle,
		.grid = {info->grid_size.x, info->grid_size.y, info->grid_size.z},
		.group = {info->workgroup_size.x, info->workgroup_size.y, info->workgroup_size.z},
		.private_segment_bytes = info->private_segment_size,
		.group_segment_bytes = info->group_segment_size};
	struct written_launch_shape *place;

	if (launch_shape_count != 0 && memcmp(&last_used_launch_shape.key, &key, sizeof(key)) == 0)
		return last_used_launch_shape.id;
	if (launch_shape_count * 2 >= launch_shape_table_slot_count && !grow_launch_shape_table())
		return 0;
	place = find_launch_shape_slot(written_launch_shape_table, launch_shape_table_slot_count,
				       &key);
	if (place->id == 0) {
		place->key = key;
		place->id = ++launch_shape_count;
		write_launch_shape_record(place);
	}
	last_used_launch_shape = *place;
	return place->id;
}

/* ---- calls ---- */

static struct {
	int kind;
	uint32_t string, calls[CALL_IDS_PER_KIND_MAX];
} written_call_kinds[CALL_KINDS_MAX];

static uint32_t find_or_write_call_kind_slot(rocprofiler_buffer_tracing_kind_t kind)
{
	uint32_t i = 0;

	while (i < CALL_KINDS_MAX - 1 && written_call_kinds[i].string != 0 &&
	       written_call_kinds[i].kind != (int)kind)
		i++;
	if (written_call_kinds[i].kind != (int)kind || written_call_kinds[i].string == 0) {
		const char *name = NULL;
		uint64_t length = 0;

		rocprofiler_query_buffer_tracing_kind_name(kind, &name, &length);
		memset(&written_call_kinds[i], 0, sizeof(written_call_kinds[i]));
		written_call_kinds[i].kind = (int)kind;
		written_call_kinds[i].string =
			gpu_file_find_or_write_string(name != NULL ? name : "(unknown calls)");
	}
	return i;
}

uint32_t names_find_or_write_call_kind(rocprofiler_buffer_tracing_kind_t kind)
{
	return written_call_kinds[find_or_write_call_kind_slot(kind)].string;
}

uint32_t names_find_or_write_call_name(rocprofiler_buffer_tracing_kind_t kind, int32_t operation)
{
	uint32_t place = find_or_write_call_kind_slot(kind);
	const char *name = NULL;
	uint64_t length = 0;

	if (operation >= 0 && operation < CALL_IDS_PER_KIND_MAX &&
	    written_call_kinds[place].calls[operation] != 0)
		return written_call_kinds[place].calls[operation];
	rocprofiler_query_buffer_tracing_kind_operation_name(kind, operation, &name, &length);
	if (name == NULL)
		name = "(unknown function)";
	if (operation < 0 || operation >= CALL_IDS_PER_KIND_MAX)
		return gpu_file_find_or_write_string(name);
	written_call_kinds[place].calls[operation] = gpu_file_find_or_write_string(name);
	return written_call_kinds[place].calls[operation];
}

void names_reset_after_fork(void)
{
	for (size_t i = 0; i < kernel_name_entry_count; i++)
		kernel_name_entries[i].string = 0;
	written_agent_count = 0;
	launch_shape_count = launch_shape_table_slot_count = 0;
	free(written_launch_shape_table);
	written_launch_shape_table = NULL;
	memset(written_call_kinds, 0, sizeof(written_call_kinds));
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See names.h.
 */
#include "libkymo-gpu/names.h"

#include <stdlib.h>
#include <string.h>

#include "libkymo-gpu/file.h"

#define AGENTS_MAX  256
#define CALLS_MAX   1024
#define KINDS_MAX   8
#define SHAPES_ROOM 1024u

/* ---- kernels ---- */

struct kernel {
	uint64_t id;
	char *name;
	uint32_t string; /* 0: not in this file yet */
};

static struct kernel *kernels;
static size_t kernel_count, kernel_room;

/* Ids mostly come in rising order. */
static struct kernel *find_kernel(uint64_t id)
{
	size_t low = 0, high = kernel_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (kernels[middle].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < kernel_count && kernels[low].id == id ? &kernels[low] : NULL;
}

static void insert_kernel(uint64_t id, const char *name)
{
	size_t place = kernel_count;

	if (find_kernel(id) != NULL)
		return;
	if (kernel_count == kernel_room) {
		size_t room = kernel_room != 0 ? kernel_room * 2 : 256;
		struct kernel *larger = realloc(kernels, room * sizeof(*larger));

		if (larger == NULL)
			return;
		kernels = larger;
		kernel_room = room;
	}
	for (; place > 0 && kernels[place - 1].id > id; place--)
		kernels[place] = kernels[place - 1];
	kernels[place] = (struct kernel){id, strdup(name), 0};
	kernel_count++;
}

void names_add_kernel(uint64_t kernel_id, const char *name)
{
	gpu_file_lock();
	insert_kernel(kernel_id, name != NULL ? name : "");
	gpu_file_unlock();
}

static uint32_t kernel_string(uint64_t id)
{
	struct kernel *kernel = find_kernel(id);

	if (kernel == NULL || kernel->name == NULL)
		return gpu_file_string("(unknown kernel)");
	if (kernel->string == 0)
		kernel->string = gpu_file_string(kernel->name);
	return kernel->string;
}

/* ---- agents ---- */

static struct {
	uint64_t handle;
	uint32_t id;
} agents[AGENTS_MAX];
static uint32_t agent_count;

static rocprofiler_status_t write_agent(rocprofiler_agent_version_t version, const void **list,
					size_t count, void *wanted)
{
	const rocprofiler_agent_id_t *id = wanted;

	(void)version;
	for (size_t i = 0; i < count; i++) {
		const rocprofiler_agent_v0_t *agent = list[i];
		bool is_gpu = agent->type == ROCPROFILER_AGENT_TYPE_GPU;
		struct gpu_agent record = {
			.head = {GPU_RECORD_AGENT, sizeof(record), agent_count + 1},
			.type = is_gpu ? GPU_AGENT_GPU : GPU_AGENT_CPU,
			.compute_units = is_gpu ? agent->cu_count : agent->cpu_cores_count,
			.clock_mhz = agent->max_engine_clk_fcompute,
			.memory_bytes = agent->local_mem_size,
			.ordinal = (uint32_t)agent->logical_node_type_id,
			.node = (uint32_t)agent->logical_node_id};

		if (agent->id.handle != id->handle)
			continue;
		record.name = gpu_file_string(agent->name);
		record.vendor = gpu_file_string(agent->vendor_name);
		record.product = gpu_file_string(agent->product_name);
		gpu_file_write(&record.head);
		agents[agent_count].handle = id->handle;
		agents[agent_count].id = agent_count + 1;
		agent_count++;
		break;
	}
	return ROCPROFILER_STATUS_SUCCESS;
}

uint32_t names_agent(rocprofiler_agent_id_t agent)
{
	for (uint32_t i = 0; i < agent_count; i++) {
		if (agents[i].handle == agent.handle)
			return agents[i].id;
	}
	if (agent.handle == 0 || agent_count == AGENTS_MAX)
		return 0;
	rocprofiler_query_available_agents(ROCPROFILER_AGENT_INFO_VERSION_0, write_agent,
					   sizeof(rocprofiler_agent_v0_t), &agent);
	return agent_count != 0 && agents[agent_count - 1].handle == agent.handle
		       ? agents[agent_count - 1].id
		       : 0;
}

/* ---- shapes ---- */

struct shape_key {
	uint64_t kernel, agent;
	uint32_t grid[3], group[3];
	uint32_t private_bytes, group_bytes;
};

static struct shape {
	struct shape_key key;
	uint32_t id; /* 0: free */
} * shapes, last;
static uint32_t shape_count, shape_room;

static uint32_t key_hash(const struct shape_key *key)
{
	const unsigned char *bytes = (const unsigned char *)key;
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < sizeof(*key); i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return hash;
}

static struct shape *shape_place(struct shape *table, uint32_t room, const struct shape_key *key)
{
	uint32_t i = key_hash(key) % room;

	while (table[i].id != 0 && memcmp(&table[i].key, key, sizeof(*key)) != 0)
		i = (i + 1) % room;
	return &table[i];
}

static bool grow_shapes(void)
{
	uint32_t room = shape_room != 0 ? shape_room * 2 : SHAPES_ROOM;
	struct shape *larger = calloc(room, sizeof(*larger));

	if (larger == NULL)
		return false;
	for (uint32_t i = 0; i < shape_room; i++) {
		if (shapes[i].id != 0)
			*shape_place(larger, room, &shapes[i].key) = shapes[i];
	}
	free(shapes);
	shapes = larger;
	shape_room = room;
	return true;
}

static void write_shape(const struct shape *shape)
{
	const struct shape_key *key = &shape->key;
	struct gpu_shape record = {.head = {GPU_RECORD_SHAPE, sizeof(record), shape->id},
				   .kernel = kernel_string(key->kernel),
				   .agent = names_agent((rocprofiler_agent_id_t){key->agent}),
				   .private_bytes = key->private_bytes,
				   .group_bytes = key->group_bytes};

	memcpy(record.grid, key->grid, sizeof(record.grid));
	memcpy(record.group, key->group, sizeof(record.group));
	gpu_file_write(&record.head);
}

uint32_t names_shape(const rocprofiler_kernel_dispatch_info_t *info)
{
	struct shape_key key = {
		.kernel = info->kernel_id,
		.agent = info->agent_id.handle,
		.grid = {info->grid_size.x, info->grid_size.y, info->grid_size.z},
		.group = {info->workgroup_size.x, info->workgroup_size.y, info->workgroup_size.z},
		.private_bytes = info->private_segment_size,
		.group_bytes = info->group_segment_size};
	struct shape *place;

	if (shape_count != 0 && memcmp(&last.key, &key, sizeof(key)) == 0)
		return last.id;
	if (shape_count * 2 >= shape_room && !grow_shapes())
		return 0;
	place = shape_place(shapes, shape_room, &key);
	if (place->id == 0) {
		place->key = key;
		place->id = ++shape_count;
		write_shape(place);
	}
	last = *place;
	return place->id;
}

/* ---- calls ---- */

static struct {
	int kind;
	uint32_t string, calls[CALLS_MAX];
} kinds[KINDS_MAX];

static uint32_t kind_place(rocprofiler_buffer_tracing_kind_t kind)
{
	uint32_t i = 0;

	while (i < KINDS_MAX - 1 && kinds[i].string != 0 && kinds[i].kind != (int)kind)
		i++;
	if (kinds[i].kind != (int)kind || kinds[i].string == 0) {
		const char *name = NULL;
		uint64_t length = 0;

		rocprofiler_query_buffer_tracing_kind_name(kind, &name, &length);
		memset(&kinds[i], 0, sizeof(kinds[i]));
		kinds[i].kind = (int)kind;
		kinds[i].string = gpu_file_string(name != NULL ? name : "(unknown calls)");
	}
	return i;
}

uint32_t names_kind(rocprofiler_buffer_tracing_kind_t kind)
{
	return kinds[kind_place(kind)].string;
}

uint32_t names_call(rocprofiler_buffer_tracing_kind_t kind, int32_t operation)
{
	uint32_t place = kind_place(kind);
	const char *name = NULL;
	uint64_t length = 0;

	if (operation >= 0 && operation < CALLS_MAX && kinds[place].calls[operation] != 0)
		return kinds[place].calls[operation];
	rocprofiler_query_buffer_tracing_kind_operation_name(kind, operation, &name, &length);
	if (name == NULL)
		name = "(unknown function)";
	if (operation < 0 || operation >= CALLS_MAX)
		return gpu_file_string(name);
	kinds[place].calls[operation] = gpu_file_string(name);
	return kinds[place].calls[operation];
}

void names_forked(void)
{
	for (size_t i = 0; i < kernel_count; i++)
		kernels[i].string = 0;
	agent_count = 0;
	shape_count = shape_room = 0;
	free(shapes);
	shapes = NULL;
	memset(kinds, 0, sizeof(kinds));
}

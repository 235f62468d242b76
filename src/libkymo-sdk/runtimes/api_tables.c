/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See api_tables.h. A table says how long it is, in bytes: what it does not have is left alone, and
 * so is what it has past our lists. HSA's has tables in it, with versions; of others, AMD has put
 * functions between those of the lists.
 */
#include "libkymo-sdk/runtimes/api_tables.h"

#include <string.h>

#include "common/array.h"
#include "libkymo-sdk/base/state.h"

#define API_TABLE_BYTES_MAX 65536

/* hsa_api_trace.h. */
struct hsa_table_version {
	uint32_t major, bytes, step, reserved;
};

struct hsa_api_table_root {
	struct hsa_table_version version;
	struct hsa_table_version *core, *amd_ext, *finalize_ext, *image_ext;
};

static void wrap_table_functions(const struct api_wrapper_set *set, api_function **entries,
				 size_t bytes)
{
	size_t count = bytes / sizeof(*entries);

	for (size_t i = 0; i < count && i < set->count; i++) {
		if (entries[i] == NULL || entries[i] == set->wrappers[i])
			continue;
		set->originals[i] = entries[i];
		__atomic_store_n(&entries[i], set->wrappers[i], __ATOMIC_RELEASE);
	}
}

static bool table_length_is_valid(uint64_t bytes, size_t least)
{
	return bytes >= least && bytes <= API_TABLE_BYTES_MAX && bytes % sizeof(void *) == 0;
}

static void wrap_hsa_table(const struct api_wrapper_set *set, struct hsa_table_version *table,
			   uint32_t oldest)
{
	if (table == NULL)
		return;
	if (table->major < oldest || table->major > 2 ||
	    !table_length_is_valid(table->bytes, sizeof(*table))) {
		sdk_print_log_line(SDK_LOG_WARNING,
				   "a table of HSA of version %u is not known: not traced",
				   table->major);
		return;
	}
	wrap_table_functions(set, (api_function **)(table + 1), table->bytes - sizeof(*table));
}

static void wrap_hsa_tables(struct hsa_api_table_root *root)
{
	struct {
		const struct api_wrapper_set *set;
		size_t offset;
		uint32_t oldest_major_version;
	} parts[] = {
		{&api_set_hsa_core, offsetof(struct hsa_api_table_root, core), 1},
		{&api_set_hsa_amd_ext, offsetof(struct hsa_api_table_root, amd_ext), 2},
		{&api_set_hsa_finalize_ext, offsetof(struct hsa_api_table_root, finalize_ext), 1},
		{&api_set_hsa_image_ext, offsetof(struct hsa_api_table_root, image_ext), 1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		struct hsa_table_version *table;

		if (parts[i].offset + sizeof(void *) > root->version.bytes)
			continue;
		memcpy((void *)&table, (char *)root + parts[i].offset, sizeof(void *));
		wrap_hsa_table(parts[i].set, table, parts[i].oldest_major_version);
	}
}

bool sdk_is_hsa_table_wrapped(const void *hsa)
{
	const struct hsa_api_table_root *root = hsa;
	api_function *first;

	if (root->version.bytes < offsetof(struct hsa_api_table_root, core) + sizeof(void *) ||
	    root->core == NULL || root->core->bytes < sizeof(*root->core) + sizeof(first))
		return false;
	memcpy(&first, root->core + 1, sizeof(first));
	return first == api_set_hsa_core.wrappers[0];
}

/* All others: their length, then functions. */
static void wrap_length_prefixed_table(const char *name, const struct api_wrapper_set *set,
				       uint64_t *table)
{
	if (!table_length_is_valid(*table, sizeof(*table))) {
		sdk_print_log_line(SDK_LOG_WARNING, "the table of %s has no length: not traced",
				   name);
		return;
	}
	wrap_table_functions(set, (api_function **)(table + 1), *table - sizeof(*table));
}

bool sdk_api_tables_wrap(const char *name, void **tables, uint64_t count)
{
	static const struct {
		const char *name;
		const struct api_wrapper_set *set;
	} plain[] = {
		{"hip", &api_set_hip_runtime}, {"hip_compiler", &api_set_hip_compiler},
		{"rccl", &api_set_rccl},       {"rocdecode", &api_set_rocdecode},
		{"rocjpeg", &api_set_rocjpeg},
	};
	bool is_there = count > 0 && tables[0] != NULL;

	if (strcmp(name, "hsa") == 0) {
		if (is_there)
			wrap_hsa_tables(tables[0]);
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++) {
		if (strcmp(name, plain[i].name) != 0)
			continue;
		if (is_there)
			wrap_length_prefixed_table(name, plain[i].set, tables[0]);
		return true;
	}
	return false;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See api_tables.h. A table says how long it is, in bytes: what it does not have is left alone, and
 * so is what it has past our lists. HSA's has tables in it, with versions; of others, AMD has put
 * functions between those of the lists.
 */
#include "libkymo-sdk/api_tables.h"

#include <string.h>

#include "libkymo-sdk/state.h"

#define TABLE_BYTES_MAX 65536

/* hsa_api_trace.h. */
struct hsa_version {
	uint32_t major, bytes, step, reserved;
};

struct hsa_root {
	struct hsa_version version;
	struct hsa_version *core, *amd_ext, *finalize_ext, *image_ext;
};

static void wrap(const struct api_set *set, api_function **entries, size_t bytes)
{
	size_t count = bytes / sizeof(*entries);

	for (size_t i = 0; i < count && i < set->count; i++) {
		if (entries[i] == NULL || entries[i] == set->wrappers[i])
			continue;
		set->originals[i] = entries[i];
		__atomic_store_n(&entries[i], set->wrappers[i], __ATOMIC_RELEASE);
	}
}

static bool has_length(uint64_t bytes, size_t least)
{
	return bytes >= least && bytes <= TABLE_BYTES_MAX && bytes % sizeof(void *) == 0;
}

static void wrap_hsa_part(const struct api_set *set, struct hsa_version *table, uint32_t oldest)
{
	if (table == NULL)
		return;
	if (table->major < oldest || table->major > 2 ||
	    !has_length(table->bytes, sizeof(*table))) {
		sdk_say(SDK_LOG_WARNING, "a table of HSA of version %u is not known: not traced",
			table->major);
		return;
	}
	wrap(set, (api_function **)(table + 1), table->bytes - sizeof(*table));
}

static void wrap_hsa(struct hsa_root *root)
{
	struct {
		const struct api_set *set;
		size_t offset;
		uint32_t oldest;
	} parts[] = {
		{&api_set_hsa_core, offsetof(struct hsa_root, core), 1},
		{&api_set_hsa_amd_ext, offsetof(struct hsa_root, amd_ext), 2},
		{&api_set_hsa_finalize_ext, offsetof(struct hsa_root, finalize_ext), 1},
		{&api_set_hsa_image_ext, offsetof(struct hsa_root, image_ext), 1},
	};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		struct hsa_version *table;

		if (parts[i].offset + sizeof(void *) > root->version.bytes)
			continue;
		memcpy((void *)&table, (char *)root + parts[i].offset, sizeof(void *));
		wrap_hsa_part(parts[i].set, table, parts[i].oldest);
	}
}

bool sdk_api_tables_are_wrapped(const void *hsa)
{
	const struct hsa_root *root = hsa;
	api_function *first;

	if (root->version.bytes < offsetof(struct hsa_root, core) + sizeof(void *) ||
	    root->core == NULL || root->core->bytes < sizeof(*root->core) + sizeof(first))
		return false;
	memcpy(&first, root->core + 1, sizeof(first));
	return first == api_set_hsa_core.wrappers[0];
}

/* All others: their length, then functions. */
static void wrap_plain(const char *name, const struct api_set *set, uint64_t *table)
{
	if (!has_length(*table, sizeof(*table))) {
		sdk_say(SDK_LOG_WARNING, "the table of %s has no length: not traced", name);
		return;
	}
	wrap(set, (api_function **)(table + 1), *table - sizeof(*table));
}

bool sdk_api_tables_wrap(const char *name, void **tables, uint64_t count)
{
	static const struct {
		const char *name;
		const struct api_set *set;
	} plain[] = {
		{"hip", &api_set_hip_runtime}, {"hip_compiler", &api_set_hip_compiler},
		{"rccl", &api_set_rccl},       {"rocdecode", &api_set_rocdecode},
		{"rocjpeg", &api_set_rocjpeg},
	};
	bool is_there = count > 0 && tables[0] != NULL;

	if (strcmp(name, "hsa") == 0) {
		if (is_there)
			wrap_hsa(tables[0]);
		return true;
	}
	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		if (strcmp(name, plain[i].name) != 0)
			continue;
		if (is_there)
			wrap_plain(name, plain[i].set, tables[0]);
		return true;
	}
	return false;
}

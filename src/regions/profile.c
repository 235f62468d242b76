/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See profile.h.
 */
#include "regions/profile.h"

#include <string.h>
#include <sys/mman.h>

#include "common/leb128.h"
#include "common/syscalls.h"
#include "core/chunk_wait.h"
#include "regions/names.h"

#define PARTS_MAX   4096u
#define FIRST_NODES 128u
#define RECORD_HEAD 8u /* kind and length in front of a part; keeps it aligned to 8 bytes */
#define PROBE_MAX   64u

static struct {
	_Atomic uint32_t lock;
	_Atomic uint32_t count;
	struct profile_tree *free;
} trees;

static uint32_t node_size(void)
{
	return (uint32_t)(sizeof(struct spool_profile_node) +
			  kymo_regions.stored * sizeof(struct spool_profile_value));
}

/* ---- nodes ---- */

/* A chunk for more nodes: one PROFILE record that fills it. The length takes five bytes, and two
 * bytes of an empty STRING record in front of it align the part. */
static bool add_part(struct profile_tree *tree)
{
	enum spool_chunk_class chunk_class = tree->large ? SPOOL_LARGE : SPOOL_SMALL;
	struct spool_chunk *chunk = spool_chunk_take(&kymo_runtime.spool, chunk_class);
	struct spool_profile_part *part;
	uint32_t length;
	uint8_t *at;

	if (!chunk)
		chunk = chunk_wait(chunk_class, CHUNK_IN_CALL);
	if (!chunk)
		return false;
	spool_chunk_keep(chunk);
	tree->large = true;
	length = spool_chunk_capacity(chunk) - RECORD_HEAD;
	at = spool_chunk_data(chunk);
	*at++ = SPOOL_RECORD_STRING;
	*at++ = 0;
	*at++ = SPOOL_RECORD_PROFILE;
	for (int i = 0; i < 5; i++)
		*at++ = (uint8_t)(length >> 7 * i | (i < 4 ? 0x80 : 0));
	part = (struct spool_profile_part *)at;
	part->tree = tree->id;
	part->internal_id = tree->thread->internal_id;
	part->tid = tree->thread->tid;
	part->components = kymo_regions.stored;
	part->node_size = node_size();
	part->first_node = tree->count;
	part->node_count = 0;
	tree->part = part;
	tree->part_room = (length - (uint32_t)sizeof(*part)) / part->node_size;
	atomic_store_explicit((_Atomic uint32_t *)&chunk->header->committed,
			      spool_chunk_capacity(chunk), memory_order_release);
	return true;
}

static uint32_t slot_of(const struct profile_tree *tree, uint32_t parent, uint32_t region)
{
	uint64_t hash = ((uint64_t)parent << 32 | region) * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(hash >> 32) & (tree->slots - 1);
}

static void insert(struct profile_tree *tree, uint32_t number)
{
	const struct profile_entry *entry = &tree->entries[number];
	uint32_t slot = slot_of(tree, entry->parent, entry->region);

	while (tree->table[slot])
		slot = (slot + 1) & (tree->slots - 1);
	tree->table[slot] = number;
}

static bool grow(struct profile_tree *tree)
{
	uint32_t capacity = tree->capacity ? tree->capacity * 2 : FIRST_NODES, slots = capacity * 2;
	struct profile_entry *entries =
		region_map(capacity * sizeof(*entries) + slots * sizeof(uint32_t));

	if (!entries)
		return false;
	for (uint32_t i = 0; i < tree->count; i++)
		entries[i] = tree->entries[i];
	if (tree->entries)
		sys_munmap(tree->entries,
			   tree->capacity * sizeof(*entries) + tree->slots * sizeof(uint32_t));
	tree->entries = entries;
	tree->capacity = capacity;
	tree->slots = slots;
	tree->table = (uint32_t *)(entries + capacity);
	for (uint32_t i = 1; i < tree->count; i++)
		insert(tree, i);
	return true;
}

/* 0: no room (node 0 is the root, never made here). */
static uint32_t make_node(struct profile_tree *tree, uint32_t parent, uint32_t region)
{
	uint32_t number = tree->count;
	struct spool_profile_node *node;

	if ((tree->count == tree->capacity && !grow(tree)) || (!tree->part_room && !add_part(tree)))
		return 0;
	node = (struct spool_profile_node *)((uint8_t *)(tree->part + 1) +
					     tree->part->node_count * tree->part->node_size);
	node->region = region;
	node->parent = parent;
	tree->entries[number] =
		(struct profile_entry){.node = node, .parent = parent, .region = region};
	tree->count++;
	tree->part_room--;
	if (number)
		insert(tree, number);
	/* release: the node is whole when the count says that it is there */
	atomic_store_explicit((_Atomic uint32_t *)&tree->part->node_count,
			      tree->part->node_count + 1, memory_order_release);
	return number;
}

static uint32_t find(const struct profile_tree *tree, uint32_t parent, uint32_t region)
{
	uint32_t slot = slot_of(tree, parent, region), number;

	while ((number = tree->table[slot])) {
		if (tree->entries[number].parent == parent &&
		    tree->entries[number].region == region)
			return number;
		slot = (slot + 1) & (tree->slots - 1);
	}
	return 0;
}

/* Where there is no room for a node of its own, calls are counted together under their parent; one
 * such node fits always while the limit leaves room for one a parent. */
static uint32_t find_or_make(struct profile_tree *tree, uint32_t parent, uint32_t region)
{
	uint32_t most = kymo_runtime.options.regions.profile_nodes;
	uint32_t number = find(tree, parent, region);

	if (number)
		return number;
	if (tree->count < most / 2 || (tree->count < most && tree->entries[parent].region))
		number = make_node(tree, parent, region);
	if (number)
		return number;
	spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_PROFILE_NODES);
	if (!tree->entries[parent].region && parent)
		return parent; /* inside a "(more)" all is "(more)" */
	number = find(tree, parent, 0);
	return number ? number : make_node(tree, parent, 0);
}

uint32_t profile_enter_other(struct profile_tree *tree, uint32_t parent, uint32_t region)
{
	uint32_t number = find_or_make(tree, parent, region);

	tree->entries[parent].hint = number == parent ? 0 : number;
	if (number)
		tree->entries[number].node->open++;
	return number;
}

void profile_leave_all(struct spool_profile_node *node, const uint64_t *values)
{
	struct spool_profile_value *sums = (struct spool_profile_value *)(node + 1);
	const struct bundle *bundle = &kymo_regions.bundle;
	bool first = !node->count;

	for (uint32_t i = 0; i < bundle->count; i++) {
		const struct component_description *description = bundle->components[i].description;

		if (description && description->kind == SPOOL_COMPONENT_RATIO)
			continue;
		profile_add_value(
			sums++,
			description && description->kind == SPOOL_COMPONENT_COUNT ? 1 : values[i],
			first);
	}
}

/* ---- trees ---- */

static void describe_sharing(const struct profile_tree *tree)
{
	uint8_t record[32], *at = leb128_put(record, tree->id);

	at = leb128_put(at, tree->thread->internal_id);
	at = leb128_put(at, tree->thread->tid);
	names_write(SPOOL_RECORD_PROFILE_SHARED, record, (uint32_t)(at - record));
}

static struct profile_tree *make_tree(struct thread *thread)
{
	struct profile_tree *tree = region_map(sizeof(*tree));

	if (!tree)
		return NULL;
	tree->thread = thread;
	tree->id = atomic_fetch_add(&trees.count, 1);
	make_node(tree, 0, 0);
	if (tree->count)
		return tree;
	sys_munmap(tree, sizeof(*tree));
	return NULL;
}

struct profile_tree *profile_acquire(struct region_thread *thread)
{
	struct profile_tree *tree = NULL;

	if (atomic_load_explicit(&trees.count, memory_order_relaxed) >=
		    kymo_runtime.options.regions.profile_threads &&
	    region_lock(&trees.lock)) {
		tree = trees.free;
		if (tree)
			trees.free = tree->next;
		region_unlock(&trees.lock);
	}
	if (!tree)
		return make_tree(thread->thread);
	tree->thread = thread->thread;
	describe_sharing(tree);
	return tree;
}

void profile_release(struct profile_tree *tree)
{
	if (!region_lock(&trees.lock))
		return;
	tree->next = trees.free;
	trees.free = tree;
	region_unlock(&trees.lock);
}

void profile_forget_all(void)
{
	trees.lock = 0;
	trees.count = 0;
	trees.free = NULL;
}

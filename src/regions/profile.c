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
#include "core/spool/chunk_wait.h"
#include "regions/names.h"

#define NODE_CAPACITY_FIRST 128u
#define PROFILE_RECORD_HEAD_SIZE                                                                   \
	8u /* kind and length in front of a part; keeps it aligned to 8 bytes */

static struct {
	_Atomic uint32_t lock;
	_Atomic uint32_t count;
	struct profile_tree *first_free_tree;
} free_profile_tree_list;

static uint32_t get_profile_node_size(void)
{
	return (uint32_t)(sizeof(struct spool_profile_node) +
			  kymo_regions.stored * sizeof(struct spool_profile_value) +
			  sizeof(struct spool_profile_open));
}

/* ---- nodes ---- */

/* A chunk for more nodes: one PROFILE record that fills it. The length takes five bytes, and two
 * bytes of an empty STRING record in front of it align the part. */
static bool start_profile_part_in_new_chunk(struct profile_tree *tree)
{
	enum spool_chunk_class chunk_class =
		tree->uses_large_chunks ? SPOOL_CHUNK_CLASS_LARGE : SPOOL_CHUNK_CLASS_SMALL;
	struct spool_chunk *chunk = spool_chunk_take(kymo_regions.spool, chunk_class);
	struct spool_profile_part *part;
	uint32_t length;
	uint8_t *at;

	if (!chunk)
		chunk = spool_wait_for_chunk(kymo_regions.spool, chunk_class, CHUNK_WAIT_IN_CALL);
	if (!chunk)
		return false;
	spool_chunk_exclude_from_ring(chunk);
	spool_chunk_set_changes_in_place(chunk);
	tree->uses_large_chunks = true;
	length = spool_chunk_get_capacity(chunk) - PROFILE_RECORD_HEAD_SIZE;
	at = spool_chunk_get_data(chunk);
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
	part->node_size = get_profile_node_size();
	part->first_node = tree->count;
	part->node_count = 0;
	tree->part = part;
	tree->part_nodes_left = (length - (uint32_t)sizeof(*part)) / part->node_size;
	atomic_store_explicit((_Atomic uint32_t *)&chunk->header->committed,
			      spool_chunk_get_capacity(chunk), memory_order_release);
	return true;
}

static uint32_t compute_node_hash_slot(const struct profile_tree *tree, uint32_t parent,
				       uint32_t region)
{
	uint64_t hash = ((uint64_t)parent << 32 | region) * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(hash >> 32) & (tree->slots - 1);
}

static void insert_node_in_table(struct profile_tree *tree, uint32_t number)
{
	const struct profile_node_lookup_entry *entry = &tree->entries[number];
	uint32_t slot = compute_node_hash_slot(tree, entry->parent, entry->region);

	while (tree->table[slot])
		slot = (slot + 1) & (tree->slots - 1);
	tree->table[slot] = number;
}

static bool grow_node_table(struct profile_tree *tree)
{
	uint32_t capacity = tree->capacity ? tree->capacity * 2 : NODE_CAPACITY_FIRST,
		 slots = capacity * 2;
	struct profile_node_lookup_entry *entries =
		region_map_memory(capacity * sizeof(*entries) + slots * sizeof(uint32_t));

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
		insert_node_in_table(tree, i);
	return true;
}

/* 0: no room (node 0 is the root, never made here). */
static uint32_t make_profile_node(struct profile_tree *tree, uint32_t parent, uint32_t region)
{
	uint32_t number = tree->count;
	struct spool_profile_node *node;

	if ((tree->count == tree->capacity && !grow_node_table(tree)) ||
	    (!tree->part_nodes_left && !start_profile_part_in_new_chunk(tree)))
		return 0;
	node = (struct spool_profile_node *)((uint8_t *)(tree->part + 1) +
					     tree->part->node_count * tree->part->node_size);
	node->region = region;
	node->parent = parent;
	tree->entries[number] = (struct profile_node_lookup_entry){
		.node = node, .parent = parent, .region = region};
	tree->count++;
	tree->part_nodes_left--;
	if (number)
		insert_node_in_table(tree, number);
	/* release: the node is whole when the count says that it is there */
	atomic_store_explicit((_Atomic uint32_t *)&tree->part->node_count,
			      tree->part->node_count + 1, memory_order_release);
	return number;
}

uint32_t profile_find_node(const struct profile_tree *tree, uint32_t parent, uint32_t region)
{
	uint32_t slot = compute_node_hash_slot(tree, parent, region), number;

	while ((number = tree->table[slot])) {
		if (tree->entries[number].parent == parent &&
		    tree->entries[number].region == region) {
			tree->entries[parent].hint = number;
			return number;
		}
		slot = (slot + 1) & (tree->slots - 1);
	}
	return 0;
}

/* Where there is no room for a node of its own, calls are counted together under their parent; one
 * such node fits always while the limit leaves room for one a parent. */
static uint32_t find_or_make_profile_node(struct profile_tree *tree, uint32_t parent,
					  uint32_t region)
{
	uint32_t most = kymo_regions.options->profile_nodes_max;
	uint32_t number = profile_find_node(tree, parent, region);

	if (number)
		return number;
	if (tree->count < most / 2 || (tree->count < most && tree->entries[parent].region))
		number = make_profile_node(tree, parent, region);
	if (number)
		return number;
	spool_count_loss(kymo_regions.spool, SPOOL_LOSS_PROFILE_NODES);
	if (!tree->entries[parent].region && parent)
		return parent; /* inside a "(more)" all is "(more)" */
	number = profile_find_node(tree, parent, 0);
	return number ? number : make_profile_node(tree, parent, 0);
}

uint32_t profile_enter_node_slow(struct profile_tree *tree, uint32_t parent, uint32_t region,
				 uint64_t begin_ticks)
{
	uint32_t number = find_or_make_profile_node(tree, parent, region);

	tree->entries[parent].hint = number == parent ? 0 : number;
	if (number)
		profile_count_call_as_open(tree->entries[number].node, begin_ticks);
	return number;
}

void profile_add_component_values(struct spool_profile_node *node, const uint64_t *values)
{
	struct spool_profile_value *sums = (struct spool_profile_value *)(node + 1);
	const struct component_bundle *bundle = &kymo_regions.component_bundle;
	bool first = !node->count;

	for (uint32_t i = 0; i < bundle->count; i++) {
		const struct component_description *description = bundle->components[i].description;

		if (description && description->kind == SPOOL_COMPONENT_RATIO)
			continue;
		profile_add_to_value_statistics(
			sums++,
			description && description->kind == SPOOL_COMPONENT_COUNT ? 1 : values[i],
			first);
	}
}

/* ---- trees ---- */

static void write_tree_owner_change_record(const struct profile_tree *tree)
{
	uint8_t record[32], *at = leb128_write(record, tree->id);

	at = leb128_write(at, tree->thread->internal_id);
	at = leb128_write(at, tree->thread->tid);
	names_write_record_in_name_chunk(SPOOL_RECORD_PROFILE_SHARED, record,
					 (uint32_t)(at - record));
}

static struct profile_tree *make_profile_tree(struct thread *thread)
{
	struct profile_tree *tree = region_map_memory(sizeof(*tree));

	if (!tree)
		return NULL;
	tree->thread = thread;
	tree->id = atomic_fetch_add(&free_profile_tree_list.count, 1);
	make_profile_node(tree, 0, 0);
	if (tree->count)
		return tree;
	sys_munmap(tree, sizeof(*tree));
	return NULL;
}

struct profile_tree *profile_make_or_reuse_tree(struct region_thread_state *thread)
{
	struct profile_tree *tree = NULL;

	if (atomic_load_explicit(&free_profile_tree_list.count, memory_order_relaxed) >=
		    kymo_regions.options->profile_threads_max &&
	    region_acquire_lock_if_not_holder(&free_profile_tree_list.lock)) {
		tree = free_profile_tree_list.first_free_tree;
		if (tree)
			free_profile_tree_list.first_free_tree = tree->next;
		region_release_lock(&free_profile_tree_list.lock);
	}
	if (!tree)
		return make_profile_tree(thread->thread);
	tree->thread = thread->thread;
	write_tree_owner_change_record(tree);
	return tree;
}

void profile_release_tree_for_reuse(struct profile_tree *tree)
{
	if (!region_acquire_lock_if_not_holder(&free_profile_tree_list.lock))
		return;
	tree->next = free_profile_tree_list.first_free_tree;
	free_profile_tree_list.first_free_tree = tree;
	region_release_lock(&free_profile_tree_list.lock);
}

void profile_forget_all_trees(void)
{
	free_profile_tree_list.lock = 0;
	free_profile_tree_list.count = 0;
	free_profile_tree_list.first_free_tree = NULL;
}

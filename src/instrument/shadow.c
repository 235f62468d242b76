/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See shadow.h.
 */
#include "instrument/shadow.h"

#include <sys/mman.h>
#include <sys/uio.h>

#include "common/syscalls.h"
#include "core/runtime.h"
#include "instrument/arena.h"

/* Until a thread has a node: entries go the slow way (limit 0), exits find nothing. */
static struct shadow_entry nothing[1] = {{.slot = UINT64_MAX}};

__thread struct calls_thread kymo_calls = {.top = nothing + 1};
struct shadow_node *_Atomic kymo_shadow_nodes;

/* ---- nodes ---- */

static struct shadow_node *take_free(void)
{
	struct shadow_node *node = atomic_load_explicit(&kymo_shadow_nodes, memory_order_acquire);

	for (; node; node = node->next) {
		struct calls_thread *none = NULL;

		if (!atomic_load_explicit(&node->calls, memory_order_relaxed) &&
		    atomic_compare_exchange_strong(&node->calls, &none, &kymo_calls))
			return node;
	}
	return NULL;
}

static struct shadow_node *make(void)
{
	size_t head = sizeof(struct shadow_node) + SHADOW_VECTORS,
	       size = head + (SHADOW_ENTRIES + 1) * sizeof(struct shadow_entry);
	struct shadow_node *node = sys_mmap(NULL, size, PROT_READ | PROT_WRITE,
					    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (sys_failed(node))
		return NULL;
	node->entries = (void *)((uint8_t *)node + head);
	node->end = node->entries + SHADOW_ENTRIES + 1;
	node->entries[0].slot = UINT64_MAX;
	atomic_store_explicit(&node->calls, &kymo_calls, memory_order_relaxed);
	node->next = atomic_load_explicit(&kymo_shadow_nodes, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&kymo_shadow_nodes, &node->next, node,
						      memory_order_release, memory_order_relaxed))
		;
	return node;
}

struct shadow_node *shadow_take(void)
{
	struct shadow_node *node = take_free();

	return node ? node : make();
}

/* Entries that are still open belong to calls that will never return: they are forgotten. */
static void empty(struct shadow_node *node, struct shadow_entry *top)
{
	while (top > node->entries + 1)
		(--top)->slot = 0;
}

void shadow_release(struct shadow_node *node)
{
	empty(node, kymo_calls.top);
	kymo_calls.top = nothing + 1;
	kymo_calls.limit = NULL;
	atomic_store_explicit(&node->calls, NULL, memory_order_release);
}

/* The memory that their tops were in may be gone: stacks of threads that do not exist here. */
void shadow_forked(struct shadow_node *mine)
{
	struct shadow_node *node = atomic_load_explicit(&kymo_shadow_nodes, memory_order_acquire);

	for (; node; node = node->next) {
		node->chunk = NULL;
		node->record = node->rest = NULL;
		if (node == mine)
			continue;
		for (struct shadow_entry *entry = node->entries + 1;
		     entry < node->end && (entry->slot || entry->return_address); entry++)
			*entry = (struct shadow_entry){0};
		atomic_store_explicit(&node->calls, NULL, memory_order_relaxed);
	}
}

/* ---- entries ---- */

/* A stack that was left may be unmapped by now: only the kernel can read it without harm. */
bool shadow_is_live(const struct shadow_entry *entry)
{
	uint64_t word = 0;
	struct iovec local = {&word, sizeof(word)}, remote = {(void *)entry->slot, sizeof(word)};

	if (sys_call6(SYS_process_vm_readv, sys_getpid(), (long)&local, 1, (long)&remote, 1, 0) !=
	    (long)sizeof(word))
		return false;
	return word == arena_exit_address(entry->id);
}

static struct shadow_entry *below_taken_out(struct shadow_entry *top)
{
	while (top[-1].slot == SHADOW_TAKEN_OUT)
		(--top)->slot = 0;
	return top;
}

/* Its slot may hold what it did for long, so that says nothing here. */
static bool is_left(const struct shadow_entry *entry, uint64_t slot)
{
	const struct thread *thread = kymo_thread;

	return thread && entry->slot < slot && entry->slot >= thread->bounds.low &&
	       slot < thread->bounds.high;
}

static void keep_left(struct shadow_node *node, const struct shadow_entry *entry)
{
	node->left[node->left_count++ % SHADOW_LEFT] = *entry;
}

static bool find_left(struct shadow_node *node, uint64_t slot, struct shadow_entry *ret)
{
	uint32_t count = node->left_count;

	for (uint32_t i = 0; i < count && i < SHADOW_LEFT; i++) {
		struct shadow_entry *entry = &node->left[(count - 1 - i) % SHADOW_LEFT];

		if (entry->slot != slot)
			continue;
		*ret = *entry;
		entry->slot = 0;
		return true;
	}
	return false;
}

uint32_t shadow_clean(struct calls_thread *calls, uint64_t slot,
		      void (*each)(const struct shadow_entry *))
{
	struct shadow_entry *top = below_taken_out(calls->top);
	uint32_t count = 0;

	/* 0: being made by the code that this one interrupted */
	while (top[-1].slot && top[-1].slot <= slot) {
		/* The same slot cannot be in use twice. */
		if (is_left(&top[-1], slot))
			keep_left(calls->node, &top[-1]);
		else if (top[-1].slot != slot && shadow_is_live(&top[-1]))
			break;
		each(&top[-1]);
		(--top)->slot = 0;
		count++;
		top = below_taken_out(top);
	}
	calls->top = top;
	return count;
}

static struct shadow_entry *find_below(struct shadow_entry *top, uint64_t slot)
{
	struct shadow_entry *entry = top - 1;

	while (entry->slot != slot && entry->slot != UINT64_MAX)
		entry--;
	return entry->slot == slot ? entry : NULL;
}

/* Ends the entries above `entry` that no call will return to. */
static void end_inner(struct calls_thread *calls, struct shadow_entry *entry,
		      void (*each)(const struct shadow_entry *))
{
	for (struct shadow_entry *inner = calls->top - 1; inner > entry; inner--) {
		bool left = is_left(inner, entry->slot);

		if (!shadow_is_open(inner) || (!left && shadow_is_live(inner)))
			continue;
		if (left)
			keep_left(calls->node, inner);
		each(inner);
		inner->slot = SHADOW_TAKEN_OUT;
	}
}

/* Without the thread's own state, whose memory goes with it: entries above the top have no slot. */
static struct shadow_entry *find_in(struct shadow_node *node, uint64_t slot)
{
	struct shadow_entry *entry = node->entries + 1, *found = NULL;

	for (; entry < node->end && entry->slot; entry++) {
		if (entry->slot == slot)
			found = entry;
	}
	return found;
}

static bool pop_elsewhere(uint64_t slot, struct shadow_entry *ret)
{
	struct shadow_node *node = atomic_load_explicit(&kymo_shadow_nodes, memory_order_acquire);

	for (; node; node = node->next) {
		struct shadow_entry *entry = find_in(node, slot);

		if (!entry)
			continue;
		*ret = *entry;
		entry->slot = SHADOW_TAKEN_OUT;
		return true;
	}
	return false;
}

bool shadow_pop(struct calls_thread *calls, uint64_t slot, struct shadow_entry *ret,
		void (*each)(const struct shadow_entry *))
{
	struct shadow_entry *entry = find_below(calls->top, slot);

	if (!entry)
		return (calls->node && find_left(calls->node, slot, ret)) ||
		       pop_elsewhere(slot, ret);
	end_inner(calls, entry, each);
	*ret = *entry;
	entry->slot = SHADOW_TAKEN_OUT;
	calls->top = below_taken_out(calls->top);
	return true;
}

/* Unwinders come here, mostly for their own thread. */
uint64_t shadow_return_address(uint64_t slot)
{
	struct shadow_node *node = atomic_load_explicit(&kymo_shadow_nodes, memory_order_acquire);
	struct shadow_entry *entry = find_below(kymo_calls.top, slot);

	for (; !entry && node; node = node->next)
		entry = find_in(node, slot);
	return entry ? entry->return_address : 0;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See shadow.h.
 */
#include "instrument/shadow.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "common/syscalls.h"
#include "instrument/arena.h"

#define ANY_FUNCTION_ID UINT32_MAX /* more than PLAN_ID_MAX */
#define POKE_YIELDS_MAX 1000       /* of a helper that is ended or starved meanwhile */
#define CALLS_PER_ALTERNATE_STACK_QUERY                                                            \
	32u /* calls that return with others' entries above theirs */
#define INNER_CALL_STACK_DISTANCE_MAX                                                              \
	32768u /* bytes: a call and the one inside it are seldom so far apart */

/* Until a thread has a node: entries go the slow way (limit 0), exits find nothing. */
static struct shadow_entry placeholder_shadow_entries[1] = {{.slot = UINT64_MAX}};

__thread struct calls_thread_state kymo_calls = {.top = placeholder_shadow_entries + 1};
struct shadow_stack_node *_Atomic kymo_shadow_nodes;

/* ---- nodes ---- */

static struct shadow_stack_node *acquire_free_node(void)
{
	struct shadow_stack_node *node =
		atomic_load_explicit(&kymo_shadow_nodes, memory_order_acquire);

	for (; node; node = node->next) {
		struct calls_thread_state *none = NULL;

		if (!atomic_load_explicit(&node->calls, memory_order_relaxed) &&
		    atomic_compare_exchange_strong(&node->calls, &none, &kymo_calls))
			return node;
	}
	return NULL;
}

static struct shadow_stack_node *map_new_node(void)
{
	size_t head = sizeof(struct shadow_stack_node) + SHADOW_THREAD_VECTOR_AREA_BYTES,
	       size = head + (SHADOW_ENTRIES_MAX + 1) * sizeof(struct shadow_entry);
	struct shadow_stack_node *node =
		sys_mmap(NULL, size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (sys_mmap_failed(node))
		return NULL;
	node->entries = (void *)((uint8_t *)node + head);
	node->end = node->entries + SHADOW_ENTRIES_MAX + 1;
	node->entries[0].slot = UINT64_MAX;
	node->internal_thread_id = SHADOW_NO_THREAD;
	atomic_store_explicit(&node->calls, &kymo_calls, memory_order_relaxed);
	node->next = atomic_load_explicit(&kymo_shadow_nodes, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&kymo_shadow_nodes, &node->next, node,
						      memory_order_release, memory_order_relaxed))
		;
	return node;
}

struct shadow_stack_node *shadow_acquire_node(void)
{
	struct shadow_stack_node *node = acquire_free_node();

	return node ? node : map_new_node();
}

static void clear_node(struct shadow_stack_node *node, struct shadow_entry *top)
{
	while (top > node->entries + 1)
		(--top)->slot = 0;
	for (uint32_t i = 0; node->has_abandoned_entries && i < SHADOW_ABANDONED_ENTRIES_MAX; i++)
		node->abandoned_entries[i].slot = 0;
	node->has_abandoned_entries = false;
	node->lowest_interleaved_entry = node->checked_live_entry = node->compact_limit = NULL;
	node->open_check_count_min = node->return_under_others_count = 0;
}

/* Calls that are open on the thread's own stack will never return. Coroutines may go on on other
 * threads. */
static bool remove_dead_calls_of_thread(const struct shadow_stack_node *node,
					struct shadow_entry *top)
{
	bool any = false;

	for (struct shadow_entry *entry = top - 1; entry > node->entries; entry--) {
		if (shadow_entry_is_open(entry) && !shadow_slot_is_on_own_stack(entry->slot) &&
		    shadow_entry_is_live(entry))
			any = true;
		else
			entry->slot = SHADOW_SLOT_REMOVED;
	}
	return any;
}

/* Whose nodes are for calls that were open when their thread ended. */
static struct calls_thread_state abandoned_node_owner_sentinel, reclaimed_node_owner_sentinel;
static _Atomic uint32_t abandoned_node_count_of_process;

static void release_abandoned_node_if_empty(struct shadow_stack_node *node)
{
	struct calls_thread_state *owner = &abandoned_node_owner_sentinel;
	struct shadow_entry *top = node->entries + 1;

	for (; top < node->end && top->slot; top++) {
		if (shadow_entry_is_open(top))
			return;
	}
	if (!atomic_compare_exchange_strong(&node->calls, &owner, &reclaimed_node_owner_sentinel))
		return;
	clear_node(node, top);
	atomic_fetch_sub_explicit(&abandoned_node_count_of_process, 1, memory_order_relaxed);
	atomic_store_explicit(&node->calls, NULL, memory_order_release);
}

void shadow_release_node(struct shadow_stack_node *node)
{
	struct shadow_entry *top = kymo_calls.top;
	bool open = atomic_load_explicit(&abandoned_node_count_of_process, memory_order_relaxed) <
			    SHADOW_ABANDONED_NODES_MAX &&
		    remove_dead_calls_of_thread(node, top);

	kymo_calls.top = placeholder_shadow_entries + 1;
	kymo_calls.limit = NULL;
	if (open) {
		atomic_fetch_add_explicit(&abandoned_node_count_of_process, 1,
					  memory_order_relaxed);
	} else {
		clear_node(node, top);
	}
	/* Before another thread can have it: this one's end is still to be worked off. */
	node->internal_thread_id = SHADOW_NO_THREAD;
	/* seq_cst: either the helper sees this, or its poke is seen here. */
	atomic_store(&node->calls, open ? &abandoned_node_owner_sentinel : NULL);
	for (int i = 0; i < POKE_YIELDS_MAX && atomic_load(&node->is_being_poked); i++)
		sys_call0(SYS_sched_yield);
}

/* The memory that their tops were in may be gone: stacks of threads that do not exist here. */
void shadow_reset_in_forked_child(struct shadow_stack_node *mine)
{
	struct shadow_stack_node *node =
		atomic_load_explicit(&kymo_shadow_nodes, memory_order_acquire);

	atomic_store_explicit(&abandoned_node_count_of_process, 0, memory_order_relaxed);
	for (; node; node = node->next) {
		node->chunk = NULL;
		node->record = node->rest = NULL;
		atomic_store_explicit(&node->is_being_poked, false, memory_order_relaxed);
		if (node == mine)
			continue;
		for (struct shadow_entry *entry = node->entries + 1;
		     entry < node->end && (entry->slot || entry->return_address); entry++)
			*entry = (struct shadow_entry){0};
		node->internal_thread_id = SHADOW_NO_THREAD;
		atomic_store_explicit(&node->calls, NULL, memory_order_relaxed);
	}
}

/* ---- entries ---- */

/* A stack that was left may be unmapped by now: only the kernel can read it without harm. Where the
 * kernel is not to be asked, or does not say, the entry is kept: without its return address a
 * thread cannot go on. */
bool shadow_entry_is_live(const struct shadow_entry *entry)
{
	uint64_t word = 0;
	struct iovec local = {&word, sizeof(word)}, remote = {(void *)entry->slot, sizeof(word)};
	long got;

	if (process_has_seccomp_thread())
		return true;
	got = sys_call6(SYS_process_vm_readv, sys_getpid(), (long)&local, 1, (long)&remote, 1, 0);
	return got == (long)sizeof(word) ? word == arena_get_stub_exit_of_function(entry->id)
					 : got != -EFAULT;
}

/* Its slot may hold what it did for long, so that says nothing here. */
static bool entry_is_abandoned(const struct shadow_entry *entry, uint64_t slot)
{
	return entry->slot < slot && shadow_slot_is_on_own_stack(entry->slot) &&
	       shadow_slot_is_on_own_stack(slot);
}

/* A set by slot: the newest of a slot's is all that counts. Coroutines whose stacks are carved out
 * in one size have open calls at the same distances, so that all of the slot counts. */
static struct shadow_entry *get_abandoned_set_of_slot(struct shadow_stack_node *node, uint64_t slot)
{
	uint64_t hash = (slot >> 3) * 0x9e3779b97f4a7c15u >> 32;

	return &node->abandoned_entries[hash %
					(SHADOW_ABANDONED_ENTRIES_MAX / SHADOW_ABANDONED_SET_WAYS) *
					SHADOW_ABANDONED_SET_WAYS];
}

static struct shadow_entry *find_abandoned_entry(struct shadow_stack_node *node, uint64_t slot)
{
	struct shadow_entry *set = get_abandoned_set_of_slot(node, slot);

	for (uint32_t i = 0; i < SHADOW_ABANDONED_SET_WAYS; i++) {
		if (set[i].slot == slot)
			return &set[i];
	}
	return NULL;
}

static bool entry_is_of_this_round(const struct shadow_stack_node *node,
				   const struct shadow_entry *kept)
{
	return kept->flags >> SHADOW_ROUND_SHIFT == node->abandoned_round;
}

/* What is ended at one time comes newest first. False: there is no room among those that may be
 * open still. */
static bool store_abandoned_entry(struct shadow_stack_node *node, const struct shadow_entry *entry)
{
	struct shadow_entry *set = get_abandoned_set_of_slot(node, entry->slot),
			    *place = find_abandoned_entry(node, entry->slot);
	uint32_t reused = 0;

	if (place && entry_is_of_this_round(node, place))
		return true;
	if (place && shadow_slot_is_on_own_stack(entry->slot))
		reused = SHADOW_FLAG_REUSED;
	for (uint32_t i = 0; !place && i < SHADOW_ABANDONED_SET_WAYS; i++) {
		if (!set[i].slot)
			place = &set[i];
	}
	for (uint32_t i = 0; !place && i < SHADOW_ABANDONED_SET_WAYS; i++) {
		if (!shadow_entry_is_live(&set[i]))
			place = &set[i];
	}
	if (!place)
		return false;
	*place = *entry;
	place->flags = (entry->flags & SHADOW_FLAG_REGION) | reused |
		       node->abandoned_round << SHADOW_ROUND_SHIFT;
	node->has_abandoned_entries = true;
	return true;
}

static void begin_abandoned_round(struct shadow_stack_node *node)
{
	node->abandoned_round = (node->abandoned_round + 1) & (UINT32_MAX >> SHADOW_ROUND_SHIFT);
}

static bool entry_is_of_function(const struct shadow_entry *entry, uint32_t id)
{
	return id == ANY_FUNCTION_ID || entry->id == id;
}

static bool remove_abandoned_entry(struct shadow_stack_node *node, uint64_t slot, uint32_t id,
				   struct shadow_entry *ret)
{
	struct shadow_entry *entry = find_abandoned_entry(node, slot);

	if (!entry || !entry_is_of_function(entry, id))
		return false;
	*ret = *entry;
	ret->flags &= SHADOW_FLAG_REGION | SHADOW_FLAG_REUSED;
	entry->slot = 0;
	return true;
}

static bool slot_is_on_alternate_stack(const struct registered_signal_stack_info *alternate,
				       uint64_t slot)
{
	return slot - alternate->low < alternate->size;
}

static struct registered_signal_stack_info query_alternate_stack(void)
{
	stack_t stack = {0};

	if (process_has_seccomp_thread() || sys_call2(SYS_sigaltstack, 0, (long)&stack) != 0)
		return (struct registered_signal_stack_info){0};
	return (struct registered_signal_stack_info){(uint64_t)(uintptr_t)stack.ss_sp,
						     stack.ss_size, stack.ss_flags & SS_ONSTACK};
}

static bool handler_slot_interrupts_entry(const struct registered_signal_stack_info *alternate,
					  uint64_t inner, uint64_t slot)
{
	return alternate->on && slot_is_on_alternate_stack(alternate, slot) &&
	       !slot_is_on_alternate_stack(alternate, inner);
}

bool shadow_is_interrupted_by_handler_at(uint64_t inner, uint64_t slot)
{
	struct registered_signal_stack_info alternate = query_alternate_stack();

	return handler_slot_interrupts_entry(&alternate, inner, slot);
}

/* By a handler that was left; should it only have changed to another stack, what is kept leads
 * back. */
static bool entry_was_abandoned_by_handler(const struct registered_signal_stack_info *alternate,
					   const struct shadow_entry *entry)
{
	return !alternate->on && slot_is_on_alternate_stack(alternate, entry->slot);
}

/* Where entries of other stacks lie between, there may be older ones below of slots that were kept
 * in this round: calls that were left, and the slot was used again. */
static uint32_t end_older_duplicate_entries(struct calls_thread_state *calls,
					    struct shadow_entry *top, uint64_t slot,
					    void (*each)(const struct shadow_entry *))
{
	struct shadow_stack_node *node = calls->node;
	uint32_t count = 0;

	for (struct shadow_entry *entry = top - 1; entry > node->entries; entry--) {
		const struct shadow_entry *kept =
			shadow_entry_is_open(entry) && entry_is_abandoned(entry, slot)
				? find_abandoned_entry(node, entry->slot)
				: NULL;

		if (!kept || !entry_is_of_this_round(node, kept))
			continue;
		each(entry);
		entry->slot = SHADOW_SLOT_REMOVED;
		count++;
	}
	return count;
}

static bool has_interleaved_stacks(const struct calls_thread_state *calls)
{
	return calls->node && calls->node->lowest_interleaved_entry &&
	       calls->node->lowest_interleaved_entry < calls->top;
}

/* An entry for `slot` is about to be the top. */
static void update_first_interleaved_entry(struct shadow_stack_node *node, struct shadow_entry *top,
					   uint64_t slot)
{
	if (node->lowest_interleaved_entry >= top)
		node->lowest_interleaved_entry = NULL;
	if (!node->lowest_interleaved_entry && top[-1].slot <= slot)
		node->lowest_interleaved_entry = top;
}

/* Left since then, it is found out when more is known, or by shadow_compact_if_grown(). */
static bool entry_is_live_by_cache_or_check(struct shadow_stack_node *node,
					    struct shadow_entry *entry)
{
	if (node && node->checked_live_entry == entry && node->checked_live_slot == entry->slot)
		return true;
	if (!shadow_entry_is_live(entry))
		return false;
	if (node) {
		node->checked_live_entry = entry;
		node->checked_live_slot = entry->slot;
	}
	return true;
}

uint32_t shadow_end_stale_entries(struct calls_thread_state *calls, uint64_t slot,
				  void (*each)(const struct shadow_entry *))
{
	struct shadow_entry *top = shadow_trim_removed_top(calls->top);
	bool interleaved = has_interleaved_stacks(calls), any_kept = false, asked = false;
	uint32_t count = 0;

	if (calls->node)
		begin_abandoned_round(calls->node);
	/* 0: being made by the code that this one interrupted */
	while (top[-1].slot && top[-1].slot <= slot) {
		bool same = top[-1].slot == slot; /* which cannot be in use twice */
		bool kept;

		if (!same && !asked) {
			calls->node->alternate_signal_stack = query_alternate_stack();
			asked = true;
		}
		if (!same && handler_slot_interrupts_entry(&calls->node->alternate_signal_stack,
							   top[-1].slot, slot))
			break;
		kept = (entry_is_abandoned(&top[-1], slot) ||
			(asked && entry_was_abandoned_by_handler(
					  &calls->node->alternate_signal_stack, &top[-1]))) &&
		       store_abandoned_entry(calls->node, &top[-1]);
		any_kept |= kept;
		if (!kept && !same && entry_is_live_by_cache_or_check(calls->node, &top[-1]))
			break;
		each(&top[-1]);
		(--top)->slot = 0;
		count++;
		top = shadow_trim_removed_top(top);
	}
	if (any_kept && interleaved)
		count += end_older_duplicate_entries(calls, top, slot, each);
	calls->top = shadow_trim_removed_top(top);
	if (calls->node) {
		shadow_compact_if_grown(calls, each);
		update_first_interleaved_entry(calls->node, calls->top, slot);
	}
	return count;
}

static struct shadow_entry *find_entry_below_top(struct shadow_entry *top, uint64_t slot,
						 uint32_t id)
{
	struct shadow_entry *entry = top - 1;

	while (!(entry->slot == slot && entry_is_of_function(entry, id)) &&
	       entry->slot != UINT64_MAX)
		entry--;
	return entry->slot == slot ? entry : NULL;
}

/* Directly above an entry are those of calls from there, of which the ones that were left are not
 * live; behind them are those of other stacks. */
static struct shadow_entry *find_end_of_abandoned_entries(struct shadow_entry *top,
							  struct shadow_entry *entry)
{
	uint64_t slot = entry->slot;

	while (++entry < top) {
		if (!shadow_entry_is_open(entry) || entry_is_abandoned(entry, slot))
			continue;
		if (slot - entry->slot >= INNER_CALL_STACK_DISTANCE_MAX ||
		    shadow_entry_is_live(entry))
			break;
	}
	return entry;
}

/* Coroutines come here often, so the kernel is asked now and then only, and where it matters. */
static bool is_entry_on_abandoned_alternate_stack(struct shadow_stack_node *node,
						  const struct shadow_entry *entry)
{
	if (!slot_is_on_alternate_stack(&node->alternate_signal_stack, entry->slot))
		return false;
	node->alternate_signal_stack = query_alternate_stack();
	return entry_was_abandoned_by_handler(&node->alternate_signal_stack, entry);
}

/* Ends the entries above `entry` that no call will return to. */
static void end_inner_entries(struct calls_thread_state *calls, struct shadow_entry *entry,
			      void (*each)(const struct shadow_entry *))
{
	struct shadow_entry *end = find_end_of_abandoned_entries(calls->top, entry);
	/* Further in on the thread's own stack they may be anywhere. */
	struct shadow_entry *last = shadow_slot_is_on_own_stack(entry->slot) ? calls->top : end;
	bool interleaved = has_interleaved_stacks(calls), any_kept = false;

	begin_abandoned_round(calls->node);
	if (last - 1 > entry &&
	    calls->node->return_under_others_count++ % CALLS_PER_ALTERNATE_STACK_QUERY == 0)
		calls->node->alternate_signal_stack = query_alternate_stack();
	for (struct shadow_entry *inner = last - 1; inner > entry; inner--) {
		bool left = shadow_entry_is_open(inner) &&
			    (entry_is_abandoned(inner, entry->slot) ||
			     is_entry_on_abandoned_alternate_stack(calls->node, inner));
		bool kept = left && store_abandoned_entry(calls->node, inner);

		any_kept |= kept;
		if (!shadow_entry_is_open(inner) ||
		    !(left ? kept || !shadow_entry_is_live(inner) : inner < end))
			continue;
		each(inner);
		inner->slot = SHADOW_SLOT_REMOVED;
	}
	if (any_kept && interleaved)
		end_older_duplicate_entries(calls, entry, entry->slot, each);
}

/* Without the thread's own state, whose memory goes with it: entries above the top have no slot. */
static struct shadow_entry *find_entry_in_shadow_node(struct shadow_stack_node *node, uint64_t slot,
						      uint32_t id)
{
	struct shadow_entry *entry = node->entries + 1;

	while (entry < node->end && *(volatile uint64_t *)&entry->slot)
		entry++;
	while (--entry > node->entries) {
		if (*(volatile uint64_t *)&entry->slot == slot && entry_is_of_function(entry, id))
			return entry;
	}
	return NULL;
}

static bool remove_entry_from_shadow_node(struct shadow_stack_node *node, uint64_t slot,
					  uint32_t id, struct shadow_entry *ret)
{
	struct shadow_entry *entry;

	while ((entry = find_entry_in_shadow_node(node, slot, id))) {
		*ret = *entry;
		ret->slot = slot;
		if (shadow_try_remove_entry(entry, slot))
			return true;
	}
	return false;
}

static bool pop_entry_at_slot_of_other_thread(uint64_t slot, uint32_t id, struct shadow_entry *ret)
{
	struct shadow_stack_node *node =
		atomic_load_explicit(&kymo_shadow_nodes, memory_order_acquire);
	struct shadow_stack_node *first = node;

	for (; node; node = node->next) {
		if (!remove_entry_from_shadow_node(node, slot, id, ret))
			continue;
		if (atomic_load_explicit(&node->calls, memory_order_relaxed) ==
		    &abandoned_node_owner_sentinel)
			release_abandoned_node_if_empty(node);
		return true;
	}
	for (node = first; node; node = node->next) {
		if (remove_abandoned_entry(node, slot, id, ret))
			return true;
	}
	return false;
}

static bool pop_entry_at_slot(struct calls_thread_state *calls, uint64_t slot, uint32_t id,
			      struct shadow_entry *ret, void (*each)(const struct shadow_entry *))
{
	struct shadow_entry *entry = find_entry_below_top(calls->top, slot, id);

	if (!entry)
		return (calls->node && remove_abandoned_entry(calls->node, slot, id, ret)) ||
		       pop_entry_at_slot_of_other_thread(slot, id, ret);
	end_inner_entries(calls, entry, each);
	*ret = *entry;
	entry->slot = SHADOW_SLOT_REMOVED;
	calls->top = shadow_trim_removed_top(calls->top);
	shadow_compact_if_grown(calls, each);
	return true;
}

bool shadow_pop_entry(struct calls_thread_state *calls, uint64_t slot, uint32_t id,
		      struct shadow_entry *ret, void (*each)(const struct shadow_entry *))
{
	return pop_entry_at_slot(calls, slot, id, ret, each) ||
	       pop_entry_at_slot(calls, slot, ANY_FUNCTION_ID, ret, each);
}

/* Above the top the rest of an entry stays as it was. */
bool shadow_find_return_address_of_returned_call(const struct calls_thread_state *calls,
						 uint32_t id, uint64_t *ret)
{
	const struct shadow_entry *entry = calls->top;

	*ret = 0;
	for (; calls->node && entry < calls->node->end && entry->return_address; entry++) {
		if (entry->id != id)
			continue;
		if (*ret && *ret != entry->return_address)
			return false;
		*ret = entry->return_address;
	}
	return *ret != 0;
}

/* Unwinders come here, mostly for their own thread. */
static struct shadow_entry *find_entry_of_any_thread(uint64_t slot)
{
	struct shadow_stack_node *node =
		atomic_load_explicit(&kymo_shadow_nodes, memory_order_acquire);
	struct shadow_entry *entry = find_entry_below_top(kymo_calls.top, slot, ANY_FUNCTION_ID);

	if (!entry && kymo_calls.node)
		entry = find_abandoned_entry(kymo_calls.node, slot);
	for (; !entry && node; node = node->next)
		entry = find_entry_in_shadow_node(node, slot, ANY_FUNCTION_ID);
	return entry;
}

uint64_t shadow_find_return_address(uint64_t slot)
{
	const struct shadow_entry *entry = find_entry_of_any_thread(slot);

	return entry ? entry->return_address : 0;
}

uint64_t *shadow_find_return_address_slot(uint64_t slot)
{
	struct shadow_entry *entry = find_entry_of_any_thread(slot);

	return entry && shadow_entry_is_live(entry) ? &entry->return_address
						    : (uint64_t *)(uintptr_t)slot;
}

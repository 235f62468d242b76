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

#define ANY_ID     UINT32_MAX /* more than PLAN_ID_MAX */
#define ASK_EVERY  32u        /* calls that return with others' entries above theirs */
#define FURTHER_IN 32768u     /* bytes: a call and the one inside it are seldom so far apart */

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
	node->internal_id = SHADOW_NO_THREAD;
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

static void empty(struct shadow_node *node, struct shadow_entry *top)
{
	while (top > node->entries + 1)
		(--top)->slot = 0;
	for (uint32_t i = 0; node->any_left && i < SHADOW_LEFT; i++)
		node->left[i].slot = 0;
	node->any_left = false;
	node->mixed = node->passed = node->tidy_at = NULL;
	node->open_at = node->returned = 0;
}

/* Calls that are open on the thread's own stack will never return. Coroutines may go on on other
 * threads. */
static bool leaves_open(const struct shadow_node *node, struct shadow_entry *top)
{
	bool any = false;

	for (struct shadow_entry *entry = top - 1; entry > node->entries; entry--) {
		if (shadow_is_open(entry) && !shadow_is_on_own_stack(entry->slot) &&
		    shadow_is_live(entry))
			any = true;
		else
			entry->slot = SHADOW_TAKEN_OUT;
	}
	return any;
}

/* Whose nodes are for calls that were open when their thread ended. */
static struct calls_thread nobody, nobody_any_more;
static _Atomic uint32_t left_open;

static void release_when_done(struct shadow_node *node)
{
	struct calls_thread *owner = &nobody;
	struct shadow_entry *top = node->entries + 1;

	for (; top < node->end && top->slot; top++) {
		if (shadow_is_open(top))
			return;
	}
	if (!atomic_compare_exchange_strong(&node->calls, &owner, &nobody_any_more))
		return;
	empty(node, top);
	atomic_fetch_sub_explicit(&left_open, 1, memory_order_relaxed);
	atomic_store_explicit(&node->calls, NULL, memory_order_release);
}

void shadow_release(struct shadow_node *node)
{
	struct shadow_entry *top = kymo_calls.top;
	bool open = atomic_load_explicit(&left_open, memory_order_relaxed) < SHADOW_LEFT_OPEN &&
		    leaves_open(node, top);

	kymo_calls.top = nothing + 1;
	kymo_calls.limit = NULL;
	if (open) {
		atomic_fetch_add_explicit(&left_open, 1, memory_order_relaxed);
	} else {
		empty(node, top);
	}
	/* Before another thread can have it: this one's end is still to be worked off. */
	node->internal_id = SHADOW_NO_THREAD;
	atomic_store_explicit(&node->calls, open ? &nobody : NULL, memory_order_release);
}

/* The memory that their tops were in may be gone: stacks of threads that do not exist here. */
void shadow_forked(struct shadow_node *mine)
{
	struct shadow_node *node = atomic_load_explicit(&kymo_shadow_nodes, memory_order_acquire);

	atomic_store_explicit(&left_open, 0, memory_order_relaxed);
	for (; node; node = node->next) {
		node->chunk = NULL;
		node->record = node->rest = NULL;
		if (node == mine)
			continue;
		for (struct shadow_entry *entry = node->entries + 1;
		     entry < node->end && (entry->slot || entry->return_address); entry++)
			*entry = (struct shadow_entry){0};
		node->internal_id = SHADOW_NO_THREAD;
		atomic_store_explicit(&node->calls, NULL, memory_order_relaxed);
	}
}

/* ---- entries ---- */

/* A stack that was left may be unmapped by now: only the kernel can read it without harm. Where the
 * kernel is not to be asked, or does not say, the entry is kept: without its return address a
 * thread cannot go on. */
bool shadow_is_live(const struct shadow_entry *entry)
{
	uint64_t word = 0;
	struct iovec local = {&word, sizeof(word)}, remote = {(void *)entry->slot, sizeof(word)};
	long got;

	if (kymo_runtime.sealed)
		return true;
	got = sys_call6(SYS_process_vm_readv, sys_getpid(), (long)&local, 1, (long)&remote, 1, 0);
	return got == (long)sizeof(word) ? word == arena_exit_address(entry->id) : got != -EFAULT;
}

/* Its slot may hold what it did for long, so that says nothing here. */
static bool is_left(const struct shadow_entry *entry, uint64_t slot)
{
	return entry->slot < slot && shadow_is_on_own_stack(entry->slot) &&
	       shadow_is_on_own_stack(slot);
}

/* A set by slot: the newest of a slot's is all that counts. Coroutines whose stacks are carved out
 * in one size have open calls at the same distances, so that all of the slot counts. */
static struct shadow_entry *left_of(struct shadow_node *node, uint64_t slot)
{
	uint64_t hash = (slot >> 3) * 0x9e3779b97f4a7c15u >> 32;

	return &node->left[hash % (SHADOW_LEFT / SHADOW_LEFT_WAYS) * SHADOW_LEFT_WAYS];
}

static struct shadow_entry *find_left(struct shadow_node *node, uint64_t slot)
{
	struct shadow_entry *set = left_of(node, slot);

	for (uint32_t i = 0; i < SHADOW_LEFT_WAYS; i++) {
		if (set[i].slot == slot)
			return &set[i];
	}
	return NULL;
}

static bool is_of_this_round(const struct shadow_node *node, const struct shadow_entry *kept)
{
	return kept->flags >> SHADOW_ROUND == node->left_round;
}

/* What is ended at one time comes newest first. False: there is no room among those that may be
 * open still. */
static bool keep_left(struct shadow_node *node, const struct shadow_entry *entry)
{
	struct shadow_entry *set = left_of(node, entry->slot),
			    *place = find_left(node, entry->slot);

	if (place && is_of_this_round(node, place))
		return true;
	for (uint32_t i = 0; !place && i < SHADOW_LEFT_WAYS; i++) {
		if (!set[i].slot)
			place = &set[i];
	}
	for (uint32_t i = 0; !place && i < SHADOW_LEFT_WAYS; i++) {
		if (!shadow_is_live(&set[i]))
			place = &set[i];
	}
	if (!place)
		return false;
	*place = *entry;
	place->flags = (entry->flags & SHADOW_REGION) | node->left_round << SHADOW_ROUND;
	node->any_left = true;
	return true;
}

static void begin_round(struct shadow_node *node)
{
	node->left_round = (node->left_round + 1) & (UINT32_MAX >> SHADOW_ROUND);
}

static bool is_of(const struct shadow_entry *entry, uint32_t id)
{
	return id == ANY_ID || entry->id == id;
}

static bool take_left(struct shadow_node *node, uint64_t slot, uint32_t id,
		      struct shadow_entry *ret)
{
	struct shadow_entry *entry = find_left(node, slot);

	if (!entry || !is_of(entry, id))
		return false;
	*ret = *entry;
	ret->flags &= SHADOW_REGION;
	entry->slot = 0;
	return true;
}

static bool is_within(const struct shadow_alternate *alternate, uint64_t slot)
{
	return slot - alternate->low < alternate->size;
}

static struct shadow_alternate find_alternate(void)
{
	stack_t stack = {0};

	if (kymo_runtime.sealed || sys_call2(SYS_sigaltstack, 0, (long)&stack) != 0)
		return (struct shadow_alternate){0};
	return (struct shadow_alternate){(uint64_t)(uintptr_t)stack.ss_sp, stack.ss_size,
					 stack.ss_flags & SS_ONSTACK};
}

static bool is_interrupted(const struct shadow_alternate *alternate, uint64_t inner, uint64_t slot)
{
	return alternate->on && is_within(alternate, slot) && !is_within(alternate, inner);
}

bool shadow_is_interrupted(uint64_t inner, uint64_t slot)
{
	struct shadow_alternate alternate = find_alternate();

	return is_interrupted(&alternate, inner, slot);
}

/* By a handler that was left; should it only have changed to another stack, what is kept leads
 * back. */
static bool is_left_by_handler(const struct shadow_alternate *alternate,
			       const struct shadow_entry *entry)
{
	return !alternate->on && is_within(alternate, entry->slot);
}

/* Where entries of other stacks lie between, there may be older ones below of slots that were kept
 * in this round: calls that were left, and the slot was used again. */
static uint32_t end_older(struct calls_thread *calls, struct shadow_entry *top, uint64_t slot,
			  void (*each)(const struct shadow_entry *))
{
	struct shadow_node *node = calls->node;
	uint32_t count = 0;

	for (struct shadow_entry *entry = top - 1; entry > node->entries; entry--) {
		const struct shadow_entry *kept = shadow_is_open(entry) && is_left(entry, slot)
							  ? find_left(node, entry->slot)
							  : NULL;

		if (!kept || !is_of_this_round(node, kept))
			continue;
		each(entry);
		entry->slot = SHADOW_TAKEN_OUT;
		count++;
	}
	return count;
}

static bool is_mixed(const struct calls_thread *calls)
{
	return calls->node && calls->node->mixed && calls->node->mixed < calls->top;
}

/* An entry for `slot` is about to be the top. */
static void note_mixed(struct shadow_node *node, struct shadow_entry *top, uint64_t slot)
{
	if (node->mixed >= top)
		node->mixed = NULL;
	if (!node->mixed && top[-1].slot <= slot)
		node->mixed = top;
}

/* Left since then, it is found out when more is known, or by shadow_tidy(). */
static bool was_live(struct shadow_node *node, struct shadow_entry *entry)
{
	if (node && node->passed == entry && node->passed_slot == entry->slot)
		return true;
	if (!shadow_is_live(entry))
		return false;
	if (node) {
		node->passed = entry;
		node->passed_slot = entry->slot;
	}
	return true;
}

uint32_t shadow_clean(struct calls_thread *calls, uint64_t slot,
		      void (*each)(const struct shadow_entry *))
{
	struct shadow_entry *top = shadow_below_taken_out(calls->top);
	bool mixed = is_mixed(calls), any_kept = false, asked = false;
	uint32_t count = 0;

	if (calls->node)
		begin_round(calls->node);
	/* 0: being made by the code that this one interrupted */
	while (top[-1].slot && top[-1].slot <= slot) {
		bool same = top[-1].slot == slot; /* which cannot be in use twice */
		bool kept;

		if (!same && !asked) {
			calls->node->alternate = find_alternate();
			asked = true;
		}
		if (!same && is_interrupted(&calls->node->alternate, top[-1].slot, slot))
			break;
		kept = (is_left(&top[-1], slot) ||
			(asked && is_left_by_handler(&calls->node->alternate, &top[-1]))) &&
		       keep_left(calls->node, &top[-1]);
		any_kept |= kept;
		if (!kept && !same && was_live(calls->node, &top[-1]))
			break;
		each(&top[-1]);
		(--top)->slot = 0;
		count++;
		top = shadow_below_taken_out(top);
	}
	if (any_kept && mixed)
		count += end_older(calls, top, slot, each);
	calls->top = shadow_below_taken_out(top);
	if (calls->node) {
		shadow_tidy(calls, each);
		note_mixed(calls->node, calls->top, slot);
	}
	return count;
}

static struct shadow_entry *find_below(struct shadow_entry *top, uint64_t slot, uint32_t id)
{
	struct shadow_entry *entry = top - 1;

	while (!(entry->slot == slot && is_of(entry, id)) && entry->slot != UINT64_MAX)
		entry--;
	return entry->slot == slot ? entry : NULL;
}

/* Directly above an entry are those of calls from there, of which the ones that were left are not
 * live; behind them are those of other stacks. */
static struct shadow_entry *end_of_left(struct shadow_entry *top, struct shadow_entry *entry)
{
	uint64_t slot = entry->slot;

	while (++entry < top) {
		if (!shadow_is_open(entry) || is_left(entry, slot))
			continue;
		if (slot - entry->slot >= FURTHER_IN || shadow_is_live(entry))
			break;
	}
	return entry;
}

/* Coroutines come here often, so the kernel is asked now and then only, and where it matters. */
static bool is_on_left_alternate(struct shadow_node *node, const struct shadow_entry *entry)
{
	if (!is_within(&node->alternate, entry->slot))
		return false;
	node->alternate = find_alternate();
	return is_left_by_handler(&node->alternate, entry);
}

/* Ends the entries above `entry` that no call will return to. */
static void end_inner(struct calls_thread *calls, struct shadow_entry *entry,
		      void (*each)(const struct shadow_entry *))
{
	struct shadow_entry *end = end_of_left(calls->top, entry);
	/* Further in on the thread's own stack they may be anywhere. */
	struct shadow_entry *last = shadow_is_on_own_stack(entry->slot) ? calls->top : end;
	bool mixed = is_mixed(calls), any_kept = false;

	begin_round(calls->node);
	if (last - 1 > entry && calls->node->returned++ % ASK_EVERY == 0)
		calls->node->alternate = find_alternate();
	for (struct shadow_entry *inner = last - 1; inner > entry; inner--) {
		bool left = shadow_is_open(inner) && (is_left(inner, entry->slot) ||
						      is_on_left_alternate(calls->node, inner));
		bool kept = left && keep_left(calls->node, inner);

		any_kept |= kept;
		if (!shadow_is_open(inner) ||
		    !(left ? kept || !shadow_is_live(inner) : inner < end))
			continue;
		each(inner);
		inner->slot = SHADOW_TAKEN_OUT;
	}
	if (any_kept && mixed)
		end_older(calls, entry, entry->slot, each);
}

/* Without the thread's own state, whose memory goes with it: entries above the top have no slot. */
static struct shadow_entry *find_in(struct shadow_node *node, uint64_t slot, uint32_t id)
{
	struct shadow_entry *entry = node->entries + 1;

	while (entry < node->end && *(volatile uint64_t *)&entry->slot)
		entry++;
	while (--entry > node->entries) {
		if (*(volatile uint64_t *)&entry->slot == slot && is_of(entry, id))
			return entry;
	}
	return NULL;
}

static bool take_from(struct shadow_node *node, uint64_t slot, uint32_t id,
		      struct shadow_entry *ret)
{
	struct shadow_entry *entry;

	while ((entry = find_in(node, slot, id))) {
		*ret = *entry;
		ret->slot = slot;
		if (shadow_take_out(entry, slot))
			return true;
	}
	return false;
}

static bool pop_elsewhere(uint64_t slot, uint32_t id, struct shadow_entry *ret)
{
	struct shadow_node *node = atomic_load_explicit(&kymo_shadow_nodes, memory_order_acquire);
	struct shadow_node *first = node;

	for (; node; node = node->next) {
		if (!take_from(node, slot, id, ret))
			continue;
		if (atomic_load_explicit(&node->calls, memory_order_relaxed) == &nobody)
			release_when_done(node);
		return true;
	}
	for (node = first; node; node = node->next) {
		if (take_left(node, slot, id, ret))
			return true;
	}
	return false;
}

static bool pop(struct calls_thread *calls, uint64_t slot, uint32_t id, struct shadow_entry *ret,
		void (*each)(const struct shadow_entry *))
{
	struct shadow_entry *entry = find_below(calls->top, slot, id);

	if (!entry)
		return (calls->node && take_left(calls->node, slot, id, ret)) ||
		       pop_elsewhere(slot, id, ret);
	end_inner(calls, entry, each);
	*ret = *entry;
	entry->slot = SHADOW_TAKEN_OUT;
	calls->top = shadow_below_taken_out(calls->top);
	shadow_tidy(calls, each);
	return true;
}

bool shadow_pop(struct calls_thread *calls, uint64_t slot, uint32_t id, struct shadow_entry *ret,
		void (*each)(const struct shadow_entry *))
{
	return pop(calls, slot, id, ret, each) || pop(calls, slot, ANY_ID, ret, each);
}

/* Unwinders come here, mostly for their own thread. */
static struct shadow_entry *find_anywhere(uint64_t slot)
{
	struct shadow_node *node = atomic_load_explicit(&kymo_shadow_nodes, memory_order_acquire);
	struct shadow_entry *entry = find_below(kymo_calls.top, slot, ANY_ID);

	if (!entry && kymo_calls.node)
		entry = find_left(kymo_calls.node, slot);
	for (; !entry && node; node = node->next)
		entry = find_in(node, slot, ANY_ID);
	return entry;
}

uint64_t shadow_return_address(uint64_t slot)
{
	const struct shadow_entry *entry = find_anywhere(slot);

	return entry ? entry->return_address : 0;
}

uint64_t *shadow_return_place(uint64_t slot)
{
	struct shadow_entry *entry = find_anywhere(slot);

	return entry && shadow_is_live(entry) ? &entry->return_address
					      : (uint64_t *)(uintptr_t)slot;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Shadow stacks of threads that change between many stacks; see shadow.h. Coroutines take their
 * entries out of the middle and put new ones on top, so the list grows though no more calls are
 * open, and what they left may not be seen for long.
 *
 * A signal handler may leave this for good at any point: an entry may then be there twice, the
 * newer one counts.
 */
#include "common/syscalls.h"
#include "instrument/shadow.h"

#include <signal.h>

#define COMPACTED_ENTRIES_LEAST 64u /* entries; fewer are not worth the look */

static uint64_t load_entry_slot(const struct shadow_entry *entry)
{
	return atomic_load_explicit((const _Atomic uint64_t *)&entry->slot, memory_order_relaxed);
}

static struct shadow_entry *compute_next_compact_limit(const struct shadow_stack_node *node,
						       struct shadow_entry *top)
{
	size_t more = (size_t)(top - node->entries) + COMPACTED_ENTRIES_LEAST,
	       room = (size_t)(node->end - top);

	return top + (more < room ? more : room / 2);
}

static bool thread_is_on_alternate_stack(void)
{
	stack_t stack = {0};

	return sys_call2(SYS_sigaltstack, 0, (long)&stack) != 0 || (stack.ss_flags & SS_ONSTACK);
}

/* What a signal handler interrupted keeps its place. */
static struct shadow_entry *find_start_of_complete_entries(const struct shadow_stack_node *node,
							   struct shadow_entry *top)
{
	while (top - 1 > node->entries && load_entry_slot(top - 1))
		top--;
	return top;
}

static bool entry_is_on_other_stack(const struct shadow_entry *entry)
{
	return shadow_entry_is_open(entry) && !shadow_slot_is_on_own_stack(load_entry_slot(entry));
}

static uint32_t count_entries_on_other_stacks(const struct shadow_entry *begin,
					      const struct shadow_entry *end)
{
	uint32_t count = 0;

	for (; begin < end; begin++)
		count += entry_is_on_other_stack(begin);
	return count;
}

static void end_dead_entries_on_other_stacks(struct shadow_entry *begin, struct shadow_entry *end,
					     void (*each)(const struct shadow_entry *))
{
	while (end-- > begin) {
		if (!entry_is_on_other_stack(end) || shadow_entry_is_live(end))
			continue;
		each(end);
		shadow_try_remove_entry(end, load_entry_slot(end));
	}
}

/* Another thread may take it out meanwhile, here or there. */
static bool move_entry(struct shadow_entry *to, struct shadow_entry *from, uint64_t slot)
{
	to->return_address = from->return_address;
	to->id = from->id;
	to->flags = from->flags;
	atomic_store_explicit((_Atomic uint64_t *)&to->slot, slot, memory_order_release);
	if (shadow_try_remove_entry(from, slot))
		return true;
	shadow_try_remove_entry(to, slot);
	return false;
}

static struct shadow_entry *close_entry_gaps(struct shadow_entry *begin, struct shadow_entry *end)
{
	struct shadow_entry *to = begin;

	for (struct shadow_entry *from = begin; from < end; from++) {
		uint64_t slot = load_entry_slot(from);

		if (slot != SHADOW_SLOT_REMOVED && (to == from || move_entry(to, from, slot)))
			to++;
	}
	return to;
}

static void set_first_interleaved_entry(struct shadow_stack_node *node,
					const struct shadow_entry *top)
{
	struct shadow_entry *entry = node->entries + 1;

	while (entry < top && entry[-1].slot > entry->slot)
		entry++;
	node->lowest_interleaved_entry = entry < top ? entry : NULL;
}

void shadow_compact_if_grown(struct calls_thread_state *calls,
			     void (*each)(const struct shadow_entry *))
{
	struct shadow_stack_node *node = calls->node;
	struct shadow_entry *top = calls->top, *begin, *end;
	uint32_t open;

	if (!node || top < node->compact_limit)
		return;
	if (!node->compact_limit || process_has_seccomp_thread() ||
	    thread_is_on_alternate_stack()) {
		node->compact_limit = compute_next_compact_limit(node, top);
		return;
	}
	begin = find_start_of_complete_entries(node, top);
	open = count_entries_on_other_stacks(begin, top);
	if (open >= node->open_check_count_min) {
		if (node->open_check_count_min)
			end_dead_entries_on_other_stacks(begin, top, each);
		node->open_check_count_min =
			2 * count_entries_on_other_stacks(begin, top) + COMPACTED_ENTRIES_LEAST;
	}
	end = close_entry_gaps(begin, top);
	while (top > end)
		(--top)->slot = 0;
	calls->top = top;
	node->checked_live_entry = NULL;
	set_first_interleaved_entry(node, top);
	node->compact_limit = compute_next_compact_limit(node, top);
}

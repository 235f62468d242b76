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

#define LEAST 64u /* entries; fewer are not worth the look */

static uint64_t slot_of(const struct shadow_entry *entry)
{
	return atomic_load_explicit((const _Atomic uint64_t *)&entry->slot, memory_order_relaxed);
}

static struct shadow_entry *next_time(const struct shadow_node *node, struct shadow_entry *top)
{
	size_t more = (size_t)(top - node->entries) + LEAST, room = (size_t)(node->end - top);

	return top + (more < room ? more : room / 2);
}

static bool on_alternate_stack(void)
{
	stack_t stack = {0};

	return sys_call2(SYS_sigaltstack, 0, (long)&stack) != 0 || (stack.ss_flags & SS_ONSTACK);
}

/* What a signal handler interrupted keeps its place. */
static struct shadow_entry *behind_unfinished(const struct shadow_node *node,
					      struct shadow_entry *top)
{
	while (top - 1 > node->entries && slot_of(top - 1))
		top--;
	return top;
}

static bool is_elsewhere(const struct shadow_entry *entry)
{
	return shadow_is_open(entry) && !shadow_is_on_own_stack(slot_of(entry));
}

static uint32_t count_elsewhere(const struct shadow_entry *begin, const struct shadow_entry *end)
{
	uint32_t count = 0;

	for (; begin < end; begin++)
		count += is_elsewhere(begin);
	return count;
}

static void end_elsewhere(struct shadow_entry *begin, struct shadow_entry *end,
			  void (*each)(const struct shadow_entry *))
{
	while (end-- > begin) {
		if (!is_elsewhere(end) || shadow_is_live(end))
			continue;
		each(end);
		shadow_take_out(end, slot_of(end));
	}
}

/* Another thread may take it out meanwhile, here or there. */
static bool move(struct shadow_entry *to, struct shadow_entry *from, uint64_t slot)
{
	to->return_address = from->return_address;
	to->id = from->id;
	to->flags = from->flags;
	atomic_store_explicit((_Atomic uint64_t *)&to->slot, slot, memory_order_release);
	if (shadow_take_out(from, slot))
		return true;
	shadow_take_out(to, slot);
	return false;
}

static struct shadow_entry *close_up(struct shadow_entry *begin, struct shadow_entry *end)
{
	struct shadow_entry *to = begin;

	for (struct shadow_entry *from = begin; from < end; from++) {
		uint64_t slot = slot_of(from);

		if (slot != SHADOW_TAKEN_OUT && (to == from || move(to, from, slot)))
			to++;
	}
	return to;
}

static void find_mixed(struct shadow_node *node, const struct shadow_entry *top)
{
	struct shadow_entry *entry = node->entries + 1;

	while (entry < top && entry[-1].slot > entry->slot)
		entry++;
	node->mixed = entry < top ? entry : NULL;
}

void shadow_tidy(struct calls_thread *calls, void (*each)(const struct shadow_entry *))
{
	struct shadow_node *node = calls->node;
	struct shadow_entry *top = calls->top, *begin, *end;
	uint32_t open;

	if (!node || top < node->tidy_at)
		return;
	if (!node->tidy_at || kymo_runtime.sealed || on_alternate_stack()) {
		node->tidy_at = next_time(node, top);
		return;
	}
	begin = behind_unfinished(node, top);
	open = count_elsewhere(begin, top);
	if (open >= node->open_at) {
		if (node->open_at)
			end_elsewhere(begin, top, each);
		node->open_at = 2 * count_elsewhere(begin, top) + LEAST;
	}
	end = close_up(begin, top);
	while (top > end)
		(--top)->slot = 0;
	calls->top = top;
	node->passed = NULL;
	find_mixed(node, top);
	node->tidy_at = next_time(node, top);
}

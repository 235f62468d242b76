/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Binding the user API. Each copy of libkymo-user announces itself when it is loaded, or is found
 * by its note when this library is loaded later. It gets functions of libkymo itself wherever the
 * parameters are the same, so that a call goes there directly; the rest are in user_calls.c.
 *
 * Where libkymo is yet to be opened a copy gets functions that open it, and that then bind all
 * copies to it.
 */
#include "libkymo-dl/user_binding.h"

#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "kymo/binding.h"
#include "libkymo-dl/runtime.h"
#include "libkymo-dl/user_calls.h"

/* The list and its lock, which is held for a few instructions. The word is the holder's process: a
 * forked child does not wait for a thread of its parent. */
static _Atomic int user_bindings_lock;
static struct kymo_user_binding *first_user_binding;

static void lock_bindings(void)
{
	int own = (int)getpid(), seen = 0;

	while (!atomic_compare_exchange_weak_explicit(&user_bindings_lock, &seen, own,
						      memory_order_acquire, memory_order_relaxed)) {
		if (seen == own) {
			sched_yield();
			seen = 0;
		}
	}
}

static void unlock_bindings(void)
{
	atomic_store_explicit(&user_bindings_lock, 0, memory_order_release);
}

static void add_user_binding(struct kymo_user_binding *user)
{
	struct kymo_user_binding *known;

	lock_bindings();
	for (known = first_user_binding; known && known != user; known = known->next)
		;
	if (!known) {
		user->next = first_user_binding;
		first_user_binding = user;
	}
	unlock_bindings();
}

/* Under the lock, so that a copy that is being unloaded is not called any more. */
static void bind_all_user_library_copies(const struct kymo_callbacks *callbacks)
{
	lock_bindings();
	for (struct kymo_user_binding *user = first_user_binding; user; user = user->next)
		user->bind(callbacks);
	unlock_bindings();
}

void user_binding_bind_all_to_libkymo(void)
{
	bind_all_user_library_copies(&user_calls_direct_table);
}

static void attach_user_binding(struct kymo_user_binding *user)
{
	if (!user || user->size < sizeof(struct kymo_user_binding))
		return;
	add_user_binding(user);
	if (dl_runtime_find_loaded())
		bind_all_user_library_copies(&user_calls_direct_table);
	else if (dl_runtime_is_wanted())
		user->bind(&user_calls_first_call_table);
}

static void remove_user_binding_from_list(struct kymo_user_binding *user)
{
	lock_bindings();
	for (struct kymo_user_binding **link = &first_user_binding; *link; link = &(*link)->next) {
		if (*link == user) {
			*link = user->next;
			break;
		}
	}
	unlock_bindings();
}

__attribute__((visibility("hidden"), used)) struct kymo_dl_binding kymo_dl_binding_object = {
	.size = sizeof(struct kymo_dl_binding),
	.attach = attach_user_binding,
	.detach = remove_user_binding_from_list};
KYMO_NOTE(2, kymo_dl_binding_object);
_Static_assert(KYMO_NOTE_DL == 2, "type of the note above");

enum { FOUND_BINDINGS_MAX = 64 };

struct found_user_binding_list {
	size_t count;
	struct kymo_user_binding *users[FOUND_BINDINGS_MAX];
};

static void append_found_user_binding(void *object, void *context)
{
	struct found_user_binding_list *found = context;

	if (found->count < FOUND_BINDINGS_MAX)
		found->users[found->count++] = object;
}

void user_binding_find_and_attach_all(void)
{
	struct found_user_binding_list found = {.count = 0};

	kymo_note_find(KYMO_NOTE_USER, append_found_user_binding, &found);
	for (size_t i = 0; i < found.count; i++)
		attach_user_binding(found.users[i]);
}

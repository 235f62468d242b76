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
static _Atomic int binding_lock;
static struct kymo_user_binding *binding_first;

static void binding_acquire(void)
{
	int own = (int)getpid(), seen = 0;

	while (!atomic_compare_exchange_weak_explicit(&binding_lock, &seen, own,
						      memory_order_acquire, memory_order_relaxed)) {
		if (seen == own) {
			sched_yield();
			seen = 0;
		}
	}
}

static void binding_release(void)
{
	atomic_store_explicit(&binding_lock, 0, memory_order_release);
}

static void binding_add(struct kymo_user_binding *user)
{
	struct kymo_user_binding *known;

	binding_acquire();
	for (known = binding_first; known && known != user; known = known->next)
		;
	if (!known) {
		user->next = binding_first;
		binding_first = user;
	}
	binding_release();
}

/* Under the lock, so that a copy that is being unloaded is not called any more. */
static void binding_bind_all(const struct kymo_callbacks *callbacks)
{
	binding_acquire();
	for (struct kymo_user_binding *user = binding_first; user; user = user->next)
		user->bind(callbacks);
	binding_release();
}

void user_binding_connect(void)
{
	binding_bind_all(&user_calls_direct);
}

static void binding_attach(struct kymo_user_binding *user)
{
	if (!user || user->size < sizeof(struct kymo_user_binding))
		return;
	binding_add(user);
	if (dl_runtime_find())
		binding_bind_all(&user_calls_direct);
	else if (dl_runtime_wanted())
		user->bind(&user_calls_first);
}

static void binding_detach(struct kymo_user_binding *user)
{
	binding_acquire();
	for (struct kymo_user_binding **link = &binding_first; *link; link = &(*link)->next) {
		if (*link == user) {
			*link = user->next;
			break;
		}
	}
	binding_release();
}

__attribute__((visibility("hidden"), used)) struct kymo_dl_binding kymo_dl_binding_object = {
	.size = sizeof(struct kymo_dl_binding), .attach = binding_attach, .detach = binding_detach};
KYMO_NOTE(2, kymo_dl_binding_object);
_Static_assert(KYMO_NOTE_DL == 2, "type of the note above");

enum { BINDING_FOUND_MAX = 64 };

struct binding_found {
	size_t count;
	struct kymo_user_binding *users[BINDING_FOUND_MAX];
};

static void binding_remember(void *object, void *context)
{
	struct binding_found *found = context;

	if (found->count < BINDING_FOUND_MAX)
		found->users[found->count++] = object;
}

void user_binding_find(void)
{
	struct binding_found found = {.count = 0};

	kymo_note_find(KYMO_NOTE_USER, binding_remember, &found);
	for (size_t i = 0; i < found.count; i++)
		binding_attach(found.users[i]);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names that kymo looks up on a thread of the program's, without leaving a trace there.
 *
 * dlsym(3) for a name that is not there leaves a message for dlerror(3) with the thread: the
 * program can find it, and its next call of the loader frees it with the program's allocator, which
 * may call the loader itself. One that succeeds throws the program's own message away. So names are
 * looked up in the symbol tables of the loaded objects. errno stays as it was. Where something has
 * to be loaded, see loader_state.h.
 *
 * Takes the loader's lock; not for signal handlers.
 */
#ifndef KYMO_COMMON_LOADER_H
#define KYMO_COMMON_LOADER_H

#include <stddef.h>

enum loader_scope {
	LOADER_SCOPE_ANY_OBJECT,
	LOADER_SCOPE_OWN_OBJECT,         /* in the object that has the address OWN */
	LOADER_SCOPE_ALL_BUT_OWN_OBJECT, /* in every object but ours */
	LOADER_SCOPE_AFTER_OWN_OBJECT,   /* in those that come after ours, as with RTLD_NEXT */
};

/* The first definition of a name in the loader's list of objects (which for what was loaded at
 * the start is the order of look-ups); NULL: none. OWN is not looked at for
 * LOADER_SCOPE_ANY_OBJECT. */
void *loader_find_symbol(enum loader_scope where, const void *own, const char *name);
/* Fills found[i] with the address of names[i]; NULL: none. One walk over the objects, which ends
 * where all are found. */
void loader_find_symbols(enum loader_scope where, const void *own, const char *const *names,
			 void **found, size_t count);
/* Calls EACH with every definition of the name, in the same order. It must not call the loader. */
void loader_visit_symbol_definitions(const char *name, void (*each)(void *symbol, void *argument),
				     void *argument);
/* In the object that a handle of dlopen(3) stands for, not in those that it needs. */
void *loader_find_symbol_in_handle(void *handle, const char *name);

#endif

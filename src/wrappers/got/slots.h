/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Finds the slots of one object that hold wrapped functions, and changes them.
 */
#ifndef KYMO_WRAPPERS_GOT_SLOTS_H
#define KYMO_WRAPPERS_GOT_SLOTS_H

#include "wrappers/got/names.h"

enum got_slots_result {
	GOT_SLOTS_REWRITTEN,
	GOT_SLOTS_LOADER_BUSY,  /* the loader is still at work on the object */
	GOT_SLOTS_WRITE_REFUSED /* the kernel did not let us write */
};

/* `settled`: the object has been here for a while; what is writable stays so. */
enum got_slots_result got_slots_rewrite(const struct got_object *object,
					const struct got_name_table *names, bool settled);
/* Puts the original functions back. */
void got_slots_restore(const struct got_object *object, const struct got_name_table *names);

#endif

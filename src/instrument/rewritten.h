/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Objects that were instrumented in their files: they bring arena, plan and modes with them (struct
 * plan_note), and nobody is asked about them.
 */
#ifndef KYMO_INSTRUMENT_REWRITTEN_H
#define KYMO_INSTRUMENT_REWRITTEN_H

#include <link.h>
#include <stdbool.h>

#include "instrument/arena.h"

/* Is the loaded object a rewritten one? Then what is known of its arena, which has neither
 * trampoline code nor ids yet. An object whose note this version does not understand is `foreign`:
 * its code is patched, and its trampoline stays closed. */
bool rewritten_find_arena(const struct dl_phdr_info *info, struct arena *ret, bool *foreign);
/* Plan and modes lie in the object itself: puts copies in their place, for they are asked for also
 * when a library is closed. The stubs' part is left out. False: no memory. */
bool rewritten_replace_plan_by_copy(struct arena *arena);
/* Is any loaded object one? */
bool rewritten_any_loaded(void);

#endif

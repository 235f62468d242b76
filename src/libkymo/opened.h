/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where libkymo was not preloaded but opened, by libkymo-dl (rewritten programs) or by kymo attach,
 * the program's calls do not find our wrappers by themselves. Then they are led to them, whatever
 * the settings are: without exec's the next program would be killed by a sample, without those of
 * signals the program would meet ours, and so on.
 */
#ifndef KYMO_LIBKYMO_OPENED_H
#define KYMO_LIBKYMO_OPENED_H

#include <stdbool.h>

/* Was it opened? Before anything else here. */
bool opened_libkymo_was_loaded_by_dlopen(void);
/* Adds the calls, or adds them again after opened_libkymo_restore_originals(); they are led here by
 * the next got_scan_and_rewrite(). Only where it was opened. */
void opened_libkymo_add_wrappers(void);
/* Everything as before. Not in handlers, nor on kymo's own threads (wrappers/got/got.h). */
void opened_libkymo_restore_originals(void);

#endif

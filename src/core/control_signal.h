/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * CONTROL_SIGNAL: a signal that stops collection, and starts it when it comes again.
 *
 * It is only taken while the program has no use for it; when the program wants it, kymo gives it up
 * and says so. Until then the program sees the default action in its place.
 */
#ifndef KYMO_CORE_CONTROL_SIGNAL_H
#define KYMO_CORE_CONTROL_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

struct runtime;

/* Background thread: as the settings say. */
void control_signal_install_if_free(struct runtime *runtime);
/* The end of kymo in this process. */
void control_signal_restore_default(struct runtime *runtime);
/* Every round: says what the program's threads did to it. */
void control_signal_write_notice_if_lost(struct runtime *runtime);

/* For the wrappers of the library. Is this the signal that kymo holds now? */
bool control_signal_is_used_by_kymo(int signal);
/* The program sets an action of its own: the caller does that next. */
void control_signal_release_to_program(void);

#endif

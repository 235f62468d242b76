/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A session for a process that was not started by the kymo command: a program that links
 * libkymo-dl, or has it preloaded by other means, and is run with KYMO_ENABLED=on.
 */
#ifndef KYMO_LIBKYMO_OWN_SESSION_H
#define KYMO_LIBKYMO_OWN_SESSION_H

/* `environment`, or, where KYMO_ENABLED says on and there is no session, a copy with
 * KYMO_SPOOL_DIRECTORY in front: kymo-<program>-output/<UTC time>-<pid>/spool in the working
 * directory, which is made, with the link `latest` beside it. `kymo report` takes the directory
 * above spool. Where it cannot be made, `environment`. */
char *const *own_session_environment(char *const *environment);

#endif

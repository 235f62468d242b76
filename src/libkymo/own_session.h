/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A session for a process that was not started by the kymo command: a program that links
 * libkymo-dl, or has it preloaded by other means, and is run with KYMO_ENABLED=on.
 */
#ifndef KYMO_LIBKYMO_OWN_SESSION_H
#define KYMO_LIBKYMO_OWN_SESSION_H

/* `environment`, or, where KYMO_ENABLED says on and there is no session, a copy with
 * KYMO_SPOOL_DIRECTORY in front: <OUTPUT_PATH>/<UTC time>-<pid>/spool, which is made, with the link
 * `latest` beside it; without TIME_OUTPUT OUTPUT_PATH/spool, if there is none. `kymo report` takes
 * the directory above spool. Where it cannot be made, `environment`. */
char *const *own_session_add_to_environment_if_wanted(char *const *environment);

#endif

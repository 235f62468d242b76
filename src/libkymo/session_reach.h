/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Can a process that this one makes write to the session's directory? After a change of user or
 * root directory it may not, and then it leaves no data: that is said while somebody can still say
 * it. Called in vfork children and between fork and exec: raw system calls only.
 */
#ifndef KYMO_LIBKYMO_SESSION_REACH_H
#define KYMO_LIBKYMO_SESSION_REACH_H

struct runtime;

/* Remembers who the process is. */
void session_reach_remember_user(void);
/* Why a program that is executed now could not be profiled (text behind its path), or NULL. */
const char *session_reach_find_obstacle(const struct runtime *runtime);
/* In the parent, after a fork: the child is the same user as we are now. */
void session_reach_warn_after_fork(struct runtime *runtime);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The place of what every forked child writes. A page that a child writes first is copied, and on
 * virtual machines each page that it touches first costs tens of microseconds: what belongs to the
 * start of a child lies together, and nothing large lies between.
 */
#ifndef KYMO_CORE_BASE_FORK_STATE_H
#define KYMO_CORE_BASE_FORK_STATE_H

/* A section of its own: linkers put those of one name side by side. */
#define KYMO_FORK_STATE __attribute__((section("kymo_fork_state")))
/* Functions of the start and the end of a forked child: the same for code. Default linker scripts
 * gather .text.hot.* in front. */
#define KYMO_FORK_CODE __attribute__((section(".text.hot.fork")))

#endif

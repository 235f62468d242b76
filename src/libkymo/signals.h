/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The program's view of its signal mask.
 */
#ifndef KYMO_LIBKYMO_SIGNALS_H
#define KYMO_LIBKYMO_SIGNALS_H

/* rt_sigprocmask(2) as a program makes it by syscall(2), with errno. */
long signals_set_program_mask_by_syscall(long how, const void *fresh, void *previous, long size);

#endif

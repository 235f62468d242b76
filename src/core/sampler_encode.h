/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What of a thread's stream its handler and the thread itself write; see sampler_encode.c.
 */
#ifndef KYMO_CORE_SAMPLER_ENCODE_H
#define KYMO_CORE_SAMPLER_ENCODE_H

#include <stdbool.h>

/* The thread itself does what only its handler may; false: not now. It ends by clearing
 * is_in_signal_handler. */
struct thread;
bool sampler_try_enter_handler_state(struct thread *thread);

#endif

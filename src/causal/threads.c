/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What a thread has absorbed, from its begin to its end.
 */
#include "causal/causal.h"

void causal_thread_created(struct thread *child)
{
	(void)child;
}

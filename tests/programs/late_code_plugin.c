/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Built with frame pointers, as some distributions build everything.
 */
#include "check.h"

void plugin_enter(void);

__attribute__((noinline)) static void plugin_hot(void)
{
	check_burn_ms(400);
}

void plugin_enter(void)
{
	plugin_hot();
	__asm__ volatile("" ::: "memory"); /* not the last thing that it does */
}

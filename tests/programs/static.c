/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A program without a dynamic loader: nothing can be preloaded into it. kymo has to say so in one
 * line, and the program runs as it would alone. Built twice: static and static-pie.
 */
#include <stdlib.h>

#include "check.h"

int main(void)
{
	check_burn_ms(50);
	check_passed("static");
	return 11;
}

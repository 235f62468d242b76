/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Ends that run no destructors. Samples and regions are in the file already; what was only counted
 * is in memory, and is written before the process goes.
 */
#include <stdlib.h>
#include <unistd.h>

#include "core/runtime.h"
#include "libkymo/real.h"

/* Handlers of signals may end the process: nothing is to be looked up then. */
__attribute__((constructor)) static void find(void)
{
	(void)REAL(_exit);
}

EXPORTED void _exit(int status)
{
	runtime_write_kept();
	REAL(_exit)(status);
	__builtin_unreachable();
}

/* The same, by C's name. */
EXPORTED void _Exit(int status)
{
	_exit(status);
}

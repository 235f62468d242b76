/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * _cleanup_(function): the variable is given to the function when its scope ends, whichever way.
 *For code outside the profiled process only: what an asynchronous end of a thread or a signal
 *handler leaves behind is not cleaned up.
 *
 *	_cleanup_(cleanup_free) char *path = NULL;
 */
#ifndef KYMO_COMMON_CLEANUP_H
#define KYMO_COMMON_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>

#define _cleanup_(function) __attribute__((cleanup(function)))

/* For a pointer from malloc(), or NULL. */
static inline void cleanup_free(void *variable)
{
	free(*(void **)variable);
}

/* For a stream whose errors do not matter any more, or NULL. */
static inline void cleanup_fclose(FILE **stream)
{
	if (*stream)
		fclose(*stream);
}

#endif

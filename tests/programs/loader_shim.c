/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * An allocator's shim, as leak finders and the like are preloaded: free() forwards by dlsym(3). A
 * message of the loader's that somebody else has left in the thread is freed by that dlsym, through
 * this function, which calls dlsym, endlessly.
 */
#include <dlfcn.h>
#include <stddef.h>

void free(void *block)
{
	static void (*real)(void *);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "free");
	real(block);
}

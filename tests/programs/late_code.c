/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Code that comes after the start, twice, and walks by frame pointers: nothing fails that would
 * make a profiler look for it.
 *
 * usage: late_code PLUGIN
 */
#include <dlfcn.h>

#include "check.h"

int main(int argc, char **argv)
{
	check_burn_ms(20);
	for (int round = 0; argc == 2 && round < 2; round++) {
		void *library = dlopen(argv[1], RTLD_NOW);
		void (*enter)(void);

		CHECK(library != NULL);
		*(void **)&enter = dlsym(library, "plugin_enter");
		CHECK(enter != NULL);
		enter();
		CHECK(dlclose(library) == 0);
	}
	return check_passed("late_code");
}

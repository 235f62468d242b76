/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A program that hosts Python without its headers: it opens libpython itself, so nothing of Python
 * is there when it begins. usage: host LIBRARY SCRIPT
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments)
{
	void *library = count == 3 ? dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
	void (*initialize)(int);
	int (*run)(const char *), (*finalize)(void);
	char text[4096];

	if (!library) {
		fprintf(stderr, "%s\n", count == 3 ? dlerror() : "usage: host LIBRARY SCRIPT");
		return 2;
	}
	initialize = (void (*)(int))dlsym(library, "Py_InitializeEx");
	run = (int (*)(const char *))dlsym(library, "PyRun_SimpleString");
	finalize = (int (*)(void))dlsym(library, "Py_FinalizeEx");
	initialize(0);
	snprintf(text, sizeof(text), "exec(compile(open('%s').read(), '%s', 'exec'))", arguments[2],
		 arguments[2]);
	return run(text) || finalize();
}

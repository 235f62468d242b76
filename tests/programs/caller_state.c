/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Opens a library behind caller_shim.c, which has to see this program as the caller, and itself
 * where it calls itself.
 */
#include <dlfcn.h>

#include "check.h"

static const char *find_caller_file(const char *name)
{
	const void **caller = dlsym(RTLD_DEFAULT, name);
	Dl_info info;

	CHECK(caller != NULL && *caller != NULL);
	CHECK(dladdr(*caller, &info) != 0);
	return info.dli_fname;
}

int main(void)
{
	void *(*volatile open_by_name)(const char *, int);

	check_burn_ms(10);
	CHECK(dlopen("libm.so.6", RTLD_NOW) != NULL);
	CHECK(strstr(find_caller_file("shim_outer_caller"), "caller_state") != NULL);
	CHECK(strstr(find_caller_file("shim_inner_caller"), "libcaller_shim") != NULL);
	*(void **)&open_by_name = dlsym(RTLD_DEFAULT, "dlopen");
	CHECK(open_by_name("libm.so.6", RTLD_NOW) != NULL);
	CHECK(strstr(find_caller_file("shim_outer_caller"), "caller_state") != NULL);
	return check_passed("caller_state");
}

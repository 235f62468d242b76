/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Built three times. The program opens MIDDLE by its path; that opens PLUGIN by its bare name,
 * which only the run path of MIDDLE's own leads to; PLUGIN makes five calls that kymo wraps. Opened
 * and closed several times.
 */
#include <dlfcn.h>

#include "check.h"

#define ROUNDS 20

#if defined(PLUGIN)
int plugin_work(void);
int plugin_work(void)
{
	for (int i = 0; i < 5; i++)
		CHECK(usleep(10) == 0);
	return 5;
}
#elif defined(MIDDLE)
int middle_work(void);
int middle_work(void)
{
	void *plugin = dlopen("libwrapped_plugin.so", RTLD_LAZY | RTLD_LOCAL);
	int (*work)(void), result;

	if (!plugin)
		return -1;
	work = (int (*)(void))dlsym(plugin, "plugin_work");
	result = work ? work() : -2;
	CHECK(dlclose(plugin) == 0);
	return result;
}
#else
int main(int count, char **arguments)
{
	char path[4096];

	CHECK(count == 2);
	snprintf(path, sizeof(path), "%s/libwrapped_middle.so", arguments[1]);
	CHECK(!dlopen("libwrapped_plugin.so", RTLD_LAZY)); /* not on the program's own path */
	CHECK(strstr(dlerror(), "libwrapped_plugin.so"));
	for (int i = 0; i < ROUNDS; i++) {
		void *middle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		int (*work)(void);
		CHECK(middle);
		work = (int (*)(void))dlsym(middle, "middle_work");
		CHECK(work && work() == 5);
		CHECK(!dlsym(middle, "usleep_of_nobody") && dlerror());
		CHECK(dlclose(middle) == 0);
	}
	return check_passed("wrapped_plugin");
}
#endif

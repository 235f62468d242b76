/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Opens a runtime long after its start, uses it, shuts it down, and uses it once more; then ends
 * with it still open.
 *
 *   hsa_late RUNTIME
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

struct agent {
	uint64_t handle;
};

static int (*get_info)(struct agent agent, int what, void *value);

static int each(struct agent agent, void *data)
{
	char name[64] = "";

	if (get_info(agent, 0, name))
		return 1;
	printf("%s\n", name);
	++*(int *)data;
	return 0;
}

int main(int count, char **arguments)
{
	int (*init)(void), (*shut_down)(void), (*iterate)(int (*)(struct agent, void *), void *);
	void *runtime;
	int agents = 0;

	usleep(50000);
	runtime = count > 1 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!runtime) {
		fprintf(stderr, "usage: hsa_late RUNTIME (%s)\n", count > 1 ? dlerror() : "");
		return 2;
	}
	*(void **)&init = dlsym(runtime, "hsa_init");
	*(void **)&shut_down = dlsym(runtime, "hsa_shut_down");
	*(void **)&iterate = dlsym(runtime, "hsa_iterate_agents");
	*(void **)&get_info = dlsym(runtime, "hsa_agent_get_info");
	for (int round = 0; round < 2; round++) {
		if (init() || iterate(each, &agents) || (round == 0 && shut_down()))
			return 1;
	}
	return agents != 6;
}

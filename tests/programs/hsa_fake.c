/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A stand-in for AMD's HSA runtime, as it looks to programs and to tools: its functions go through
 * tables, which it hands over at the end of hsa_init(), to the register library where there is one,
 * and to the libraries of HSA_TOOLS_LIB, unless HSA_FAKE_WAYS says "register" or "tools". One
 * processor and two devices.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FUNCTIONS = 125, INIT = 0, SHUT_DOWN = 1, ITERATE_AGENTS = 5, AGENT_GET_INFO = 6 };
enum { SUCCESS = 0, NOT_INITIALIZED = 0x100b, INVALID_ARGUMENT = 0x1001 };

struct version {
	uint32_t major, bytes, step, reserved;
};

struct agent {
	uint64_t handle;
};

typedef int each_agent(struct agent agent, void *data);

static struct {
	struct version version;
	void (*functions[FUNCTIONS])(void);
} core;
static struct {
	struct version version;
	void *core, *amd_ext, *finalize_ext, *image_ext, *tools, *pc_sampling;
} root;
static unsigned references;
static void *tool;

int hsa_init(void);
int hsa_shut_down(void);
int hsa_iterate_agents(each_agent *each, void *data);
int hsa_agent_get_info(struct agent agent, int what, void *value);

static int iterate_agents(each_agent *each, void *data)
{
	int status = references ? SUCCESS : NOT_INITIALIZED;

	for (uint64_t i = 1; i <= 3 && !status; i++)
		status = each((struct agent){i}, data);
	return status;
}

static int agent_get_info(struct agent agent, int what, void *value)
{
	if (!references)
		return NOT_INITIALIZED;
	switch (what) {
	case 0: /* HSA_AGENT_INFO_NAME */
		snprintf(value, 64, "gfx90%d", (int)agent.handle);
		return SUCCESS;
	case 1: /* HSA_AGENT_INFO_VENDOR_NAME */
		snprintf(value, 64, "AMD");
		return SUCCESS;
	case 17: /* HSA_AGENT_INFO_DEVICE: the first is the processor */
		*(int *)value = agent.handle != 1;
		return SUCCESS;
	case 0xa006: /* HSA_AMD_AGENT_INFO_BDFID */
		*(uint32_t *)value = (uint32_t)agent.handle << 8;
		return SUCCESS;
	default:
		return INVALID_ARGUMENT;
	}
}

static int init(void)
{
	return SUCCESS;
}

static void hand_over(void)
{
	const char *ways = getenv("HSA_FAKE_WAYS"), *library = getenv("HSA_TOOLS_LIB");
	int (*announce)(const char *, uint32_t (*)(void), uint32_t, void **, uint64_t, uint64_t *);
	bool (*on_load)(void *, uint64_t, uint64_t, const char *const *);
	uint64_t identifier;
	void *tables[] = {&root};

	*(void **)&announce = dlsym(RTLD_DEFAULT, "rocprofiler_register_library_api_table");
	if (announce && (!ways || !strcmp(ways, "register")))
		announce("hsa", NULL, 11500, tables, 1, &identifier);
	tool = library && (!ways || !strcmp(ways, "tools")) ? dlopen(library, RTLD_LAZY) : NULL;
	if (!tool)
		return;
	*(void **)&on_load = dlsym(tool, "OnLoad");
	if (!on_load || !on_load(&root, 1, 0, NULL))
		fprintf(stderr, "a tool of HSA was not loaded\n");
}

int hsa_init(void)
{
	if (references++ == 0) {
		core.functions[INIT] = (void (*)(void))init;
		core.functions[SHUT_DOWN] = (void (*)(void))init;
		core.functions[ITERATE_AGENTS] = (void (*)(void))iterate_agents;
		core.functions[AGENT_GET_INFO] = (void (*)(void))agent_get_info;
		core.version = (struct version){2, sizeof(core), 0, 0};
		root.version = (struct version){3, sizeof(root), 1, 0};
		root.core = &core;
		hand_over();
	}
	return ((int (*)(void))core.functions[INIT])();
}

int hsa_shut_down(void)
{
	void (*on_unload)(void);

	if (!references)
		return NOT_INITIALIZED;
	((int (*)(void))core.functions[SHUT_DOWN])();
	if (--references || !tool)
		return SUCCESS;
	*(void **)&on_unload = dlsym(tool, "OnUnload");
	if (on_unload)
		on_unload();
	dlclose(tool);
	return SUCCESS;
}

int hsa_iterate_agents(each_agent *each, void *data)
{
	return ((int (*)(each_agent *, void *))core.functions[ITERATE_AGENTS])(each, data);
}

int hsa_agent_get_info(struct agent agent, int what, void *value)
{
	return ((int (*)(struct agent, int, void *))core.functions[AGENT_GET_INFO])(agent, what,
										    value);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * OpenCL's functions, for loaders that know no layers (CUDA brings one): preloaded, so that the
 * program's calls come here first. The tool library is loaded at the first call, and its functions
 * stand between this one and the loader's, unless the loader has taken it as a layer after all.
 *
 * Programs that look the functions up in a loader that they opened themselves pass us by.
 */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/opencl/types.h"

struct table {
#define CALL(number, type, name, parameters, arguments, addresses) type(*name) parameters;
#define HOOKED                                                     CALL
#define VOID_CALL(number, name, parameters, arguments, addresses)  void(*name) parameters;
#define VOID_HOOKED                                                VOID_CALL
#define ABSENT(number, name)                                       void *name;
#include "device/opencl/calls_table.h"
#undef CALL
#undef HOOKED
#undef VOID_CALL
#undef VOID_HOOKED
#undef ABSENT
};

#define ENTRIES (sizeof(struct table) / sizeof(void *))

static const char *const names[] = {
#define CALL(number, type, name, parameters, arguments, addresses) #name,
#define HOOKED                                                     CALL
#define VOID_CALL(number, name, parameters, arguments, addresses)  #name,
#define VOID_HOOKED                                                VOID_CALL
#define ABSENT(number, name)                                       NULL,
#include "device/opencl/calls_table.h"
#undef CALL
#undef HOOKED
#undef VOID_CALL
#undef VOID_HOOKED
#undef ABSENT
};

static void *loaders[ENTRIES];
static const struct table *table = (const struct table *)loaders;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Beside this library, or where the build tree has it. */
static void *open_tool_library(void)
{
	static const char *const places[] = {"libkymo-sdk.so", "../libkymo-sdk/libkymo-sdk.so"};
	char path[PATH_MAX];
	void *library = NULL;
	const char *slash;
	Dl_info self;

	if (dladdr(&once, &self) == 0 || (slash = strrchr(self.dli_fname, '/')) == NULL)
		return NULL;
	for (size_t i = 0; library == NULL && i < sizeof(places) / sizeof(*places); i++) {
		snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - self.dli_fname),
			 self.dli_fname, places[i]);
		library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	return library;
}

static void find(void)
{
	const void *(*interpose)(const void *const *, unsigned) = NULL;
	const struct table *real = (const struct table *)loaders;
	const char *session = getenv("KYMO_SPOOL_DIRECTORY"),
		   *tools = getenv("ROCP_TOOL_LIBRARIES");
	const void *traced;
	void *library;
	cl_uint count;

	for (size_t i = 0; i < ENTRIES; i++) {
		if (names[i] != NULL)
			loaders[i] = dlsym(RTLD_NEXT, names[i]);
	}
	if (real->clGetPlatformIDs == NULL || (session == NULL && tools == NULL))
		return;
	/* A loader that knows layers has them from now on. */
	real->clGetPlatformIDs(0, NULL, &count);
	library = open_tool_library();
	if (library != NULL)
		*(void **)&interpose = dlsym(library, "kymo_opencl_interpose");
	traced = interpose != NULL ? interpose((const void *const *)loaders, ENTRIES) : NULL;
	if (traced != NULL)
		table = traced;
}

static const struct table *functions(void)
{
	pthread_once(&once, find);
	return table;
}

/* A function that the loader has not would have been an error of the linker's. */
static _Noreturn void missing(const char *name)
{
	fprintf(stderr, "kymo: no %s in this process's OpenCL\n", name);
	abort();
}

#define CALL(number, type, name, parameters, arguments, addresses)                                 \
	__attribute__((visibility("default"))) type name parameters;                               \
	type name parameters                                                                       \
	{                                                                                          \
		if (functions()->name == NULL)                                                     \
			missing(#name);                                                            \
		return functions()->name arguments;                                                \
	}
#define HOOKED CALL
#define VOID_CALL(number, name, parameters, arguments, addresses)                                  \
	__attribute__((visibility("default"))) void name parameters;                               \
	void name parameters                                                                       \
	{                                                                                          \
		if (functions()->name == NULL)                                                     \
			missing(#name);                                                            \
		functions()->name arguments;                                                       \
	}
#define VOID_HOOKED VOID_CALL
#define ABSENT(number, name)
#include "device/opencl/calls_table.h"

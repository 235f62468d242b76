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

#include "common/array.h"
#include "common/loader.h"
#include "common/loader_state.h"
#include "device/opencl/types.h"

struct opencl_function_pointers {
#define OPENCL_CALL_ROW(number, type, name, parameters, arguments, addresses)                      \
	type(*name) parameters;
#define OPENCL_HOOKED_CALL_ROW                                               OPENCL_CALL_ROW
#define OPENCL_VOID_CALL_ROW(number, name, parameters, arguments, addresses) void(*name) parameters;
#define OPENCL_HOOKED_VOID_CALL_ROW                                          OPENCL_VOID_CALL_ROW
#define OPENCL_ABSENT_ROW(number, name)                                      void *name;
#include "device/opencl/calls_table.h"
#undef OPENCL_CALL_ROW
#undef OPENCL_HOOKED_CALL_ROW
#undef OPENCL_VOID_CALL_ROW
#undef OPENCL_HOOKED_VOID_CALL_ROW
#undef OPENCL_ABSENT_ROW
};

#define OPENCL_FUNCTION_COUNT (sizeof(struct opencl_function_pointers) / sizeof(void *))

static const char *const opencl_function_names[] = {
#define OPENCL_CALL_ROW(number, type, name, parameters, arguments, addresses) #name,
#define OPENCL_HOOKED_CALL_ROW                                                OPENCL_CALL_ROW
#define OPENCL_VOID_CALL_ROW(number, name, parameters, arguments, addresses)  #name,
#define OPENCL_HOOKED_VOID_CALL_ROW                                           OPENCL_VOID_CALL_ROW
#define OPENCL_ABSENT_ROW(number, name)                                       NULL,
#include "device/opencl/calls_table.h"
#undef OPENCL_CALL_ROW
#undef OPENCL_HOOKED_CALL_ROW
#undef OPENCL_VOID_CALL_ROW
#undef OPENCL_HOOKED_VOID_CALL_ROW
#undef OPENCL_ABSENT_ROW
};

static void *opencl_loader_function_addresses[OPENCL_FUNCTION_COUNT];
static const struct opencl_function_pointers *opencl_functions_to_call =
	(const struct opencl_function_pointers *)opencl_loader_function_addresses;
static pthread_once_t find_opencl_functions_once_control = PTHREAD_ONCE_INIT;

/* Beside this library, or where the build tree has it. */
static void *open_sdk_library(void)
{
	static const char *const places[] = {"libkymo-sdk.so", "../libkymo-sdk/libkymo-sdk.so"};
	char path[PATH_MAX];
	void *library = NULL;
	const char *slash;
	Dl_info self;

	if (dladdr(&find_opencl_functions_once_control, &self) == 0 ||
	    (slash = strrchr(self.dli_fname, '/')) == NULL)
		return NULL;
	for (size_t i = 0; library == NULL && i < ARRAY_SIZE(places); i++) {
		snprintf(path, sizeof(path), "%.*s/%s", (int)(slash - self.dli_fname),
			 self.dli_fname, places[i]);
		library = loader_dlopen_keeping_dlerror(path, RTLD_NOW | RTLD_LOCAL);
	}
	return library;
}

static void find_opencl_functions_and_interpose(void)
{
	const void *(*interpose)(const void *const *, unsigned) = NULL;
	const struct opencl_function_pointers *real =
		(const struct opencl_function_pointers *)opencl_loader_function_addresses;
	const char *session = secure_getenv("KYMO_SPOOL_DIRECTORY"),
		   *tools = secure_getenv("ROCP_TOOL_LIBRARIES");
	const void *traced;
	void *library;
	cl_uint count;

	for (size_t i = 0; i < OPENCL_FUNCTION_COUNT; i++) {
		if (opencl_function_names[i] != NULL)
			opencl_loader_function_addresses[i] = loader_find_symbol(
				LOADER_SCOPE_AFTER_OWN_OBJECT, &find_opencl_functions_once_control,
				opencl_function_names[i]);
	}
	if (real->clGetPlatformIDs == NULL || (session == NULL && tools == NULL))
		return;
	/* A loader that knows layers has them from now on. */
	real->clGetPlatformIDs(0, NULL, &count);
	library = open_sdk_library();
	if (library != NULL)
		*(void **)&interpose =
			loader_find_symbol_in_handle(library, "kymo_opencl_interpose");
	traced = interpose != NULL
			 ? interpose((const void *const *)opencl_loader_function_addresses,
				     OPENCL_FUNCTION_COUNT)
			 : NULL;
	if (traced != NULL)
		opencl_functions_to_call = traced;
}

static const struct opencl_function_pointers *get_opencl_functions(void)
{
	pthread_once(&find_opencl_functions_once_control, find_opencl_functions_and_interpose);
	return opencl_functions_to_call;
}

/* A function that the loader has not would have been an error of the linker's. */
static _Noreturn void abort_for_missing_opencl_function(const char *name)
{
	fprintf(stderr, "kymo: no %s in this process's OpenCL\n", name);
	abort();
}

#define OPENCL_CALL_ROW(number, type, name, parameters, arguments, addresses)                      \
	__attribute__((visibility("default"))) type name parameters;                               \
	type name parameters                                                                       \
	{                                                                                          \
		if (get_opencl_functions()->name == NULL)                                          \
			abort_for_missing_opencl_function(#name);                                  \
		return get_opencl_functions()->name arguments;                                     \
	}
#define OPENCL_HOOKED_CALL_ROW OPENCL_CALL_ROW
#define OPENCL_VOID_CALL_ROW(number, name, parameters, arguments, addresses)                       \
	__attribute__((visibility("default"))) void name parameters;                               \
	void name parameters                                                                       \
	{                                                                                          \
		if (get_opencl_functions()->name == NULL)                                          \
			abort_for_missing_opencl_function(#name);                                  \
		get_opencl_functions()->name arguments;                                            \
	}
#define OPENCL_HOOKED_VOID_CALL_ROW OPENCL_VOID_CALL_ROW
#define OPENCL_ABSENT_ROW(number, name)
#include "device/opencl/calls_table.h"

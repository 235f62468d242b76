/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Finding CUPTI. Frameworks bring a copy of their own (PyTorch's wheel does), and two in a process
 * are one too many, so the one that is mapped comes first. KYMO_CUPTI names one.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "device/cuda/counting.h"

struct cupti_api cupti;
struct profiler_api profiler;

static int find_mapped(struct dl_phdr_info *object, size_t size, void *context)
{
	const char *name = strrchr(object->dlpi_name, '/');

	(void)size;
	if (name == NULL || strncmp(name, "/libcupti.so", 12) != 0)
		return 0;
	*(const char **)context = strdup(object->dlpi_name);
	return 1;
}

static void *open_library(void)
{
	static const char *const places[] = {
		"libcupti.so.13",
		"libcupti.so.12",
		"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.13",
		"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so.12",
		"/usr/local/cuda/lib64/libcupti.so.13",
		"/usr/local/cuda/lib64/libcupti.so.12",
		"libcupti.so",
		"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so",
	};
	const char *mapped = NULL, *named = getenv("KYMO_CUPTI");
	void *library = NULL;

	if (named != NULL && named[0] != '\0')
		return dlopen(named, RTLD_NOW | RTLD_LOCAL);
	dl_iterate_phdr(find_mapped, &mapped);
	if (mapped != NULL)
		library = dlopen(mapped, RTLD_NOW | RTLD_NOLOAD);
	for (size_t i = 0; library == NULL && i < sizeof(places) / sizeof(*places); i++)
		library = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
	return library;
}

static const char *load(void)
{
	const char *missing = NULL;
	Dl_info place;

	cupti.library = open_library();
	if (cupti.library == NULL)
		return "libcupti.so (it is part of the CUDA toolkit; KYMO_CUPTI can name it)";
#define X(name, parameters)                                                                        \
	*(void **)&cupti.name = dlsym(cupti.library, "cupti" #name);                               \
	if (cupti.name == NULL)                                                                    \
		missing = "cupti" #name;
	CUPTI_FUNCTIONS(X)
#undef X
#define X(name, parameters) *(void **)&cupti.name = dlsym(cupti.library, "cupti" #name);
	CUPTI_OPTIONAL(X)
#undef X
	if (missing != NULL)
		return missing;
	cupti.GetVersion(&cupti.version);
	if (cupti.version < CUPTI_VERSION_OLDEST)
		return "a newer CUPTI: that of CUDA 11.1 or later";
	cupti.path = dladdr(*(void **)&cupti.GetVersion, &place) != 0 && place.dli_fname != NULL
			     ? place.dli_fname
			     : "libcupti.so";
	return NULL;
}

static pthread_once_t loaded = PTHREAD_ONCE_INIT, profiler_loaded = PTHREAD_ONCE_INIT;
static const char *missing_of_cupti, *missing_of_profiler;

static void load_once(void)
{
	missing_of_cupti = load();
}

const char *cupti_load(void)
{
	pthread_once(&loaded, load_once);
	return missing_of_cupti;
}

static void load_profiler(void)
{
	missing_of_profiler = cupti_load();
	if (missing_of_profiler != NULL)
		return;
#define X(name)                                                                                    \
	*(void **)&profiler.name = dlsym(cupti.library, "cupti" #name);                            \
	if (profiler.name == NULL)                                                                 \
		missing_of_profiler = "a newer CUPTI: that of CUDA 12.6 or later";
	PROFILER_FUNCTIONS(X)
#undef X
}

const char *cuda_profiler_load(void)
{
	pthread_once(&profiler_loaded, load_profiler);
	return missing_of_profiler;
}

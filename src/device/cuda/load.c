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

#include "common/array.h"
#include "common/loader.h"
#include "common/loader_state.h"
#include "device/cuda/counting.h"

struct cupti_api cupti;
struct profiler_api profiler;

static int copy_path_if_mapped_cupti(struct dl_phdr_info *object, size_t size, void *context)
{
	const char *name = strrchr(object->dlpi_name, '/');

	(void)size;
	if (name == NULL || strncmp(name, "/libcupti.so", 12) != 0)
		return 0;
	*(const char **)context = strdup(object->dlpi_name);
	return 1;
}

static void *open_cupti_library(void)
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
	const char *mapped = NULL, *named = secure_getenv("KYMO_CUPTI");
	void *library = NULL;

	if (named != NULL && named[0] != '\0')
		return loader_dlopen_keeping_dlerror(named, RTLD_NOW | RTLD_LOCAL);
	dl_iterate_phdr(copy_path_if_mapped_cupti, &mapped);
	if (mapped != NULL)
		library = loader_dlopen_keeping_dlerror(mapped, RTLD_NOW | RTLD_NOLOAD);
	for (size_t i = 0; library == NULL && i < ARRAY_SIZE(places); i++)
		library = loader_dlopen_keeping_dlerror(places[i], RTLD_NOW | RTLD_LOCAL);
	return library;
}

static const char *load_cupti(void)
{
	const char *missing = NULL;
	Dl_info place;

	cupti.library = open_cupti_library();
	if (cupti.library == NULL)
		return "libcupti.so (it is part of the CUDA toolkit; KYMO_CUPTI can name it)";
#define X(name, parameters)                                                                        \
	*(void **)&cupti.name = loader_find_symbol_in_handle(cupti.library, "cupti" #name);        \
	if (cupti.name == NULL)                                                                    \
		missing = "cupti" #name;
	CUPTI_FUNCTIONS(X)
#undef X
#define X(name, parameters)                                                                        \
	*(void **)&cupti.name = loader_find_symbol_in_handle(cupti.library, "cupti" #name);
	CUPTI_OPTIONAL_FUNCTIONS(X)
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

static pthread_once_t cupti_once_control = PTHREAD_ONCE_INIT,
		      profiler_once_control = PTHREAD_ONCE_INIT;
static const char *cupti_missing_text, *profiler_missing_text;

static void load_cupti_and_keep_missing_text(void)
{
	cupti_missing_text = load_cupti();
}

const char *cupti_load_or_get_missing(void)
{
	pthread_once(&cupti_once_control, load_cupti_and_keep_missing_text);
	return cupti_missing_text;
}

static void load_profiler_and_keep_missing_text(void)
{
	profiler_missing_text = cupti_load_or_get_missing();
	if (profiler_missing_text != NULL)
		return;
#define X(name)                                                                                    \
	*(void **)&profiler.name = loader_find_symbol_in_handle(cupti.library, "cupti" #name);     \
	if (profiler.name == NULL)                                                                 \
		profiler_missing_text = "a newer CUPTI: that of CUDA 12.6 or later";
	PROFILER_FUNCTIONS(X)
#undef X
}

const char *cuda_profiler_load_or_get_missing_text(void)
{
	pthread_once(&profiler_once_control, load_profiler_and_keep_missing_text);
	return profiler_missing_text;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See profiler_code.h.
 */
#include "analysis/profiler_code.h"

#include "common/array.h"

#define LIBRARY_SUFFIX          ".so"
#define INSTALLED_PYTHON_MODULE "/kymo/python/kymo.py"

/* Whole names: a program may have libraries of its own that begin like these. */
static const char *const library_names[] = {
	"libkymo",           "libkymo-dl",        "libkymo-user",
	"libkymo-gpu",       "libkymo-opencl",    "libkymo-sdk",
	"libkymo-sdk-roctx", "libkymo-sdk-rocpd", "libnccl-profiler-kymo",
};

/* A version may follow, and " (deleted)" where an installation was renewed. */
static bool is_library_file_name(const char *file, const char *library)
{
	size_t length = strlen(library);

	if (strncmp(file, library, length) != 0 ||
	    strncmp(file + length, LIBRARY_SUFFIX, strlen(LIBRARY_SUFFIX)) != 0)
		return false;
	file += length + strlen(LIBRARY_SUFFIX);
	return *file == '\0' || *file == '.' || *file == ' ';
}

bool module_is_profiler_library(const struct model_module *module)
{
	for (size_t i = 0; i < ARRAY_SIZE(library_names); i++) {
		if (is_library_file_name(module->name, library_names[i]))
			return true;
	}
	return false;
}

bool source_file_is_profiler_module(const char *file)
{
	size_t length = file ? strlen(file) : 0, suffix = strlen(INSTALLED_PYTHON_MODULE);

	return length >= suffix && strcmp(file + length - suffix, INSTALLED_PYTHON_MODULE) == 0;
}

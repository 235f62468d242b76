/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See code_origin.h. Files decide: the module, and the source file where a header's code was
 * compiled into the program.
 */
#include "output/code_origin.h"

#include <errno.h>
#include <stdlib.h>

#include "common/array.h"

static const char *const c_runtime_libraries[] = {
	"libc.so",     "libc-2.",     "libpthread", "ld-linux", "ld-musl",  "libm.so",
	"libm-2.",     "libmvec",     "librt.so",   "libdl.so", "libgcc_s", "libstdc++",
	"libc++",      "libasan",     "libtsan",    "libubsan", "liblsan",  "libjemalloc",
	"libtcmalloc", "libmimalloc", "linux-vdso", "[vdso]",
};

/* Of interpreters, OpenMP and MPI, which people install anywhere. */
static const char *const libraries[] = {"libpython", "libnode", "libjvm",  "libruby", "libperl",
					"libgomp",   "libomp",  "libiomp", "libmpi"};

static const char *const system_directories[] = {"/lib/",    "/lib64/", "/lib32/",
						 "/usr/lib", "/opt/",   "/usr/local/cuda",
						 "/snap/",   "/nix/",   "/gnu/"};

/* Of packages of interpreters, wherever they are installed. */
static const char *const package_directories[] = {"/site-packages/", "/dist-packages/",
						  "/lib/python3", "/node_modules/"};

static const char *const header_directories[] = {
	"/usr/include/", "/usr/lib/", "/usr/local/go/src/",
	"/rustc/",       "<frozen",   "<__array_function__"};

/* The first frames of a program and of its threads; _start is in the program itself. */
static const char *const start_functions[] = {"_start", "start_thread", "clone3", "clone"};

static bool begins_with_one_of(const char *text, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strncmp(text, words[i], strlen(words[i])) == 0)
			return true;
	}
	return false;
}

static bool contains_one_of(const char *text, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strstr(text, words[i]))
			return true;
	}
	return false;
}

static bool is_start_function(const char *function)
{
	for (size_t i = 0; i < ARRAY_SIZE(start_functions); i++) {
		if (strcmp(function, start_functions[i]) == 0)
			return true;
	}
	return false;
}

static bool is_library_source(const char *file)
{
	return begins_with_one_of(file, header_directories, ARRAY_SIZE(header_directories)) ||
	       contains_one_of(file, package_directories, ARRAY_SIZE(package_directories));
}

/* What is known of a process's own file. */
struct program_traits {
	bool has_interpreter; /* the file is an interpreter's, its functions are the library's */
	bool has_c_library;   /* else it is linked statically */
	bool has_source_files;
};

static struct program_traits *find_program_traits(const struct session *session)
{
	struct program_traits *traits = calloc((size_t)session->process_count + 1, sizeof(*traits));

	if (!traits)
		return NULL;
	for (uint32_t i = 0; i < session->module_count; i++)
		traits[session->modules[i].process].has_c_library |=
			begins_with_one_of(session->modules[i].name, c_runtime_libraries, 2) ||
			strncmp(session->modules[i].name, "ld-musl", 7) == 0;
	for (uint32_t i = 0; i < session->node_count; i++) {
		struct program_traits *it = &traits[session->nodes[i].process];
		const struct model_frame *frame = &session->frames[session->nodes[i].frame];

		it->has_interpreter |= frame->kind == FRAME_INTERPRETED;
		it->has_source_files |= frame->file && frame->kind == FRAME_NATIVE;
	}
	return traits;
}

static enum code_origin classify_program_frame(const struct model_frame *frame,
					       const struct program_traits *traits)
{
	if (traits->has_interpreter)
		return CODE_OF_LIBRARY;
	if (frame->file)
		return is_library_source(frame->file) ? CODE_OF_LIBRARY : CODE_OF_PROGRAM;
	/* A static libc has no debug information where the program has. */
	return !traits->has_c_library && traits->has_source_files && frame->kind == FRAME_NATIVE
		       ? CODE_OF_C_RUNTIME
		       : CODE_OF_PROGRAM;
}

static enum code_origin classify_frame(const struct session *session,
				       const struct model_frame *frame,
				       const struct program_traits *traits)
{
	const struct model_module *module;

	if (frame->kind == FRAME_SYNTHETIC || frame->kind == FRAME_THREAD_STATE)
		return CODE_OF_NOTHING;
	if (frame->kind == FRAME_INTERPRETED)
		return frame->file && is_library_source(frame->file) ? CODE_OF_LIBRARY
								     : CODE_OF_PROGRAM;
	if (is_start_function(frame->function))
		return CODE_OF_C_RUNTIME;
	if (frame->module == MODEL_ENTRY_INDEX_NONE)
		return CODE_OF_PROGRAM;
	module = &session->modules[frame->module];
	if (begins_with_one_of(module->name, c_runtime_libraries, ARRAY_SIZE(c_runtime_libraries)))
		return CODE_OF_C_RUNTIME;
	if (strcmp(module->path, session->processes[module->process].executable) == 0)
		return classify_program_frame(frame, &traits[module->process]);
	if (begins_with_one_of(module->name, libraries, ARRAY_SIZE(libraries)) ||
	    begins_with_one_of(module->path, system_directories, ARRAY_SIZE(system_directories)) ||
	    contains_one_of(module->path, package_directories, ARRAY_SIZE(package_directories)))
		return CODE_OF_LIBRARY;
	return frame->file && is_library_source(frame->file) ? CODE_OF_LIBRARY : CODE_OF_PROGRAM;
}

int code_origins_create(const struct session *session, struct code_origins *ret)
{
	struct program_traits *traits = find_program_traits(session);

	ret->by_frame = calloc((size_t)session->frame_count + 1, sizeof(*ret->by_frame));
	if (!traits || !ret->by_frame) {
		free(traits);
		code_origins_destroy(ret);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < session->frame_count; i++)
		ret->by_frame[i] = (uint8_t)classify_frame(session, &session->frames[i], traits);
	free(traits);
	return 0;
}

void code_origins_destroy(struct code_origins *origins)
{
	free(origins->by_frame);
	origins->by_frame = NULL;
}

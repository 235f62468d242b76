/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions that are left alone because of what they are, where they are known by name. Aliases
 * have the same address and need no name here.
 */
#include <stdlib.h>
#include <string.h>

#include "binary/functions/private.h"
#include "common/array.h"

#define V8_INTERNAL_PREFIX "_ZN2v88internal"

struct unpatchable_function_name {
	const char *name;
	enum plan_reason reason;
};

/* Sorted by strcmp. */
static const struct unpatchable_function_name unpatchable_function_names[] = {
	{"_Fork", PLAN_RETURNS_TWICE},
	{"__aeabi_unwind_cpp_pr0", PLAN_UNWINDER},
	{"__clone", PLAN_RETURNS_TWICE},
	{"__clone2", PLAN_RETURNS_TWICE},
	{"__clone3", PLAN_RETURNS_TWICE},
	{"__clone_internal", PLAN_RETURNS_TWICE},
	{"__do_global_dtors_aux", PLAN_LINKER_CODE},
	{"__fentry__", PLAN_READS_RETURN},
	{"__gcc_personality_v0", PLAN_UNWINDER},
	{"__getcontext", PLAN_RETURNS_TWICE},
	{"__gxx_personality_v0", PLAN_UNWINDER},
	{"__libc_vfork", PLAN_RETURNS_TWICE},
	{"__longjmp", PLAN_READS_RETURN},
	{"__morestack", PLAN_READS_RETURN},
	{"__restore_rt", PLAN_NO_RETURN_ADDRESS},
	{"__setjmp", PLAN_RETURNS_TWICE},
	{"__sigjmp_save", PLAN_RETURNS_TWICE},
	{"__sigsetjmp", PLAN_RETURNS_TWICE},
	{"__start_context", PLAN_NO_RETURN_ADDRESS},
	{"__swapcontext", PLAN_READS_RETURN},
	{"__tls_get_addr", PLAN_UNWINDER},
	{"__vfork", PLAN_RETURNS_TWICE},
	{"___tls_get_addr", PLAN_UNWINDER},
	{"_dl_start", PLAN_NO_RETURN_ADDRESS},
	{"_fini", PLAN_LINKER_CODE},
	{"_init", PLAN_LINKER_CODE},
	{"_mcount", PLAN_READS_RETURN},
	{"_setjmp", PLAN_RETURNS_TWICE},
	{"_start", PLAN_NO_RETURN_ADDRESS},
	{"backtrace", PLAN_UNWINDER},
	{"clone", PLAN_RETURNS_TWICE},
	{"clone3", PLAN_RETURNS_TWICE},
	{"deregister_tm_clones", PLAN_LINKER_CODE},
	{"dl_iterate_phdr", PLAN_UNWINDER},
	{"dladdr", PLAN_UNWINDER},
	{"dladdr1", PLAN_UNWINDER},
	{"dlclose", PLAN_UNWINDER},
	{"dlmopen", PLAN_UNWINDER},
	{"dlopen", PLAN_UNWINDER},
	{"dlsym", PLAN_UNWINDER},
	{"dlvsym", PLAN_UNWINDER},
	{"frame_dummy", PLAN_LINKER_CODE},
	{"getcontext", PLAN_RETURNS_TWICE},
	{"getcontextx", PLAN_RETURNS_TWICE},
	{"mcount", PLAN_READS_RETURN},
	{"register_tm_clones", PLAN_LINKER_CODE},
	{"rust_eh_personality", PLAN_UNWINDER},
	{"savectx", PLAN_RETURNS_TWICE},
	{"setjmp", PLAN_RETURNS_TWICE},
	{"sigsetjmp", PLAN_RETURNS_TWICE},
	{"swapcontext", PLAN_READS_RETURN},
	{"vfork", PLAN_RETURNS_TWICE},
};

static const struct unpatchable_function_name unpatchable_function_prefixes[] = {
	{"_Unwind_", PLAN_UNWINDER},
	{"__cxa_", PLAN_UNWINDER},
	{"__register_frame", PLAN_UNWINDER},
	{"__deregister_frame", PLAN_UNWINDER},
	{"__x86_indirect_", PLAN_READS_RETURN},
	{"__x86_return_", PLAN_READS_RETURN},
	{"__x86_get_pc_", PLAN_READS_RETURN},
	{"__llvm_retpoline_", PLAN_READS_RETURN},
	{"_dl_", PLAN_UNWINDER},
	{"__libc_dl", PLAN_UNWINDER},
	{"__unw_", PLAN_UNWINDER},
	{"unw_", PLAN_UNWINDER},
	{"Builtins_", PLAN_READS_RETURN},
	{"_ULx86_64_", PLAN_UNWINDER},
	{"_Ux86_64_", PLAN_UNWINDER},
};

/* V8's garbage collector walks the stack from where its generated code (Builtins_*) called C++: it
 * looks up that return address (ExitFrame in its src/execution/frames.cc). Called from there are
 * runtime functions, builtins, and callbacks, which their arguments give away. */
bool finder_name_is_called_by_v8(const char *name)
{
	if (name[0] != '_' || name[1] != 'Z')
		return false;
	if (strstr(name, "20FunctionCallbackInfoI") || strstr(name, "20PropertyCallbackInfoI"))
		return true;
	return !strncmp(name, V8_INTERNAL_PREFIX, sizeof(V8_INTERNAL_PREFIX) - 1) &&
	       (strstr(name, "Runtime_") || strstr(name, "Builtin_")) &&
	       strstr(name, "PNS0_7IsolateE");
}

bool finder_name_is_v8_resolver_setter(const char *name)
{
	return !strcmp(name, "_ZN2v82V832SetReturnAddressLocationResolverEPFmmE");
}

/* Their collectors of garbage and their exceptions walk the frames of compiled code: they take the
 * return address of the call that left it from the stack and look it up in tables of their own.
 * What stands there during a recorded call is in no table. (OCaml's runtime/amd64.S, caml_call_gc;
 * HotSpot's frame_x86.cpp; Mono's mini-exceptions.c; CoreCLR's stackwalk.cpp; Substrate VM's
 * CodeInfoTable.) V8 asks a function that it is given. */
bool finder_name_is_of_own_unwinder(const char *name)
{
	static const char *const names[] = {
		"JNI_CreateJavaVM",   "mono_jit_init",        "caml_call_gc",
		"coreclr_initialize", "graal_create_isolate", "RhpCallCatchFunclet",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strcmp(name, names[i]))
			return true;
	}
	return false;
}

/* Data of a library of code that was compiled for a run time, which reads that code and changes the
 * calls in it (Mono's ahead-of-time compiler, Dart's snapshots). */
bool finder_name_is_of_run_time_image(const char *name)
{
	return !strcmp(name, "mono_aot_file_info") || !strcmp(name, "_kDartVmSnapshotInstructions");
}

/* Compiled regular expressions pass on where their call's return address is, to have it changed
 * where their code has moved (V8's src/regexp/regexp-macro-assembler.cc). */
static bool name_is_of_return_address_changer(const char *name)
{
	return !strncmp(name, V8_INTERNAL_PREFIX, sizeof(V8_INTERNAL_PREFIX) - 1) &&
	       strstr(name, "20CheckStackGuardStateE");
}

static int compare_name_to_known_name(const void *key, const void *element)
{
	return strcmp(key, ((const struct unpatchable_function_name *)element)->name);
}

enum plan_reason finder_get_plan_reason_by_name(const char *name)
{
	const struct unpatchable_function_name *known =
		bsearch(name, unpatchable_function_names, ARRAY_SIZE(unpatchable_function_names),
			sizeof(unpatchable_function_names[0]), compare_name_to_known_name);

	if (known)
		return known->reason;
	if (name[0] == '_' && name[1] == 'Z') /* C++ and Rust: most of all names */
		return name_is_of_return_address_changer(name) ? PLAN_READS_RETURN : PLAN_PATCHABLE;
	if (name[0] != '_' && name[0] != 'u' && name[0] != 'B')
		return PLAN_PATCHABLE;
	for (size_t i = 0; i < ARRAY_SIZE(unpatchable_function_prefixes); i++) {
		if (!strncmp(name, unpatchable_function_prefixes[i].name,
			     strlen(unpatchable_function_prefixes[i].name)))
			return unpatchable_function_prefixes[i].reason;
	}
	return PLAN_PATCHABLE;
}

/* GCC splits off `function.cold` (older ones, and with LTO, with a number behind). */
bool finder_name_is_cold_part(const char *name)
{
	const char *dot = strchr(name, '.');

	return dot && strstr(dot, ".cold") != NULL;
}

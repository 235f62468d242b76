/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See defaults.h.
 */
#include "binary/selection/defaults.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/array.h"

/* A trailing * stands for any end. Until glibc 2.34 the C library was several files. */
static const char *const names_of_libraries_kymo_needs[] = {
	"libkymo*", "libc",    "ld-linux*",    "ld",        "libpthread",
	"libdl",    "librt",   "libgcc_s",     "libasan",   "libtsan",
	"libubsan", "liblsan", "libclang_rt*", "libhwasan", "linux-vdso",
};

static const char *const system_library_names[] = {
	"libm",      "libmvec",  "libresolv",    "libutil",         "libnsl",      "libnss_*",
	"libanl",    "libcrypt", "libthread_db", "libBrokenLocale", "libmemusage", "libpcprofile",
	"libstdc++", "libc++",   "libc++abi",    "libsupc++",       "libunwind*",  "libatomic",
};

static const char *const runtime_routine_names[] = {
	/* crt1.o, crti.o, crtbegin.o, and what static programs start with */
	"_start",
	"_init",
	"_fini",
	"frame_dummy",
	"register_tm_clones",
	"deregister_tm_clones",
	"__do_global_dtors_aux",
	"__do_global_ctors_aux",
	"__libc_csu_init",
	"__libc_csu_fini",
	"_dl_relocate_static_pie",
	"__gmon_start__",
	"_mcleanup",
	"mcount",
	"__fentry__",
	"__clang_call_terminate",
	"__stack_chk_fail",
	"_GLOBAL__sub_*",
	"_GLOBAL__*",
	"__cxx_global_*",
	/* run-time parts of sanitizers and of coverage that are linked in */
	"__asan_*",
	"__tsan_*",
	"__ubsan_*",
	"__lsan_*",
	"__hwasan_*",
	"__sanitizer_*",
	"__interceptor_*",
	"__gcov_*",
	"__llvm_profile_*",
	/* thunks: they only adjust `this` */
	"_ZTh*",
	"_ZTv*",
	"_ZTc*",
};

/* In functions of namespace std. */
static const char *const std_internal_name_parts[] = {
	"_M_",           "_S_",           "_Sp_counted",     "locale",
	"basic_ostream", "basic_istream", "basic_streambuf", "basic_ios",
	"basic_filebuf", "ios_base",      "ctype",           "codecvt",
	"__detail",      "_Rb_tree",      "_Hashtable",
};

static bool list_has_matching_name(const char *const *list, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++) {
		size_t length = strlen(list[i]);

		if (list[i][length - 1] == '*' ? !strncmp(list[i], name, length - 1)
					       : !strcmp(list[i], name))
			return true;
	}
	return false;
}

#define LIST_HAS_MATCHING_NAME(list, name)                                                         \
	list_has_matching_name(list, sizeof(list) / sizeof((list)[0]), name)

void selection_copy_library_base_name(const char *path, char ret[64])
{
	const char *name = strrchr(path, '/'), *end;
	size_t length;

	name = name ? name + 1 : path;
	end = strstr(name, ".so");
	length = end ? (size_t)(end - name) : strlen(name);
	for (size_t i = 1; end && i + 1 < length; i++) {
		if (name[i] == '-' && isdigit((unsigned char)name[i + 1]))
			length = i;
	}
	snprintf(ret, 64, "%.*s", (int)(length < 63 ? length : 63), name);
}

bool selection_family_is_needed_by_kymo(const char *family)
{
	return LIST_HAS_MATCHING_NAME(names_of_libraries_kymo_needs, family);
}

bool selection_family_is_system_library(const char *family)
{
	return LIST_HAS_MATCHING_NAME(system_library_names, family);
}

static bool is_mangled_std_name(const char *mangled)
{
	static const char *const beginnings[] = {"_ZNSt",         "_ZNKSt",        "_ZSt",
						 "_ZNSa",         "_ZNSs",         "_ZNKSs",
						 "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx"};

	for (size_t i = 0; i < ARRAY_SIZE(beginnings); i++) {
		if (!strncmp(mangled, beginnings[i], strlen(beginnings[i])))
			return true;
	}
	return false;
}

bool selection_is_runtime_routine(const char *mangled)
{
	if (LIST_HAS_MATCHING_NAME(runtime_routine_names, mangled))
		return true;
	if (!is_mangled_std_name(mangled))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(std_internal_name_parts); i++) {
		if (strstr(mangled, std_internal_name_parts[i]))
			return true;
	}
	return false;
}

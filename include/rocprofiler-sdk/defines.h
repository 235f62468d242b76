/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Macros that the headers are written with, and that programs written for ROCprofiler-SDK use too.
 * Each can be defined before the first header is included.
 */
#ifndef ROCPROFILER_SDK_DEFINES_H
#define ROCPROFILER_SDK_DEFINES_H

#include <stddef.h>
#include <stdint.h>

/* The symbol version of functions that exist since the first release. */
#define ROCPROFILER_SDK_VERSION_0_0

#if !defined(ROCPROFILER_ATTRIBUTE)
#define ROCPROFILER_ATTRIBUTE(...) __attribute__((__VA_ARGS__))
#endif
#if !defined(ROCPROFILER_PUBLIC_API)
#define ROCPROFILER_PUBLIC_API ROCPROFILER_ATTRIBUTE(visibility("default"))
#endif
#if !defined(ROCPROFILER_HIDDEN_API)
#define ROCPROFILER_HIDDEN_API ROCPROFILER_ATTRIBUTE(visibility("hidden"))
#endif
#if !defined(ROCPROFILER_EXPORT_DECORATOR)
#define ROCPROFILER_EXPORT_DECORATOR ROCPROFILER_PUBLIC_API
#endif
#if !defined(ROCPROFILER_IMPORT_DECORATOR)
#define ROCPROFILER_IMPORT_DECORATOR
#endif
#define ROCPROFILER_EXPORT ROCPROFILER_EXPORT_DECORATOR
#define ROCPROFILER_IMPORT ROCPROFILER_IMPORT_DECORATOR

/* The library itself defines rocprofiler_EXPORTS. */
#if !defined(ROCPROFILER_API)
#if defined(rocprofiler_EXPORTS)
#define ROCPROFILER_API ROCPROFILER_EXPORT
#else
#define ROCPROFILER_API ROCPROFILER_IMPORT
#endif
#endif

/* Compilers warn callers about NULL. The library does not make the promise to itself: it checks,
 * and answers ROCPROFILER_STATUS_ERROR_INVALID_ARGUMENT. */
#if !defined(ROCPROFILER_NONNULL)
#if defined(rocprofiler_EXPORTS)
#define ROCPROFILER_NONNULL(...)
#else
#define ROCPROFILER_NONNULL(...) ROCPROFILER_ATTRIBUTE(nonnull(__VA_ARGS__))
#endif
#endif

#if defined(__cplusplus)
#define ROCPROFILER_EXTERN_C_INIT               extern "C" {
#define ROCPROFILER_EXTERN_C_FINI               }
#define ROCPROFILER_CXX_CODE(...)               __VA_ARGS__
#define ROCPROFILER_HANDLE_LITERAL(type, value) (type{value})
#define ROCPROFILER_UINT64_C(value)             uint64_t(value)
#else
#define ROCPROFILER_EXTERN_C_INIT
#define ROCPROFILER_EXTERN_C_FINI
#define ROCPROFILER_CXX_CODE(...)
#define ROCPROFILER_HANDLE_LITERAL(type, value) ((type){value})
#define ROCPROFILER_UINT64_C(value)             UINT64_C(value)
#endif

#if (defined(__cplusplus) && __cplusplus >= 201402L) ||                                            \
	(!defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 202311L)
#define ROCPROFILER_SDK_DEPRECATED_MESSAGE(...) [[deprecated(__VA_ARGS__)]]
#else
#define ROCPROFILER_SDK_DEPRECATED_MESSAGE(...) ROCPROFILER_ATTRIBUTE(deprecated)
#endif

/* 1: the compiler warns where a name of an earlier release, or something experimental, is used. */
#if !defined(ROCPROFILER_SDK_DEPRECATED_WARNINGS)
#define ROCPROFILER_SDK_DEPRECATED_WARNINGS 0
#endif
#if !defined(ROCPROFILER_SDK_EXPERIMENTAL_WARNINGS)
#define ROCPROFILER_SDK_EXPERIMENTAL_WARNINGS 0
#endif

#if ROCPROFILER_SDK_DEPRECATED_WARNINGS > 0
#define ROCPROFILER_SDK_DEPRECATED(...) ROCPROFILER_SDK_DEPRECATED_MESSAGE(__VA_ARGS__)
#else
#define ROCPROFILER_SDK_DEPRECATED(...)
#endif

#define ROCPROFILER_SDK_EXPERIMENTAL_MESSAGE                                                       \
	ROCPROFILER_SDK_DEPRECATED_MESSAGE(                                                        \
		"experimental (ROCPROFILER_SDK_EXPERIMENTAL_WARNINGS=0 turns the message off)")
#if ROCPROFILER_SDK_EXPERIMENTAL_WARNINGS > 0
#define ROCPROFILER_SDK_EXPERIMENTAL ROCPROFILER_SDK_EXPERIMENTAL_MESSAGE
#else
#define ROCPROFILER_SDK_EXPERIMENTAL
#endif

/* 1: names of releases before 1.0 are there too. */
#if !defined(ROCPROFILER_SDK_BETA_COMPAT)
#define ROCPROFILER_SDK_BETA_COMPAT 1
#endif
#if ROCPROFILER_SDK_BETA_COMPAT > 0
#define ROCPROFILER_SDK_BETA_COMPAT_SUPPORTED 1
#else
#define ROCPROFILER_SDK_BETA_COMPAT_SUPPORTED 0
#endif

/* One number for a version; no part may reach MAX_VERSION_VALUE. */
#define ROCPROFILER_SDK_COMPUTE_VERSION_VALUE(MAX_VERSION_VALUE, MAJOR, MINOR, PATCH)              \
	(((MAX_VERSION_VALUE) * (MAX_VERSION_VALUE) * (MAJOR)) + ((MAX_VERSION_VALUE) * (MINOR)) + \
	 (PATCH))
#define ROCPROFILER_SDK_COMPUTE_VERSION(MAJOR, MINOR, PATCH)                                       \
	ROCPROFILER_SDK_COMPUTE_VERSION_VALUE(100, MAJOR, MINOR, PATCH)

#endif

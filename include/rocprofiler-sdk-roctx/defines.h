/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Macros that the headers of roctx are written with.
 */
#ifndef ROCPROFILER_SDK_ROCTX_DEFINES_H
#define ROCPROFILER_SDK_ROCTX_DEFINES_H

#if !defined(ROCTX_ATTRIBUTE)
#define ROCTX_ATTRIBUTE(...) __attribute__((__VA_ARGS__))
#endif
#if !defined(ROCTX_PUBLIC_API)
#define ROCTX_PUBLIC_API ROCTX_ATTRIBUTE(visibility("default"))
#endif
#if !defined(ROCTX_HIDDEN_API)
#define ROCTX_HIDDEN_API ROCTX_ATTRIBUTE(visibility("hidden"))
#endif
#define ROCTX_EXPORT ROCTX_PUBLIC_API
#define ROCTX_IMPORT

/* The library itself defines roctx_EXPORTS. It checks for NULL. */
#if defined(roctx_EXPORTS)
#if !defined(ROCTX_API)
#define ROCTX_API ROCTX_EXPORT
#endif
#if !defined(ROCTX_NONNULL)
#define ROCTX_NONNULL(...)
#endif
#else
#if !defined(ROCTX_API)
#define ROCTX_API ROCTX_IMPORT
#endif
#if !defined(ROCTX_NONNULL)
#define ROCTX_NONNULL(...) ROCTX_ATTRIBUTE(nonnull(__VA_ARGS__))
#endif
#endif

#if defined(__cplusplus)
#define ROCTX_EXTERN_C_INIT extern "C" {
#define ROCTX_EXTERN_C_FINI }
#else
#define ROCTX_EXTERN_C_INIT
#define ROCTX_EXTERN_C_FINI
#endif

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Macros that the headers of rocpd are written with.
 */
#ifndef ROCPROFILER_SDK_ROCPD_DEFINES_H
#define ROCPROFILER_SDK_ROCPD_DEFINES_H

#if !defined(ROCPD_ATTRIBUTE)
#define ROCPD_ATTRIBUTE(...) __attribute__((__VA_ARGS__))
#endif
#if !defined(ROCPD_PUBLIC_API)
#define ROCPD_PUBLIC_API ROCPD_ATTRIBUTE(visibility("default"))
#endif
#if !defined(ROCPD_HIDDEN_API)
#define ROCPD_HIDDEN_API ROCPD_ATTRIBUTE(visibility("hidden"))
#endif
#define ROCPD_EXPORT ROCPD_PUBLIC_API
#define ROCPD_IMPORT

/* The library itself defines rocpd_EXPORTS. It checks for NULL. */
#if defined(rocpd_EXPORTS)
#if !defined(ROCPD_API)
#define ROCPD_API ROCPD_EXPORT
#endif
#if !defined(ROCPD_NONNULL)
#define ROCPD_NONNULL(...)
#endif
#else
#if !defined(ROCPD_API)
#define ROCPD_API ROCPD_IMPORT
#endif
#if !defined(ROCPD_NONNULL)
#define ROCPD_NONNULL(...) ROCPD_ATTRIBUTE(nonnull(__VA_ARGS__))
#endif
#endif

#if !defined(ROCPD_EXPERIMENTAL)
#define ROCPD_EXPERIMENTAL
#endif

#if defined(__cplusplus)
#define ROCPD_EXTERN_C_INIT extern "C" {
#define ROCPD_EXTERN_C_FINI }
#else
#define ROCPD_EXTERN_C_INIT
#define ROCPD_EXTERN_C_FINI
#endif

#endif

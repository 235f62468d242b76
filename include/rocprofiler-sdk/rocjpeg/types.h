/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The types of rocJPEG's functions: from its own header where it is installed, otherwise words of
 * the same size.
 */
#ifndef ROCPROFILER_SDK_ROCJPEG_TYPES_H
#define ROCPROFILER_SDK_ROCJPEG_TYPES_H

#include <rocprofiler-sdk/defines.h>

#if !defined(ROCPROFILER_SDK_NO_ROCM_HEADERS) && defined(__has_include)
#if __has_include(<rocjpeg/rocjpeg.h>)
#define ROCPROFILER_SDK_HAS_ROCJPEG_TYPES 1
#endif
#endif

#if defined(ROCPROFILER_SDK_HAS_ROCJPEG_TYPES)
#include <rocjpeg/rocjpeg.h>
#else

typedef int RocJpegStatus;
typedef int RocJpegBackend;
typedef int RocJpegChromaSubsampling;
typedef void *RocJpegHandle;
typedef void *RocJpegStreamHandle;
typedef struct RocJpegDecodeParams_st RocJpegDecodeParams;
typedef struct RocJpegImage_st RocJpegImage;

#endif

#endif

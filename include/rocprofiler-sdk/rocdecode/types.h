/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The types of rocDecode's functions: from its own headers where they are installed, otherwise
 * words of the same size.
 */
#ifndef ROCPROFILER_SDK_ROCDECODE_TYPES_H
#define ROCPROFILER_SDK_ROCDECODE_TYPES_H

#include <rocprofiler-sdk/defines.h>

#if !defined(ROCPROFILER_SDK_NO_ROCM_HEADERS) && defined(__has_include)
#if __has_include(<rocdecode/rocdecode.h>)
#define ROCPROFILER_SDK_HAS_ROCDECODE_TYPES 1
#endif
#endif

#if defined(ROCPROFILER_SDK_HAS_ROCDECODE_TYPES)
#include <rocdecode/amd_detail/rocdecode_api_trace.h>
#include <rocdecode/rocdecode.h>
#include <rocdecode/rocparser.h>
#else

#define ROCDECODE_RUNTIME_API_TABLE_STEP_VERSION 1

typedef int rocDecStatus;
typedef int rocDecVideoCodec;
typedef void *RocdecVideoParser;
typedef void *RocdecBitstreamReader;
typedef void *rocDecDecoderHandle;
typedef struct _RocdecParserParams RocdecParserParams;
typedef struct _RocdecSourceDataPacket RocdecSourceDataPacket;
typedef struct _RocDecoderCreateInfo RocDecoderCreateInfo;
typedef struct _RocdecDecodeCaps RocdecDecodeCaps;
typedef struct _RocdecPicParams RocdecPicParams;
typedef struct _RocdecDecodeStatus RocdecDecodeStatus;
typedef struct _RocdecReconfigureDecoderInfo RocdecReconfigureDecoderInfo;
typedef struct _RocdecProcParams RocdecProcParams;

#endif

#endif

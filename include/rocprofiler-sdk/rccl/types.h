/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The types of RCCL's functions, which are NCCL's too: from the header of either where it is
 * installed and asked for, otherwise the same.
 */
#ifndef ROCPROFILER_SDK_RCCL_TYPES_H
#define ROCPROFILER_SDK_RCCL_TYPES_H

#include <rocprofiler-sdk/defines.h>
#include <rocprofiler-sdk/hip/types.h>

#if !defined(ROCPROFILER_SDK_USE_SYSTEM_RCCL)
#if !defined(ROCPROFILER_SDK_NO_ROCM_HEADERS) && defined(ROCPROFILER_SDK_HAS_HIP_TYPES)
#if __has_include(<rccl/rccl.h>)
#define ROCPROFILER_SDK_USE_SYSTEM_RCCL 1
#endif
#endif
#endif
#if !defined(ROCPROFILER_SDK_USE_SYSTEM_RCCL)
#define ROCPROFILER_SDK_USE_SYSTEM_RCCL 0
#endif

#if ROCPROFILER_SDK_USE_SYSTEM_RCCL > 0
#include <rccl/rccl.h>
#elif !defined(NCCL_H_)

typedef struct ncclComm *ncclComm_t;
typedef struct ncclConfig_v21700 ncclConfig_t;
typedef struct {
	char internal[128];
} ncclUniqueId;
typedef enum {
	ncclSuccess = 0,
	ncclUnhandledCudaError = 1,
	ncclSystemError = 2,
	ncclInternalError = 3,
	ncclInvalidArgument = 4,
	ncclInvalidUsage = 5,
	ncclRemoteError = 6,
	ncclInProgress = 7
} ncclResult_t;
typedef enum {
	ncclInt8 = 0,
	ncclUint8 = 1,
	ncclInt32 = 2,
	ncclUint32 = 3,
	ncclInt64 = 4,
	ncclUint64 = 5,
	ncclFloat16 = 6,
	ncclFloat32 = 7,
	ncclFloat64 = 8,
	ncclBfloat16 = 9
} ncclDataType_t;
typedef enum { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3, ncclAvg = 4 } ncclRedOp_t;
typedef enum { ncclScalarDevice = 0, ncclScalarHostImmediate = 1 } ncclScalarResidence_t;

#endif

#if ROCPROFILER_SDK_USE_SYSTEM_RCCL == 0
typedef int mscclAlgoHandle_t;
#endif

#endif

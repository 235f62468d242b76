/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The types of HIP's functions: from HIP's own headers where the program is compiled for them
 * (__HIP_PLATFORM_AMD__), otherwise words of the same size and the same names, so that arguments
 * can be read without ROCm. What only pointers lead to is opaque then.
 */
#ifndef ROCPROFILER_SDK_HIP_TYPES_H
#define ROCPROFILER_SDK_HIP_TYPES_H

#include <rocprofiler-sdk/defines.h>

#if !defined(ROCPROFILER_SDK_NO_ROCM_HEADERS) && defined(__HIP_PLATFORM_AMD__) &&                  \
	defined(__has_include)
#if __has_include(<hip/amd_detail/hip_api_trace.hpp>)
#define ROCPROFILER_SDK_HAS_HIP_TYPES 1
#endif
#endif

#if defined(ROCPROFILER_SDK_HAS_HIP_TYPES)

#include <hip/hip_runtime.h>
#include <hip/hip_runtime_api.h>
#include <hip/hip_version.h>
/* After it. */
#include <hip/hip_deprecated.h>
/* After them. */
#include <hip/amd_detail/amd_hip_gl_interop.h>
#include <hip/amd_detail/hip_api_trace.hpp>

#else

/* Upstream's headers bring these along, by way of HIP's, and there are tools that rely on it. */
#include <assert.h>
#include <string.h>
#if defined(__cplusplus)
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_set>
#endif

#define HIP_RUNTIME_API_TABLE_STEP_VERSION 12

typedef enum hipError_t { hipSuccess = 0 } hipError_t;
typedef enum hipMemcpyKind {
	hipMemcpyHostToHost = 0,
	hipMemcpyHostToDevice = 1,
	hipMemcpyDeviceToHost = 2,
	hipMemcpyDeviceToDevice = 3,
	hipMemcpyDefault = 4
} hipMemcpyKind;
enum hipLimit_t { hipLimitStackSize = 0 };
enum hipTextureAddressMode { hipAddressModeWrap = 0 };
enum hipTextureFilterMode { hipFilterModePoint = 0 };
typedef enum hipChannelFormatKind { hipChannelFormatKindSigned = 0 } hipChannelFormatKind;

typedef int hipArray_Format;
typedef int hipDeviceAttribute_t;
typedef int hipDeviceP2PAttr;
typedef int hipFuncAttribute;
typedef int hipFuncCache_t;
typedef int hipFunction_attribute;
typedef int hipGLDeviceList;
typedef int hipGraphExecUpdateResult;
typedef int hipGraphMemAttributeType;
typedef int hipGraphNodeType;
typedef int hipDriverProcAddressQueryResult;
typedef int hipJitInputType;
typedef int hipJitOption;
typedef int hipKernelNodeAttrID;
typedef int hipMemAccessFlags;
typedef int hipMemAllocationGranularity_flags;
typedef int hipMemAllocationHandleType;
typedef int hipMemPoolAttr;
typedef int hipMemRangeAttribute;
typedef int hipMemRangeHandleType;
typedef int hipMemoryAdvise;
typedef int hipPointer_attribute;
typedef int hipSharedMemConfig;
typedef int hipStreamCaptureMode;
typedef int hipStreamCaptureStatus;
typedef int hipDevice_t;
typedef unsigned int GLenum;
typedef unsigned int GLuint;

typedef struct hipArray *hipArray_t;
typedef const struct hipArray *hipArray_const_t;
typedef struct ihipCtx_t *hipCtx_t;
typedef void *hipDeviceptr_t;
typedef struct ihipEvent_t *hipEvent_t;
typedef void *hipExternalMemory_t;
typedef void *hipExternalSemaphore_t;
typedef struct ihipModuleSymbol_t *hipFunction_t;
typedef struct hipGraphExec *hipGraphExec_t;
typedef struct hipGraphNode *hipGraphNode_t;
typedef struct ihipGraph *hipGraph_t;
typedef struct _hipGraphicsResource hipGraphicsResource;
typedef hipGraphicsResource *hipGraphicsResource_t;
typedef struct ihipLinkState_t *hipLinkState_t;
typedef struct ihipMemGenericAllocationHandle *hipMemGenericAllocationHandle_t;
typedef struct ihipMemPoolHandle_t *hipMemPool_t;
typedef struct hipMipmappedArray *hipMipmappedArray_t;
typedef const struct hipMipmappedArray *hipMipmappedArray_const_t;
typedef struct ihipModule_t *hipModule_t;
typedef struct ihipStream_t *hipStream_t;
typedef struct __hip_surface *hipSurfaceObject_t;
typedef struct __hip_texture *hipTextureObject_t;
typedef struct hipUserObject *hipUserObject_t;
typedef void (*hipHostFn_t)(void *user_data);
typedef void (*hipStreamCallback_t)(hipStream_t stream, hipError_t status, void *user_data);

typedef struct hipExtent {
	size_t width;
	size_t height;
	size_t depth;
} hipExtent;
typedef struct hipPitchedPtr {
	void *ptr;
	size_t pitch;
	size_t xsize;
	size_t ysize;
} hipPitchedPtr;
typedef struct hipIpcMemHandle_st {
	char reserved[64];
} hipIpcMemHandle_t;
typedef struct hipIpcEventHandle_st {
	char reserved[64];
} hipIpcEventHandle_t;
typedef struct hipChannelFormatDesc {
	int x;
	int y;
	int z;
	int w;
	enum hipChannelFormatKind f;
} hipChannelFormatDesc;

typedef struct dim3 dim3;
typedef struct uint3 uint3;
typedef struct textureReference textureReference;
typedef struct HIP_ARRAY3D_DESCRIPTOR HIP_ARRAY3D_DESCRIPTOR;
typedef struct HIP_ARRAY_DESCRIPTOR HIP_ARRAY_DESCRIPTOR;
typedef struct HIP_LAUNCH_CONFIG_st HIP_LAUNCH_CONFIG;
typedef struct HIP_MEMCPY3D HIP_MEMCPY3D;
typedef struct HIP_MEMSET_NODE_PARAMS HIP_MEMSET_NODE_PARAMS;
typedef struct HIP_RESOURCE_DESC_st HIP_RESOURCE_DESC;
typedef struct HIP_RESOURCE_VIEW_DESC_st HIP_RESOURCE_VIEW_DESC;
typedef struct HIP_TEXTURE_DESC_st HIP_TEXTURE_DESC;
typedef struct hipArrayMapInfo hipArrayMapInfo;
typedef union hipStreamBatchMemOpParams_union hipStreamBatchMemOpParams;
typedef struct hipBatchMemOpNodeParams hipBatchMemOpNodeParams;
typedef struct hipDeviceProp_tR0000 hipDeviceProp_tR0000;
typedef struct hipDeviceProp_tR0600 hipDeviceProp_tR0600;
typedef struct hipExternalMemoryBufferDesc_st hipExternalMemoryBufferDesc;
typedef struct hipExternalMemoryHandleDesc_st hipExternalMemoryHandleDesc;
typedef struct hipExternalMemoryMipmappedArrayDesc_st hipExternalMemoryMipmappedArrayDesc;
typedef struct hipExternalSemaphoreHandleDesc_st hipExternalSemaphoreHandleDesc;
typedef struct hipExternalSemaphoreSignalNodeParams hipExternalSemaphoreSignalNodeParams;
typedef struct hipExternalSemaphoreSignalParams_st hipExternalSemaphoreSignalParams;
typedef struct hipExternalSemaphoreWaitNodeParams hipExternalSemaphoreWaitNodeParams;
typedef struct hipExternalSemaphoreWaitParams_st hipExternalSemaphoreWaitParams;
typedef struct hipFunctionLaunchParams_t hipFunctionLaunchParams;
typedef struct hipGraphEdgeData hipGraphEdgeData;
typedef struct hipGraphInstantiateParams hipGraphInstantiateParams;
typedef struct hipGraphNodeParams hipGraphNodeParams;
typedef struct hipHostNodeParams hipHostNodeParams;
typedef union hipKernelNodeAttrValue hipKernelNodeAttrValue;
typedef struct hipKernelNodeParams hipKernelNodeParams;
typedef struct hipLaunchConfig_st hipLaunchConfig_t;
typedef struct hipLaunchParams_t hipLaunchParams;
typedef struct hipMemAccessDesc hipMemAccessDesc;
typedef struct hipMemAllocNodeParams hipMemAllocNodeParams;
typedef struct hipMemAllocationProp hipMemAllocationProp;
typedef struct hipMemLocation hipMemLocation;
typedef struct hipMemPoolProps hipMemPoolProps;
typedef struct hipMemPoolPtrExportData hipMemPoolPtrExportData;
typedef struct hipMemcpy3DParms hipMemcpy3DParms;
typedef struct hipMemsetParams hipMemsetParams;
typedef struct hipPointerAttribute_t hipPointerAttribute_t;
typedef struct hipResourceDesc hipResourceDesc;
typedef struct hipTextureDesc hipTextureDesc;
typedef struct hipUUID_t hipUUID;
typedef struct hip_Memcpy2D hip_Memcpy2D;
struct hipFuncAttributes;
struct hipResourceViewDesc;

#endif

#endif

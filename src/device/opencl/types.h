/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What of OpenCL's headers is needed: scalar types and handles as they cross the ABI, and the
 * numbers that are asked for. kymo builds without OpenCL's headers; tests/unit/device compares with
 * them.
 */
#ifndef KYMO_DEVICE_OPENCL_TYPES_H
#define KYMO_DEVICE_OPENCL_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef uint64_t cl_ulong;
typedef cl_uint cl_bool;
typedef cl_ulong cl_bitfield;
typedef cl_bitfield cl_device_type, cl_command_queue_properties, cl_mem_flags, cl_svm_mem_flags,
	cl_map_flags, cl_mem_migration_flags;
typedef cl_uint cl_platform_info, cl_device_info, cl_context_info, cl_command_queue_info,
	cl_mem_info, cl_image_info, cl_pipe_info, cl_sampler_info, cl_program_info,
	cl_program_build_info, cl_kernel_info, cl_kernel_arg_info, cl_kernel_exec_info,
	cl_kernel_work_group_info, cl_kernel_sub_group_info, cl_event_info, cl_profiling_info,
	cl_addressing_mode, cl_filter_mode, cl_mem_object_type, cl_buffer_create_type,
	cl_gl_object_type, cl_gl_texture_info, cl_gl_context_info;
typedef intptr_t cl_context_properties, cl_device_partition_property, cl_pipe_properties,
	cl_egl_image_properties_khr;
typedef cl_ulong cl_device_partition_property_ext, cl_queue_properties, cl_mem_properties,
	cl_sampler_properties;
typedef unsigned cl_GLuint, cl_GLenum;
typedef int cl_GLint;
typedef void *cl_platform_id, *cl_device_id, *cl_context, *cl_command_queue, *cl_mem, *cl_program,
	*cl_kernel, *cl_event, *cl_sampler, *cl_GLsync, *CLeglDisplayKHR, *CLeglImageKHR,
	*CLeglSyncKHR;
typedef void cl_image_format, cl_image_desc;
/* Functions that the program gives; kymo only passes them on, but for its own. */
typedef void (*cl_callback)(void);

#define CL_SUCCESS           0
#define CL_INVALID_VALUE     (-30)
#define CL_INVALID_OPERATION (-59)
#define CL_COMPLETE          0

#define CL_DEVICE_TYPE_CPU 2u
#define CL_DEVICE_TYPE_ALL 0xffffffffu

#define CL_DEVICE_TYPE                0x1000
#define CL_DEVICE_VENDOR_ID           0x1001
#define CL_DEVICE_MAX_COMPUTE_UNITS   0x1002
#define CL_DEVICE_MAX_WORK_GROUP_SIZE 0x1004
#define CL_DEVICE_MAX_WORK_ITEM_SIZES 0x1005
#define CL_DEVICE_MAX_CLOCK_FREQUENCY 0x100c
#define CL_DEVICE_GLOBAL_MEM_SIZE     0x101f
#define CL_DEVICE_LOCAL_MEM_SIZE      0x1023
#define CL_DEVICE_NAME                0x102b
#define CL_DEVICE_VENDOR              0x102c
#define CL_DEVICE_VERSION             0x102f
#define CL_DEVICE_PLATFORM            0x1031
#define CL_DEVICE_UUID_KHR            0x106a
#define CL_DEVICE_PCI_BUS_INFO_KHR    0x410f
#define CL_CONTEXT_DEVICES            0x1081
#define CL_QUEUE_DEVICE               0x1091
#define CL_QUEUE_REFERENCE_COUNT      0x1092
#define CL_QUEUE_PROPERTIES           0x1093
#define CL_MEM_SIZE                   0x1102
#define CL_MEM_REFERENCE_COUNT        0x1105
#define CL_MEM_CONTEXT                0x1106
#define CL_MEM_ASSOCIATED_MEMOBJECT   0x1107
#define CL_IMAGE_ELEMENT_SIZE         0x1111
#define CL_PROGRAM_REFERENCE_COUNT    0x1160
#define CL_PROGRAM_NUM_DEVICES        0x1162
#define CL_PROGRAM_DEVICES            0x1163
#define CL_KERNEL_FUNCTION_NAME       0x1190
#define CL_KERNEL_PROGRAM             0x1194
#define CL_KERNEL_LOCAL_MEM_SIZE      0x11b2
#define CL_KERNEL_PREFERRED_MULTIPLE  0x11b3
#define CL_KERNEL_PRIVATE_MEM_SIZE    0x11b4
#define CL_EVENT_COMMAND_QUEUE        0x11d0
#define CL_EVENT_COMMAND_TYPE         0x11d1
#define CL_EVENT_EXECUTION_STATUS     0x11d3
#define CL_COMMAND_USER               0x1204
#define CL_PROFILING_QUEUED           0x1280
#define CL_PROFILING_START            0x1282
#define CL_PROFILING_END              0x1283

#define CL_QUEUE_PROFILING_ENABLE (1u << 1)
#define CL_QUEUE_ON_DEVICE        (1u << 2)

#define CL_LAYER_API_VERSION     0x4240
#define CL_LAYER_NAME            0x4241
#define CL_LAYER_API_VERSION_100 100

#endif

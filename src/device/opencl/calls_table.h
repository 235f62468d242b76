/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The functions of OpenCL in the order of the dispatch tables of its loaders (Khronos' cl_icd.h),
 * for X macros: OPENCL_CALL_ROW are led through as they are, OPENCL_HOOKED_CALL_ROW have a function
 * hooked_* here that knows what they mean, VOID_* return nothing, OPENCL_ABSENT_ROW are other
 * systems' and stay as they were. Columns: place in the table, type of result, name, parameters,
 * arguments, addresses of arguments.
 */
/* clang-format off */
OPENCL_CALL_ROW(0, cl_int, clGetPlatformIDs,
     (cl_uint num_entries, cl_platform_id *platforms, cl_uint *num_platforms),
     (num_entries, platforms, num_platforms),
     (&num_entries, &platforms, &num_platforms))
OPENCL_CALL_ROW(1, cl_int, clGetPlatformInfo,
     (cl_platform_id platform, cl_platform_info param_name, size_t param_value_size,
     void *param_value, size_t *param_value_size_ret),
     (platform, param_name, param_value_size, param_value, param_value_size_ret),
     (&platform, &param_name, &param_value_size, &param_value, &param_value_size_ret))
OPENCL_CALL_ROW(2, cl_int, clGetDeviceIDs,
     (cl_platform_id platform, cl_device_type device_type, cl_uint num_entries,
     cl_device_id *devices, cl_uint *num_devices),
     (platform, device_type, num_entries, devices, num_devices),
     (&platform, &device_type, &num_entries, &devices, &num_devices))
OPENCL_CALL_ROW(3, cl_int, clGetDeviceInfo,
     (cl_device_id device, cl_device_info param_name, size_t param_value_size, void *param_value,
     size_t *param_value_size_ret),
     (device, param_name, param_value_size, param_value, param_value_size_ret),
     (&device, &param_name, &param_value_size, &param_value, &param_value_size_ret))
OPENCL_CALL_ROW(4, cl_context, clCreateContext,
     (const cl_context_properties *properties, cl_uint num_devices, const cl_device_id *devices,
     cl_callback pfn_notify, void *user_data, cl_int *errcode_ret),
     (properties, num_devices, devices, pfn_notify, user_data, errcode_ret),
     (&properties, &num_devices, &devices, &pfn_notify, &user_data, &errcode_ret))
OPENCL_CALL_ROW(5, cl_context, clCreateContextFromType,
     (const cl_context_properties *properties, cl_device_type device_type,
     cl_callback pfn_notify, void *user_data, cl_int *errcode_ret),
     (properties, device_type, pfn_notify, user_data, errcode_ret),
     (&properties, &device_type, &pfn_notify, &user_data, &errcode_ret))
OPENCL_CALL_ROW(6, cl_int, clRetainContext,
     (cl_context context),
     (context),
     (&context))
OPENCL_CALL_ROW(7, cl_int, clReleaseContext,
     (cl_context context),
     (context),
     (&context))
OPENCL_CALL_ROW(8, cl_int, clGetContextInfo,
     (cl_context context, cl_context_info param_name, size_t param_value_size, void *param_value,
     size_t *param_value_size_ret),
     (context, param_name, param_value_size, param_value, param_value_size_ret),
     (&context, &param_name, &param_value_size, &param_value, &param_value_size_ret))
OPENCL_HOOKED_CALL_ROW(9, cl_command_queue, clCreateCommandQueue,
     (cl_context context, cl_device_id device, cl_command_queue_properties properties,
     cl_int *errcode_ret),
     (context, device, properties, errcode_ret),
     (&context, &device, &properties, &errcode_ret))
OPENCL_CALL_ROW(10, cl_int, clRetainCommandQueue,
     (cl_command_queue command_queue),
     (command_queue),
     (&command_queue))
OPENCL_HOOKED_CALL_ROW(11, cl_int, clReleaseCommandQueue,
     (cl_command_queue command_queue),
     (command_queue),
     (&command_queue))
OPENCL_HOOKED_CALL_ROW(12, cl_int, clGetCommandQueueInfo,
     (cl_command_queue command_queue, cl_command_queue_info param_name, size_t param_value_size,
     void *param_value, size_t *param_value_size_ret),
     (command_queue, param_name, param_value_size, param_value, param_value_size_ret),
     (&command_queue, &param_name, &param_value_size, &param_value, &param_value_size_ret))
OPENCL_CALL_ROW(13, cl_int, clSetCommandQueueProperty,
     (cl_command_queue command_queue, cl_command_queue_properties properties, cl_bool enable,
     cl_command_queue_properties *old_properties),
     (command_queue, properties, enable, old_properties),
     (&command_queue, &properties, &enable, &old_properties))
OPENCL_HOOKED_CALL_ROW(14, cl_mem, clCreateBuffer,
     (cl_context context, cl_mem_flags flags, size_t size, void *host_ptr, cl_int *errcode_ret),
     (context, flags, size, host_ptr, errcode_ret),
     (&context, &flags, &size, &host_ptr, &errcode_ret))
OPENCL_HOOKED_CALL_ROW(15, cl_mem, clCreateImage2D,
     (cl_context context, cl_mem_flags flags, const cl_image_format *image_format,
     size_t image_width, size_t image_height, size_t image_row_pitch, void *host_ptr,
     cl_int *errcode_ret),
     (context, flags, image_format, image_width, image_height, image_row_pitch, host_ptr,
     errcode_ret),
     (&context, &flags, &image_format, &image_width, &image_height, &image_row_pitch, &host_ptr,
     &errcode_ret))
OPENCL_HOOKED_CALL_ROW(16, cl_mem, clCreateImage3D,
     (cl_context context, cl_mem_flags flags, const cl_image_format *image_format,
     size_t image_width, size_t image_height, size_t image_depth, size_t image_row_pitch,
     size_t image_slice_pitch, void *host_ptr, cl_int *errcode_ret),
     (context, flags, image_format, image_width, image_height, image_depth, image_row_pitch,
     image_slice_pitch, host_ptr, errcode_ret),
     (&context, &flags, &image_format, &image_width, &image_height, &image_depth,
     &image_row_pitch, &image_slice_pitch, &host_ptr, &errcode_ret))
OPENCL_CALL_ROW(17, cl_int, clRetainMemObject,
     (cl_mem memobj),
     (memobj),
     (&memobj))
OPENCL_HOOKED_CALL_ROW(18, cl_int, clReleaseMemObject,
     (cl_mem memobj),
     (memobj),
     (&memobj))
OPENCL_CALL_ROW(19, cl_int, clGetSupportedImageFormats,
     (cl_context context, cl_mem_flags flags, cl_mem_object_type image_type, cl_uint num_entries,
     cl_image_format *image_formats, cl_uint *num_image_formats),
     (context, flags, image_type, num_entries, image_formats, num_image_formats),
     (&context, &flags, &image_type, &num_entries, &image_formats, &num_image_formats))
OPENCL_CALL_ROW(20, cl_int, clGetMemObjectInfo,
     (cl_mem memobj, cl_mem_info param_name, size_t param_value_size, void *param_value,
     size_t *param_value_size_ret),
     (memobj, param_name, param_value_size, param_value, param_value_size_ret),
     (&memobj, &param_name, &param_value_size, &param_value, &param_value_size_ret))
OPENCL_CALL_ROW(21, cl_int, clGetImageInfo,
     (cl_mem image, cl_image_info param_name, size_t param_value_size, void *param_value,
     size_t *param_value_size_ret),
     (image, param_name, param_value_size, param_value, param_value_size_ret),
     (&image, &param_name, &param_value_size, &param_value, &param_value_size_ret))
OPENCL_CALL_ROW(22, cl_sampler, clCreateSampler,
     (cl_context context, cl_bool normalized_coords, cl_addressing_mode addressing_mode,
     cl_filter_mode filter_mode, cl_int *errcode_ret),
     (context, normalized_coords, addressing_mode, filter_mode, errcode_ret),
     (&context, &normalized_coords, &addressing_mode, &filter_mode, &errcode_ret))
OPENCL_CALL_ROW(23, cl_int, clRetainSampler,
     (cl_sampler sampler),
     (sampler),
     (&sampler))
OPENCL_CALL_ROW(24, cl_int, clReleaseSampler,
     (cl_sampler sampler),
     (sampler),
     (&sampler))
OPENCL_CALL_ROW(25, cl_int, clGetSamplerInfo,
     (cl_sampler sampler, cl_sampler_info param_name, size_t param_value_size, void *param_value,
     size_t *param_value_size_ret),
     (sampler, param_name, param_value_size, param_value, param_value_size_ret),
     (&sampler, &param_name, &param_value_size, &param_value, &param_value_size_ret))
OPENCL_CALL_ROW(26, cl_program, clCreateProgramWithSource,
     (cl_context context, cl_uint count, const char **strings, const size_t *lengths,
     cl_int *errcode_ret),
     (context, count, strings, lengths, errcode_ret),
     (&context, &count, &strings, &lengths, &errcode_ret))
OPENCL_CALL_ROW(27, cl_program, clCreateProgramWithBinary,
     (cl_context context, cl_uint num_devices, const cl_device_id *device_list,
     const size_t *lengths, const unsigned char **binaries, cl_int *binary_status,
     cl_int *errcode_ret),
     (context, num_devices, device_list, lengths, binaries, binary_status, errcode_ret),
     (&context, &num_devices, &device_list, &lengths, &binaries, &binary_status, &errcode_ret))
OPENCL_CALL_ROW(28, cl_int, clRetainProgram,
     (cl_program program),
     (program),
     (&program))
OPENCL_HOOKED_CALL_ROW(29, cl_int, clReleaseProgram,
     (cl_program program),
     (program),
     (&program))
OPENCL_CALL_ROW(30, cl_int, clBuildProgram,
     (cl_program program, cl_uint num_devices, const cl_device_id *device_list,
     const char *options, cl_callback pfn_notify, void *user_data),
     (program, num_devices, device_list, options, pfn_notify, user_data),
     (&program, &num_devices, &device_list, &options, &pfn_notify, &user_data))
OPENCL_CALL_ROW(31, cl_int, clUnloadCompiler,
     (void),
     (),
     (NULL))
OPENCL_CALL_ROW(32, cl_int, clGetProgramInfo,
     (cl_program program, cl_program_info param_name, size_t param_value_size, void *param_value,
     size_t *param_value_size_ret),
     (program, param_name, param_value_size, param_value, param_value_size_ret),
     (&program, &param_name, &param_value_size, &param_value, &param_value_size_ret))
OPENCL_CALL_ROW(33, cl_int, clGetProgramBuildInfo,
     (cl_program program, cl_device_id device, cl_program_build_info param_name,
     size_t param_value_size, void *param_value, size_t *param_value_size_ret),
     (program, device, param_name, param_value_size, param_value, param_value_size_ret),
     (&program, &device, &param_name, &param_value_size, &param_value, &param_value_size_ret))
OPENCL_HOOKED_CALL_ROW(34, cl_kernel, clCreateKernel,
     (cl_program program, const char *kernel_name, cl_int *errcode_ret),
     (program, kernel_name, errcode_ret),
     (&program, &kernel_name, &errcode_ret))
OPENCL_HOOKED_CALL_ROW(35, cl_int, clCreateKernelsInProgram,
     (cl_program program, cl_uint num_kernels, cl_kernel *kernels, cl_uint *num_kernels_ret),
     (program, num_kernels, kernels, num_kernels_ret),
     (&program, &num_kernels, &kernels, &num_kernels_ret))
OPENCL_CALL_ROW(36, cl_int, clRetainKernel,
     (cl_kernel kernel),
     (kernel),
     (&kernel))
OPENCL_CALL_ROW(37, cl_int, clReleaseKernel,
     (cl_kernel kernel),
     (kernel),
     (&kernel))
OPENCL_CALL_ROW(38, cl_int, clSetKernelArg,
     (cl_kernel kernel, cl_uint arg_index, size_t arg_size, const void *arg_value),
     (kernel, arg_index, arg_size, arg_value),
     (&kernel, &arg_index, &arg_size, &arg_value))
OPENCL_CALL_ROW(39, cl_int, clGetKernelInfo,
     (cl_kernel kernel, cl_kernel_info param_name, size_t param_value_size, void *param_value,
     size_t *param_value_size_ret),
     (kernel, param_name, param_value_size, param_value, param_value_size_ret),
     (&kernel, &param_name, &param_value_size, &param_value, &param_value_size_ret))
OPENCL_CALL_ROW(40, cl_int, clGetKernelWorkGroupInfo,
     (cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info param_name,
     size_t param_value_size, void *param_value, size_t *param_value_size_ret),
     (kernel, device, param_name, param_value_size, param_value, param_value_size_ret),
     (&kernel, &device, &param_name, &param_value_size, &param_value, &param_value_size_ret))
OPENCL_CALL_ROW(41, cl_int, clWaitForEvents,
     (cl_uint num_events, const cl_event *event_list),
     (num_events, event_list),
     (&num_events, &event_list))
OPENCL_CALL_ROW(42, cl_int, clGetEventInfo,
     (cl_event event, cl_event_info param_name, size_t param_value_size, void *param_value,
     size_t *param_value_size_ret),
     (event, param_name, param_value_size, param_value, param_value_size_ret),
     (&event, &param_name, &param_value_size, &param_value, &param_value_size_ret))
OPENCL_CALL_ROW(43, cl_int, clRetainEvent,
     (cl_event event),
     (event),
     (&event))
OPENCL_CALL_ROW(44, cl_int, clReleaseEvent,
     (cl_event event),
     (event),
     (&event))
OPENCL_CALL_ROW(45, cl_int, clGetEventProfilingInfo,
     (cl_event event, cl_profiling_info param_name, size_t param_value_size, void *param_value,
     size_t *param_value_size_ret),
     (event, param_name, param_value_size, param_value, param_value_size_ret),
     (&event, &param_name, &param_value_size, &param_value, &param_value_size_ret))
OPENCL_CALL_ROW(46, cl_int, clFlush,
     (cl_command_queue command_queue),
     (command_queue),
     (&command_queue))
OPENCL_CALL_ROW(47, cl_int, clFinish,
     (cl_command_queue command_queue),
     (command_queue),
     (&command_queue))
OPENCL_HOOKED_CALL_ROW(48, cl_int, clEnqueueReadBuffer,
     (cl_command_queue command_queue, cl_mem buffer, cl_bool blocking_read, size_t offset,
     size_t cb, void *ptr, cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
     cl_event *event),
     (command_queue, buffer, blocking_read, offset, cb, ptr, num_events_in_wait_list,
     event_wait_list, event),
     (&command_queue, &buffer, &blocking_read, &offset, &cb, &ptr, &num_events_in_wait_list,
     &event_wait_list, &event))
OPENCL_HOOKED_CALL_ROW(49, cl_int, clEnqueueWriteBuffer,
     (cl_command_queue command_queue, cl_mem buffer, cl_bool blocking_write, size_t offset,
     size_t cb, const void *ptr, cl_uint num_events_in_wait_list,
     const cl_event *event_wait_list, cl_event *event),
     (command_queue, buffer, blocking_write, offset, cb, ptr, num_events_in_wait_list,
     event_wait_list, event),
     (&command_queue, &buffer, &blocking_write, &offset, &cb, &ptr, &num_events_in_wait_list,
     &event_wait_list, &event))
OPENCL_HOOKED_CALL_ROW(50, cl_int, clEnqueueCopyBuffer,
     (cl_command_queue command_queue, cl_mem src_buffer, cl_mem dst_buffer, size_t src_offset,
     size_t dst_offset, size_t cb, cl_uint num_events_in_wait_list,
     const cl_event *event_wait_list, cl_event *event),
     (command_queue, src_buffer, dst_buffer, src_offset, dst_offset, cb, num_events_in_wait_list,
     event_wait_list, event),
     (&command_queue, &src_buffer, &dst_buffer, &src_offset, &dst_offset, &cb,
     &num_events_in_wait_list, &event_wait_list, &event))
OPENCL_HOOKED_CALL_ROW(51, cl_int, clEnqueueReadImage,
     (cl_command_queue command_queue, cl_mem image, cl_bool blocking_read, const size_t *origin,
     const size_t *region, size_t row_pitch, size_t slice_pitch, void *ptr,
     cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event),
     (command_queue, image, blocking_read, origin, region, row_pitch, slice_pitch, ptr,
     num_events_in_wait_list, event_wait_list, event),
     (&command_queue, &image, &blocking_read, &origin, &region, &row_pitch, &slice_pitch, &ptr,
     &num_events_in_wait_list, &event_wait_list, &event))
OPENCL_HOOKED_CALL_ROW(52, cl_int, clEnqueueWriteImage,
     (cl_command_queue command_queue, cl_mem image, cl_bool blocking_write, const size_t *origin,
     const size_t *region, size_t input_row_pitch, size_t input_slice_pitch, const void *ptr,
     cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event),
     (command_queue, image, blocking_write, origin, region, input_row_pitch, input_slice_pitch,
     ptr, num_events_in_wait_list, event_wait_list, event),
     (&command_queue, &image, &blocking_write, &origin, &region, &input_row_pitch,
     &input_slice_pitch, &ptr, &num_events_in_wait_list, &event_wait_list, &event))
OPENCL_HOOKED_CALL_ROW(53, cl_int, clEnqueueCopyImage,
     (cl_command_queue command_queue, cl_mem src_image, cl_mem dst_image,
     const size_t *src_origin, const size_t *dst_origin, const size_t *region,
     cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event),
     (command_queue, src_image, dst_image, src_origin, dst_origin, region,
     num_events_in_wait_list, event_wait_list, event),
     (&command_queue, &src_image, &dst_image, &src_origin, &dst_origin, &region,
     &num_events_in_wait_list, &event_wait_list, &event))
OPENCL_HOOKED_CALL_ROW(54, cl_int, clEnqueueCopyImageToBuffer,
     (cl_command_queue command_queue, cl_mem src_image, cl_mem dst_buffer,
     const size_t *src_origin, const size_t *region, size_t dst_offset,
     cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event),
     (command_queue, src_image, dst_buffer, src_origin, region, dst_offset,
     num_events_in_wait_list, event_wait_list, event),
     (&command_queue, &src_image, &dst_buffer, &src_origin, &region, &dst_offset,
     &num_events_in_wait_list, &event_wait_list, &event))
OPENCL_HOOKED_CALL_ROW(55, cl_int, clEnqueueCopyBufferToImage,
     (cl_command_queue command_queue, cl_mem src_buffer, cl_mem dst_image, size_t src_offset,
     const size_t *dst_origin, const size_t *region, cl_uint num_events_in_wait_list,
     const cl_event *event_wait_list, cl_event *event),
     (command_queue, src_buffer, dst_image, src_offset, dst_origin, region,
     num_events_in_wait_list, event_wait_list, event),
     (&command_queue, &src_buffer, &dst_image, &src_offset, &dst_origin, &region,
     &num_events_in_wait_list, &event_wait_list, &event))
OPENCL_HOOKED_CALL_ROW(56, void *, clEnqueueMapBuffer,
     (cl_command_queue command_queue, cl_mem buffer, cl_bool blocking_map,
     cl_map_flags map_flags, size_t offset, size_t cb, cl_uint num_events_in_wait_list,
     const cl_event *event_wait_list, cl_event *event, cl_int *errcode_ret),
     (command_queue, buffer, blocking_map, map_flags, offset, cb, num_events_in_wait_list,
     event_wait_list, event, errcode_ret),
     (&command_queue, &buffer, &blocking_map, &map_flags, &offset, &cb, &num_events_in_wait_list,
     &event_wait_list, &event, &errcode_ret))
OPENCL_HOOKED_CALL_ROW(57, void *, clEnqueueMapImage,
     (cl_command_queue command_queue, cl_mem image, cl_bool blocking_map, cl_map_flags map_flags,
     const size_t *origin, const size_t *region, size_t *image_row_pitch,
     size_t *image_slice_pitch, cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
     cl_event *event, cl_int *errcode_ret),
     (command_queue, image, blocking_map, map_flags, origin, region, image_row_pitch,
     image_slice_pitch, num_events_in_wait_list, event_wait_list, event, errcode_ret),
     (&command_queue, &image, &blocking_map, &map_flags, &origin, &region, &image_row_pitch,
     &image_slice_pitch, &num_events_in_wait_list, &event_wait_list, &event, &errcode_ret))
OPENCL_HOOKED_CALL_ROW(58, cl_int, clEnqueueUnmapMemObject,
     (cl_command_queue command_queue, cl_mem memobj, void *mapped_ptr,
     cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event),
     (command_queue, memobj, mapped_ptr, num_events_in_wait_list, event_wait_list, event),
     (&command_queue, &memobj, &mapped_ptr, &num_events_in_wait_list, &event_wait_list, &event))
OPENCL_HOOKED_CALL_ROW(59, cl_int, clEnqueueNDRangeKernel,
     (cl_command_queue command_queue, cl_kernel kernel, cl_uint work_dim,
     const size_t *global_work_offset, const size_t *global_work_size,
     const size_t *local_work_size, cl_uint num_events_in_wait_list,
     const cl_event *event_wait_list, cl_event *event),
     (command_queue, kernel, work_dim, global_work_offset, global_work_size, local_work_size,
     num_events_in_wait_list, event_wait_list, event),
     (&command_queue, &kernel, &work_dim, &global_work_offset, &global_work_size,
     &local_work_size, &num_events_in_wait_list, &event_wait_list, &event))
OPENCL_HOOKED_CALL_ROW(60, cl_int, clEnqueueTask,
     (cl_command_queue command_queue, cl_kernel kernel, cl_uint num_events_in_wait_list,
     const cl_event *event_wait_list, cl_event *event),
     (command_queue, kernel, num_events_in_wait_list, event_wait_list, event),
     (&command_queue, &kernel, &num_events_in_wait_list, &event_wait_list, &event))
OPENCL_CALL_ROW(61, cl_int, clEnqueueNativeKernel,
     (cl_command_queue command_queue, cl_callback user_func, void *args, size_t cb_args,
     cl_uint num_mem_objects, const cl_mem *mem_list, const void **args_mem_loc,
     cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event),
     (command_queue, user_func, args, cb_args, num_mem_objects, mem_list, args_mem_loc,
     num_events_in_wait_list, event_wait_list, event),
     (&command_queue, &user_func, &args, &cb_args, &num_mem_objects, &mem_list, &args_mem_loc,
     &num_events_in_wait_list, &event_wait_list, &event))
OPENCL_CALL_ROW(62, cl_int, clEnqueueMarker,
     (cl_command_queue command_queue, cl_event *event),
     (command_queue, event),
     (&command_queue, &event))
OPENCL_CALL_ROW(63, cl_int, clEnqueueWaitForEvents,
     (cl_command_queue command_queue, cl_uint num_events, const cl_event *event_list),
     (command_queue, num_events, event_list),
     (&command_queue, &num_events, &event_list))
OPENCL_CALL_ROW(64, cl_int, clEnqueueBarrier,
     (cl_command_queue command_queue),
     (command_queue),
     (&command_queue))
OPENCL_CALL_ROW(65, void *, clGetExtensionFunctionAddress,
     (const char *function_name),
     (function_name),
     (&function_name))
OPENCL_CALL_ROW(66, cl_mem, clCreateFromGLBuffer,
     (cl_context context, cl_mem_flags flags, cl_GLuint bufobj, int *errcode_ret),
     (context, flags, bufobj, errcode_ret),
     (&context, &flags, &bufobj, &errcode_ret))
OPENCL_CALL_ROW(67, cl_mem, clCreateFromGLTexture2D,
     (cl_context context, cl_mem_flags flags, cl_GLenum target, cl_GLint miplevel,
     cl_GLuint texture, cl_int *errcode_ret),
     (context, flags, target, miplevel, texture, errcode_ret),
     (&context, &flags, &target, &miplevel, &texture, &errcode_ret))
OPENCL_CALL_ROW(68, cl_mem, clCreateFromGLTexture3D,
     (cl_context context, cl_mem_flags flags, cl_GLenum target, cl_GLint miplevel,
     cl_GLuint texture, cl_int *errcode_ret),
     (context, flags, target, miplevel, texture, errcode_ret),
     (&context, &flags, &target, &miplevel, &texture, &errcode_ret))
OPENCL_CALL_ROW(69, cl_mem, clCreateFromGLRenderbuffer,
     (cl_context context, cl_mem_flags flags, cl_GLuint renderbuffer, cl_int *errcode_ret),
     (context, flags, renderbuffer, errcode_ret),
     (&context, &flags, &renderbuffer, &errcode_ret))
OPENCL_CALL_ROW(70, cl_int, clGetGLObjectInfo,
     (cl_mem memobj, cl_gl_object_type *gl_object_type, cl_GLuint *gl_object_name),
     (memobj, gl_object_type, gl_object_name),
     (&memobj, &gl_object_type, &gl_object_name))
OPENCL_CALL_ROW(71, cl_int, clGetGLTextureInfo,
     (cl_mem memobj, cl_gl_texture_info param_name, size_t param_value_size, void *param_value,
     size_t *param_value_size_ret),
     (memobj, param_name, param_value_size, param_value, param_value_size_ret),
     (&memobj, &param_name, &param_value_size, &param_value, &param_value_size_ret))
OPENCL_CALL_ROW(72, cl_int, clEnqueueAcquireGLObjects,
     (cl_command_queue command_queue, cl_uint num_objects, const cl_mem *mem_objects,
     cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event),
     (command_queue, num_objects, mem_objects, num_events_in_wait_list, event_wait_list, event),
     (&command_queue, &num_objects, &mem_objects, &num_events_in_wait_list, &event_wait_list,
     &event))
OPENCL_CALL_ROW(73, cl_int, clEnqueueReleaseGLObjects,
     (cl_command_queue command_queue, cl_uint num_objects, const cl_mem *mem_objects,
     cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event),
     (command_queue, num_objects, mem_objects, num_events_in_wait_list, event_wait_list, event),
     (&command_queue, &num_objects, &mem_objects, &num_events_in_wait_list, &event_wait_list,
     &event))
OPENCL_CALL_ROW(74, cl_int, clGetGLContextInfoKHR,
     (const cl_context_properties *properties, cl_gl_context_info param_name,
     size_t param_value_size, void *param_value, size_t *param_value_size_ret),
     (properties, param_name, param_value_size, param_value, param_value_size_ret),
     (&properties, &param_name, &param_value_size, &param_value, &param_value_size_ret))
OPENCL_ABSENT_ROW(75, clGetDeviceIDsFromD3D10KHR)
OPENCL_ABSENT_ROW(76, clCreateFromD3D10BufferKHR)
OPENCL_ABSENT_ROW(77, clCreateFromD3D10Texture2DKHR)
OPENCL_ABSENT_ROW(78, clCreateFromD3D10Texture3DKHR)
OPENCL_ABSENT_ROW(79, clEnqueueAcquireD3D10ObjectsKHR)
OPENCL_ABSENT_ROW(80, clEnqueueReleaseD3D10ObjectsKHR)
OPENCL_CALL_ROW(81, cl_int, clSetEventCallback,
     (cl_event event, cl_int command_exec_callback_type, cl_callback pfn_notify,
     void *user_data),
     (event, command_exec_callback_type, pfn_notify, user_data),
     (&event, &command_exec_callback_type, &pfn_notify, &user_data))
OPENCL_CALL_ROW(82, cl_mem, clCreateSubBuffer,
     (cl_mem buffer, cl_mem_flags flags, cl_buffer_create_type buffer_create_type,
     const void *buffer_create_info, cl_int *errcode_ret),
     (buffer, flags, buffer_create_type, buffer_create_info, errcode_ret),
     (&buffer, &flags, &buffer_create_type, &buffer_create_info, &errcode_ret))
OPENCL_CALL_ROW(83, cl_int, clSetMemObjectDestructorCallback,
     (cl_mem memobj, cl_callback pfn_notify, void *user_data),
     (memobj, pfn_notify, user_data),
     (&memobj, &pfn_notify, &user_data))
OPENCL_HOOKED_CALL_ROW(84, cl_event, clCreateUserEvent,
     (cl_context context, cl_int *errcode_ret),
     (context, errcode_ret),
     (&context, &errcode_ret))
OPENCL_HOOKED_CALL_ROW(85, cl_int, clSetUserEventStatus,
     (cl_event event, cl_int execution_status),
     (event, execution_status),
     (&event, &execution_status))
OPENCL_HOOKED_CALL_ROW(86, cl_int, clEnqueueReadBufferRect,
     (cl_command_queue command_queue, cl_mem buffer, cl_bool blocking_read,
     const size_t *buffer_origin, const size_t *host_origin, const size_t *region,
     size_t buffer_row_pitch, size_t buffer_slice_pitch, size_t host_row_pitch,
     size_t host_slice_pitch, void *ptr, cl_uint num_events_in_wait_list,
     const cl_event *event_wait_list, cl_event *event),
     (command_queue, buffer, blocking_read, buffer_origin, host_origin, region, buffer_row_pitch,
     buffer_slice_pitch, host_row_pitch, host_slice_pitch, ptr, num_events_in_wait_list,
     event_wait_list, event),
     (&command_queue, &buffer, &blocking_read, &buffer_origin, &host_origin, &region,
     &buffer_row_pitch, &buffer_slice_pitch, &host_row_pitch, &host_slice_pitch, &ptr,
     &num_events_in_wait_list, &event_wait_list, &event))
OPENCL_HOOKED_CALL_ROW(87, cl_int, clEnqueueWriteBufferRect,
     (cl_command_queue command_queue, cl_mem buffer, cl_bool blocking_read,
     const size_t *buffer_origin, const size_t *host_origin, const size_t *region,
     size_t buffer_row_pitch, size_t buffer_slice_pitch, size_t host_row_pitch,
     size_t host_slice_pitch, const void *ptr, cl_uint num_events_in_wait_list,
     const cl_event *event_wait_list, cl_event *event),
     (command_queue, buffer, blocking_read, buffer_origin, host_origin, region, buffer_row_pitch,
     buffer_slice_pitch, host_row_pitch, host_slice_pitch, ptr, num_events_in_wait_list,
     event_wait_list, event),
     (&command_queue, &buffer, &blocking_read, &buffer_origin, &host_origin, &region,
     &buffer_row_pitch, &buffer_slice_pitch, &host_row_pitch, &host_slice_pitch, &ptr,
     &num_events_in_wait_list, &event_wait_list, &event))
OPENCL_HOOKED_CALL_ROW(88, cl_int, clEnqueueCopyBufferRect,
     (cl_command_queue command_queue, cl_mem src_buffer, cl_mem dst_buffer,
     const size_t *src_origin, const size_t *dst_origin, const size_t *region,
     size_t src_row_pitch, size_t src_slice_pitch, size_t dst_row_pitch, size_t dst_slice_pitch,
     cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event),
     (command_queue, src_buffer, dst_buffer, src_origin, dst_origin, region, src_row_pitch,
     src_slice_pitch, dst_row_pitch, dst_slice_pitch, num_events_in_wait_list, event_wait_list,
     event),
     (&command_queue, &src_buffer, &dst_buffer, &src_origin, &dst_origin, &region,
     &src_row_pitch, &src_slice_pitch, &dst_row_pitch, &dst_slice_pitch,
     &num_events_in_wait_list, &event_wait_list, &event))
OPENCL_CALL_ROW(89, cl_int, clCreateSubDevicesEXT,
     (cl_device_id in_device, const cl_device_partition_property_ext *partition_properties,
     cl_uint num_entries, cl_device_id *out_devices, cl_uint *num_devices),
     (in_device, partition_properties, num_entries, out_devices, num_devices),
     (&in_device, &partition_properties, &num_entries, &out_devices, &num_devices))
OPENCL_CALL_ROW(90, cl_int, clRetainDeviceEXT,
     (cl_device_id device),
     (device),
     (&device))
OPENCL_CALL_ROW(91, cl_int, clReleaseDeviceEXT,
     (cl_device_id device),
     (device),
     (&device))
OPENCL_CALL_ROW(92, cl_event, clCreateEventFromGLsyncKHR,
     (cl_context context, cl_GLsync sync, cl_int *errcode_ret),
     (context, sync, errcode_ret),
     (&context, &sync, &errcode_ret))
OPENCL_CALL_ROW(93, cl_int, clCreateSubDevices,
     (cl_device_id in_device, const cl_device_partition_property *partition_properties,
     cl_uint num_entries, cl_device_id *out_devices, cl_uint *num_devices),
     (in_device, partition_properties, num_entries, out_devices, num_devices),
     (&in_device, &partition_properties, &num_entries, &out_devices, &num_devices))
OPENCL_CALL_ROW(94, cl_int, clRetainDevice,
     (cl_device_id device),
     (device),
     (&device))
OPENCL_CALL_ROW(95, cl_int, clReleaseDevice,
     (cl_device_id device),
     (device),
     (&device))
OPENCL_HOOKED_CALL_ROW(96, cl_mem, clCreateImage,
     (cl_context context, cl_mem_flags flags, const cl_image_format *image_format,
     const cl_image_desc *image_desc, void *host_ptr, cl_int *errcode_ret),
     (context, flags, image_format, image_desc, host_ptr, errcode_ret),
     (&context, &flags, &image_format, &image_desc, &host_ptr, &errcode_ret))
OPENCL_CALL_ROW(97, cl_program, clCreateProgramWithBuiltInKernels,
     (cl_context context, cl_uint num_devices, const cl_device_id *device_list,
     const char *kernel_names, cl_int *errcode_ret),
     (context, num_devices, device_list, kernel_names, errcode_ret),
     (&context, &num_devices, &device_list, &kernel_names, &errcode_ret))
OPENCL_CALL_ROW(98, cl_int, clCompileProgram,
     (cl_program program, cl_uint num_devices, const cl_device_id *device_list,
     const char *options, cl_uint num_input_headers, const cl_program *input_headers,
     const char **header_include_names, cl_callback pfn_notify, void *user_data),
     (program, num_devices, device_list, options, num_input_headers, input_headers,
     header_include_names, pfn_notify, user_data),
     (&program, &num_devices, &device_list, &options, &num_input_headers, &input_headers,
     &header_include_names, &pfn_notify, &user_data))
OPENCL_CALL_ROW(99, cl_program, clLinkProgram,
     (cl_context context, cl_uint num_devices, const cl_device_id *device_list,
     const char *options, cl_uint num_input_programs, const cl_program *input_programs,
     cl_callback pfn_notify, void *user_data, cl_int *errcode_ret),
     (context, num_devices, device_list, options, num_input_programs, input_programs, pfn_notify,
     user_data, errcode_ret),
     (&context, &num_devices, &device_list, &options, &num_input_programs, &input_programs,
     &pfn_notify, &user_data, &errcode_ret))
OPENCL_CALL_ROW(100, cl_int, clUnloadPlatformCompiler,
     (cl_platform_id platform),
     (platform),
     (&platform))
OPENCL_CALL_ROW(101, cl_int, clGetKernelArgInfo,
     (cl_kernel kernel, cl_uint arg_indx, cl_kernel_arg_info param_name, size_t param_value_size,
     void *param_value, size_t *param_value_size_ret),
     (kernel, arg_indx, param_name, param_value_size, param_value, param_value_size_ret),
     (&kernel, &arg_indx, &param_name, &param_value_size, &param_value, &param_value_size_ret))
OPENCL_CALL_ROW(102, cl_int, clEnqueueFillBuffer,
     (cl_command_queue command_queue, cl_mem buffer, const void *pattern, size_t pattern_size,
     size_t offset, size_t cb, cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
     cl_event *event),
     (command_queue, buffer, pattern, pattern_size, offset, cb, num_events_in_wait_list,
     event_wait_list, event),
     (&command_queue, &buffer, &pattern, &pattern_size, &offset, &cb, &num_events_in_wait_list,
     &event_wait_list, &event))
OPENCL_CALL_ROW(103, cl_int, clEnqueueFillImage,
     (cl_command_queue command_queue, cl_mem image, const void *fill_color, const size_t *origin,
     const size_t *region, cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
     cl_event *event),
     (command_queue, image, fill_color, origin, region, num_events_in_wait_list, event_wait_list,
     event),
     (&command_queue, &image, &fill_color, &origin, &region, &num_events_in_wait_list,
     &event_wait_list, &event))
OPENCL_CALL_ROW(104, cl_int, clEnqueueMigrateMemObjects,
     (cl_command_queue command_queue, cl_uint num_mem_objects, const cl_mem *mem_objects,
     cl_mem_migration_flags flags, cl_uint num_events_in_wait_list,
     const cl_event *event_wait_list, cl_event *event),
     (command_queue, num_mem_objects, mem_objects, flags, num_events_in_wait_list,
     event_wait_list, event),
     (&command_queue, &num_mem_objects, &mem_objects, &flags, &num_events_in_wait_list,
     &event_wait_list, &event))
OPENCL_CALL_ROW(105, cl_int, clEnqueueMarkerWithWaitList,
     (cl_command_queue command_queue, cl_uint num_events_in_wait_list,
     const cl_event *event_wait_list, cl_event *event),
     (command_queue, num_events_in_wait_list, event_wait_list, event),
     (&command_queue, &num_events_in_wait_list, &event_wait_list, &event))
OPENCL_CALL_ROW(106, cl_int, clEnqueueBarrierWithWaitList,
     (cl_command_queue command_queue, cl_uint num_events_in_wait_list,
     const cl_event *event_wait_list, cl_event *event),
     (command_queue, num_events_in_wait_list, event_wait_list, event),
     (&command_queue, &num_events_in_wait_list, &event_wait_list, &event))
OPENCL_CALL_ROW(107, void *, clGetExtensionFunctionAddressForPlatform,
     (cl_platform_id platform, const char *function_name),
     (platform, function_name),
     (&platform, &function_name))
OPENCL_CALL_ROW(108, cl_mem, clCreateFromGLTexture,
     (cl_context context, cl_mem_flags flags, cl_GLenum target, cl_GLint miplevel,
     cl_GLuint texture, cl_int *errcode_ret),
     (context, flags, target, miplevel, texture, errcode_ret),
     (&context, &flags, &target, &miplevel, &texture, &errcode_ret))
OPENCL_ABSENT_ROW(109, clGetDeviceIDsFromD3D11KHR)
OPENCL_ABSENT_ROW(110, clCreateFromD3D11BufferKHR)
OPENCL_ABSENT_ROW(111, clCreateFromD3D11Texture2DKHR)
OPENCL_ABSENT_ROW(112, clCreateFromD3D11Texture3DKHR)
OPENCL_ABSENT_ROW(113, clCreateFromDX9MediaSurfaceKHR)
OPENCL_ABSENT_ROW(114, clEnqueueAcquireD3D11ObjectsKHR)
OPENCL_ABSENT_ROW(115, clEnqueueReleaseD3D11ObjectsKHR)
OPENCL_ABSENT_ROW(116, clGetDeviceIDsFromDX9MediaAdapterKHR)
OPENCL_ABSENT_ROW(117, clEnqueueAcquireDX9MediaSurfacesKHR)
OPENCL_ABSENT_ROW(118, clEnqueueReleaseDX9MediaSurfacesKHR)
OPENCL_CALL_ROW(119, cl_mem, clCreateFromEGLImageKHR,
     (cl_context context, CLeglDisplayKHR display, CLeglImageKHR image, cl_mem_flags flags,
     const cl_egl_image_properties_khr *properties, cl_int *errcode_ret),
     (context, display, image, flags, properties, errcode_ret),
     (&context, &display, &image, &flags, &properties, &errcode_ret))
OPENCL_CALL_ROW(120, cl_int, clEnqueueAcquireEGLObjectsKHR,
     (cl_command_queue command_queue, cl_uint num_objects, const cl_mem *mem_objects,
     cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event),
     (command_queue, num_objects, mem_objects, num_events_in_wait_list, event_wait_list, event),
     (&command_queue, &num_objects, &mem_objects, &num_events_in_wait_list, &event_wait_list,
     &event))
OPENCL_CALL_ROW(121, cl_int, clEnqueueReleaseEGLObjectsKHR,
     (cl_command_queue command_queue, cl_uint num_objects, const cl_mem *mem_objects,
     cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event),
     (command_queue, num_objects, mem_objects, num_events_in_wait_list, event_wait_list, event),
     (&command_queue, &num_objects, &mem_objects, &num_events_in_wait_list, &event_wait_list,
     &event))
OPENCL_CALL_ROW(122, cl_event, clCreateEventFromEGLSyncKHR,
     (cl_context context, CLeglSyncKHR sync, CLeglDisplayKHR display, cl_int *errcode_ret),
     (context, sync, display, errcode_ret),
     (&context, &sync, &display, &errcode_ret))
OPENCL_HOOKED_CALL_ROW(123, cl_command_queue, clCreateCommandQueueWithProperties,
     (cl_context context, cl_device_id device, const cl_queue_properties *properties,
     cl_int *errcode_ret),
     (context, device, properties, errcode_ret),
     (&context, &device, &properties, &errcode_ret))
OPENCL_CALL_ROW(124, cl_mem, clCreatePipe,
     (cl_context context, cl_mem_flags flags, cl_uint pipe_packet_size, cl_uint pipe_max_packets,
     const cl_pipe_properties *properties, cl_int *errcode_ret),
     (context, flags, pipe_packet_size, pipe_max_packets, properties, errcode_ret),
     (&context, &flags, &pipe_packet_size, &pipe_max_packets, &properties, &errcode_ret))
OPENCL_CALL_ROW(125, cl_int, clGetPipeInfo,
     (cl_mem pipe, cl_pipe_info param_name, size_t param_value_size, void *param_value,
     size_t *param_value_size_ret),
     (pipe, param_name, param_value_size, param_value, param_value_size_ret),
     (&pipe, &param_name, &param_value_size, &param_value, &param_value_size_ret))
OPENCL_HOOKED_CALL_ROW(126, void *, clSVMAlloc,
     (cl_context context, cl_svm_mem_flags flags, size_t size, unsigned int alignment),
     (context, flags, size, alignment),
     (&context, &flags, &size, &alignment))
OPENCL_HOOKED_VOID_CALL_ROW(127, clSVMFree,
     (cl_context context, void *svm_pointer),
     (context, svm_pointer),
     (&context, &svm_pointer))
OPENCL_HOOKED_CALL_ROW(128, cl_int, clEnqueueSVMFree,
     (cl_command_queue command_queue, cl_uint num_svm_pointers, void **svm_pointers,
     cl_callback pfn_free_func, void *user_data, cl_uint num_events_in_wait_list,
     const cl_event *event_wait_list, cl_event *event),
     (command_queue, num_svm_pointers, svm_pointers, pfn_free_func, user_data,
     num_events_in_wait_list, event_wait_list, event),
     (&command_queue, &num_svm_pointers, &svm_pointers, &pfn_free_func, &user_data,
     &num_events_in_wait_list, &event_wait_list, &event))
OPENCL_HOOKED_CALL_ROW(129, cl_int, clEnqueueSVMMemcpy,
     (cl_command_queue command_queue, cl_bool blocking_copy, void *dst_ptr, const void *src_ptr,
     size_t size, cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
     cl_event *event),
     (command_queue, blocking_copy, dst_ptr, src_ptr, size, num_events_in_wait_list,
     event_wait_list, event),
     (&command_queue, &blocking_copy, &dst_ptr, &src_ptr, &size, &num_events_in_wait_list,
     &event_wait_list, &event))
OPENCL_CALL_ROW(130, cl_int, clEnqueueSVMMemFill,
     (cl_command_queue command_queue, void *svm_ptr, const void *pattern, size_t pattern_size,
     size_t size, cl_uint num_events_in_wait_list, const cl_event *event_wait_list,
     cl_event *event),
     (command_queue, svm_ptr, pattern, pattern_size, size, num_events_in_wait_list,
     event_wait_list, event),
     (&command_queue, &svm_ptr, &pattern, &pattern_size, &size, &num_events_in_wait_list,
     &event_wait_list, &event))
OPENCL_CALL_ROW(131, cl_int, clEnqueueSVMMap,
     (cl_command_queue command_queue, cl_bool blocking_map, cl_map_flags map_flags,
     void *svm_ptr, size_t size, cl_uint num_events_in_wait_list,
     const cl_event *event_wait_list, cl_event *event),
     (command_queue, blocking_map, map_flags, svm_ptr, size, num_events_in_wait_list,
     event_wait_list, event),
     (&command_queue, &blocking_map, &map_flags, &svm_ptr, &size, &num_events_in_wait_list,
     &event_wait_list, &event))
OPENCL_CALL_ROW(132, cl_int, clEnqueueSVMUnmap,
     (cl_command_queue command_queue, void *svm_ptr, cl_uint num_events_in_wait_list,
     const cl_event *event_wait_list, cl_event *event),
     (command_queue, svm_ptr, num_events_in_wait_list, event_wait_list, event),
     (&command_queue, &svm_ptr, &num_events_in_wait_list, &event_wait_list, &event))
OPENCL_CALL_ROW(133, cl_sampler, clCreateSamplerWithProperties,
     (cl_context context, const cl_sampler_properties *sampler_properties, cl_int *errcode_ret),
     (context, sampler_properties, errcode_ret),
     (&context, &sampler_properties, &errcode_ret))
OPENCL_CALL_ROW(134, cl_int, clSetKernelArgSVMPointer,
     (cl_kernel kernel, cl_uint arg_index, const void *arg_value),
     (kernel, arg_index, arg_value),
     (&kernel, &arg_index, &arg_value))
OPENCL_CALL_ROW(135, cl_int, clSetKernelExecInfo,
     (cl_kernel kernel, cl_kernel_exec_info param_name, size_t param_value_size,
     const void *param_value),
     (kernel, param_name, param_value_size, param_value),
     (&kernel, &param_name, &param_value_size, &param_value))
OPENCL_CALL_ROW(136, cl_int, clGetKernelSubGroupInfoKHR,
     (cl_kernel in_kernel, cl_device_id in_device, cl_kernel_sub_group_info param_name,
     size_t input_value_size, const void *input_value, size_t param_value_size,
     void *param_value, size_t *param_value_size_ret),
     (in_kernel, in_device, param_name, input_value_size, input_value, param_value_size,
     param_value, param_value_size_ret),
     (&in_kernel, &in_device, &param_name, &input_value_size, &input_value, &param_value_size,
     &param_value, &param_value_size_ret))
OPENCL_HOOKED_CALL_ROW(137, cl_kernel, clCloneKernel,
     (cl_kernel source_kernel, cl_int *errcode_ret),
     (source_kernel, errcode_ret),
     (&source_kernel, &errcode_ret))
OPENCL_CALL_ROW(138, cl_program, clCreateProgramWithIL,
     (cl_context context, const void *il, size_t length, cl_int *errcode_ret),
     (context, il, length, errcode_ret),
     (&context, &il, &length, &errcode_ret))
OPENCL_CALL_ROW(139, cl_int, clEnqueueSVMMigrateMem,
     (cl_command_queue command_queue, cl_uint num_svm_pointers, const void **svm_pointers,
     const size_t *sizes, cl_mem_migration_flags flags, cl_uint num_events_in_wait_list,
     const cl_event *event_wait_list, cl_event *event),
     (command_queue, num_svm_pointers, svm_pointers, sizes, flags, num_events_in_wait_list,
     event_wait_list, event),
     (&command_queue, &num_svm_pointers, &svm_pointers, &sizes, &flags, &num_events_in_wait_list,
     &event_wait_list, &event))
OPENCL_CALL_ROW(140, cl_int, clGetDeviceAndHostTimer,
     (cl_device_id device, cl_ulong *device_timestamp, cl_ulong *host_timestamp),
     (device, device_timestamp, host_timestamp),
     (&device, &device_timestamp, &host_timestamp))
OPENCL_CALL_ROW(141, cl_int, clGetHostTimer,
     (cl_device_id device, cl_ulong *host_timestamp),
     (device, host_timestamp),
     (&device, &host_timestamp))
OPENCL_CALL_ROW(142, cl_int, clGetKernelSubGroupInfo,
     (cl_kernel kernel, cl_device_id device, cl_kernel_sub_group_info param_name,
     size_t input_value_size, const void *input_value, size_t param_value_size,
     void *param_value, size_t *param_value_size_ret),
     (kernel, device, param_name, input_value_size, input_value, param_value_size, param_value,
     param_value_size_ret),
     (&kernel, &device, &param_name, &input_value_size, &input_value, &param_value_size,
     &param_value, &param_value_size_ret))
OPENCL_CALL_ROW(143, cl_int, clSetDefaultDeviceCommandQueue,
     (cl_context context, cl_device_id device, cl_command_queue command_queue),
     (context, device, command_queue),
     (&context, &device, &command_queue))
OPENCL_CALL_ROW(144, cl_int, clSetProgramReleaseCallback,
     (cl_program program, cl_callback pfn_notify, void *user_data),
     (program, pfn_notify, user_data),
     (&program, &pfn_notify, &user_data))
OPENCL_CALL_ROW(145, cl_int, clSetProgramSpecializationConstant,
     (cl_program program, cl_uint spec_id, size_t spec_size, const void *spec_value),
     (program, spec_id, spec_size, spec_value),
     (&program, &spec_id, &spec_size, &spec_value))
OPENCL_HOOKED_CALL_ROW(146, cl_mem, clCreateBufferWithProperties,
     (cl_context context, const cl_mem_properties *properties, cl_mem_flags flags, size_t size,
     void *host_ptr, cl_int *errcode_ret),
     (context, properties, flags, size, host_ptr, errcode_ret),
     (&context, &properties, &flags, &size, &host_ptr, &errcode_ret))
OPENCL_HOOKED_CALL_ROW(147, cl_mem, clCreateImageWithProperties,
     (cl_context context, const cl_mem_properties *properties, cl_mem_flags flags,
     const cl_image_format *image_format, const cl_image_desc *image_desc, void *host_ptr,
     cl_int *errcode_ret),
     (context, properties, flags, image_format, image_desc, host_ptr, errcode_ret),
     (&context, &properties, &flags, &image_format, &image_desc, &host_ptr, &errcode_ret))
OPENCL_CALL_ROW(148, cl_int, clSetContextDestructorCallback,
     (cl_context context, cl_callback pfn_notify, void *user_data),
     (context, pfn_notify, user_data),
     (&context, &pfn_notify, &user_data))
/* clang-format on */

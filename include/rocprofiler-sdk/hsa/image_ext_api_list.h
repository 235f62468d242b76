/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The image functions of the HSA runtime.
 *
 * A list for macros, included more than once: ROCP_F(function, arguments) with ROCP_A(type, name),
 * ROCP_P(type, name, parameters) for a pointer to a function, ROCP_N(no_args) for none. The order
 * is that of ids.
 */
/* clang-format off */
ROCP_F(hsa_ext_image_get_capability, ROCP_A(hsa_agent_t, agent)
	ROCP_A(hsa_ext_image_geometry_t, geometry)
	ROCP_A(const hsa_ext_image_format_t *, image_format) ROCP_A(uint32_t *, capability_mask))
ROCP_F(hsa_ext_image_data_get_info, ROCP_A(hsa_agent_t, agent)
	ROCP_A(const hsa_ext_image_descriptor_t *, image_descriptor)
	ROCP_A(hsa_access_permission_t, access_permission)
	ROCP_A(hsa_ext_image_data_info_t *, image_data_info))
ROCP_F(hsa_ext_image_create, ROCP_A(hsa_agent_t, agent)
	ROCP_A(const hsa_ext_image_descriptor_t *, image_descriptor)
	ROCP_A(const void *, image_data) ROCP_A(hsa_access_permission_t, access_permission)
	ROCP_A(hsa_ext_image_t *, image))
ROCP_F(hsa_ext_image_import, ROCP_A(hsa_agent_t, agent) ROCP_A(const void *, src_memory)
	ROCP_A(size_t, src_row_pitch) ROCP_A(size_t, src_slice_pitch)
	ROCP_A(hsa_ext_image_t, dst_image) ROCP_A(const hsa_ext_image_region_t *, image_region))
ROCP_F(hsa_ext_image_export, ROCP_A(hsa_agent_t, agent) ROCP_A(hsa_ext_image_t, src_image)
	ROCP_A(void *, dst_memory) ROCP_A(size_t, dst_row_pitch) ROCP_A(size_t, dst_slice_pitch)
	ROCP_A(const hsa_ext_image_region_t *, image_region))
ROCP_F(hsa_ext_image_copy, ROCP_A(hsa_agent_t, agent) ROCP_A(hsa_ext_image_t, src_image)
	ROCP_A(const hsa_dim3_t *, src_offset) ROCP_A(hsa_ext_image_t, dst_image)
	ROCP_A(const hsa_dim3_t *, dst_offset) ROCP_A(const hsa_dim3_t *, range))
ROCP_F(hsa_ext_image_clear, ROCP_A(hsa_agent_t, agent) ROCP_A(hsa_ext_image_t, image)
	ROCP_A(const void *, data) ROCP_A(const hsa_ext_image_region_t *, image_region))
ROCP_F(hsa_ext_image_destroy, ROCP_A(hsa_agent_t, agent) ROCP_A(hsa_ext_image_t, image))
ROCP_F(hsa_ext_sampler_create, ROCP_A(hsa_agent_t, agent)
	ROCP_A(const hsa_ext_sampler_descriptor_t *, sampler_descriptor)
	ROCP_A(hsa_ext_sampler_t *, sampler))
ROCP_F(hsa_ext_sampler_destroy, ROCP_A(hsa_agent_t, agent) ROCP_A(hsa_ext_sampler_t, sampler))
ROCP_F(hsa_ext_image_get_capability_with_layout, ROCP_A(hsa_agent_t, agent)
	ROCP_A(hsa_ext_image_geometry_t, geometry)
	ROCP_A(const hsa_ext_image_format_t *, image_format)
	ROCP_A(hsa_ext_image_data_layout_t, image_data_layout) ROCP_A(uint32_t *, capability_mask))
ROCP_F(hsa_ext_image_data_get_info_with_layout, ROCP_A(hsa_agent_t, agent)
	ROCP_A(const hsa_ext_image_descriptor_t *, image_descriptor)
	ROCP_A(hsa_access_permission_t, access_permission)
	ROCP_A(hsa_ext_image_data_layout_t, image_data_layout) ROCP_A(size_t, image_data_row_pitch)
	ROCP_A(size_t, image_data_slice_pitch) ROCP_A(hsa_ext_image_data_info_t *, image_data_info))
ROCP_F(hsa_ext_image_create_with_layout, ROCP_A(hsa_agent_t, agent)
	ROCP_A(const hsa_ext_image_descriptor_t *, image_descriptor)
	ROCP_A(const void *, image_data) ROCP_A(hsa_access_permission_t, access_permission)
	ROCP_A(hsa_ext_image_data_layout_t, image_data_layout) ROCP_A(size_t, image_data_row_pitch)
	ROCP_A(size_t, image_data_slice_pitch) ROCP_A(hsa_ext_image_t *, image))

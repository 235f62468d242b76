/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The functions of the HSA finalizer.
 *
 * A list for macros, included more than once: ROCP_F(function, arguments) with ROCP_A(type, name),
 * ROCP_P(type, name, parameters) for a pointer to a function, ROCP_N(no_args) for none. The order
 * is that of ids.
 */
/* clang-format off */
ROCP_F(hsa_ext_program_create, ROCP_A(hsa_machine_model_t, machine_model)
	ROCP_A(hsa_profile_t, profile)
	ROCP_A(hsa_default_float_rounding_mode_t, default_float_rounding_mode)
	ROCP_A(const char *, options) ROCP_A(hsa_ext_program_t *, program))
ROCP_F(hsa_ext_program_destroy, ROCP_A(hsa_ext_program_t, program))
ROCP_F(hsa_ext_program_add_module, ROCP_A(hsa_ext_program_t, program)
	ROCP_A(hsa_ext_module_t, module))
ROCP_F(hsa_ext_program_iterate_modules, ROCP_A(hsa_ext_program_t, program)
	ROCP_A(hsa_ext_program_iterate_modules_cb_t, callback) ROCP_A(void *, data))
ROCP_F(hsa_ext_program_get_info, ROCP_A(hsa_ext_program_t, program)
	ROCP_A(hsa_ext_program_info_t, attribute) ROCP_A(void *, value))
ROCP_F(hsa_ext_program_finalize, ROCP_A(hsa_ext_program_t, program) ROCP_A(hsa_isa_t, isa)
	ROCP_A(int32_t, call_convention) ROCP_A(hsa_ext_control_directives_t, control_directives)
	ROCP_A(const char *, options) ROCP_A(hsa_code_object_type_t, code_object_type)
	ROCP_A(hsa_code_object_t *, code_object))

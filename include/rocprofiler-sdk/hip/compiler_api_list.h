/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What compilers make HIP programs call.
 *
 * A list for macros, included more than once: ROCP_F(function, arguments) with ROCP_A(type, name),
 * ROCP_P(type, name, parameters) for a pointer to a function, ROCP_N(no_args) for none. The order
 * is that of ids.
 */
/* clang-format off */
ROCP_F(__hipPopCallConfiguration, ROCP_A(dim3 *, gridDim) ROCP_A(dim3 *, blockDim)
	ROCP_A(size_t *, sharedMem) ROCP_A(hipStream_t *, stream))
ROCP_F(__hipPushCallConfiguration, ROCP_A(rocprofiler_dim3_t, gridDim)
	ROCP_A(rocprofiler_dim3_t, blockDim) ROCP_A(size_t, sharedMem) ROCP_A(hipStream_t, stream))
ROCP_F(__hipRegisterFatBinary, ROCP_A(const void *, data))
ROCP_F(__hipRegisterFunction, ROCP_A(void **, modules) ROCP_A(const void *, hostFunction)
	ROCP_A(char *, deviceFunction) ROCP_A(const char *, deviceName)
	ROCP_A(unsigned int, threadLimit) ROCP_A(uint3 *, tid) ROCP_A(uint3 *, bid)
	ROCP_A(dim3 *, blockDim) ROCP_A(dim3 *, gridDim) ROCP_A(int *, wSize))
ROCP_F(__hipRegisterManagedVar, ROCP_A(void *, hipModule) ROCP_A(void **, pointer)
	ROCP_A(void *, init_value) ROCP_A(const char *, name) ROCP_A(size_t, size)
	ROCP_A(unsigned, align))
ROCP_F(__hipRegisterSurface, ROCP_A(void **, modules) ROCP_A(void *, var) ROCP_A(char *, hostVar)
	ROCP_A(char *, deviceVar) ROCP_A(int, type) ROCP_A(int, ext))
ROCP_F(__hipRegisterTexture, ROCP_A(void **, modules) ROCP_A(void *, var) ROCP_A(char *, hostVar)
	ROCP_A(char *, deviceVar) ROCP_A(int, type) ROCP_A(int, norm) ROCP_A(int, ext))
ROCP_F(__hipRegisterVar, ROCP_A(void **, modules) ROCP_A(void *, var) ROCP_A(char *, hostVar)
	ROCP_A(char *, deviceVar) ROCP_A(int, ext) ROCP_A(size_t, size) ROCP_A(int, constant)
	ROCP_A(int, global))
ROCP_F(__hipUnregisterFatBinary, ROCP_A(void **, modules))

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Names of threads and devices.
 *
 * A list for macros, included more than once: ROCP_F(function, arguments) with ROCP_A(type, name),
 * ROCP_P(type, name, parameters) for a pointer to a function, ROCP_N(no_args) for none. The order
 * is that of ids.
 */
/* clang-format off */
ROCP_F(roctxNameOsThread, ROCP_A(const char *, name))
ROCP_F(roctxNameHsaAgent, ROCP_A(const char *, name) ROCP_A(const struct hsa_agent_s *, agent))
ROCP_F(roctxNameHipDevice, ROCP_A(const char *, name) ROCP_A(int, device_id))
ROCP_F(roctxNameHipStream, ROCP_A(const char *, name) ROCP_A(const struct ihipStream_t *, stream))

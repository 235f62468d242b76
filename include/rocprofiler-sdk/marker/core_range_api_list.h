/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Marks and ranges, a range as one operation.
 *
 * A list for macros, included more than once: ROCP_F(function, arguments) with ROCP_A(type, name),
 * ROCP_P(type, name, parameters) for a pointer to a function, ROCP_N(no_args) for none. The order
 * is that of ids.
 */
/* clang-format off */
ROCP_F(roctxMarkA, ROCP_A(const char *, message))
ROCP_F(roctxThreadRangeA, ROCP_A(const char *, message))
ROCP_F(roctxProcessRangeA, ROCP_A(const char *, message))
ROCP_F(roctxGetThreadId, ROCP_A(roctx_thread_id_t *, tid))

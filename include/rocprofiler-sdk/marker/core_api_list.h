/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Marks and ranges.
 *
 * A list for macros, included more than once: ROCP_F(function, arguments) with ROCP_A(type, name),
 * ROCP_P(type, name, parameters) for a pointer to a function, ROCP_N(no_args) for none. The order
 * is that of ids.
 */
/* clang-format off */
ROCP_F(roctxMarkA, ROCP_A(const char *, message))
ROCP_F(roctxRangePushA, ROCP_A(const char *, message))
ROCP_F(roctxRangePop, ROCP_N(no_args))
ROCP_F(roctxRangeStartA, ROCP_A(const char *, message))
ROCP_F(roctxRangeStop, ROCP_A(roctx_range_id_t, id))
ROCP_F(roctxGetThreadId, ROCP_A(roctx_thread_id_t *, tid))

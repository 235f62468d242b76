/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Pausing and resuming the profiler.
 *
 * A list for macros, included more than once: ROCP_F(function, arguments) with ROCP_A(type, name),
 * ROCP_P(type, name, parameters) for a pointer to a function, ROCP_N(no_args) for none. The order
 * is that of ids.
 */
/* clang-format off */
ROCP_F(roctxProfilerPause, ROCP_A(roctx_thread_id_t, tid))
ROCP_F(roctxProfilerResume, ROCP_A(roctx_thread_id_t, tid))

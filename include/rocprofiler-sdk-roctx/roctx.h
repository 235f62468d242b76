/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Marks and ranges in a program, for whichever profiler looks.
 *
 * Messages are copied by those who keep them.
 */
#ifndef ROCPROFILER_SDK_ROCTX_ROCTX_H
#define ROCPROFILER_SDK_ROCTX_ROCTX_H

#include <rocprofiler-sdk-roctx/defines.h>
#include <rocprofiler-sdk-roctx/types.h>
#include <rocprofiler-sdk-roctx/version.h>

#include <stddef.h>
#include <stdint.h>

ROCTX_EXTERN_C_INIT

struct hsa_agent_s;
struct ihipStream_t;

/* A point in time. */
void roctxMarkA(const char *message) ROCTX_API ROCTX_NONNULL(1);

/* Ranges of a thread, one in another. The first answers the level of the new range, from 0; the
 * second that of the range that it ended, -1 where there was none. */
int roctxRangePushA(const char *message) ROCTX_API ROCTX_NONNULL(1);
int roctxRangePop(void) ROCTX_API;

/* Ranges of the process, which may end on another thread. */
roctx_range_id_t roctxRangeStartA(const char *message) ROCTX_API ROCTX_NONNULL(1);
void roctxRangeStop(roctx_range_id_t id) ROCTX_API;

/* Asks tools to pause and to go on, for a thread or, 0, all of them. 0: no objections. */
int roctxProfilerPause(roctx_thread_id_t tid) ROCTX_API;
int roctxProfilerResume(roctx_thread_id_t tid) ROCTX_API;

/* Names for tools to use. */
int roctxNameOsThread(const char *name) ROCTX_API ROCTX_NONNULL(1);
int roctxNameHsaAgent(const char *name, const struct hsa_agent_s *agent) ROCTX_API
	ROCTX_NONNULL(1, 2);
int roctxNameHipDevice(const char *name, int device_id) ROCTX_API ROCTX_NONNULL(1);
int roctxNameHipStream(const char *name, const struct ihipStream_t *stream) ROCTX_API
	ROCTX_NONNULL(1);

int roctxGetThreadId(roctx_thread_id_t *tid) ROCTX_API ROCTX_NONNULL(1);

ROCTX_EXTERN_C_FINI

#if !defined(roctxMark)
#define roctxMark(message) roctxMarkA(message)
#endif
#if !defined(roctxRangePush)
#define roctxRangePush(message) roctxRangePushA(message)
#endif
#if !defined(roctxRangeStart)
#define roctxRangeStart(message) roctxRangeStartA(message)
#endif

#endif

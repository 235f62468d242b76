/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * CUPTI's profilers of fake_cuda.c: a metric "fake__kernels" that counts a hundred a kernel (and
 * eight of CUPTI's own instructions where CUPTI makes a record of it in a range), and
 * "fake__share", always 50 %. Sets of more than three take two passes.
 *
 *   FAKE_CUPTI_RANGES=N    beginning to count kernels fails with N
 *   FAKE_CUPTI_SAMPLES=N   beginning to sample the device does
 *   FAKE_CUPTI_SLOW=MS     beginning to sample takes so long; the process must not end meanwhile
 */
#ifndef TESTS_PROGRAMS_CUDA_FAKE_PROFILER_H
#define TESTS_PROGRAMS_CUDA_FAKE_PROFILER_H

#include <stdint.h>

/* A kernel runs: one that is called "waits" does not end until one that is called "signals" has. */
void fake_profiler_kernel(const char *name, const void *stream, int is_recorded);
/* Something of the driver's or CUPTI's was called that takes time. */
void fake_profiler_called(void);
uint64_t fake_now(void);

#endif

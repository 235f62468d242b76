/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A session without kymo and without a runtime: a control page in memory, threads that are told
 * their blocks, samples that are made up.
 */
#ifndef KYMO_TESTS_CAUSAL_FAKE_H
#define KYMO_TESTS_CAUSAL_FAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "causal/state.h"

/* Code of targets: FAKE_CODE + 16 * id; below, nothing is in scope. */
#define FAKE_CODE    0x10000u
#define FAKE_TARGETS 64u
#define MS           1000000ull

extern struct causal_control *fake_control;
extern bool fake_at_breakpoint; /* samples are at one */

/* Everything anew; the calling thread is the first. */
int fake_begin(void **state);
int fake_end(void **state);
/* The calling thread is one of the program's from now on. */
struct thread *fake_thread(void);

/* A new epoch. */
void fake_experiment(uint32_t target, uint32_t permille);
void fake_sample(uint32_t target, uint64_t cpu_ns);
/* All of what samples earned becomes delay. */
void fake_release(void);
/* This much is owed by everybody else. */
void fake_owe(uint64_t ns);

uint64_t fake_delay_ns(void); /* local_delay of the calling thread, in this epoch */
uint64_t fake_most_ns(void);  /* global_delay, in this epoch */
uint64_t fake_count_ns(const _Atomic uint64_t *ticks);
uint64_t fake_now_ns(void);

/* A is B but for rounding and what is too little to be paid. */
void fake_assert_near(uint64_t a_ns, uint64_t b_ns);

#endif

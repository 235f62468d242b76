/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * For a thread without frames of Python that launches work in a program of Python: the frames of
 * the thread that launched by Python last, if that one has given up the interpreter's lock and
 * waits. PyTorch computes gradients so: backward() waits while a thread of C++ launches. Whether
 * the two have to do with each other is for readers to judge.
 *
 * The other thread's memory is read through the kernel, at most once in WAITING_PYTHON_PERIOD_US;
 * what was read then counts until the next time.
 */
#ifndef KYMO_LAUNCHES_WAITING_PYTHON_H
#define KYMO_LAUNCHES_WAITING_PYTHON_H

#include <stdint.h>

#include "core/interpreters/interpreters.h"

#define WAITING_PYTHON_FRAMES_MAX 64u
#define WAITING_PYTHON_PERIOD_US  1000u

struct thread;

/* What a launching thread knows of the other one. */
struct waiting_python {
	uint64_t next_ticks; /* when it looks again */
	uint64_t hash;       /* of the frames; 0: there are none */
	uint32_t count;
	uint32_t tid;                               /* of the other one */
	uint64_t interpreter_thread;                /* its interpreter's state, once it is known */
	uint64_t frames[WAITING_PYTHON_FRAMES_MAX]; /* innermost first */
	uint64_t items[2 * WAITING_PYTHON_FRAMES_MAX];
};

/* The calling thread launches, and has frames of Python. */
void waiting_python_note_launch(const struct thread *thread);
/* Looks again, if it is time. `scratch`: INTERPRETED_SCRATCH_SIZE bytes; the sink gets code that
 * was not met before. */
void waiting_python_refresh(struct waiting_python *waiting, const struct thread *own,
			    uint64_t ticks_per_second, uint8_t *scratch,
			    struct interpreted_code_sink sink);

#endif

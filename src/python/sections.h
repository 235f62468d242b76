/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Where only parts of the program are recorded: calls that the program makes in sections which it
 * marks (`with profile:`), or all calls once setup code has run. Each thread has sections of its
 * own.
 */
#ifndef KYMO_PYTHON_SECTIONS_H
#define KYMO_PYTHON_SECTIONS_H

#include <stdatomic.h>
#include <stdbool.h>

/* Values of python_sections_set(). */
enum python_recording {
	PYTHON_RECORDING_OFF, /* this thread is in no section */
	PYTHON_RECORDING_ON,
	PYTHON_RECORDING_EVERYWHERE /* sections are of no interest any more, in all threads */
};

extern _Atomic bool python_has_sections;
extern __thread int python_thread_recording;

/* Is the calling thread where calls are recorded? */
static inline bool python_is_recording(void)
{
	return __builtin_expect(!atomic_load_explicit(&python_has_sections, memory_order_relaxed) ||
					python_thread_recording,
				1);
}

/* The thread's value before. */
int python_sections_set(int recording);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See sections.h.
 */
#include "python/sections.h"

_Atomic bool python_has_sections;
__thread int python_thread_recording;

int python_sections_set(int recording)
{
	int before = python_thread_recording;

	if (recording == PYTHON_RECORDING_EVERYWHERE)
		atomic_store_explicit(&python_has_sections, false, memory_order_relaxed);
	else
		python_thread_recording = recording;
	return before;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What share/kymo/python/start/sitecustomize.py calls: which parts of a program in Python are
 * recorded.
 */
#include "libkymo/real.h"
#include "python/sections.h"

EXPORTED int kymo_python_set_recording(int recording);

EXPORTED int kymo_python_set_recording(int recording)
{
	return python_sections_set(recording);
}

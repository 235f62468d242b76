/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The moment between the program's own end and that of its libraries.
 *
 * exit(3) first calls what was registered since main() began, the last first, and then ends the
 * objects: the program, then libraries, each before those that it needs. What a library registers
 * by atexit(3) before main() is called with the end of that library. A tool needs the tool library,
 * so it has ended by then, and its static objects are gone. The program is the first of all
 * objects, and the last function of its DT_FINI_ARRAY the first that is called.
 */
#ifndef KYMO_LIBKYMO_SDK_RUNTIMES_PROGRAM_END_H
#define KYMO_LIBKYMO_SDK_RUNTIMES_PROGRAM_END_H

#include <stdbool.h>

/* Has `function` called there. Once. false: the program has no such array, or it cannot be
 * written. */
bool sdk_call_before_libraries_end(void (*function)(void));

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The library's own beginning, and forks.
 */
#ifndef KYMO_LIBKYMO_SDK_RUNTIMES_START_H
#define KYMO_LIBKYMO_SDK_RUNTIMES_START_H

/* Clock, barrier, fork handlers, backends. Once; cheap where it has been done. */
void sdk_initialize_library_once(void);
/* Tools are to be ended when the process is: before the ends of libraries, and before what was
 * registered by atexit(3) until now. Any number of times. */
void sdk_register_finalizers(void);

#endif

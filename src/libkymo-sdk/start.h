/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The library's own beginning, and forks.
 */
#ifndef KYMO_LIBKYMO_SDK_START_H
#define KYMO_LIBKYMO_SDK_START_H

/* Clock, barrier, fork handlers, backends. Once; cheap where it has been done. */
void sdk_start(void);
/* Tools are to be ended when the process is. */
void sdk_start_finalizers(void);
void sdk_start_finalizers_again(void); /* before what was registered since */

#endif

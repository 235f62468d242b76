/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The limit of file sizes (ulimit -f). Whoever writes past it gets SIGXFSZ, and dies of it unless
 * it is ignored; then write(2) and its like fail with EFBIG, which kymo can tell, going on without
 * the file. The program is to meet the limit as it would alone.
 */
#ifndef KYMO_LAUNCH_FILE_LIMIT_H
#define KYMO_LAUNCH_FILE_LIMIT_H

#include <stdbool.h>

/* Before anything is written. */
void file_limit_ignore_sigxfsz(void);
/* In a process that is about to execute another file: what kymo was started with. */
void file_limit_restore_sigxfsz(void);
/* Whether that is to die of it, for posix_spawn(3). */
bool file_limit_kills_programs(void);

#endif

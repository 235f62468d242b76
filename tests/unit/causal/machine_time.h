/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Before every file that is to live in a machine's time (machine.h): what those of src/causal take
 * from the processor and the kernel.
 */
#ifndef KYMO_TESTS_CAUSAL_MACHINE_TIME_H
#define KYMO_TESTS_CAUSAL_MACHINE_TIME_H

#include <stdint.h>

#include "common/syscalls.h"
#include "core/base/ticks.h"

uint64_t machine_now(void);
void machine_pause(void);
long machine_sleep(const struct timespec *time);

#define ticks_now()                   machine_now()
#define __builtin_ia32_pause()        machine_pause()
#define sys_call4(number, a, b, c, d) machine_sleep((const struct timespec *)(c))

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Code objects and their kernels, for as long as they are loaded.
 */
#ifndef KYMO_LIBKYMO_SDK_CODE_OBJECTS_H
#define KYMO_LIBKYMO_SDK_CODE_OBJECTS_H

#include <stdint.h>

/* The contexts' tool ends: unloading is reported to them for all that they know. */
void sdk_code_objects_report_unloads(uint64_t contexts);

#endif

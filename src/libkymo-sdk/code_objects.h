/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Code objects and their kernels, for as long as they are loaded.
 */
#ifndef KYMO_LIBKYMO_SDK_CODE_OBJECTS_H
#define KYMO_LIBKYMO_SDK_CODE_OBJECTS_H

#include <stdint.h>

/* The contexts' tool ends: they are told that what they know is unloaded. */
void sdk_code_objects_unload_for(uint64_t contexts);

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The number of elements of an array; of a pointer it would be nonsense.
 */
#ifndef KYMO_COMMON_ARRAY_H
#define KYMO_COMMON_ARRAY_H

#define ARRAY_SIZE(array) (sizeof(array) / sizeof(*(array)))

#endif

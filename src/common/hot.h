/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions that run within calls of the program: the linker puts them beside each other. Between
 * two such calls the program has had the caches for itself, and what counts is how many lines and
 * pages of code are to be fetched again.
 */
#ifndef KYMO_COMMON_HOT_H
#define KYMO_COMMON_HOT_H

#define KYMO_HOT __attribute__((hot))

#endif

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Libraries of tools stay for the life of the process, whoever closes them how often: the tool
 * itself, or a program that opened it. Their functions are called until the process ends, on
 * several threads; when the last of these calls has returned nobody knows.
 */
#ifndef KYMO_LIBKYMO_SDK_BASE_KEEP_LOADED_H
#define KYMO_LIBKYMO_SDK_BASE_KEEP_LOADED_H

/* The library that the function is in, with all that it needs; NULL: none. In configuration only:
 * the dynamic loader's lock is taken. */
void sdk_keep_library_of_function_loaded(void (*function)(void));

#endif

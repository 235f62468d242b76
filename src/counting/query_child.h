/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The child of counter_query_devices(): a tool of the tool library's.
 */
#ifndef KYMO_COUNTING_QUERY_CHILD_H
#define KYMO_COUNTING_QUERY_CHILD_H

/* Writes the answer to `to`. Ends the process. */
_Noreturn void counter_query_execute_in_child(const char *sdk, const char *definitions,
					      const char *const *lists, int to);

#endif

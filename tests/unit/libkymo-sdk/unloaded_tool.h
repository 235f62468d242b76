/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What unloaded_tool and its library have in common.
 */
struct unloaded_shared {
	int marks, finalized, has_finalize;
	void *own_handle; /* it closes itself at the first mark; NULL: it does not */
};

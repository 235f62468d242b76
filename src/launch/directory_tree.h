/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Copying and removing a directory with all that is in it, step by step by descriptors: no link is
 * followed, whoever may put one there meanwhile.
 */
#ifndef KYMO_LAUNCH_DIRECTORY_TREE_H
#define KYMO_LAUNCH_DIRECTORY_TREE_H

#include "common/problem.h"

/* Regular files and directories of `from` into `to`, which exists; what is there already under the
 * same name stays. 0 or negative errno. */
int directory_copy_tree(const char *from, const char *to, struct problem *problem);
void directory_remove_tree(const char *path);

#endif

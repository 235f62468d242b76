/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What opens_later.c opens: a constructor and a function, both of which call another one.
 */
static int volatile offset;

int later_function(int value);

__attribute__((noinline)) static int later_inner(int value)
{
	return value + offset;
}

__attribute__((constructor)) static void later_begins(void)
{
	offset = 1;
	offset = later_inner(0);
}

int later_function(int value)
{
	return later_inner(value) + value;
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * What the engine's test wraps.
 */
int got_sample_answer(int argument);
int got_sample_answer(int argument)
{
	return argument + 1;
}

int got_sample_other(int argument);
int got_sample_other(int argument)
{
	return argument + 2;
}

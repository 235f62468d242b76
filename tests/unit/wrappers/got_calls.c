/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * A library that calls, built once for each way that linkers bind calls. With OWN_ANSWER it has a
 * function of the wrapped name itself.
 */
int got_sample_answer(int argument);
int CALL(int argument);
int (**got_pointer(void))(int);
int (*const *got_constant(void))(int);

#ifdef OWN_ANSWER
int got_sample_answer(int argument)
{
	return argument + 1000;
}
#endif

int CALL(int argument)
{
	return got_sample_answer(argument);
}

#ifdef POINTERS
static int (*pointer)(int) = got_sample_answer;
static int (*const constant)(int) = got_sample_answer;

int (**got_pointer(void))(int)
{
	return &pointer;
}

int (*const *got_constant(void))(int)
{
	return &constant;
}
#endif

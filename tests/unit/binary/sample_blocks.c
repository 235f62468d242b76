/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Functions whose names say how many places their jump tables lead to and how many loops they have,
 * whatever the compiler and its options. Statements in assembly keep it from merging or
 * vectorizing.
 */
int cases_0_loops_0(int value);
int cases_0_loops_1(int value);
int cases_0_loops_1_long(int value);
int cases_0_loops_2_nested(int value);
int cases_0_loops_3_rows(int value);
int cases_8_loops_0(unsigned which, int value);
int cases_8_loops_0_signed(int which, int value);
int cases_8_loops_0_char(unsigned char which, int value);
int cases_9_loops_0_holes(unsigned which, int value);
int cases_8_loops_0_from_20(int which, int value);
int cases_8_loops_1(const unsigned char *program, int value);
int cases_16_loops_1_twice(const unsigned char *program, int value);
int cases_8_loops_0_open(unsigned which, int value);
int cases_8_loops_0_open_mask(unsigned which, int value);
int cases_8_loops_0_cold(unsigned which, int value);
int cases_0_loops_0_tail(int (*const *functions)(int), int which);
void rarely(int value) __attribute__((cold, noinline));

#define DO(number) __asm__ volatile("add $" #number ", %0" : "+r"(value))
#define CASE(number)                                                                               \
	case number:                                                                               \
		DO(number);                                                                        \
		break
#define EIGHT(a, b, c, d, e, f, g, h)                                                              \
	CASE(a);                                                                                   \
	CASE(b);                                                                                   \
	CASE(c);                                                                                   \
	CASE(d);                                                                                   \
	CASE(e);                                                                                   \
	CASE(f);                                                                                   \
	CASE(g);                                                                                   \
	CASE(h)

void rarely(int value)
{
	__asm__ volatile("" : : "r"(value));
}

int cases_0_loops_0(int value)
{
	if (value > 3)
		DO(1);
	else
		DO(2);
	return value;
}

int cases_0_loops_1(int value)
{
	while (value < 100)
		DO(1);
	return value;
}

int cases_0_loops_1_long(int value)
{
	for (int i = 0; i < 100; i++) {
		if (value & 1)
			DO(1);
		else
			DO(2);
		if (value == 77)
			continue;
		if (value == 99)
			break;
		DO(3);
	}
	return value;
}

int cases_0_loops_2_nested(int value)
{
	for (int i = 0; i < value; i++) {
		DO(1);
		for (int k = 0; k < value; k++)
			DO(2);
	}
	return value;
}

int cases_0_loops_3_rows(int value)
{
	for (int i = 0; i < value; i++)
		DO(1);
	for (int i = 0; i < value; i++)
		DO(2);
	for (int i = 0; i < value; i++)
		DO(3);
	return value;
}

int cases_8_loops_0(unsigned which, int value)
{
	switch (which) {
		EIGHT(0, 1, 2, 3, 4, 5, 6, 7);
	}
	return value;
}

int cases_8_loops_0_signed(int which, int value)
{
	switch (which) {
		EIGHT(0, 1, 2, 3, 4, 5, 6, 7);
	default:
		DO(77);
	}
	return value;
}

int cases_8_loops_0_char(unsigned char which, int value)
{
	switch (which) {
		EIGHT(0, 1, 2, 3, 4, 5, 6, 7);
	}
	return value;
}

int cases_9_loops_0_holes(unsigned which, int value)
{
	switch (which) {
		EIGHT(0, 1, 3, 4, 5, 7, 8, 9);
	default:
		DO(99);
	}
	return value;
}

int cases_8_loops_0_from_20(int which, int value)
{
	switch (which) {
		EIGHT(20, 21, 22, 23, 24, 25, 26, 27);
	}
	return value;
}

int cases_8_loops_1(const unsigned char *program, int value)
{
	while (value) {
		switch (*program++) {
			EIGHT(0, 1, 2, 3, 4, 5, 6, 7);
		default:
			DO(50);
		}
	}
	return value;
}

int cases_16_loops_1_twice(const unsigned char *program, int value)
{
	while (value) {
		switch (*program++) {
			EIGHT(0, 1, 2, 3, 4, 5, 6, 7);
		default:
			DO(50);
		}
		switch (*program++) {
			EIGHT(10, 11, 12, 13, 14, 15, 16, 17);
		default:
			DO(51);
		}
		DO(52);
	}
	return value;
}

int cases_8_loops_0_open(unsigned which, int value)
{
	switch (which) {
		EIGHT(0, 1, 2, 3, 4, 5, 6, 7);
	default:
		__builtin_unreachable();
	}
	return value;
}

int cases_8_loops_0_open_mask(unsigned which, int value)
{
	switch (which & 7) {
		EIGHT(0, 1, 2, 3, 4, 5, 6, 7);
	}
	return value;
}

int cases_8_loops_0_cold(unsigned which, int value)
{
	switch (which) {
		CASE(0);
		CASE(1);
		CASE(2);
	case 3:
		rarely(3);
		DO(3);
		break;
		CASE(4);
		CASE(5);
	case 6:
		rarely(6);
		DO(6);
		break;
		CASE(7);
	}
	return value;
}

int cases_0_loops_0_tail(int (*const *functions)(int), int which)
{
	return functions[which](which);
}

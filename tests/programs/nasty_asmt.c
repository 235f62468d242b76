/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Calls of the functions of nasty_entries.S, which engines displace wrongly.
 */
#include "nasty.h"

#define ROUNDS 1000
long as_loop_entry(long times, long value);
long as_loop_two(long times, long value);
long as_call_first(long value);
long as_jrcxz(long value);
long as_rip(long value);
long as_carries(long value);
long as_table(long which);
long as_where(void);
long as_middle(void);
long as_into_middle(long value);
long as_asks(void);
long as_short(long value);
void as_ret(void);

static void work(void)
{
	long sum = 0;

	for (long i = 0; i < ROUNDS; i++) {
		as_ret();
		sum += as_loop_entry(i % 7 + 1, i) + as_loop_two(i % 5 + 1, i) + as_call_first(i) +
		       as_jrcxz(i % 2);
		sum += as_rip(i) + as_carries(i) + as_table(i) + as_middle() + as_into_middle(i) +
		       as_short(i);
	}
	nasty_say("sum %ld, %ld behind the entry, return address %ld off\n", sum, as_where(),
		  as_asks());
	nasty_count("as_call_first", ROUNDS);
	nasty_count("as_rip", ROUNDS);
	nasty_count("as_carry", 2 * ROUNDS);
	nasty_count("as_table", ROUNDS);
	nasty_count("as_into_middle", ROUNDS);
}

int main(int argc, char **argv)
{
	return nasty_run(argc, argv, work);
}

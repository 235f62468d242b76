/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The user API in C++11: regions that end with their scope, however it is left.
 *
 *     find_package(kymo REQUIRED COMPONENTS user)
 *     target_link_libraries(regions PRIVATE kymo::user)
 */
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <kymo/user.hpp>

static long parse(const std::string &line)
{
	kymo::region region("parse", {{"line", line}, {"length", line.size()}});

	if (line.empty())
		throw std::invalid_argument("an empty line");
	return std::stol(line);
}

static long add(const std::vector<std::string> &lines)
{
	kymo::region region("demo", "add", {{"lines", lines.size()}});
	long sum = 0;

	for (const std::string &line : lines) {
		try {
			sum += parse(line);
		} catch (const std::exception &error) {
			kymo::mark("bad line", {{"why", error.what()}});
		}
		KYMO_PROGRESS;
	}
	return sum;
}

/* This thread records nothing until the end of the scope; regions of the user API stay. */
static void quietly()
{
	kymo::thread_trace_stopped stopped;
	std::vector<long> none(1000);
}

int main()
{
	long first = 0, second = 0;
	std::thread other([&] { first = add({"1", "2", "3"}); });

	second = add({"4", "", "x", "5"});
	other.join();
	quietly();
	kymo_flush();
	std::cout << first + second << "\n";
	return 0;
}

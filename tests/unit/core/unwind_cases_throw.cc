/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The C++ part of unwind_cases.h.
 */
extern "C" {
#include "unwind_cases.h"
}

#include <stdexcept>

namespace
{
struct callback_at_end {
	void (*callback)(void);
	~callback_at_end()
	{
		callback();
	}
};

[[gnu::noinline]] void descend(int depth, void (*callback)(void))
{
	callback_at_end guard = {callback};

	if (depth == 0)
		throw std::runtime_error("bottom");
	descend(depth - 1, callback);
}
} // namespace

extern "C" __attribute__((visibility("default"))) void case_throw(int depth, void (*callback)(void))
{
	try {
		descend(depth, callback);
	} catch (const std::exception &) {
		callback();
	}
}

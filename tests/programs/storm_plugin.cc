/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The library that storm.cc loads and unloads.
 */
#include <stdexcept>
#include <string>

extern "C" __attribute__((visibility("default"))) int plugin_throw(int value);

extern "C" int plugin_throw(int value)
{
	throw std::runtime_error("plugin " + std::to_string(value));
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The loader lock under fire: threads that dlopen() and dlclose() a library and throw exceptions
 * through it (which takes the loader's lock to find unwind tables), with malloc in between. A
 * handler that touches the loader or malloc deadlocks within a second.
 *
 * usage: storm [SECONDS]
 */
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static std::string plugin_path;
static std::atomic<bool> stop;
static std::atomic<long> opened, thrown, caught;

static void require(bool condition, const char *what)
{
	if (condition)
		return;
	std::fprintf(stderr, "storm: %s\n", what);
	std::_Exit(99);
}

static void open_and_close()
{
	while (!stop) {
		void *handle = dlopen(plugin_path.c_str(), RTLD_NOW | RTLD_LOCAL);
		require(handle != nullptr, "dlopen");
		auto function = reinterpret_cast<int (*)(int)>(dlsym(handle, "plugin_throw"));
		require(function != nullptr, "dlsym");
		try {
			function(41);
		} catch (const std::runtime_error &error) {
			require(std::string(error.what()) == "plugin 41", "exception text");
			opened++;
		}
		require(dlclose(handle) == 0, "dlclose");
	}
}

static int throw_deep(int depth)
{
	std::string keep(static_cast<size_t>(depth) + 20, 'x');

	if (depth == 0) {
		thrown++;
		throw std::out_of_range(keep);
	}
	return throw_deep(depth - 1) + static_cast<int>(keep.size());
}

static void throw_and_catch()
{
	while (!stop) {
		try {
			throw_deep(20);
		} catch (const std::out_of_range &) {
			caught++;
		}
	}
}

static void allocate()
{
	while (!stop) {
		std::map<int, std::vector<char>> blocks;

		for (int i = 0; i < 200; i++)
			blocks[i * 37 % 200].resize(static_cast<size_t>(i) * 64 + 1);
		require(blocks.size() == 200, "map");
	}
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? std::atof(argv[1]) : 1.0;
	std::vector<std::thread> threads;

	plugin_path = argv[0];
	plugin_path = plugin_path.substr(0, plugin_path.rfind('/') + 1) + "libstorm_plugin.so";
	threads.emplace_back(open_and_close);
	threads.emplace_back(open_and_close);
	threads.emplace_back(throw_and_catch);
	threads.emplace_back(allocate);
	std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
	stop = true;
	for (auto &thread : threads)
		thread.join();
	require(opened > 0 && caught > 0 && caught == thrown, "counts");
	std::puts("storm: OK");
	return 0;
}

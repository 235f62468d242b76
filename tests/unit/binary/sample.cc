// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the kymo authors
//
// Templates, lambdas and the standard library: many inlined calls, to compare with other tools.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace sample
{
template <typename T> class histogram
{
      public:
	void add(const T &value)
	{
		++counts[value];
	}
	template <typename F> void each(F visit) const
	{
		for (const auto &entry : counts)
			visit(entry.first, entry.second);
	}

      private:
	std::map<T, int> counts;
};

static std::vector<std::string> words(const std::string &text)
{
	std::istringstream in(text);
	std::vector<std::string> out;
	for (std::string word; in >> word;)
		out.push_back(word);
	std::sort(out.begin(), out.end(),
		  [](const std::string &a, const std::string &b) { return a.size() < b.size(); });
	return out;
}
} // namespace sample

int main(int argc, char **argv)
{
	sample::histogram<std::string> histogram;
	for (int i = 0; i < argc; i++) {
		for (const auto &word : sample::words(argv[i]))
			histogram.add(word);
	}
	int total = 0;
	std::thread counting(
		[&] { histogram.each([&](const std::string &, int count) { total += count; }); });
	counting.join();
	std::function<int(int)> twice = [](int x) { return 2 * x; };
	std::printf("%d\n", twice(total));
	return 0;
}

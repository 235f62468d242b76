// SPDX-License-Identifier: MIT
// SPDX-FileCopyrightText: the kymo authors
//
// Template-heavy C++ whose debug information is like that of large programs: thousands of
// functions, most of them inlined several levels deep. Compiled by symbolize_input.sh, never run.
#include <algorithm>
#include <deque>
#include <functional>
#include <future>
#include <iomanip>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

namespace heavy
{
template <int N, class T> struct box {
	T value;
	std::map<T, std::vector<std::string>> names;
	std::unordered_map<std::string, std::set<T>> index;
	void add(const T &t, const std::string &s)
	{
		names[t].push_back(s + std::to_string(N));
		index[s].insert(t);
		auto visit = [&](auto &&f) {
			for (auto &p : names)
				std::sort(p.second.begin(), p.second.end(), f);
		};
		visit([](const std::string &a, const std::string &b) {
			return a.size() + N < b.size();
		});
	}
	std::string show() const
	{
		std::ostringstream out;
		for (const auto &p : names)
			out << std::setw(N % 7) << p.first << p.second.size();
		std::regex pattern("a+(b|c)*" + std::to_string(N));
		return std::regex_replace(out.str(), pattern, "x");
	}
};
template <int N> double work(unsigned seed)
{
	std::mt19937_64 random(seed + N);
	box<N, double> a;
	box<N, long> b;
	box<N, std::string> c;
	std::deque<std::tuple<int, double, std::string>> queue;
	for (int i = 0; i < N * 10; i++) {
		auto x = std::normal_distribution<double>(N, 2)(random);
		a.add(x, std::to_string(i));
		b.add(long(x), std::to_string(i * 2));
		c.add(std::to_string(x), a.show());
		queue.emplace_back(i, x, b.show());
	}
	std::stable_sort(queue.begin(), queue.end());
	std::variant<int, double, std::string> v = c.show();
	std::function<double(double)> f = [&](double y) { return y + double(queue.size()); };
	auto future = std::async(std::launch::async, [&] { return f(N); });
	return future.get() + std::visit([](auto &&t) { return double(sizeof(t)); }, v);
}
template <int... I> double all(unsigned seed, std::integer_sequence<int, I...>)
{
	return (work<I>(seed) + ...);
}
} // namespace heavy
template <int N, class S> struct shift;
template <int N, int... I> struct shift<N, std::integer_sequence<int, I...>> {
	using type = std::integer_sequence<int, (I + N)...>;
};
double heavy_entry(unsigned seed)
{
	return heavy::all(seed, typename shift<1, std::make_integer_sequence<int, 8>>::type());
}

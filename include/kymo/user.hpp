/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The user API for C++11: regions that end with their scope, and values of whatever type.
 *
 *     kymo::region work("work", {{"bytes", size}, {"file", path}});
 */
#ifndef KYMO_USER_HPP
#define KYMO_USER_HPP

#include <initializer_list>
#include <string>

#include "kymo/user.h"

namespace kymo
{

/* A value with a name. Keeps no copy of texts: they have to live until the call that it is given to
 * returns. */
class annotation
{
      public:
	annotation(const char *name, const char *value) : name_(name), type_(KYMO_TEXT)
	{
		number_.pointer = value;
	}
	annotation(const char *name, const std::string &value) : annotation(name, value.c_str())
	{
	}
	annotation(const char *name, const void *value) : name_(name), type_(KYMO_POINTER)
	{
		number_.pointer = value;
	}
	annotation(const char *name, bool value)
	    : annotation(name, static_cast<unsigned long long>(value))
	{
	}
	annotation(const char *name, short value) : annotation(name, static_cast<long long>(value))
	{
	}
	annotation(const char *name, unsigned short value)
	    : annotation(name, static_cast<unsigned long long>(value))
	{
	}
	annotation(const char *name, int value) : annotation(name, static_cast<long long>(value))
	{
	}
	annotation(const char *name, unsigned value)
	    : annotation(name, static_cast<unsigned long long>(value))
	{
	}
	annotation(const char *name, long value) : annotation(name, static_cast<long long>(value))
	{
	}
	annotation(const char *name, unsigned long value)
	    : annotation(name, static_cast<unsigned long long>(value))
	{
	}
	annotation(const char *name, long long value) : name_(name), type_(KYMO_INT64)
	{
		number_.integer = value;
	}
	annotation(const char *name, unsigned long long value) : name_(name), type_(KYMO_UINT64)
	{
		number_.natural = value;
	}
	annotation(const char *name, float value) : annotation(name, static_cast<double>(value))
	{
	}
	annotation(const char *name, double value) : name_(name), type_(KYMO_DOUBLE)
	{
		number_.real = value;
	}

	/* Points into this object. */
	kymo_annotation c() const
	{
		bool direct = type_ == KYMO_TEXT || type_ == KYMO_POINTER;
		return kymo_annotation{name_, type_, direct ? number_.pointer : &number_};
	}

      private:
	const char *name_;
	kymo_type type_;
	union {
		const void *pointer;
		int64_t integer;
		uint64_t natural;
		double real;
	} number_;
};

/* As many values as one call takes; what is more is left out. */
enum { annotations_max = 16 };

/* A region from here to the end of the scope. `name` and `category` have to live as long. */
class region
{
      public:
	explicit region(const char *name) : category_(nullptr), name_(name)
	{
		kymo_push_region(name);
	}
	region(const char *name, std::initializer_list<annotation> values)
	    : region(nullptr, name, values)
	{
	}
	region(const char *category, const char *name,
	       std::initializer_list<annotation> values = {})
	    : category_(category), name_(name)
	{
		kymo_annotation list[annotations_max];
		kymo_push_category_region(category, name, list, fill(list, values));
	}
	~region()
	{
		kymo_pop_category_region(category_, name_, nullptr, 0);
	}
	region(const region &) = delete;
	region &operator=(const region &) = delete;

      private:
	friend int mark(const char *, std::initializer_list<annotation>);
	static size_t fill(kymo_annotation *list, const std::initializer_list<annotation> &values)
	{
		size_t count = 0;
		for (const annotation &value : values)
			if (count < annotations_max)
				list[count++] = value.c();
		return count;
	}
	const char *category_, *name_;
};

inline int mark(const char *name, std::initializer_list<annotation> values = {})
{
	kymo_annotation list[annotations_max];
	return kymo_annotated_mark(name, list, region::fill(list, values));
}

/* Tracing of this thread, or of the process, is stopped until the end of the scope. */
struct thread_trace_stopped {
	thread_trace_stopped()
	{
		kymo_stop_thread_trace();
	}
	~thread_trace_stopped()
	{
		kymo_start_thread_trace();
	}
	thread_trace_stopped(const thread_trace_stopped &) = delete;
	thread_trace_stopped &operator=(const thread_trace_stopped &) = delete;
};

} // namespace kymo

#endif

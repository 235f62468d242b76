/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See format.h.
 */
#include "output/format.h"

#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>

#include "common/utf8.h"

/* Three significant digits, whatever the size. */
static void format_three_digits_with_unit(struct quantity_text *quantity, double value,
					  const char *unit)
{
	int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

	snprintf(quantity->text, sizeof(quantity->text), "%.*f %s", decimals, value, unit);
}

struct quantity_text quantity_from_ns(uint64_t ns)
{
	struct quantity_text quantity;
	uint64_t minutes = ns / 60000000000u;

	if (ns < 1000)
		snprintf(quantity.text, sizeof(quantity.text), "%" PRIu64 " ns", ns);
	else if (ns < 999500)
		format_three_digits_with_unit(&quantity, (double)ns / 1e3, "us");
	else if (ns < 999500000)
		format_three_digits_with_unit(&quantity, (double)ns / 1e6, "ms");
	else if (minutes < 10)
		format_three_digits_with_unit(&quantity, (double)ns / 1e9, "s");
	else if (minutes < 60)
		snprintf(quantity.text, sizeof(quantity.text), "%" PRIu64 " min %02" PRIu64 " s",
			 minutes, ns / 1000000000u % 60);
	else
		snprintf(quantity.text, sizeof(quantity.text), "%" PRIu64 " h %02" PRIu64 " min",
			 minutes / 60, minutes % 60);
	return quantity;
}

struct quantity_text quantity_from_bytes(uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	struct quantity_text quantity;
	double value = (double)bytes;
	unsigned unit = 0;

	while (value >= 1023.5 && unit < 4) {
		value /= 1024;
		unit++;
	}
	if (unit == 0)
		snprintf(quantity.text, sizeof(quantity.text), "%" PRIu64 " B", bytes);
	else
		format_three_digits_with_unit(&quantity, value, units[unit]);
	return quantity;
}

struct quantity_text quantity_from_count(uint64_t count)
{
	struct quantity_text quantity;
	char digits[24];
	int length = snprintf(digits, sizeof(digits), "%" PRIu64, count);
	size_t out = 0;

	for (int i = 0; i < length; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			quantity.text[out++] = ',';
		quantity.text[out++] = digits[i];
	}
	quantity.text[out] = 0;
	return quantity;
}

struct quantity_text quantity_from_share(uint64_t part, uint64_t whole)
{
	struct quantity_text quantity = {"-"};

	if (whole)
		snprintf(quantity.text, sizeof(quantity.text), "%.1f %%",
			 100.0 * (double)part / (double)whole);
	return quantity;
}

struct quantity_text quantity_from_measure(uint64_t value, enum view_measure_kind measure)
{
	return measure == VIEW_MEASURE_COUNTER_EVENTS ? quantity_from_count(value)
						      : quantity_from_ns(value);
}

/* ---- text in columns ---- */

/* Bytes of the next character, and what to write for it. */
static size_t decode_printable_character(const char *text, const char **shown, size_t *shown_size)
{
	return utf8_next_printable_character(text, strnlen(text, 4), shown, shown_size);
}

/* Most text is of such characters, which are written in one piece. */
static size_t count_plain_characters(const char *text, size_t count)
{
	size_t plain = 0;

	while (plain < count && text[plain] >= ' ' && text[plain] < 0x7f)
		plain++;
	return plain;
}

size_t format_count_text_columns(const char *text)
{
	const char *shown;
	size_t columns = 0, size;

	while (*text) {
		size_t plain = count_plain_characters(text, SIZE_MAX);

		columns += plain ? plain : 1;
		text += plain ? plain : decode_printable_character(text, &shown, &size);
	}
	return columns;
}

static void write_character_range(FILE *stream, const char *text, size_t skip, size_t count)
{
	const char *shown;
	size_t size;

	while (*text && skip > 0) {
		size_t plain = count_plain_characters(text, skip);

		skip -= plain ? plain : 1;
		text += plain ? plain : decode_printable_character(text, &shown, &size);
	}
	while (*text && count > 0) {
		size_t plain = count_plain_characters(text, count);

		fwrite(text, 1, plain, stream);
		text += plain;
		count -= plain;
		if (plain || !*text)
			continue;
		text += decode_printable_character(text, &shown, &size);
		fwrite(shown, 1, size, stream);
		count--;
	}
}

size_t format_write_printable_text(FILE *stream, const char *text, size_t size)
{
	size_t columns = 0;

	for (size_t i = 0; i < size; columns++) {
		const char *shown;
		size_t shown_size;

		i += utf8_next_printable_character(text + i, size - i, &shown, &shown_size);
		fwrite(shown, 1, shown_size, stream);
	}
	return columns;
}

size_t format_write_cut_to_width(FILE *stream, const char *text, size_t width)
{
	size_t columns = format_count_text_columns(text), tail;

	if (columns <= width || width < 8) {
		write_character_range(stream, text, 0, width);
		return columns < width ? columns : width;
	}
	tail = (width - 3) / 3;
	write_character_range(stream, text, 0, width - 3 - tail);
	fputs("...", stream);
	write_character_range(stream, text, columns - tail, tail);
	return width;
}

void format_write_padded_to_width(FILE *stream, const char *text, size_t width)
{
	size_t used = format_write_cut_to_width(stream, text, width);

	fprintf(stream, "%*s", (int)(width - used), "");
}

const char *format_find_source_name(const char *path)
{
	const char *last = path, *before = path;

	for (const char *at = path; *at; at++) {
		if (*at == '/' && at[1]) {
			before = last;
			last = at + 1;
		}
	}
	return strncmp(last, "__init__.", 9) && strncmp(last, "__main__.", 9) ? last : before;
}

void format_interpreted_function(char *buffer, size_t size, const struct model_frame *frame,
				 uint32_t line)
{
	if (frame->file && *frame->file)
		snprintf(buffer, size, "%s (%s:%u)", frame->function,
			 format_find_source_name(frame->file), line);
	else
		snprintf(buffer, size, "%s", frame->function);
}

void format_function_with_module(char *buffer, size_t size, const struct session *session,
				 uint32_t frame)
{
	const struct model_frame *it = &session->frames[frame];

	if (it->kind == FRAME_INTERPRETED)
		format_interpreted_function(buffer, size, it, it->function_line);
	else if (it->module == MODEL_ENTRY_INDEX_NONE || it->function[0] == '[')
		snprintf(buffer, size, "%s", it->function);
	else
		snprintf(buffer, size, "%s (%s)", it->function, session->modules[it->module].name);
}

void format_process_name(char *buffer, size_t size, const struct model_process *process)
{
	if (process->rank_count)
		snprintf(buffer, size, "%s [%u] rank %u", process->name, process->pid,
			 process->rank);
	else
		snprintf(buffer, size, "%s [%u]", process->name, process->pid);
}

const char *session_get_overflow_event_name(const struct session *session)
{
	const char *event = session_find_launch_setting(session, "SAMPLING_OVERFLOW_EVENT");

	return event && *event ? event : "events";
}

void format_wait_status(char *buffer, size_t size, int wait_status)
{
	if (wait_status < 0)
		snprintf(buffer, size, "end unknown");
	else if (WIFSIGNALED(wait_status))
		snprintf(buffer, size, "killed by SIG%s%s", sigabbrev_np(WTERMSIG(wait_status)),
			 WCOREDUMP(wait_status) ? " (core dumped)" : "");
	else
		snprintf(buffer, size, "exit status %d", WEXITSTATUS(wait_status));
}

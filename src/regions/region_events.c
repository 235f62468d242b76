/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See regions.h: instants, values, and calls that are recorded at their end.
 */
#include "core/base/ticks.h"
#include "core/sampler.h"
#include "regions/reentry_guard.h"
#include "regions/stream.h"

static void write_whole_region_record(struct region_thread_state *thread, region_id region,
				      uint64_t begin_ticks, uint64_t end_ticks)
{
	uint8_t *record = stream_reserve_record(thread, STREAM_RECORD_ROOM_BYTES, end_ticks), *at;

	if (!record) {
		spool_count_loss(kymo_regions.spool, SPOOL_LOSS_REGION_EVENTS);
		return;
	}
	record[0] = SPOOL_RECORD_REGION_WHOLE;
	at = leb128_write(record + 2,
			  stream_advance_ticks_and_get_delta(&thread->stream, end_ticks));
	at = leb128_write(at, end_ticks - begin_ticks);
	at = leb128_write(at, region & REGION_NUMBER_MASK);
	record[1] = (uint8_t)(at - record - 2);
	stream_commit_record(&thread->stream, at);
	thread->may_attach_values = true;
}

/* The thread's state for an instant of the region; values that follow belong to nothing yet. */
static struct region_thread_state *enter_thread_for_instant(region_id region)
{
	struct region_thread_state *thread;

	region_forbid_values_until_event();
	thread = region ? region_guard_try_enter() : NULL;
	if (thread)
		thread->may_attach_values = false;
	return thread;
}

/* Did a call that ended behind a window begin in it? Readers cut off what is behind it. */
static bool call_was_in_window(uint64_t begin_ticks)
{
	return kymo_regions.has_windows &&
	       region_load_closed_reason_bits() == CONTROL_CLOSED_BY_WINDOW &&
	       begin_ticks < atomic_load(&kymo_regions.control->window_close_ticks) &&
	       atomic_load(&kymo_regions.control->opened_window_count);
}

void region_write_whole_call(region_id region, uint64_t begin_ticks, uint64_t end_ticks)
{
	struct region_thread_state *thread = enter_thread_for_instant(region);

	if (!thread)
		return;
	if (region_event_is_wanted(thread, region) || call_was_in_window(begin_ticks)) {
		if (kymo_regions.keeps_profile && region_event_is_wanted(thread, region))
			region_add_whole_call_to_profile(thread, region, begin_ticks, end_ticks);
		if (kymo_regions.records_events)
			write_whole_region_record(thread, region, begin_ticks, end_ticks);
	}
	region_guard_exit(thread);
}

void region_record_mark(struct region_thread_state *thread, region_id region)
{
	if (!kymo_regions.records_events || !region_event_is_wanted(thread, region))
		return;
	thread->may_attach_values =
		stream_write_record(thread, SPOOL_RECORD_MARK, region_get_event_ticks(thread),
				    region & REGION_NUMBER_MASK);
	if (!thread->may_attach_values)
		spool_count_loss(kymo_regions.spool, SPOOL_LOSS_REGION_EVENTS);
}

void region_write_mark(region_id region)
{
	struct region_thread_state *thread;

	if (region_thread_is_busy() && region_reserve_event(REGION_RESERVED_MARK, region, 0))
		return;
	thread = enter_thread_for_instant(region);
	if (!thread)
		return;
	region_record_mark(thread, region);
	region_guard_exit(thread);
}

/* dt, then numbers; `fixed` in 8 bytes behind them. */
static void write_instant_record(struct region_thread_state *thread, enum spool_record kind,
				 uint64_t first, const uint64_t *second, const uint64_t *fixed)
{
	uint64_t ticks = region_get_event_ticks(thread);
	uint8_t *record = stream_reserve_record(thread, STREAM_RECORD_ROOM_BYTES, ticks), *at;

	thread->may_attach_values = false;
	if (!record) {
		spool_count_loss(kymo_regions.spool, SPOOL_LOSS_REGION_EVENTS);
		return;
	}
	record[0] = (uint8_t)kind;
	at = leb128_write(record + 2, stream_advance_ticks_and_get_delta(&thread->stream, ticks));
	at = leb128_write(at, first);
	if (second)
		at = leb128_write(at, *second);
	if (fixed)
		at = write_fixed64_little_endian(at, *fixed);
	record[1] = (uint8_t)(at - record - 2);
	stream_commit_record(&thread->stream, at);
}

void region_record_counter(struct region_thread_state *thread, region_id region, uint64_t bits)
{
	if (kymo_regions.records_events && region_event_is_wanted(thread, region))
		write_instant_record(thread, SPOOL_RECORD_COUNTER, region & REGION_NUMBER_MASK,
				     NULL, &bits);
}

void region_record_progress(struct region_thread_state *thread, region_id region,
			    enum spool_progress kind)
{
	uint64_t number = region & REGION_NUMBER_MASK;

	if (kymo_regions.records_events && region_event_is_wanted(thread, region))
		write_instant_record(thread, SPOOL_RECORD_PROGRESS, kind, &number, NULL);
}

void region_write_counter(region_id counter, uint64_t real_bits)
{
	struct region_thread_state *thread;

	if (region_thread_is_busy() &&
	    region_reserve_event(REGION_RESERVED_COUNTER, counter, real_bits))
		return;
	thread = enter_thread_for_instant(counter);
	if (!thread)
		return;
	region_record_counter(thread, counter, real_bits);
	region_guard_exit(thread);
}

void region_write_progress(region_id point, enum spool_progress kind)
{
	struct region_thread_state *thread;

	if (region_thread_is_busy() && region_reserve_event(REGION_RESERVED_PROGRESS, point, kind))
		return;
	thread = enter_thread_for_instant(point);
	if (!thread)
		return;
	region_record_progress(thread, point, kind);
	region_guard_exit(thread);
}

#define VALUE_TEXT_LENGTH_MAX 1024u /* longer texts are cut */

static uint32_t get_bounded_value_text_length(const char *text)
{
	uint32_t length = 0;

	while (text && length < VALUE_TEXT_LENGTH_MAX && text[length])
		length++;
	return length;
}

static uint8_t *encode_text_with_length(uint8_t *at, const char *text, uint32_t length)
{
	at = leb128_write(at, length);
	for (uint32_t i = 0; i < length; i++)
		*at++ = (uint8_t)text[i];
	return at;
}

static void write_region_value(struct region_thread_state *thread, const struct region_value *value)
{
	uint32_t name = get_bounded_value_text_length(value->name),
		 text = value->type == SPOOL_VALUE_TEXT ? get_bounded_value_text_length(value->text)
							: 8;
	uint32_t size = 8 + name + text; /* at most */
	struct region_record_stream *stream = &thread->stream;
	size_t room = (size_t)(stream->chunk_end - stream->at);
	uint8_t *at;

	/* Values follow their event in one chunk. */
	if (room < size) {
		if (value->type != SPOOL_VALUE_TEXT || room < size - text) {
			spool_count_loss(kymo_regions.spool, SPOOL_LOSS_REGION_EVENTS);
			return;
		}
		text -= (uint32_t)(size - room);
	}
	at = stream->at;
	*at++ = SPOOL_RECORD_ANNOTATION;
	at += 2; /* length, in two bytes */
	at = leb128_write(at, value->type);
	at = encode_text_with_length(at, value->name, name);
	if (value->type == SPOOL_VALUE_TEXT)
		at = encode_text_with_length(at, value->text, text);
	else
		at = write_fixed64_little_endian(at, value->number);
	size = (uint32_t)(at - stream->at - 3);
	stream->at[1] = (uint8_t)(size | 0x80);
	stream->at[2] = (uint8_t)(size >> 7);
	stream_commit_record(stream, at);
}

void region_attach_interpreted_caller(void)
{
	struct region_value caller = {.name = "caller", .type = SPOOL_VALUE_ADDRESS};

	if (!kymo_thread || !stack_may_be_interpreted())
		return;
	caller.number = sampler_find_interpreted_caller(kymo_thread);
	if (caller.number)
		region_values(&caller, 1);
}

void region_values(const struct region_value *values, size_t count)
{
	struct region_thread_state *thread = kymo_region_thread ? region_guard_try_enter() : NULL;

	if (!thread)
		return;
	for (size_t i = 0; thread->may_attach_values && i < count; i++)
		write_region_value(thread, &values[i]);
	region_guard_exit(thread);
}

/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See regions.h: instants, values, and calls that are told at their end.
 */
#include "core/ticks.h"
#include "regions/gate.h"
#include "regions/stream.h"

static void write_whole(struct region_thread *thread, region_id region, uint64_t begin_ticks,
			uint64_t end_ticks)
{
	uint8_t *record = stream_record(thread, STREAM_ROOM, end_ticks), *at;

	if (!record) {
		spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_REGION_EVENTS);
		return;
	}
	record[0] = SPOOL_RECORD_REGION_WHOLE;
	at = leb128_put(record + 2, stream_delta(&thread->stream, end_ticks));
	at = leb128_put(at, end_ticks - begin_ticks);
	at = leb128_put(at, region & REGION_NUMBER);
	record[1] = (uint8_t)(at - record - 2);
	stream_commit(&thread->stream, at);
	thread->values_allowed = true;
}

/* The thread's state for an instant of the region; values that follow belong to nothing yet. */
static struct region_thread *enter_for(region_id region)
{
	struct region_thread *thread;

	region_forbid_values();
	thread = region ? region_enter() : NULL;
	if (thread)
		thread->values_allowed = false;
	return thread;
}

void region_whole(region_id region, uint64_t begin_ticks, uint64_t end_ticks)
{
	struct region_thread *thread = enter_for(region);

	if (!thread)
		return;
	if (region_is_open(thread, region)) {
		if (kymo_regions.profile)
			region_profile_whole(thread, region, begin_ticks, end_ticks);
		if (kymo_regions.trace)
			write_whole(thread, region, begin_ticks, end_ticks);
	}
	region_leave(thread);
}

void region_mark(region_id region)
{
	struct region_thread *thread = enter_for(region);

	if (!thread)
		return;
	if (kymo_regions.trace && region_is_open(thread, region)) {
		thread->values_allowed = stream_write(thread, SPOOL_RECORD_MARK, ticks_now(),
						      region & REGION_NUMBER);
		if (!thread->values_allowed)
			spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_REGION_EVENTS);
	}
	region_leave(thread);
}

/* dt, then numbers; `fixed` in 8 bytes behind them. */
static void write_instant(struct region_thread *thread, enum spool_record kind, uint64_t first,
			  const uint64_t *second, const uint64_t *fixed)
{
	uint64_t ticks = ticks_now();
	uint8_t *record = stream_record(thread, STREAM_ROOM, ticks), *at;

	thread->values_allowed = false;
	if (!record) {
		spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_REGION_EVENTS);
		return;
	}
	record[0] = (uint8_t)kind;
	at = leb128_put(record + 2, stream_delta(&thread->stream, ticks));
	at = leb128_put(at, first);
	if (second)
		at = leb128_put(at, *second);
	if (fixed)
		at = leb128_put_fixed(at, *fixed);
	record[1] = (uint8_t)(at - record - 2);
	stream_commit(&thread->stream, at);
}

void region_counter(region_id counter, uint64_t real_bits)
{
	struct region_thread *thread = enter_for(counter);

	if (!thread)
		return;
	if (kymo_regions.trace && region_is_open(thread, counter))
		write_instant(thread, SPOOL_RECORD_COUNTER, counter & REGION_NUMBER, NULL,
			      &real_bits);
	region_leave(thread);
}

void region_progress(region_id point, enum spool_progress kind)
{
	struct region_thread *thread = enter_for(point);
	uint64_t number = point & REGION_NUMBER;

	if (!thread)
		return;
	if (kymo_regions.trace && region_is_open(thread, point))
		write_instant(thread, SPOOL_RECORD_PROGRESS, kind, &number, NULL);
	region_leave(thread);
}

#define VALUE_TEXT_MAX 1024u /* longer texts are cut */

static uint32_t length_of(const char *text)
{
	uint32_t length = 0;

	while (text && length < VALUE_TEXT_MAX && text[length])
		length++;
	return length;
}

static uint8_t *put_text(uint8_t *at, const char *text, uint32_t length)
{
	at = leb128_put(at, length);
	for (uint32_t i = 0; i < length; i++)
		*at++ = (uint8_t)text[i];
	return at;
}

static void write_value(struct region_thread *thread, const struct region_value *value)
{
	uint32_t name = length_of(value->name),
		 text = value->type == SPOOL_VALUE_TEXT ? length_of(value->text) : 8;
	uint32_t size = 8 + name + text; /* at most */
	struct region_stream *stream = &thread->stream;
	size_t room = (size_t)(stream->limit - stream->at);
	uint8_t *at;

	/* Values follow their event in one chunk. */
	if (room < size) {
		if (value->type != SPOOL_VALUE_TEXT || room < size - text) {
			spool_count_loss(&kymo_runtime.spool, SPOOL_LOSS_REGION_EVENTS);
			return;
		}
		text -= (uint32_t)(size - room);
	}
	at = stream->at;
	*at++ = SPOOL_RECORD_ANNOTATION;
	at += 2; /* length, in two bytes */
	at = leb128_put(at, value->type);
	at = put_text(at, value->name, name);
	if (value->type == SPOOL_VALUE_TEXT)
		at = put_text(at, value->text, text);
	else
		at = leb128_put_fixed(at, value->number);
	size = (uint32_t)(at - stream->at - 3);
	stream->at[1] = (uint8_t)(size | 0x80);
	stream->at[2] = (uint8_t)(size >> 7);
	stream_commit(stream, at);
}

void region_values(const struct region_value *values, size_t count)
{
	struct region_thread *thread = kymo_region_thread ? region_enter() : NULL;

	if (!thread)
		return;
	for (size_t i = 0; thread->values_allowed && i < count; i++)
		write_value(thread, &values[i]);
	region_leave(thread);
}

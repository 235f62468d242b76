/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * Tasks of asyncio: whose coroutines are in a stack, by name, and which tasks wait for them.
 *
 * Up to 3.13, _asyncio has a dictionary that says which task each event loop runs. It is an
 * attribute of the module and lives as long; the background thread looks for it where coroutines
 * have been met. A task in it is believed to be that of a stack when its coroutine is the object of
 * one of the stack's frames. So a dictionary that another thread changes meanwhile, or a wrong
 * offset, can hide a name and never give a wrong one.
 *
 * Up to that point all is read through the kernel: the thread may have been interrupted while it
 * changed the dictionary. python_waiters.c says what is read directly after that.
 */
#include "core/interpreters/python_walk.h"

#include <string.h>

#define OBJECT_TYPE_OFFSET 8
#define OBJECT_SIZE_OFFSET 16
#define MODULE_DICT_OFFSET 16
/* PyCodeObject.co_flags, up to 3.10 and later */
#define CODE_FLAGS_BEFORE   36
#define CODE_FLAGS_AFTER    48
#define CODE_FLAG_COROUTINE 0x80u
/* str: of one byte a character, compact, ASCII */
#define STRING_STATE_OFFSET     32
#define STRING_STATE_TEXT_MASK  0x7c
#define STRING_STATE_ASCII_TEXT 0x64
/* int from 3.12 on, the first version whose tasks have numbers in the place of names: lv_tag, and
 * digits of 30 bits */
#define INTEGER_TAG_OFFSET    16
#define INTEGER_DIGITS_OFFSET 24
#define INTEGER_DIGIT_BITS    30

#define DICT_USED_OFFSET     16
#define DICT_KEYS_OFFSET     32
#define DICT_HEAD_BYTES      48
#define KEYS_HEAD_BYTES      40
#define KEYS_SMALL_BYTES     168 /* of a dictionary with five entries, the smallest */
#define DICT_ENTRIES_MAX     65536u
#define DICT_ENTRY_WORDS_MAX 3u
#define ENTRIES_PART         16u
#define RUNNING_TASKS_MAX    64u

#define TASK_NAME_BYTES   200u
#define TASK_LABEL_OFFSET 4096u /* in the scratch: behind the description of a name */
#define TASK_WAITERS_MAX  4u

struct dictionary {
	uint64_t type, keys, entries; /* addresses */
	uint32_t count, entry_words;
	/* Of a small one, what is read at once; has_all: it is. */
	uint64_t words[KEYS_SMALL_BYTES / 8];
	bool has_all;
};

/* ---- dictionaries ---- */

/* `walk` NULL: on the background thread, which has time. */
static bool read_object(struct interpreted_walk *walk, uint64_t address, void *to, size_t size)
{
	return memory_is_plausible_pointer(address) &&
	       (walk ? interpreted_walk_read_checked(walk, address, to, size)
		     : memory_read_checked(address, to, size));
}

/* PyDictKeysObject: the size of its index and of an entry, before and from 3.11 on. */
static void read_keys_head(const struct python_layout *layout, uint64_t keys, const uint64_t *head,
			   struct dictionary *ret)
{
	if (layout->minor < 11) {
		uint64_t slots = head[1];
		uint32_t index_bytes = slots <= UINT8_MAX ? 1 : slots <= UINT16_MAX ? 2 : 4;

		ret->count = head[4] <= DICT_ENTRIES_MAX ? (uint32_t)head[4] : 0;
		ret->entries = slots <= 4 * DICT_ENTRIES_MAX ? keys + 40 + slots * index_bytes : 0;
		ret->entry_words = 3;
		return;
	}
	ret->count = head[3] <= DICT_ENTRIES_MAX ? (uint32_t)head[3] : 0;
	ret->entries = (head[1] >> 8 & 255) < 24 ? keys + 32 + (1ull << (head[1] >> 8 & 255)) : 0;
	ret->entry_words = head[1] >> 16 & 255 ? 2 : 3; /* keys are strings, without their hash */
}

static bool open_dictionary(struct interpreted_walk *walk, const struct python_layout *layout,
			    uint64_t address, struct dictionary *ret)
{
	uint64_t words[DICT_HEAD_BYTES / 8];

	if (!read_object(walk, address, words, sizeof(words)))
		return false;
	ret->count = 0;
	ret->type = words[OBJECT_TYPE_OFFSET / 8];
	ret->keys = words[DICT_KEYS_OFFSET / 8];
	if (!words[DICT_USED_OFFSET / 8])
		return true;
	/* It may lie at the end of what can be read. */
	ret->has_all = read_object(walk, ret->keys, ret->words, sizeof(ret->words));
	if (!ret->has_all && !read_object(walk, ret->keys, ret->words, KEYS_HEAD_BYTES))
		return false;
	read_keys_head(layout, ret->keys, ret->words, ret);
	return ret->entries != 0;
}

static bool read_entries(struct interpreted_walk *walk, const struct dictionary *dictionary,
			 uint32_t first, uint32_t count, uint64_t *to)
{
	uint32_t size = dictionary->entry_words * 8;
	uint64_t offset = dictionary->entries - dictionary->keys + (uint64_t)first * size;

	if (dictionary->has_all && offset + (uint64_t)count * size <= sizeof(dictionary->words)) {
		memcpy(to, (const uint8_t *)dictionary->words + offset, (size_t)count * size);
		return true;
	}
	return read_object(walk, dictionary->entries + (uint64_t)first * size, to,
			   (size_t)count * size);
}

/* ---- the search ---- */

static bool is_text(const struct python_layout *layout, uint64_t object, const char *text)
{
	uint8_t bytes[64];
	uint64_t length;
	size_t size = strlen(text);

	if (!memory_is_plausible_pointer(object) ||
	    !memory_read_checked(object, bytes, layout->string_ascii))
		return false;
	memcpy(&length, bytes + OBJECT_SIZE_OFFSET, sizeof(length));
	return length == size && size <= sizeof(bytes) &&
	       memory_read_checked(object + layout->string_ascii, bytes, size) &&
	       !memcmp(bytes, text, size);
}

/* The value of a key; 0: there is none. What was added last is looked at first. */
static uint64_t find_in_dictionary(const struct python_layout *layout, uint64_t address,
				   const char *key, uint64_t *ret_type)
{
	uint64_t entries[ENTRIES_PART * DICT_ENTRY_WORDS_MAX];
	struct dictionary dictionary;

	if (!open_dictionary(NULL, layout, address, &dictionary))
		return 0;
	*ret_type = dictionary.type;
	for (uint32_t left = dictionary.count; left;) {
		uint32_t part = left < ENTRIES_PART ? left : ENTRIES_PART;

		left -= part;
		if (!read_entries(NULL, &dictionary, left, part, entries))
			return 0;
		for (uint32_t i = part; i-- > 0;) {
			const uint64_t *end = &entries[(i + 1) * dictionary.entry_words];

			if (end[-1] && is_text(layout, end[-2], key))
				return end[-1];
		}
	}
	return 0;
}

void python_tasks_search(struct interpreter *interpreter)
{
	const struct python_layout *layout = interpreter->layout;
	uint64_t owner = atomic_load_explicit(&interpreter->wanted, memory_order_acquire);
	uint64_t modules, module, names, type, found;

	if (!memory_read_checked(owner + layout->interpreter_modules, &modules, sizeof(modules)))
		return;
	module = find_in_dictionary(layout, modules, "_asyncio", &type);
	if (!module || !memory_read_checked(module + MODULE_DICT_OFFSET, &names, sizeof(names)))
		return;
	found = find_in_dictionary(layout, names, "_current_tasks", &type);
	if (!found)
		return;
	atomic_store_explicit(&interpreter->running_tasks_owner, 0, memory_order_seq_cst);
	atomic_store_explicit(&interpreter->running_tasks, found, memory_order_seq_cst);
	atomic_store_explicit(&interpreter->running_tasks_owner, owner, memory_order_seq_cst);
	atomic_store_explicit(&interpreter->wanted, 0, memory_order_relaxed);
}

/* ---- names ---- */

static uint32_t write_number(uint64_t number, uint8_t *to)
{
	uint8_t digits[20];
	uint32_t count = 0;

	do {
		digits[count++] = (uint8_t)('0' + number % 10);
		number /= 10;
	} while (number);
	for (uint32_t i = 0; i < count; i++)
		to[i] = digits[count - 1 - i];
	return count;
}

/* From 3.12 on, a task that was given no name has a number until it is asked for its name. */
static uint32_t write_automatic_name(struct python_walk *python, uint64_t name, uint8_t *to)
{
	static const char prefix[] = "Task-";
	uint64_t integer[INTEGER_DIGITS_OFFSET / 8 + 1], number;

	if (python->layout->minor < 12 ||
	    !python_read_object(python, name, integer, sizeof(integer)))
		return 0;
	number = (uint32_t)integer[INTEGER_DIGITS_OFFSET / 8];
	if (integer[INTEGER_TAG_OFFSET / 8] >> 3 > 1)
		number |= (integer[INTEGER_DIGITS_OFFSET / 8] >> 32) << INTEGER_DIGIT_BITS;
	memcpy(to, prefix, sizeof(prefix) - 1);
	return (uint32_t)sizeof(prefix) - 1 + write_number(number, to + sizeof(prefix) - 1);
}

/* What python_copy_text() does, of most texts without a system call: a word of memory that has one
 * byte of an object can be read. */
static bool copy_name(struct python_walk *python, uint64_t name, uint8_t *to, uint32_t *ret_size)
{
	uint64_t head[STRING_STATE_OFFSET / 8 + 1], word;

	if (!python->reads_objects_directly ||
	    !python_read_object(python, name, head, sizeof(head)) ||
	    (head[STRING_STATE_OFFSET / 8] & STRING_STATE_TEXT_MASK) != STRING_STATE_ASCII_TEXT ||
	    head[OBJECT_SIZE_OFFSET / 8] > TASK_NAME_BYTES)
		return python_copy_text(python->layout, name, python->walk->merge->scratch, to,
					TASK_NAME_BYTES, ret_size);
	*ret_size = (uint32_t)head[OBJECT_SIZE_OFFSET / 8];
	for (uint32_t at = 0; at < *ret_size; at += 8) {
		uint32_t part = *ret_size - at < 8 ? *ret_size - at : 8;

		memory_read_directly(name + python->layout->string_ascii + at, &word, sizeof(word));
		memcpy(to + at, &word, part);
	}
	return true;
}

/* The item of a task's frame; 0: it has none. */
static uint64_t make_task_item(struct python_walk *python, const struct python_task *task)
{
	static const char begin[] = "[task ";
	uint8_t *label = python->walk->merge->scratch + TASK_LABEL_OFFSET,
		*name = label + sizeof(begin) - 1;
	enum python_type_kind kind = python_find_kind_of_object(python, task->name);
	uint32_t size = 0, id;

	memcpy(label, begin, sizeof(begin) - 1);
	if (kind == PYTHON_TYPE_INTEGER)
		size = write_automatic_name(python, task->name, name);
	else if (kind != PYTHON_TYPE_STRING || !copy_name(python, task->name, name, &size))
		return 0;
	name[size] = ']';
	id = python_code_find_named_id(python->walk, label, sizeof(begin) + size);
	return id ? python_make_frame_item(id, 0) : 0;
}

/* ---- frames ---- */

static bool insert_item(struct interpreted_walk *walk, uint32_t at, uint64_t item)
{
	uint64_t *items = walk->merge->items;

	if (walk->count == walk->capacity)
		return false;
	for (uint32_t i = walk->count++; i > at; i--)
		items[i] = items[i - 1];
	items[at] = item;
	return true;
}

/* The task, and outside of it those that wait for it. */
static void insert_task(struct python_walk *python, struct python_task *task, uint32_t at)
{
	python->reads_objects_directly =
		python->walk->trusts_memory &&
		python->walk->merge->thread_state == SPOOL_INTERPRETER_RUNS_LOCKED;
	for (uint32_t i = 0; i <= TASK_WAITERS_MAX; i++) {
		uint64_t item = make_task_item(python, task);
		struct python_task waiter;

		if (!item || !insert_item(python->walk, at, item) ||
		    !python_find_waiter_of_task(python, task, &waiter))
			return;
		*task = waiter;
		at++;
	}
}

static bool insert_if_running(struct python_walk *python, uint64_t address)
{
	struct python_task task;

	if (!python_read_task(python, address, &task))
		return false;
	for (uint32_t i = 0; i < python->root_count; i++) {
		if (python->roots[i].object != task.coroutine)
			continue;
		insert_task(python, &task, python->roots[i].items);
		return true;
	}
	return false;
}

static void insert_running_task(struct python_walk *python, uint64_t address)
{
	uint64_t entries[ENTRIES_PART * DICT_ENTRY_WORDS_MAX];
	struct interpreted_walk *walk = python->walk;
	struct dictionary dictionary;

	if (!open_dictionary(walk, python->layout, address, &dictionary))
		return;
	for (uint32_t at = 0; at < dictionary.count && at < RUNNING_TASKS_MAX; at += ENTRIES_PART) {
		uint32_t part =
			dictionary.count - at < ENTRIES_PART ? dictionary.count - at : ENTRIES_PART;

		if (!read_entries(walk, &dictionary, at, part, entries))
			return;
		for (uint32_t i = 0; i < part; i++) {
			uint64_t value = entries[(i + 1) * dictionary.entry_words - 1];

			if (value && insert_if_running(python, value))
				return;
		}
	}
}

/* Generators run in programs without event loops as well. */
static bool has_coroutine(struct python_walk *python)
{
	uint32_t offset = python->layout->minor < 11 ? CODE_FLAGS_BEFORE : CODE_FLAGS_AFTER, flags;

	for (uint32_t i = 0; i < python->root_count; i++) {
		if (interpreted_walk_read_checked(python->walk, python->roots[i].code + offset,
						  &flags, sizeof(flags)) &&
		    flags & CODE_FLAG_COROUTINE)
			return true;
	}
	return false;
}

void python_tasks_insert(struct python_walk *python)
{
	struct interpreter *interpreter = python->walk->interpreter;
	uint64_t owner, tasks;

	if (!python->layout->task_coroutine || !python->walk->merge->scratch ||
	    !python_read_lasting_word(python, python->thread + THREAD_INTERPRETER_OFFSET, &owner))
		return;
	tasks = atomic_load_explicit(&interpreter->running_tasks, memory_order_seq_cst);
	if (!tasks || atomic_load_explicit(&interpreter->running_tasks_owner,
					   memory_order_seq_cst) != owner) {
		if (has_coroutine(python))
			atomic_store_explicit(&interpreter->wanted, owner, memory_order_release);
		return;
	}
	insert_running_task(python, tasks);
}

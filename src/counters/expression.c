/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * See expression.h: recursive descent, one function for each rule.
 */
#include "counters/expression.h"

#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/counting.h"

#define NUMBER_LENGTH_MAX    64
#define SELECTION_RANGES_MAX 256u
#define NESTING_MAX          200u

enum token_kind { TOKEN_END, TOKEN_NAME, TOKEN_NUMBER, TOKEN_PUNCTUATION, TOKEN_INVALID };

struct expression_token {
	enum token_kind kind;
	uint32_t offset, length;
	char punctuation; /* of TOKEN_PUNCTUATION */
	double number;
};

struct expression_parser {
	struct memory_pool *memory;
	const char *text;
	uint32_t length, at;
	uint32_t nesting_depth;
	struct expression_token next_token; /* the next one */
	struct expression_problem *problem;
	bool failed;
};

static const char *const dimension_names[COUNTING_DIMENSION_COUNT] = {
	"DIMENSION_NONE",  "DIMENSION_XCC",          "DIMENSION_AID", "DIMENSION_SHADER_ENGINE",
	"DIMENSION_AGENT", "DIMENSION_SHADER_ARRAY", "DIMENSION_WGP", "DIMENSION_INSTANCE"};

uint32_t expression_dimension_name_to_number(const char *name, size_t length)
{
	for (uint32_t i = 1; i < COUNTING_DIMENSION_COUNT; i++) {
		if (strlen(dimension_names[i]) == length &&
		    memcmp(dimension_names[i], name, length) == 0)
			return i;
	}
	return 0;
}

const char *expression_get_dimension_name(uint32_t dimension)
{
	return dimension < COUNTING_DIMENSION_COUNT ? dimension_names[dimension] : "";
}

/* ---- tokens ---- */

__attribute__((format(printf, 3, 4))) static void
parser_fail(struct expression_parser *parser, uint32_t offset, const char *format, ...)
{
	va_list arguments;

	if (parser->failed)
		return;
	parser->failed = true;
	parser->problem->offset = offset;
	va_start(arguments, format);
	vsnprintf(parser->problem->text, sizeof(parser->problem->text), format, arguments);
	va_end(arguments);
}

static bool is_name_start_character(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "" behind the end. */
static char parser_peek_char_at(const struct expression_parser *parser, uint32_t at)
{
	return at < parser->length ? parser->text[at] : '\0';
}

static void parser_skip_blanks_and_comments(struct expression_parser *parser)
{
	while (parser->at < parser->length) {
		char c = parser->text[parser->at];

		if (c == '/' && parser_peek_char_at(parser, parser->at + 1) == '/') {
			while (parser->at < parser->length && parser->text[parser->at] != '\n')
				parser->at++;
		} else if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
			return;
		} else {
			parser->at++;
		}
	}
}

static uint32_t find_digits_end(const struct expression_parser *parser, uint32_t at)
{
	while (is_digit(parser_peek_char_at(parser, at)))
		at++;
	return at;
}

static uint32_t find_number_end(const struct expression_parser *parser, uint32_t at)
{
	uint32_t end = find_digits_end(parser, at);

	if (parser_peek_char_at(parser, end) == '.')
		end = find_digits_end(parser, end + 1);
	if (parser_peek_char_at(parser, end) == 'e' || parser_peek_char_at(parser, end) == 'E') {
		uint32_t sign = end + 1;

		if (parser_peek_char_at(parser, sign) == '+' ||
		    parser_peek_char_at(parser, sign) == '-')
			sign++;
		if (is_digit(parser_peek_char_at(parser, sign)))
			end = find_digits_end(parser, sign);
	}
	return end;
}

/* A program may have set a locale in which the point is a comma. */
static double parse_c_locale_number(const char *text)
{
	locale_t c_locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
	double value;

	if (c_locale == (locale_t)0)
		return strtod(text, NULL);
	value = strtod_l(text, NULL, c_locale);
	freelocale(c_locale);
	return value;
}

static void parser_read_number(struct expression_parser *parser, struct expression_token *token)
{
	uint32_t end = find_number_end(parser, parser->at);
	char text[NUMBER_LENGTH_MAX];

	token->kind = TOKEN_NUMBER;
	token->length = end - parser->at;
	parser->at = end;
	if (token->length >= sizeof(text) ||
	    is_name_start_character(parser_peek_char_at(parser, end))) {
		token->kind = TOKEN_INVALID;
		parser_fail(parser, token->offset, "not a number");
		return;
	}
	memcpy(text, parser->text + token->offset, token->length);
	text[token->length] = '\0';
	token->number = parse_c_locale_number(text);
	if (!(token->number <= 1.7976931348623157e308)) {
		token->kind = TOKEN_INVALID;
		parser_fail(parser, token->offset, "the number is too large");
	}
}

static void parser_read_next_token(struct expression_parser *parser)
{
	struct expression_token *token = &parser->next_token;
	char c;

	parser_skip_blanks_and_comments(parser);
	*token = (struct expression_token){.offset = parser->at, .length = 1};
	if (parser->at >= parser->length)
		return;
	c = parser->text[parser->at];
	if (is_name_start_character(c)) {
		uint32_t end = parser->at;

		while (is_name_start_character(parser_peek_char_at(parser, end)) ||
		       is_digit(parser_peek_char_at(parser, end)))
			end++;
		token->kind = TOKEN_NAME;
		token->length = end - parser->at;
		parser->at = end;
	} else if (is_digit(c) ||
		   (c == '.' && is_digit(parser_peek_char_at(parser, parser->at + 1)))) {
		parser_read_number(parser, token);
	} else if (c != '\0' && strchr("+-*/()[],=:", c) != NULL) {
		token->kind = TOKEN_PUNCTUATION;
		token->punctuation = c;
		parser->at++;
	} else {
		token->kind = TOKEN_INVALID;
		parser->at++;
		parser_fail(parser, token->offset,
			    c > ' ' && c < 0x7f ? "unexpected character '%c'"
						: "unexpected character (0x%02x)",
			    (unsigned char)c);
	}
}

static bool parser_is_at_punctuation(const struct expression_parser *parser, char sign)
{
	return parser->next_token.kind == TOKEN_PUNCTUATION &&
	       parser->next_token.punctuation == sign;
}

static bool token_is_word(const struct expression_parser *parser,
			  const struct expression_token *token, const char *text)
{
	return token->kind == TOKEN_NAME && strlen(text) == token->length &&
	       memcmp(parser->text + token->offset, text, token->length) == 0;
}

static const char *format_token_text(const struct expression_parser *parser, char *shown,
				     size_t size)
{
	const struct expression_token *token = &parser->next_token;

	if (token->kind == TOKEN_END)
		return "the end";
	snprintf(shown, size, "'%.*s'", (int)(token->length < 40 ? token->length : 40),
		 parser->text + token->offset);
	return shown;
}

static void parser_fail_expected(struct expression_parser *parser, const char *what)
{
	char shown[64];

	parser_fail(parser, parser->next_token.offset, "%s expected, not %s", what,
		    format_token_text(parser, shown, sizeof(shown)));
}

static bool parser_expect_punctuation(struct expression_parser *parser, char sign)
{
	char what[4] = {'\'', sign, '\'', '\0'};

	if (!parser_is_at_punctuation(parser, sign)) {
		parser_fail_expected(parser, what);
		return false;
	}
	parser_read_next_token(parser);
	return !parser->failed;
}

/* ---- rules ---- */

static struct expression *parse_sum(struct expression_parser *parser);

static uint32_t get_expression_height(const struct expression *expression)
{
	return expression != NULL ? expression->tree_height : 0;
}

static struct expression *create_expression_node(struct expression_parser *parser,
						 enum expression_kind kind, uint32_t offset,
						 struct expression *left, struct expression *right)
{
	struct expression *made =
		parser->failed ? NULL : memory_pool_allocate(parser->memory, sizeof(*made));

	if (made == NULL) {
		parser_fail(parser, offset, "no memory");
		return NULL;
	}
	made->kind = kind;
	made->offset = offset;
	made->left = left;
	made->right = right;
	made->tree_height = 1 + (get_expression_height(left) > get_expression_height(right)
					 ? get_expression_height(left)
					 : get_expression_height(right));
	if (made->tree_height > EXPRESSION_HEIGHT_MAX) {
		parser_fail(parser, offset, "more than %u nested operators", EXPRESSION_HEIGHT_MAX);
		return NULL;
	}
	return made;
}

static const char *parser_copy_name(struct expression_parser *parser,
				    const struct expression_token *token)
{
	const char *name =
		memory_pool_copy_text(parser->memory, parser->text + token->offset, token->length);

	if (name == NULL)
		parser_fail(parser, token->offset, "no memory");
	return name;
}

/* One of the words; its number. */
static uint32_t parse_one_of_words(struct expression_parser *parser, const char *const *words,
				   uint32_t count, const char *expected)
{
	for (uint32_t i = 0; i < count; i++) {
		if (token_is_word(parser, &parser->next_token, words[i])) {
			parser_read_next_token(parser);
			return i;
		}
	}
	parser_fail_expected(parser, expected);
	return 0;
}

static uint32_t parse_dimension(struct expression_parser *parser)
{
	uint32_t dimension = 0;

	if (parser->next_token.kind == TOKEN_NAME)
		dimension = expression_dimension_name_to_number(
			parser->text + parser->next_token.offset, parser->next_token.length);
	if (dimension == 0)
		parser_fail_expected(parser, "a dimension (DIMENSION_XCC, DIMENSION_AID, "
					     "DIMENSION_SHADER_ENGINE, DIMENSION_AGENT, "
					     "DIMENSION_SHADER_ARRAY, DIMENSION_WGP or "
					     "DIMENSION_INSTANCE)");
	else
		parser_read_next_token(parser);
	return dimension;
}

static struct expression *parse_reduce(struct expression_parser *parser, uint32_t offset)
{
	static const char *const words[] = {"sum", "avr", "min", "max"};
	struct expression *left, *made;
	uint32_t detail, dimensions = 0;

	left = parse_sum(parser);
	if (!parser_expect_punctuation(parser, ','))
		return NULL;
	detail = parse_one_of_words(parser, words, 4, "sum, avr, min or max");
	if (parser_is_at_punctuation(parser, ',')) {
		parser_read_next_token(parser);
		if (!parser_expect_punctuation(parser, '['))
			return NULL;
		do {
			dimensions |= 1u << parse_dimension(parser);
		} while (!parser->failed && parser_is_at_punctuation(parser, ',') &&
			 (parser_read_next_token(parser), true));
		if (!parser_expect_punctuation(parser, ']'))
			return NULL;
	}
	if (!parser_expect_punctuation(parser, ')'))
		return NULL;
	made = create_expression_node(parser, EXPRESSION_REDUCE, offset, left, NULL);
	if (made != NULL) {
		made->detail = detail;
		made->dimensions = dimensions;
	}
	return made;
}

static uint32_t parse_position_index(struct expression_parser *parser)
{
	double number = parser->next_token.number;
	uint32_t position = 0;

	if (parser->next_token.kind != TOKEN_NUMBER) {
		parser_fail_expected(parser, "a position");
	} else if (number < 0 || number > 65535 || number != (double)(uint32_t)number) {
		parser_fail(parser, parser->next_token.offset,
			    "a position is an integer below 65536");
	} else {
		position = (uint32_t)number;
		parser_read_next_token(parser);
	}
	return position;
}

static void parse_position_ranges(struct expression_parser *parser,
				  struct expression_dimension_selection *pick)
{
	struct expression_position_range ranges[SELECTION_RANGES_MAX];

	do {
		struct expression_position_range *range = &ranges[pick->count];
		uint32_t offset = parser->next_token.offset;

		if (pick->count == SELECTION_RANGES_MAX) {
			parser_fail(parser, offset, "more than %u ranges", SELECTION_RANGES_MAX);
			return;
		}
		range->first = range->last = parse_position_index(parser);
		if (parser_is_at_punctuation(parser, ':')) {
			parser_read_next_token(parser);
			range->last = parse_position_index(parser);
		}
		if (range->last < range->first)
			parser_fail(parser, offset, "the range ends before it begins");
		pick->count++;
	} while (!parser->failed && parser_is_at_punctuation(parser, ',') &&
		 (parser_read_next_token(parser), true));
	pick->ranges = memory_pool_allocate_array(parser->memory, pick->count, sizeof(ranges[0]));
	if (pick->ranges == NULL)
		parser_fail(parser, parser->next_token.offset, "no memory");
	else
		memcpy(pick->ranges, ranges, pick->count * sizeof(ranges[0]));
}

static struct expression_dimension_selection *
parse_dimension_selection(struct expression_parser *parser,
			  const struct expression_dimension_selection *list)
{
	uint32_t offset = parser->next_token.offset, dimension = parse_dimension(parser);
	struct expression_dimension_selection *pick;

	for (; list != NULL; list = list->next) {
		if (list->dimension == dimension)
			parser_fail(parser, offset, "%s is selected twice",
				    expression_get_dimension_name(dimension));
	}
	if (parser->failed || !parser_expect_punctuation(parser, '=') ||
	    !parser_expect_punctuation(parser, '['))
		return NULL;
	pick = memory_pool_allocate(parser->memory, sizeof(*pick));
	if (pick == NULL) {
		parser_fail(parser, offset, "no memory");
		return NULL;
	}
	pick->dimension = dimension;
	parse_position_ranges(parser, pick);
	return parser_expect_punctuation(parser, ']') ? pick : NULL;
}

static struct expression *parse_select(struct expression_parser *parser, uint32_t offset)
{
	struct expression_dimension_selection *picks = NULL;
	struct expression *left, *made;

	left = parse_sum(parser);
	if (!parser_expect_punctuation(parser, ',') || !parser_expect_punctuation(parser, '['))
		return NULL;
	do {
		struct expression_dimension_selection *pick =
			parse_dimension_selection(parser, picks);

		if (pick == NULL)
			return NULL;
		pick->next = picks;
		picks = pick;
	} while (parser_is_at_punctuation(parser, ',') && (parser_read_next_token(parser), true));
	if (!parser_expect_punctuation(parser, ']') || !parser_expect_punctuation(parser, ')'))
		return NULL;
	made = create_expression_node(parser, EXPRESSION_SELECT, offset, left, NULL);
	if (made != NULL)
		made->dimension_selections = picks;
	return made;
}

static struct expression *parse_accumulate(struct expression_parser *parser, uint32_t offset)
{
	static const char *const words[] = {"NONE", "LOW_RES", "HIGH_RES"};
	struct expression_token name = parser->next_token;
	struct expression *made;
	uint32_t detail;

	if (name.kind != TOKEN_NAME) {
		parser_fail_expected(parser, "the name of a hardware counter");
		return NULL;
	}
	parser_read_next_token(parser);
	if (!parser_expect_punctuation(parser, ','))
		return NULL;
	detail = parse_one_of_words(parser, words, 3, "HIGH_RES, LOW_RES or NONE");
	if (!parser_expect_punctuation(parser, ')'))
		return NULL;
	made = create_expression_node(parser, EXPRESSION_ACCUMULATE, offset, NULL, NULL);
	if (made != NULL) {
		made->detail = detail;
		made->name = parser_copy_name(parser, &name);
	}
	return made;
}

static struct expression *parse_name_or_function_call(struct expression_parser *parser)
{
	static struct expression *(*const functions[])(struct expression_parser *, uint32_t) = {
		parse_reduce, parse_select, parse_accumulate};
	static const char *const names[] = {"reduce", "select", "accumulate"};
	struct expression_token name = parser->next_token;
	struct expression *made;

	parser_read_next_token(parser);
	for (int i = 0; i < 3; i++) {
		if (token_is_word(parser, &name, names[i]))
			return parser_expect_punctuation(parser, '(')
				       ? functions[i](parser, name.offset)
				       : NULL;
	}
	if (parser_is_at_punctuation(parser, '(')) {
		parser_fail(parser, name.offset,
			    "there is no function '%.*s': reduce, select and accumulate are",
			    (int)(name.length < 40 ? name.length : 40), parser->text + name.offset);
		return NULL;
	}
	made = create_expression_node(parser, EXPRESSION_NAME, name.offset, NULL, NULL);
	if (made != NULL)
		made->name = parser_copy_name(parser, &name);
	return made;
}

static struct expression *parse_unary(struct expression_parser *parser)
{
	uint32_t offset = parser->next_token.offset;
	struct expression *made = NULL;

	if (++parser->nesting_depth > NESTING_MAX) {
		parser_fail(parser, offset, "nested more than %u deep", NESTING_MAX);
	} else if (parser_is_at_punctuation(parser, '-')) {
		parser_read_next_token(parser);
		made = parse_unary(parser);
		made = create_expression_node(parser, EXPRESSION_NEGATE, offset, made, NULL);
	} else if (parser_is_at_punctuation(parser, '(')) {
		parser_read_next_token(parser);
		made = parse_sum(parser);
		parser_expect_punctuation(parser, ')');
	} else if (parser->next_token.kind == TOKEN_NUMBER) {
		made = create_expression_node(parser, EXPRESSION_NUMBER, offset, NULL, NULL);
		if (made != NULL)
			made->number = parser->next_token.number;
		parser_read_next_token(parser);
	} else if (parser->next_token.kind == TOKEN_NAME) {
		made = parse_name_or_function_call(parser);
	} else {
		parser_fail_expected(parser, "a counter, a number or '('");
	}
	parser->nesting_depth--;
	return parser->failed ? NULL : made;
}

static struct expression *parse_product(struct expression_parser *parser)
{
	struct expression *made = parse_unary(parser);

	while (!parser->failed &&
	       (parser_is_at_punctuation(parser, '*') || parser_is_at_punctuation(parser, '/'))) {
		enum expression_kind kind = parser_is_at_punctuation(parser, '*')
						    ? EXPRESSION_MULTIPLY
						    : EXPRESSION_DIVIDE;
		uint32_t offset = parser->next_token.offset;

		parser_read_next_token(parser);
		made = create_expression_node(parser, kind, offset, made, parse_unary(parser));
	}
	return made;
}

static struct expression *parse_sum(struct expression_parser *parser)
{
	struct expression *made = parse_product(parser);

	while (!parser->failed &&
	       (parser_is_at_punctuation(parser, '+') || parser_is_at_punctuation(parser, '-'))) {
		enum expression_kind kind = parser_is_at_punctuation(parser, '+')
						    ? EXPRESSION_ADD
						    : EXPRESSION_SUBTRACT;
		uint32_t offset = parser->next_token.offset;

		parser_read_next_token(parser);
		made = create_expression_node(parser, kind, offset, made, parse_product(parser));
	}
	return made;
}

struct expression *expression_parse(struct memory_pool *memory, const char *text, size_t length,
				    struct expression_problem *problem)
{
	struct expression_parser parser = {.memory = memory, .text = text, .problem = problem};
	struct expression *made;

	problem->offset = 0;
	problem->text[0] = '\0';
	if (length > UINT32_MAX / 2) {
		parser_fail(&parser, 0, "the expression is too long");
		return NULL;
	}
	parser.length = (uint32_t)length;
	parser_read_next_token(&parser);
	made = parse_sum(&parser);
	if (!parser.failed && parser.next_token.kind != TOKEN_END)
		parser_fail_expected(&parser, "an operator or the end");
	return parser.failed ? NULL : made;
}

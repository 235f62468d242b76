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

#define NUMBER_LENGTH_MAX 64
#define RANGES_MAX        256u
#define NESTING_MAX       200u

enum token_kind { TOKEN_END, TOKEN_NAME, TOKEN_NUMBER, TOKEN_SIGN, TOKEN_BAD };

struct token {
	enum token_kind kind;
	uint32_t offset, length;
	char sign; /* of TOKEN_SIGN */
	double number;
};

struct parser {
	struct memory *memory;
	const char *text;
	uint32_t length, at;
	uint32_t nesting;
	struct token token; /* the next one */
	struct expression_problem *problem;
	bool failed;
};

static const char *const dimension_names[COUNTING_DIMENSION_COUNT] = {
	"DIMENSION_NONE",  "DIMENSION_XCC",          "DIMENSION_AID", "DIMENSION_SHADER_ENGINE",
	"DIMENSION_AGENT", "DIMENSION_SHADER_ARRAY", "DIMENSION_WGP", "DIMENSION_INSTANCE"};

uint32_t expression_dimension(const char *name, size_t length)
{
	for (uint32_t i = 1; i < COUNTING_DIMENSION_COUNT; i++) {
		if (strlen(dimension_names[i]) == length &&
		    memcmp(dimension_names[i], name, length) == 0)
			return i;
	}
	return 0;
}

const char *expression_dimension_name(uint32_t dimension)
{
	return dimension < COUNTING_DIMENSION_COUNT ? dimension_names[dimension] : "";
}

/* ---- tokens ---- */

__attribute__((format(printf, 3, 4))) static void
parser_fail(struct parser *parser, uint32_t offset, const char *format, ...)
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

static bool is_name_start(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "" behind the end. */
static char parser_char(const struct parser *parser, uint32_t at)
{
	return at < parser->length ? parser->text[at] : '\0';
}

static void parser_skip_blanks(struct parser *parser)
{
	while (parser->at < parser->length) {
		char c = parser->text[parser->at];

		if (c == '/' && parser_char(parser, parser->at + 1) == '/') {
			while (parser->at < parser->length && parser->text[parser->at] != '\n')
				parser->at++;
		} else if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
			return;
		} else {
			parser->at++;
		}
	}
}

static uint32_t digits_end(const struct parser *parser, uint32_t at)
{
	while (is_digit(parser_char(parser, at)))
		at++;
	return at;
}

static uint32_t number_end(const struct parser *parser, uint32_t at)
{
	uint32_t end = digits_end(parser, at);

	if (parser_char(parser, end) == '.')
		end = digits_end(parser, end + 1);
	if (parser_char(parser, end) == 'e' || parser_char(parser, end) == 'E') {
		uint32_t sign = end + 1;

		if (parser_char(parser, sign) == '+' || parser_char(parser, sign) == '-')
			sign++;
		if (is_digit(parser_char(parser, sign)))
			end = digits_end(parser, sign);
	}
	return end;
}

/* A program may have set a locale in which the point is a comma. */
static double number_value(const char *text)
{
	locale_t c_locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
	double value;

	if (c_locale == (locale_t)0)
		return strtod(text, NULL);
	value = strtod_l(text, NULL, c_locale);
	freelocale(c_locale);
	return value;
}

static void parser_number(struct parser *parser, struct token *token)
{
	uint32_t end = number_end(parser, parser->at);
	char text[NUMBER_LENGTH_MAX];

	token->kind = TOKEN_NUMBER;
	token->length = end - parser->at;
	parser->at = end;
	if (token->length >= sizeof(text) || is_name_start(parser_char(parser, end))) {
		token->kind = TOKEN_BAD;
		parser_fail(parser, token->offset, "not a number");
		return;
	}
	memcpy(text, parser->text + token->offset, token->length);
	text[token->length] = '\0';
	token->number = number_value(text);
	if (!(token->number <= 1.7976931348623157e308)) {
		token->kind = TOKEN_BAD;
		parser_fail(parser, token->offset, "the number is too large");
	}
}

static void parser_next(struct parser *parser)
{
	struct token *token = &parser->token;
	char c;

	parser_skip_blanks(parser);
	*token = (struct token){.offset = parser->at, .length = 1};
	if (parser->at >= parser->length)
		return;
	c = parser->text[parser->at];
	if (is_name_start(c)) {
		uint32_t end = parser->at;

		while (is_name_start(parser_char(parser, end)) ||
		       is_digit(parser_char(parser, end)))
			end++;
		token->kind = TOKEN_NAME;
		token->length = end - parser->at;
		parser->at = end;
	} else if (is_digit(c) || (c == '.' && is_digit(parser_char(parser, parser->at + 1)))) {
		parser_number(parser, token);
	} else if (c != '\0' && strchr("+-*/()[],=:", c) != NULL) {
		token->kind = TOKEN_SIGN;
		token->sign = c;
		parser->at++;
	} else {
		token->kind = TOKEN_BAD;
		parser->at++;
		parser_fail(parser, token->offset,
			    c > ' ' && c < 0x7f ? "unexpected character '%c'"
						: "unexpected character (0x%02x)",
			    (unsigned char)c);
	}
}

static bool at_sign(const struct parser *parser, char sign)
{
	return parser->token.kind == TOKEN_SIGN && parser->token.sign == sign;
}

static bool token_is(const struct parser *parser, const struct token *token, const char *text)
{
	return token->kind == TOKEN_NAME && strlen(text) == token->length &&
	       memcmp(parser->text + token->offset, text, token->length) == 0;
}

static const char *token_shown(const struct parser *parser, char *shown, size_t size)
{
	const struct token *token = &parser->token;

	if (token->kind == TOKEN_END)
		return "the end";
	snprintf(shown, size, "'%.*s'", (int)(token->length < 40 ? token->length : 40),
		 parser->text + token->offset);
	return shown;
}

static void parser_expected(struct parser *parser, const char *what)
{
	char shown[64];

	parser_fail(parser, parser->token.offset, "%s expected, not %s", what,
		    token_shown(parser, shown, sizeof(shown)));
}

static bool parser_take(struct parser *parser, char sign)
{
	char what[4] = {'\'', sign, '\'', '\0'};

	if (!at_sign(parser, sign)) {
		parser_expected(parser, what);
		return false;
	}
	parser_next(parser);
	return !parser->failed;
}

/* ---- rules ---- */

static struct expression *parse_sum(struct parser *parser);

static uint32_t height_of(const struct expression *expression)
{
	return expression != NULL ? expression->height : 0;
}

static struct expression *make(struct parser *parser, enum expression_kind kind, uint32_t offset,
			       struct expression *left, struct expression *right)
{
	struct expression *made =
		parser->failed ? NULL : memory_take(parser->memory, sizeof(*made));

	if (made == NULL) {
		parser_fail(parser, offset, "no memory");
		return NULL;
	}
	made->kind = kind;
	made->offset = offset;
	made->left = left;
	made->right = right;
	made->height =
		1 + (height_of(left) > height_of(right) ? height_of(left) : height_of(right));
	if (made->height > EXPRESSION_HEIGHT_MAX) {
		parser_fail(parser, offset, "more than %u operators stand within each other",
			    EXPRESSION_HEIGHT_MAX);
		return NULL;
	}
	return made;
}

static const char *parser_name(struct parser *parser, const struct token *token)
{
	const char *name = memory_text(parser->memory, parser->text + token->offset, token->length);

	if (name == NULL)
		parser_fail(parser, token->offset, "no memory");
	return name;
}

/* One of the words; its number. */
static uint32_t parse_word(struct parser *parser, const char *const *words, uint32_t count,
			   const char *expected)
{
	for (uint32_t i = 0; i < count; i++) {
		if (token_is(parser, &parser->token, words[i])) {
			parser_next(parser);
			return i;
		}
	}
	parser_expected(parser, expected);
	return 0;
}

static uint32_t parse_dimension(struct parser *parser)
{
	uint32_t dimension = 0;

	if (parser->token.kind == TOKEN_NAME)
		dimension = expression_dimension(parser->text + parser->token.offset,
						 parser->token.length);
	if (dimension == 0)
		parser_expected(parser, "a dimension (DIMENSION_XCC, DIMENSION_AID, "
					"DIMENSION_SHADER_ENGINE, DIMENSION_AGENT, "
					"DIMENSION_SHADER_ARRAY, DIMENSION_WGP or "
					"DIMENSION_INSTANCE)");
	else
		parser_next(parser);
	return dimension;
}

static struct expression *parse_reduce(struct parser *parser, uint32_t offset)
{
	static const char *const words[] = {"sum", "avr", "min", "max"};
	struct expression *left, *made;
	uint32_t detail, dimensions = 0;

	left = parse_sum(parser);
	if (!parser_take(parser, ','))
		return NULL;
	detail = parse_word(parser, words, 4, "sum, avr, min or max");
	if (at_sign(parser, ',')) {
		parser_next(parser);
		if (!parser_take(parser, '['))
			return NULL;
		do {
			dimensions |= 1u << parse_dimension(parser);
		} while (!parser->failed && at_sign(parser, ',') && (parser_next(parser), true));
		if (!parser_take(parser, ']'))
			return NULL;
	}
	if (!parser_take(parser, ')'))
		return NULL;
	made = make(parser, EXPRESSION_REDUCE, offset, left, NULL);
	if (made != NULL) {
		made->detail = detail;
		made->dimensions = dimensions;
	}
	return made;
}

static uint32_t parse_position(struct parser *parser)
{
	double number = parser->token.number;
	uint32_t position = 0;

	if (parser->token.kind != TOKEN_NUMBER) {
		parser_expected(parser, "a position");
	} else if (number < 0 || number > 65535 || number != (double)(uint32_t)number) {
		parser_fail(parser, parser->token.offset, "a position is an integer below 65536");
	} else {
		position = (uint32_t)number;
		parser_next(parser);
	}
	return position;
}

static void parse_ranges(struct parser *parser, struct expression_pick *pick)
{
	struct expression_range ranges[RANGES_MAX];

	do {
		struct expression_range *range = &ranges[pick->count];
		uint32_t offset = parser->token.offset;

		if (pick->count == RANGES_MAX) {
			parser_fail(parser, offset, "more than %u ranges", RANGES_MAX);
			return;
		}
		range->first = range->last = parse_position(parser);
		if (at_sign(parser, ':')) {
			parser_next(parser);
			range->last = parse_position(parser);
		}
		if (range->last < range->first)
			parser_fail(parser, offset, "the range ends before it begins");
		pick->count++;
	} while (!parser->failed && at_sign(parser, ',') && (parser_next(parser), true));
	pick->ranges = memory_array(parser->memory, pick->count, sizeof(ranges[0]));
	if (pick->ranges == NULL)
		parser_fail(parser, parser->token.offset, "no memory");
	else
		memcpy(pick->ranges, ranges, pick->count * sizeof(ranges[0]));
}

static struct expression_pick *parse_pick(struct parser *parser, const struct expression_pick *list)
{
	uint32_t offset = parser->token.offset, dimension = parse_dimension(parser);
	struct expression_pick *pick;

	for (; list != NULL; list = list->next) {
		if (list->dimension == dimension)
			parser_fail(parser, offset, "%s is selected twice",
				    expression_dimension_name(dimension));
	}
	if (parser->failed || !parser_take(parser, '=') || !parser_take(parser, '['))
		return NULL;
	pick = memory_take(parser->memory, sizeof(*pick));
	if (pick == NULL) {
		parser_fail(parser, offset, "no memory");
		return NULL;
	}
	pick->dimension = dimension;
	parse_ranges(parser, pick);
	return parser_take(parser, ']') ? pick : NULL;
}

static struct expression *parse_select(struct parser *parser, uint32_t offset)
{
	struct expression_pick *picks = NULL;
	struct expression *left, *made;

	left = parse_sum(parser);
	if (!parser_take(parser, ',') || !parser_take(parser, '['))
		return NULL;
	do {
		struct expression_pick *pick = parse_pick(parser, picks);

		if (pick == NULL)
			return NULL;
		pick->next = picks;
		picks = pick;
	} while (at_sign(parser, ',') && (parser_next(parser), true));
	if (!parser_take(parser, ']') || !parser_take(parser, ')'))
		return NULL;
	made = make(parser, EXPRESSION_SELECT, offset, left, NULL);
	if (made != NULL)
		made->picks = picks;
	return made;
}

static struct expression *parse_accumulate(struct parser *parser, uint32_t offset)
{
	static const char *const words[] = {"NONE", "LOW_RES", "HIGH_RES"};
	struct token name = parser->token;
	struct expression *made;
	uint32_t detail;

	if (name.kind != TOKEN_NAME) {
		parser_expected(parser, "the name of a hardware counter");
		return NULL;
	}
	parser_next(parser);
	if (!parser_take(parser, ','))
		return NULL;
	detail = parse_word(parser, words, 3, "HIGH_RES, LOW_RES or NONE");
	if (!parser_take(parser, ')'))
		return NULL;
	made = make(parser, EXPRESSION_ACCUMULATE, offset, NULL, NULL);
	if (made != NULL) {
		made->detail = detail;
		made->name = parser_name(parser, &name);
	}
	return made;
}

static struct expression *parse_named(struct parser *parser)
{
	static struct expression *(*const functions[])(struct parser *, uint32_t) = {
		parse_reduce, parse_select, parse_accumulate};
	static const char *const names[] = {"reduce", "select", "accumulate"};
	struct token name = parser->token;
	struct expression *made;

	parser_next(parser);
	for (int i = 0; i < 3; i++) {
		if (token_is(parser, &name, names[i]))
			return parser_take(parser, '(') ? functions[i](parser, name.offset) : NULL;
	}
	if (at_sign(parser, '(')) {
		parser_fail(parser, name.offset,
			    "there is no function '%.*s': reduce, select and accumulate are",
			    (int)(name.length < 40 ? name.length : 40), parser->text + name.offset);
		return NULL;
	}
	made = make(parser, EXPRESSION_NAME, name.offset, NULL, NULL);
	if (made != NULL)
		made->name = parser_name(parser, &name);
	return made;
}

static struct expression *parse_unary(struct parser *parser)
{
	uint32_t offset = parser->token.offset;
	struct expression *made = NULL;

	if (++parser->nesting > NESTING_MAX) {
		parser_fail(parser, offset, "nested more than %u deep", NESTING_MAX);
	} else if (at_sign(parser, '-')) {
		parser_next(parser);
		made = parse_unary(parser);
		made = make(parser, EXPRESSION_NEGATE, offset, made, NULL);
	} else if (at_sign(parser, '(')) {
		parser_next(parser);
		made = parse_sum(parser);
		parser_take(parser, ')');
	} else if (parser->token.kind == TOKEN_NUMBER) {
		made = make(parser, EXPRESSION_NUMBER, offset, NULL, NULL);
		if (made != NULL)
			made->number = parser->token.number;
		parser_next(parser);
	} else if (parser->token.kind == TOKEN_NAME) {
		made = parse_named(parser);
	} else {
		parser_expected(parser, "a counter, a number or '('");
	}
	parser->nesting--;
	return parser->failed ? NULL : made;
}

static struct expression *parse_product(struct parser *parser)
{
	struct expression *made = parse_unary(parser);

	while (!parser->failed && (at_sign(parser, '*') || at_sign(parser, '/'))) {
		enum expression_kind kind =
			at_sign(parser, '*') ? EXPRESSION_MULTIPLY : EXPRESSION_DIVIDE;
		uint32_t offset = parser->token.offset;

		parser_next(parser);
		made = make(parser, kind, offset, made, parse_unary(parser));
	}
	return made;
}

static struct expression *parse_sum(struct parser *parser)
{
	struct expression *made = parse_product(parser);

	while (!parser->failed && (at_sign(parser, '+') || at_sign(parser, '-'))) {
		enum expression_kind kind =
			at_sign(parser, '+') ? EXPRESSION_ADD : EXPRESSION_SUBTRACT;
		uint32_t offset = parser->token.offset;

		parser_next(parser);
		made = make(parser, kind, offset, made, parse_product(parser));
	}
	return made;
}

struct expression *expression_parse(struct memory *memory, const char *text, size_t length,
				    struct expression_problem *problem)
{
	struct parser parser = {.memory = memory, .text = text, .problem = problem};
	struct expression *made;

	problem->offset = 0;
	problem->text[0] = '\0';
	if (length > UINT32_MAX / 2) {
		parser_fail(&parser, 0, "the expression is too long");
		return NULL;
	}
	parser.length = (uint32_t)length;
	parser_next(&parser);
	made = parse_sum(&parser);
	if (!parser.failed && parser.token.kind != TOKEN_END)
		parser_expected(&parser, "an operator or the end");
	return parser.failed ? NULL : made;
}

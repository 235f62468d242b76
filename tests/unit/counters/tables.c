/* SPDX-License-Identifier: MIT
 * SPDX-FileCopyrightText: the kymo authors
 *
 * The tables of the specification, and the rules of expressions, through the public functions: a
 * device with those dimensions and values, derived counters made of them, kernels that are counted.
 */
#include "../libkymo-sdk/scenario.h"

#include <rocprofiler-sdk/experimental/counters.h>

#include "mock.h"
#include "tool.h"

#define X  COUNTING_DIMENSION_XCC
#define SE COUNTING_DIMENSION_SHADER_ENGINE
#define SA COUNTING_DIMENSION_SHADER_ARRAY
#define W  COUNTING_DIMENSION_WGP

static rocprofiler_context_id_t context;
static rocprofiler_buffer_id_t buffer;
static rocprofiler_counter_config_id_t config;

static void choose(rocprofiler_dispatch_counting_service_data_t data,
		   rocprofiler_counter_config_id_t *chosen, rocprofiler_user_data_t *user_data,
		   void *args)
{
	(void)data;
	(void)args;
	*chosen = config;
	user_data->value = 4711;
}

static int initialize(void)
{
	OK(rocprofiler_create_context(&context));
	OK(rocprofiler_create_buffer(context, 1 << 16, 1 << 15, ROCPROFILER_BUFFER_POLICY_LOSSLESS,
				     tool_records, NULL, &buffer));
	OK(rocprofiler_configure_buffer_dispatch_counting_service(context, buffer, choose, NULL));
	return 0;
}

static rocprofiler_status_t create(const char *name, const char *expression,
				   rocprofiler_counter_id_t *id)
{
	return rocprofiler_create_counter(name, strlen(name), expression, strlen(expression),
					  "derived", 7, (rocprofiler_agent_id_t){mock_agent}, id);
}

/* Counts one kernel with the expression; its values are in tool_values. */
static size_t value_of(const char *expression)
{
	static int number;
	rocprofiler_counter_id_t id;
	char name[32];

	snprintf(name, sizeof(name), "DERIVED_%d", ++number);
	CHECK_EQUAL(create(name, expression, &id), ROCPROFILER_STATUS_SUCCESS);
	config.handle = 0;
	OK(rocprofiler_create_counter_config((rocprofiler_agent_id_t){mock_agent}, &id, 1,
					     &config));
	tool_value_count = tool_header_count = 0;
	mock_kernel(1, device_get_sink()->now(), device_get_sink()->now() + 1000);
	OK(rocprofiler_flush_buffer(buffer));
	CHECK_EQUAL(tool_header_count, 1);
	CHECK_EQUAL(tool_headers[0].num_records, tool_value_count);
	for (size_t i = 0; i < tool_value_count; i++) {
		rocprofiler_counter_id_t of;

		OK(rocprofiler_query_record_counter_id(tool_values[i].id, &of));
		CHECK_EQUAL(of.handle, id.handle);
		CHECK_EQUAL(tool_values[i].user_data.value, 4711);
		CHECK_EQUAL(tool_values[i].dispatch_id, tool_headers[0].dispatch_info.dispatch_id);
	}
	return tool_value_count;
}

static double one(const char *expression)
{
	CHECK_EQUAL(value_of(expression), 1);
	CHECK_EQUAL(tool_position(tool_values[0].id, 0), 0);
	return tool_values[0].counter_value;
}

static void refused(const char *expression, const char *why)
{
	rocprofiler_counter_id_t id;

	if (create("REFUSED", expression, &id) != ROCPROFILER_STATUS_ERROR_AST_GENERATION_FAILED) {
		fprintf(stderr, "%s is not refused\n", expression);
		_exit(1);
	}
	if (!strstr(kymo_counter_config_problem(), why)) {
		fprintf(stderr, "%s: %s\n", expression, kymo_counter_config_problem());
		_exit(1);
	}
}

static const double zero[] = {0};
static const double seven[] = {7};
static const double grbm_count[] = {400};
static const double grbm_gui_active[] = {100};
static const double gl2c_hit[] = {10, 20, 30, 40};
static const double gl2c_miss[] = {30, 40, 50, 80};
static const double sq_level_waves[] = {200, 600};
static const double fifty[] = {50};
static double repeated[32];

static void begin(void)
{
	for (int i = 0; i < 32; i++)
		repeated[i] = i % 16 + 1;
	mock_start("gfx_test", true);
	mock_event("TEST", "X", repeated, X, 2, SA, 4, W, 4, 0);
	mock_event("TEST", "Y", NULL, X, 2, SE, 4, W, 4, 0);
	mock_event("TEST", "FOUR", NULL, W, 4, 0);
	mock_event("TEST", "OTHER", NULL, SE, 4, 0);
	mock_event("TEST", "ZERO", zero, 0);
	mock_event("TEST", "SEVEN", seven, 0);
	mock_event("SQ", "LEVEL", NULL, W, 4, 0);
	mock_event("GRBM", "GRBM_COUNT", grbm_count, 0);
	mock_event("GRBM", "GRBM_GUI_ACTIVE", grbm_gui_active, 0);
	mock_event("GL2C", "GL2C_HIT", gl2c_hit, COUNTING_DIMENSION_INSTANCE, 4, 0);
	mock_event("GL2C", "GL2C_MISS", gl2c_miss, COUNTING_DIMENSION_INSTANCE, 4, 0);
	mock_event("SQ", "SQ_LEVEL_WAVES", sq_level_waves, X, 2, 0);
	scenario_tool(initialize);
	OK(rocprofiler_start_context(context));
	CHECK(mock.dispatches);
}

static void reduce_over_xcc(void)
{
	begin();
	CHECK_EQUAL(value_of("reduce(X,sum,[DIMENSION_XCC])"), 16);
	for (size_t i = 0; i < 16; i++) {
		CHECK(tool_values[i].counter_value == 2.0 * (double)(i + 1));
		CHECK_EQUAL(tool_position(tool_values[i].id, X), 0);
		CHECK_EQUAL(tool_position(tool_values[i].id, SA), i / 4);
		CHECK_EQUAL(tool_position(tool_values[i].id, W), i % 4);
	}
}

static void reduce_over_xcc_and_shader_array(void)
{
	begin();
	CHECK_EQUAL(value_of("reduce(X,sum,[DIMENSION_XCC,DIMENSION_SHADER_ARRAY])"), 4);
	for (size_t i = 0; i < 4; i++) {
		CHECK(tool_values[i].counter_value == 56 + 8.0 * (double)i);
		CHECK_EQUAL(tool_position(tool_values[i].id, W), i);
		CHECK_EQUAL(tool_position(tool_values[i].id, SA), 0);
	}
}

static void reduce_operations(void)
{
	begin();
	CHECK(one("reduce(X,sum)") == 272);
	CHECK(one("reduce(X,avr)") == 8.5);
	CHECK(one("reduce(X,min)") == 1);
	CHECK(one("reduce(X,max)") == 16);
	CHECK_EQUAL(value_of("reduce(X,max,[DIMENSION_WGP,DIMENSION_XCC])"), 4);
	CHECK(tool_values[3].counter_value == 16 && tool_values[0].counter_value == 4);
	CHECK_EQUAL(value_of("reduce(X,avr,[DIMENSION_WGP])"), 8);
	CHECK(tool_values[0].counter_value == 2.5 && tool_values[7].counter_value == 14.5);
	CHECK_EQUAL(value_of("reduce(X,min,[DIMENSION_SHADER_ARRAY])"), 8);
	CHECK(tool_values[7].counter_value == 4);
	/* A dimension that it does not have. */
	CHECK_EQUAL(value_of("reduce(FOUR,sum,[DIMENSION_AID])"), 4);
	/* All that it has. */
	CHECK(one("reduce(FOUR,sum,[DIMENSION_WGP])") == 10);
}

static void select_xcc(void)
{
	begin();
	CHECK_EQUAL(value_of("select(Y, [DIMENSION_XCC=[0]])"), 16);
	for (size_t i = 0; i < 16; i++) {
		CHECK(tool_values[i].counter_value == (double)(i + 1));
		CHECK_EQUAL(tool_position(tool_values[i].id, SE), i / 4);
		CHECK_EQUAL(tool_position(tool_values[i].id, W), i % 4);
	}
	CHECK_EQUAL(value_of("select(Y, [DIMENSION_XCC=[1]])"), 16);
	CHECK(tool_values[0].counter_value == 17);
	CHECK_EQUAL(tool_position(tool_values[0].id, X), 0);
}

static void select_xcc_and_shader_engine(void)
{
	begin();
	CHECK_EQUAL(value_of("select(Y, [DIMENSION_XCC=[0],DIMENSION_SHADER_ENGINE=[2]])"), 4);
	for (size_t i = 0; i < 4; i++) {
		CHECK(tool_values[i].counter_value == 9 + (double)i);
		CHECK_EQUAL(tool_position(tool_values[i].id, W), i);
		CHECK_EQUAL(tool_position(tool_values[i].id, SE), 0);
	}
}

static void select_more(void)
{
	begin();
	/* More than one position: the dimension stays, with the positions it had. */
	CHECK_EQUAL(value_of("select(FOUR,[DIMENSION_WGP=[1,3]])"), 2);
	CHECK(tool_values[0].counter_value == 2 && tool_values[1].counter_value == 4);
	CHECK_EQUAL(tool_position(tool_values[0].id, W), 1);
	CHECK_EQUAL(tool_position(tool_values[1].id, W), 3);
	CHECK_EQUAL(value_of("select(FOUR,[DIMENSION_WGP=[0:2]])"), 3);
	CHECK_EQUAL(value_of("select(FOUR,[DIMENSION_WGP=[0, 2:3]])"), 3);
	CHECK(one("select(FOUR,[DIMENSION_WGP=[2]])") == 3);
	CHECK(one("reduce(select(FOUR,[DIMENSION_WGP=[1:3]]),sum)") == 9);
	/* What is not there gives nothing. */
	CHECK_EQUAL(value_of("select(FOUR,[DIMENSION_WGP=[9]])"), 0);
	CHECK_EQUAL(value_of("reduce(select(FOUR,[DIMENSION_WGP=[9]]),sum)"), 0);
	CHECK_EQUAL(value_of("1+select(FOUR,[DIMENSION_AID=[1]])*FOUR"), 0);
	CHECK_EQUAL(value_of("select(FOUR,[DIMENSION_AID=[0]])"), 4);
	refused("FOUR+select(FOUR,[DIMENSION_WGP=[1,3]])", "different dimensions");
}

static void arithmetic(void)
{
	begin();
	CHECK(one("1+2*3-4/8") == 6.5);
	CHECK(one("(1+2)*3") == 9);
	CHECK(one("8-3-2") == 3);
	CHECK(one("64/4/2") == 8);
	CHECK(one("-2*-3") == 6);
	CHECK(one("- SEVEN + 10") == 3);
	CHECK(one("0.5 + .25 + 1e2 + 1.5e-1 + 2.") == 102.9);
	CHECK(one("3000000000*2") == 6e9);
	CHECK(one("SEVEN/ZERO") == 0);
	CHECK(one("1 + // the rest of a line\n 2") == 3);
	/* One value goes with all, on either side, in the order that is written. */
	CHECK_EQUAL(value_of("100-FOUR"), 4);
	CHECK(tool_values[0].counter_value == 99 && tool_values[3].counter_value == 96);
	CHECK_EQUAL(value_of("FOUR-100"), 4);
	CHECK(tool_values[0].counter_value == -99);
	CHECK_EQUAL(value_of("12/FOUR"), 4);
	CHECK(tool_values[2].counter_value == 4);
	CHECK_EQUAL(tool_position(tool_values[2].id, W), 2);
	CHECK_EQUAL(value_of("FOUR*FOUR"), 4);
	CHECK(tool_values[3].counter_value == 16);
	CHECK_EQUAL(value_of("-FOUR"), 4);
	CHECK(tool_values[3].counter_value == -4);
	/* Along the dimensions that one side lacks. */
	CHECK_EQUAL(value_of("X/FOUR"), 32);
	CHECK(tool_values[5].counter_value == 3 && tool_values[16].counter_value == 1);
	CHECK_EQUAL(value_of("FOUR*X"), 32);
	refused("FOUR*OTHER", "different dimensions: WGP[4] and SHADER_ENGINE[4]");
}

static void aliases(void)
{
	rocprofiler_counter_id_t id;

	begin();
	OK(create("PER_ARRAY", "reduce(X,sum,[DIMENSION_XCC])", &id));
	OK(create("ALIAS", "PER_ARRAY", &id));
	CHECK_EQUAL(value_of("ALIAS"), 16);
	CHECK(tool_values[0].counter_value == 2);
	OK(create("ONE_XCC", "select(Y,[DIMENSION_XCC=[1]])", &id));
	CHECK_EQUAL(value_of("ONE_XCC"), 16);
	CHECK(tool_values[0].counter_value == 17);
	OK(create("ACCUMULATED", "accumulate(LEVEL,HIGH_RES)", &id));
	CHECK_EQUAL(value_of("ACCUMULATED"), 4);
	CHECK(tool_values[0].counter_value == 2001);
	REFUSED(create("ALIAS", "X", &id), INVALID_ARGUMENT);
	REFUSED(create("reduce", "X", &id), INVALID_ARGUMENT);
	REFUSED(create("SELF", "SELF+1", &id), AST_GENERATION_FAILED);
	CHECK(strstr(kymo_counter_config_problem(), "SELF -> SELF"));
	/* A name that was refused may be tried again. */
	OK(create("SELF", "X+1", &id));
}

static void accumulated(void)
{
	begin();
	CHECK(one("reduce(accumulate(LEVEL,HIGH_RES),sum)") == 8010);
	CHECK(one("reduce(accumulate(LEVEL,LOW_RES),max)") == 1004);
	CHECK(one("reduce(accumulate(LEVEL,NONE),max)") == 4);
	/* Both at once: they are not the same. */
	CHECK(one("reduce(accumulate(LEVEL,HIGH_RES)-LEVEL,min)") == 2000);
	refused("accumulate(X,HIGH_RES)", "block SQ");
	refused("accumulate(simd_count,HIGH_RES)", "hardware counter");
	refused("accumulate(reduce(LEVEL,sum),HIGH_RES)", "',' expected");
	refused("accumulate(LEVEL,high)", "HIGH_RES, LOW_RES or NONE");
}

/* The derived metrics of the specification, from known raw values. */
static void metrics(void)
{
	rocprofiler_counter_id_t id;

	begin();
	CHECK(one("100*GRBM_GUI_ACTIVE/GRBM_COUNT") == 25);
	CHECK(one("100*reduce(GL2C_HIT,sum)/(reduce(GL2C_HIT,sum)+reduce(GL2C_MISS,sum))") ==
	      100.0 * 100 / 300);
	OK(create("CU_NUM", "simd_count/simd_per_cu", &id));
	CHECK(one("CU_NUM") == 12);
	CHECK_EQUAL(
		value_of("accumulate(SQ_LEVEL_WAVES,HIGH_RES)/reduce(GRBM_GUI_ACTIVE,max)/CU_NUM"),
		2);
	CHECK(tool_values[0].counter_value == (200 + 2000) / 100.0 / 12);
	CHECK(tool_values[1].counter_value == (600 + 2000) / 100.0 / 12);
	CHECK_EQUAL(tool_position(tool_values[1].id, X), 1);
	CHECK(one("reduce(accumulate(SQ_LEVEL_WAVES,HIGH_RES),sum)/reduce(GRBM_GUI_ACTIVE,max)/"
		  "CU_NUM") == 4800 / 100.0 / 12);
	/* Nothing but properties: no kernel is counted for it, and it has its values. */
	CHECK(one("wave_front_size*cu_count") == 64 * 12);
}

static void mistakes(void)
{
	begin();
	refused("A", "there is no counter 'A'");
	refused("X X", "an operator or the end expected");
	refused("X+", "not the end");
	refused(" ", "a counter, a number or '(' expected");
	refused("(X", "')' expected");
	refused("X)", "an operator or the end expected");
	refused("1.5x", "not a number");
	refused("1e999", "too large");
	refused("X $ 2", "unexpected character '$'");
	refused("reduce(X,avg)", "sum, avr, min or max");
	refused("reduce(X,SUM)", "sum, avr, min or max");
	refused("reduce(X)", "',' expected");
	refused("reduce(X,sum,[DIMENSION_YCC])", "a dimension");
	refused("reduce(X,sum,[])", "a dimension");
	refused("select(X,[DIMENSION_XCC=[a]])", "a position expected");
	refused("select(X,[DIMENSION_XCC=[3:1]])", "ends before it begins");
	refused("select(X,[DIMENSION_XCC=[0],DIMENSION_XCC=[1]])", "selected twice");
	refused("select(X,[DIMENSION_XCC=[1.5]])", "integer");
	refused("mean(X)", "there is no function 'mean'");
	refused("X+Y", "different dimensions: XCC[2]");
}

static void rollups(void)
{
	struct mock_event *event;

	mock_start("sm_test", true);
	event = mock_event("SM", "sm__cycles", fifty, 0);
	event->event.has_rollups = true;
	event->rollups[COUNTING_ROLLUP_SUM] = 50;
	event->rollups[COUNTING_ROLLUP_AVERAGE] = 25;
	event->rollups[COUNTING_ROLLUP_MIN] = 20;
	event->rollups[COUNTING_ROLLUP_MAX] = 30;
	scenario_tool(initialize);
	OK(rocprofiler_start_context(context));
	CHECK(one("sm__cycles") == 50);
	CHECK(one("reduce(sm__cycles,sum)") == 50);
	CHECK(one("reduce(sm__cycles,avr)+0") == 25);
	CHECK(one("reduce(sm__cycles,min)") == 20);
	CHECK(one("reduce(sm__cycles,max)") == 30);
	CHECK(one("reduce(sm__cycles,max)/reduce(sm__cycles,min)*sm__cycles") == 75);
	refused("reduce(sm__cycles,sum,[DIMENSION_INSTANCE])", "as a whole");
	refused("select(sm__cycles,[DIMENSION_INSTANCE=[0]])", "no instances");
}

SCENARIO(reduce_over_xcc)
SCENARIO(reduce_over_xcc_and_shader_array)
SCENARIO(reduce_operations)
SCENARIO(select_xcc)
SCENARIO(select_xcc_and_shader_engine)
SCENARIO(select_more)
SCENARIO(arithmetic)
SCENARIO(aliases)
SCENARIO(accumulated)
SCENARIO(metrics)
SCENARIO(mistakes)
SCENARIO(rollups)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reduce_over_xcc),
		cmocka_unit_test(test_reduce_over_xcc_and_shader_array),
		cmocka_unit_test(test_reduce_operations),
		cmocka_unit_test(test_select_xcc),
		cmocka_unit_test(test_select_xcc_and_shader_engine),
		cmocka_unit_test(test_select_more),
		cmocka_unit_test(test_arithmetic),
		cmocka_unit_test(test_aliases),
		cmocka_unit_test(test_accumulated),
		cmocka_unit_test(test_metrics),
		cmocka_unit_test(test_mistakes),
		cmocka_unit_test(test_rollups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

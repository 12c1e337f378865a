/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's answers as plain data: a missing field is unknown. */
#include <json-c/json.h>

#include "made_up.h"

static struct json_object *json(const char *text)
{
	struct json_object *o = json_tokener_parse(text);

	assert_non_null(o);
	return o;
}

TEST(a_whole_answer_is_read)
{
	struct json_object *stats =
		json("{'daemon':{'uptime_ns':7,'keeper':'gone'},'devices':[{'device':3,'name':'G',"
		     "'state':'ok','policy':'none','policy_wanted':'edf','tasks':2,'mono_ns':11,"
		     "'ejection':{'policy':'edf','text':'why'},"
		     "'stats':{'preemptions':4,'inversions':0,'busy_ns':5}}]}");
	struct json_object *tasks =
		json("{'now_ns':99,'tasks':[{'device':3,'task':8,'pid':42,'start_time':17,"
		     "'name':'train','user':'bob','class':'lc','priority':15,'state':'waiting',"
		     "'run_ns':6,'run_source':'granted','preemptions':2,'refused':true,"
		     "'mono_ns':12,'waits':{'count':1,'p50_ns':3,'p99_ns':4}},{'task':1}]}");
	struct gp_top_snapshot snapshot = {0};
	const struct gp_top_task *t;

	assert_int_equal(gp_top_read_devices(&snapshot, stats, false), 0);
	assert_int_equal(gp_top_read_tasks(&snapshot, tasks, false), 0);
	gp_top_snapshot_sort(&snapshot);
	assert_int_equal(snapshot.uptime_ns, 7);
	assert_true(snapshot.keeper_gone);
	assert_int_equal(snapshot.ndevices, 1);
	assert_int_equal(snapshot.device[0].number, 3);
	assert_true(snapshot.device[0].ejected);
	assert_string_equal(snapshot.device[0].why, "edf was ejected: why");
	assert_true(snapshot.device[0].busy_known && snapshot.device[0].inversions_known);
	assert_int_equal(snapshot.ntasks, 2);
	t = &snapshot.task[1]; /* device 0 comes first */
	assert_int_equal(t->id, 8);
	assert_int_equal(t->pid, 42);
	assert_int_equal(t->class, GP_LATENCY_CRITICAL);
	assert_int_equal(t->priority, 15);
	assert_int_equal(t->state, GP_TASK_WAITING);
	assert_int_equal(t->at_ns, 12);
	assert_true(t->run_known && t->run_granted && t->waits_known && t->refused);
	assert_int_equal(t->wait_p99_ns, 4);
	t = &snapshot.task[0];
	assert_false(t->run_known || t->waits_known || t->refused);
	assert_int_equal(t->at_ns, 99);
	assert_int_equal(t->class, GP_UNMANAGED);
	assert_int_equal(t->state, GP_TASK_UNKNOWN);
	assert_true(t->share < 0);
	json_object_put(stats);
	json_object_put(tasks);
	gp_top_snapshot_clear(&snapshot);
}

TEST(a_policy_that_was_chosen_afterwards_is_not_ejected)
{
	struct json_object *stats = json("{'devices':[{'policy':'rr','policy_wanted':'rr',"
					 "'ejection':{'policy':'edf'}},{},"
					 "{'policy':'none','policy_wanted':'rr'}]}");
	struct gp_top_snapshot snapshot = {0};

	assert_int_equal(gp_top_read_devices(&snapshot, stats, false), 0);
	assert_false(snapshot.device[0].ejected);
	assert_false(snapshot.device[1].ejected);
	assert_false(snapshot.device[2].ejected); /* not yet in force */
	assert_false(snapshot.device[1].busy_known || snapshot.device[1].inversions_known);
	json_object_put(stats);
	gp_top_snapshot_clear(&snapshot);
}

TEST(all_states_are_known_by_their_words)
{
	static const char *const words[] = {
		[GP_TASK_RUNNING] = "running", [GP_TASK_ACTIVE] = "active",
		[GP_TASK_WAITING] = "waiting", [GP_TASK_HELD] = "held",
		[GP_TASK_IDLE] = "idle",       [GP_TASK_SUSPENDED] = "suspended",
		[GP_TASK_EVICTED] = "evicted", [GP_TASK_UNKNOWN] = "unknown",
	};
	char text[128];

	for (unsigned i = 0; i < GP_TASK_STATES; i++) {
		struct gp_top_snapshot snapshot = {0};
		struct json_object *o;

		snprintf(text, sizeof text, "{'tasks':[{'state':'%s'}]}", words[i]);
		o = json(text);
		assert_int_equal(gp_top_read_tasks(&snapshot, o, false), 0);
		assert_int_equal(snapshot.task[0].state, i);
		json_object_put(o);
		gp_top_snapshot_clear(&snapshot);
	}
}

TEST(malformed_answers_are_refused_or_unknown)
{
	static const char *const answers[] = {"{}", "[]", "7", "{'devices':7,'tasks':7}",
					      "{'devices':{},'tasks':'x'}"};
	struct json_object *odd = json("{'tasks':[7,null,[],{'pid':'x','name':5,'waits':3,"
				       "'priority':-1,'run_ns':1.5,'class':[]}],"
				       "'devices':[null,3,{'stats':[],'name':{}}]}");
	struct gp_top_snapshot snapshot = {0};

	for (unsigned i = 0; i < sizeof answers / sizeof answers[0]; i++) {
		struct json_object *o = json(answers[i]);

		assert_int_equal(gp_top_read_devices(&snapshot, o, false), -EPROTO);
		assert_int_equal(gp_top_read_tasks(&snapshot, o, false), -EPROTO);
		json_object_put(o);
	}
	assert_int_equal(gp_top_read_devices(&snapshot, odd, true), 0);
	assert_int_equal(gp_top_read_tasks(&snapshot, odd, true), 0);
	assert_int_equal(snapshot.ntasks, 4);
	assert_false(snapshot.task[3].run_known);
	json_object_put(odd);
	gp_top_snapshot_clear(&snapshot); /* frees the kept JSON */
}

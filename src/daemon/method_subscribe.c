/* SPDX-License-Identifier: Apache-2.0 */
/* The method `subscribe`: sends events to this connection as they happen. */
#include <json-c/json.h>
#include <string.h>

#include "daemon/control.h"
#include "rpc/params.h"

const char *const gp_topic_names[GP_TOPICS] = {
	"task_in",       "task_out", "held",    "released", "policy",  "ejected",
	"action_failed", "undone",   "refused", "admitted", "evicted", "restored",
	"limit",         "attr",     "config",  "keeper",
};

static int read_topic(struct json_object *item, uint64_t *bits, struct gp_error *err)
{
	const char *name =
		json_object_is_type(item, json_type_string) ? json_object_get_string(item) : "";

	for (unsigned i = 0; i < GP_TOPICS; i++)
		if (!strcmp(name, gp_topic_names[i])) {
			*bits |= 1ull << i;
			return 0;
		}
	return gp_fail(err, -EINVAL, "there is no event '%.40s'; docs/protocol.md lists all", name);
}

int gp_method_subscribe(void *arg, struct gp_rpc_call *call, struct json_object *params)
{
	struct gp_control *c = arg;
	struct gp_error *err = gp_rpc_error(call);
	struct json_object *list = NULL, *result, *names;
	uint64_t bits = 0;
	bool given;

	if (GP_PARAMS_KNOWN(params, err, "events") ||
	    gp_params_array(params, "events", GP_TOPICS, &list, &given, err))
		return -EINVAL;
	for (size_t i = 0; given && i < json_object_array_length(list); i++)
		if (read_topic(json_object_array_get_idx(list, i), &bits, err))
			return -EINVAL;
	if (gp_may_read(c, call, NULL, err))
		return -EPERM;
	if (!given)
		bits = (1ull << GP_TOPICS) - 1;
	gp_rpc_subscribe(call, bits);
	gp_events_want(c);
	result = gp_json_begin();
	names = json_object_new_array();
	for (unsigned i = 0; i < GP_TOPICS; i++)
		if (bits & 1ull << i)
			gp_json_append(names, json_object_new_string(gp_topic_names[i]));
	gp_json_add(result, "events", names);
	return gp_rpc_reply(call, result);
}

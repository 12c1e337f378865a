/* SPDX-License-Identifier: Apache-2.0 */
/* What tests can see: the files `state` (JSON) and `counts` (a name and a number on each line). */
#include "rm.h"

#define MAX_COUNTS 256u

struct count {
	uint32_t cmd;
	uint64_t calls;
};

static struct count counts[MAX_COUNTS]; /* of every cmd that ever came */
static size_t ncounts;
static uint64_t total;
static uint64_t refusals[REFUSED_COUNT];

static const char *const refusal_names[] = {
	[REFUSED_CLIENT] = "refused_client",
	[REFUSED_FILE] = "refused_file",
	[REFUSED_SIZE] = "refused_size",
	[REFUSED_ADDRESS] = "refused_address",
	[REFUSED_OBJECT] = "refused_object",
	[REFUSED_COMMAND] = "refused_command",
	[REFUSED_PERMISSION] = "refused_permission",
	[REFUSED_IOCTL] = "refused_ioctl",
};

void count_call(uint32_t cmd)
{
	total++;
	for (size_t i = 0; i < ncounts; i++)
		if (counts[i].cmd == cmd) {
			counts[i].calls++;
			return;
		}
	if (ncounts < MAX_COUNTS)
		counts[ncounts++] = (struct count){cmd, 1};
}

void count_refusal(enum refusal refusal)
{
	refusals[refusal]++;
}

void count_reset(void)
{
	ncounts = 0;
	total = 0;
	memset(refusals, 0, sizeof(refusals));
}

static const char *count_name(uint32_t cmd, char buffer[16])
{
	const struct command *command = command_find(cmd);

	if (command)
		return command->name;
	if (cmd == CMD_ALLOC)
		return "alloc";
	if (cmd == CMD_FREE)
		return "free";
	snprintf(buffer, 16, "0x%x", cmd);
	return buffer;
}

static void print_counts(FILE *out, const char *format, const char *separator)
{
	char buffer[16];

	fprintf(out, format, "", "total", total);
	for (size_t i = 0; i < ncounts; i++)
		fprintf(out, format, separator, count_name(counts[i].cmd, buffer), counts[i].calls);
	for (size_t i = 0; i < REFUSED_COUNT; i++)
		fprintf(out, format, separator, refusal_names[i], refusals[i]);
}

void counts_print(FILE *out)
{
	print_counts(out, "%s%s %lu\n", "");
}

static const char *yes_no(bool value)
{
	return value ? "true" : "false";
}

static void print_channel(FILE *out, const struct client *client, const struct object *o)
{
	const struct channel *c = o->channel;

	fprintf(out,
		"{\"client\":\"0x%08x\",\"handle\":\"0x%08x\",\"id\":%u,\"enabled\":%s,"
		"\"submitted\":%lu,\"done\":%lu,\"run_ns\":%lu}",
		client->handle, o->handle, c->id, yes_no(c->enabled), c->submitted, c->done,
		c->run_ns);
}

static void print_channels(FILE *out, const struct client *client, const struct group *group)
{
	const char *comma = "";

	for (const struct object *o = client->objects; o; o = o->next) {
		if (!o->channel || o->group != group)
			continue;
		fputs(comma, out);
		print_channel(out, client, o);
		comma = ",";
	}
}

static unsigned disabled_channels(const struct group *g)
{
	unsigned n = 0;

	for (const struct channel *c = g->channels; c; c = c->next)
		n += !c->enabled;
	return n;
}

static void print_group(FILE *out, const struct client *client, const struct object *o)
{
	static const char *const modes[] = {"wfi", "cta", "cilp"};
	const struct group *g = o->group;

	fprintf(out,
		"\n   {\"handle\":\"0x%08x\",\"pid\":%d,\"gpu\":%u,\"tsg_id\":%u,\"engine\":%u,"
		"\"slice_us\":%lu,\"programmed_us\":%lu,\"interleave\":%u,\"mode\":\"%s\","
		"\"held\":%s,\"run_ns\":%lu,\"work_ns\":%lu,\"scheduled\":%lu,\"preempted\":%lu,"
		"\"disabled\":%u,\"channels\":[",
		o->handle, g->pid, o->gpu->index, g->tsg_id, g->engine_type, g->asked_us,
		g->slice_us, g->interleave, modes[g->mode], yes_no(group_is_held(g)), g->run_ns,
		g->work_ns, g->scheduled, g->preempted, disabled_channels(g));
	print_channels(out, client, g);
	fputs("]}", out);
}

static void print_client(FILE *out, const struct client *c)
{
	const char *comma = "";

	fprintf(out,
		"\n {\"handle\":\"0x%08x\",\"index\":%u,\"pid\":%d,\"uid\":%u,\"file\":%u,"
		"\"memory\":%lu,\n  \"objects\":[",
		c->handle, c->handle - NV_CLIENT_BASE, c->pid, c->uid, c->file->id,
		client_memory(c, NULL));
	for (const struct object *o = c->objects; o; o = o->next, comma = ",")
		fprintf(out, "%s{\"handle\":\"0x%08x\",\"parent\":\"0x%08x\",\"class\":\"0x%x\"}",
			comma, o->handle, o->parent ? o->parent->handle : 0, o->class);
	fputs("],\n  \"groups\":[", out);
	comma = "";
	for (const struct object *o = c->objects; o; o = o->next) {
		if (o->kind != KIND_GROUP)
			continue;
		fputs(comma, out);
		print_group(out, c, o);
		comma = ",";
	}
	fputs("]}", out);
}

static void print_gpu(FILE *out, const struct gpu *gpu)
{
	fprintf(out,
		"\n {\"index\":%u,\"gpu_id\":\"0x%x\",\"lost\":%s,\"memory\":%lu,\"switches\":%lu}",
		gpu->index, gpu->gpu_id, yes_no(rm.lost[gpu->index]), gpu->memory,
		gpu->runlist[0].switches);
}

void state_print(FILE *out)
{
	uint64_t memory = 0;
	const char *comma = "";

	fprintf(out, "{\"now_ns\":%lu,\"version\":\"%s\",\"next_index\":%u,\"gsp\":%s,\"counts\":{",
		rm.engine.gpu[0].runlist[0].now_ns, rm.driver->version, rm.next_index,
		yes_no(rm.gsp));
	print_counts(out, "%s\"%s\":%lu", ",");
	fputs("},\n\"gpus\":[", out);
	for (uint32_t i = 0; i < rm.engine.ngpus; i++) {
		fputs(i ? "," : "", out);
		print_gpu(out, &rm.engine.gpu[i]);
		memory += rm.engine.gpu[i].memory;
	}
	fprintf(out, "],\n\"memory\":%lu,\n\"clients\":[", memory);
	for (const struct client *c = rm.clients; c; c = c->next, comma = ",") {
		fputs(comma, out);
		print_client(out, c);
	}
	fputs("]}\n", out);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The file `state`: everything, as JSON; a queue, a device and a process's head on a line each. */
#include "kfd.h"

static const char *yes_no(bool value)
{
	return value ? "true" : "false";
}

static uint64_t read_index(const struct queue *q, uint64_t address)
{
	uint64_t index = 0;

	program_read(q->process, address, &index, sizeof(index));
	return index;
}

static void print_queue(FILE *out, const struct queue *q)
{
	const struct process *p = q->process;

	fprintf(out,
		"\n   {\"pid\":%d,\"queue\":%u,\"gpu_id\":%u,\"type\":%u,\"suspended\":%s,"
		"\"evicted\":%s,\"active\":%s,\"mapped\":%s,\"busy\":%s,\"rung\":%s,\"faulted\":%s,"
		"\"new\":%s,\"being_destroyed\":%s,\"percentage\":%u,\"priority\":%u,",
		p->pid, q->id, q->device->gpu_id, q->type, yes_no(q->suspended),
		yes_no(p->on[q->device->index].evicted > 0), yes_no(queue_is_active(q)),
		yes_no(q->mapped), yes_no(q->busy), yes_no(q->rung), yes_no(q->faulted),
		yes_no(q->exceptions & KFD_EC_QUEUE_NEW), yes_no(q->being_destroyed), q->percent,
		q->priority);
	fprintf(out,
		"\"exceptions\":%lu,\"executed\":%lu,\"saved\":%lu,\"preempted\":%lu,"
		"\"doorbells\":%lu,\"run_ns\":%lu,\"left_ns\":%lu,\"rptr\":%lu,\"wptr\":%lu,"
		"\"doorbell\":%lu,\"rung_ns\":%lu}",
		q->exceptions, q->executed, q->saved, q->preempted, q->doorbells, q->run_ns,
		q->busy ? q->left_ns : 0, read_index(q, q->rptr), read_index(q, q->wptr),
		q->doorbell, q->rung_ns);
}

static void print_process(FILE *out, const struct process *p)
{
	const struct process *debugger = process_by_serial(p->debugger);
	uint32_t suspended = 0, new = 0;

	for (const struct queue *q = p->queues; q; q = q->next) {
		suspended += q->suspended;
		new += (q->exceptions & KFD_EC_QUEUE_NEW) != 0;
	}
	fprintf(out,
		"\n {\"process\":%d,\"pasid\":%u,\"runtime_state\":%u,\"debugged\":%s,"
		"\"debugger\":%d,\"locked\":%s,\"waiting_answers\":%u,\"exceptions\":%lu,"
		"\"queue_count\":%u,\"suspended_count\":%u,\"new_count\":%u,\"suspends\":%lu,"
		"\"resumes\":%lu,\"suspended_ns\":%lu,\"grace\":%u,\"queues\":[",
		p->pid, p->pasid, p->runtime.runtime_state, yes_no(p->debugged),
		debugger ? debugger->pid : 0, yes_no(p->locked), p->runtime_sema, p->exceptions,
		p->nqueues, suspended, new, p->suspends, p->resumes, p->suspended_ns, p->grace);
	for (const struct queue *q = p->queues; q; q = q->next) {
		print_queue(out, q);
		fputs(q->next ? "," : "", out);
	}
	fputs("]}", out);
}

static void print_device(FILE *out, const struct device *d)
{
	fprintf(out,
		"\n {\"device\":%u,\"gpu_id\":%u,\"model\":\"%s\",\"mes\":%s,\"in_reset\":%s,"
		"\"cycles\":%lu,\"preempted\":%lu,\"messages\":%lu,\"debug_owner\":%d}",
		d->index, d->gpu_id, d->model->option, yes_no(d->model->mes), yes_no(d->in_reset),
		d->cycles, d->preempted, d->messages, d->debug_owner ? d->debug_owner->pid : 0);
}

void state_print(FILE *out)
{
	for (uint32_t i = 0; i < kfd.ndevices; i++)
		cp_settle(&kfd.device[i]);
	fprintf(out, "{\"now_ns\":%lu,\"version\":\"%u.%u\",\"rule\":\"%s\",\"sched_policy\":%u,",
		kfd_now_ns(), kfd.major, kfd.minor, kfd.rule == RULE_OLD ? "old" : "new",
		kfd.sched_policy);
	fputs("\n\"counts\":{", out);
	counts_print(out, "%s\"%s\":%lu", ",");
	fputs("},\n\"devices\":[", out);
	for (uint32_t i = 0; i < kfd.ndevices; i++) {
		fputs(i ? "," : "", out);
		print_device(out, &kfd.device[i]);
	}
	fputs("],\n\"processes\":[", out);
	for (const struct process *p = kfd.processes; p; p = p->next) {
		print_process(out, p);
		fputs(p->next ? "," : "", out);
	}
	fputs("]}\n", out);
}

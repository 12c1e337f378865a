/* SPDX-License-Identifier: Apache-2.0 */
/* 200 clients at once: each gets its own answers and all events that it asked for. */
#include "support/test.h"
#include "rpc_world.h"

#define CLIENTS 200
#define THREADS 8
#define ROUNDS  20

struct part {
	const struct world *world;
	pthread_t thread;
	unsigned from, to;
	unsigned answered, wrong;
};

static struct gp_client *client[CLIENTS];

/* In a thread no assertion can be made: it counts. */
static void one_call(struct part *p, unsigned i, unsigned round)
{
	struct json_object *params = json_object_new_object(), *result = NULL;
	struct gp_error err = {0};

	json_object_object_add(params, "me", json_object_new_int((int)(i * ROUNDS + round)));
	if (!gp_client_call(client[i], "echo", params, &result, &err) &&
	    json_object_get_uint64(json_object_object_get(result, "me")) == i * ROUNDS + round)
		p->answered++;
	else
		p->wrong++;
	json_object_put(result);
}

static void *crowd(void *arg)
{
	struct part *p = arg;

	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = p->from; i < p->to; i++)
			one_call(p, i, round);
	return NULL;
}

WORLD_TEST(two_hundred_clients_get_their_own_answers)
{
	struct part part[THREADS];
	struct bystander beside;
	unsigned answered = 0;

	for (unsigned i = 0; i < CLIENTS; i++)
		client[i] = client_of(w);
	bystander_start(&beside, w);
	for (unsigned i = 0; i < THREADS; i++) {
		part[i] = (struct part){.world = w,
					.from = i * CLIENTS / THREADS,
					.to = (i + 1) * CLIENTS / THREADS};
		assert_int_equal(pthread_create(&part[i].thread, NULL, crowd, &part[i]), 0);
	}
	bystander_goes_on(&beside, 20);
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(part[i].thread, NULL);
		assert_int_equal(part[i].wrong, 0);
		answered += part[i].answered;
	}
	assert_int_equal(answered, CLIENTS * ROUNDS);
	bystander_stop(&beside);
}

WORLD_TEST(two_hundred_subscribers_hear_everything)
{
	struct gp_client *speaker = client_of(w);

	for (unsigned i = 0; i < CLIENTS; i++) {
		client[i] = client_of(w);
		json_object_put(ask(client[i], "subscribe", object("{\"bits\":1}")));
	}
	for (unsigned round = 0; round < ROUNDS; round++)
		json_object_put(ask(speaker, "emit", object("{\"count\":5,\"bytes\":100}")));
	for (unsigned i = 0; i < CLIENTS; i++) {
		for (unsigned n = 0; n < 5 * ROUNDS; n++) {
			struct json_object *event;
			struct gp_error err = {0};

			if (gp_client_next(client[i], WAIT_MS, &event, &err))
				fail_msg("client %u, event %u: %s", i, n, err.text);
			assert_int_equal(number(json_object_object_get(event, "params"), "number"),
					 n % 5);
			json_object_put(event);
		}
		client_close(client[i]);
	}
	assert_int_equal(ask_counter(speaker, "sent"), 5 * ROUNDS * CLIENTS);
	assert_int_equal(ask_counter(speaker, "lost"), 0);
}

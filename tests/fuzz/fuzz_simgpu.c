/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as packets to gpreempt-simgpu, from four connections. An input is a list of: a byte
 * that says whose packet it is and whether the round ends with it, two bytes of length, the packet.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "sim/server/sim_server.h"

#define CLIENTS 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct server *start(void)
{
	static const struct gp_sim_server_config config = {
		.model = &gp_sim_h200, .model_name = "fuzzed", .devices = 2, .seed = 1};
	static struct server *server;

	if (!server && gp_sim_server_new(&config, &server, NULL))
		abort();
	return server;
}

static struct client *connect_to(struct server *s, unsigned i, int *peer)
{
	struct client *c;
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd))
		abort();
	c = gp_sim_client_add(s, fd[0]);
	if (!c)
		abort();
	c->pid = 1000 + (pid_t)i; /* each is a process of its own */
	c->start_time = 1;
	*peer = fd[1];
	return c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct server *s = start();
	struct client *client[CLIENTS];
	int peer[CLIENTS];

	s->next_key = 1; /* one that an input can know */
	for (unsigned i = 0; i < CLIENTS; i++)
		client[i] = connect_to(s, i, &peer[i]);
	while (size > 3) {
		unsigned who = data[0] % CLIENTS;
		bool settles = data[0] & 0x80;
		size_t length = (size_t)(data[1] | data[2] << 8);

		data += 3;
		size -= 3;
		length = length < size ? length : size;
		memcpy(&s->packet, data, length < sizeof s->packet ? length : sizeof s->packet);
		if (client[who] && !client[who]->gone)
			gp_sim_client_packet(s, client[who], length);
		data += length;
		size -= length;
		for (unsigned i = 0; i < CLIENTS && settles; i++)
			if (client[i] && client[i]->gone)
				client[i] = NULL;
		if (settles)
			gp_sim_server_settle(s);
	}
	for (unsigned i = 0; i < CLIENTS; i++) {
		if (client[i])
			gp_sim_client_end(client[i]);
		close(peer[i]);
	}
	gp_sim_server_settle(s);
	return 0;
}

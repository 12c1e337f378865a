/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the keys `sockets`, `clients` (limits per client, such as its request rate) and `metrics`.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config/parse_config.h"

static int read_socket(struct gp_yaml *y, struct gp_config_socket *s)
{
	static const struct gp_yaml_key keys[] = {
		{"path", TEXT, AT(struct gp_config_socket, path)},
		{"mode", TEXT, AT(struct gp_config_socket, mode_text)},
	};
	static const struct gp_yaml_map map = {"a socket", 2, keys};
	unsigned line[GP_YAML_KEYS_MAX];
	int r = gp_yaml_read_map(y, &map, s, line);
	char *end;

	if (r)
		return r;
	if (line[0] && s->path[0] != '/')
		return gp_yaml_fail(y, line[0], "'path' must begin with /, not %s",
				    gp_yaml_show_text(s->path).text);
	s->mode = (mode_t)strtoul(s->mode_text, &end, 8);
	if (strspn(s->mode_text, "01234567") != strlen(s->mode_text) || s->mode > 0777)
		return gp_yaml_fail(
			y, line[1],
			"'mode' must be an octal number from 0 to 0777, as in 0660, not "
			"%s",
			gp_yaml_show_text(s->mode_text).text);
	return 0;
}

static int read_control(struct gp_yaml *y, void *target)
{
	return read_socket(y, &((struct gp_config_reading *)target)->config.sockets.control);
}

static int read_hint(struct gp_yaml *y, void *target)
{
	return read_socket(y, &((struct gp_config_reading *)target)->config.sockets.hint);
}

int gp_config_read_sockets(struct gp_yaml *y, void *target)
{
	static const struct gp_yaml_key keys[] = {
		{"control", NESTED(read_control)},
		{"hint", NESTED(read_hint)},
		{"group", TEXT, AT(struct gp_config_reading, config.sockets.group_name)},
	};
	static const struct gp_yaml_map map = {"'sockets'", 3, keys};
	struct gp_config_reading *r = target;
	struct gp_config_sockets *s = &r->config.sockets;
	unsigned line[GP_YAML_KEYS_MAX];
	int failed = gp_yaml_read_map(y, &map, target, line);

	if (failed)
		return failed;
	if (s->control.path[0] && !strcmp(s->control.path, s->hint.path))
		return gp_yaml_fail(y, line[1],
				    "the two sockets have the same path; give each its own path");
	if (!line[2])
		return 0;
	s->has_group = true;
	return gp_config_find_id(y, r, line[2], true, s->group_name, &s->group);
}

int gp_config_read_clients(struct gp_yaml *y, void *target)
{
	/* clang-format off */
#define IN(member) AT(struct gp_config_clients, member)
	static const struct gp_yaml_key keys[] = {
		{"max",          WHOLE(1, 100000), IN(max)},
		{"per_user",     WHOLE(1, 100000), IN(per_user)},
		{"request_size", SIZE(1 << 10, 16 << 20), IN(request_size)},
		{"rate",         WHOLE(1, 1000000), .unit = "requests per second", IN(rate)},
		{"idle",         DURATION(GP_NS_PER_S, 7 * DAY), IN(idle_ns)},
	};
#undef IN
	/* clang-format on */
	static const struct gp_yaml_map map = {"'clients'", sizeof keys / sizeof *keys, keys};
	struct gp_config_clients *c = &((struct gp_config_reading *)target)->config.clients;
	unsigned line[GP_YAML_KEYS_MAX];
	int r = gp_yaml_read_map(y, &map, c, line);

	if (r || c->per_user <= c->max)
		return r;
	if (line[1])
		return gp_yaml_fail(y, line[1],
				    "'per_user' (%u) must not be more than 'max', which is %u",
				    c->per_user, c->max);
	c->per_user = c->max;
	return 0;
}

static bool is_loopback(const struct gp_config_metrics *m)
{
	if (m->address.any.sa_family == AF_INET)
		return ntohl(m->address.v4.sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&m->address.v6.sin6_addr);
}

/* "127.0.0.1:9435", "[::1]:9435" or "localhost:9435". */
static bool parse_address(struct gp_config_metrics *m)
{
	char host[sizeof m->listen], *colon, *end;
	unsigned long port;

	memcpy(host, m->listen, sizeof host);
	colon = strrchr(host, ':');
	if (!colon || strspn(colon + 1, "0123456789") != strlen(colon + 1))
		return false;
	port = strtoul(colon + 1, &end, 10);
	if (!colon[1] || !port || port > 65535)
		return false;
	*colon = '\0';
	memset(&m->address, 0, sizeof m->address);
	if (host[0] == '[' && colon[-1] == ']') {
		colon[-1] = '\0';
		m->address.v6.sin6_family = AF_INET6;
		m->address.v6.sin6_port = htons((uint16_t)port);
		return inet_pton(AF_INET6, host + 1, &m->address.v6.sin6_addr) == 1;
	}
	m->address.v4.sin_family = AF_INET;
	m->address.v4.sin_port = htons((uint16_t)port);
	return inet_pton(AF_INET, strcmp(host, "localhost") != 0 ? host : "127.0.0.1",
			 &m->address.v4.sin_addr) == 1;
}

int gp_config_read_metrics(struct gp_yaml *y, void *target)
{
	static const struct gp_yaml_key keys[] = {
		{"listen", TEXT, AT(struct gp_config_metrics, listen)},
		{"public", BOOL, AT(struct gp_config_metrics, public)},
		{"tasks", BOOL, AT(struct gp_config_metrics, tasks)},
	};
	static const struct gp_yaml_map map = {"'metrics'", 3, keys};
	struct gp_config_metrics *m = &((struct gp_config_reading *)target)->config.metrics;
	unsigned line[GP_YAML_KEYS_MAX];
	int r = gp_yaml_read_map(y, &map, m, line);

	if (r)
		return r;
	m->on = strcmp(m->listen, "off") != 0;
	if (!m->on)
		return 0;
	if (!parse_address(m))
		return gp_yaml_fail(y, line[0],
				    "'listen' must be off, or an address and a port, as in "
				    "127.0.0.1:9435 or [::1]:9435, not %s",
				    gp_yaml_show_text(m->listen).text);
	if (!m->public && !is_loopback(m))
		return gp_yaml_fail(y, line[0],
				    "%s is not a loopback address, so other machines could read "
				    "the metrics; write 'public: true' to allow that",
				    gp_yaml_show_text(m->listen).text);
	return 0;
}

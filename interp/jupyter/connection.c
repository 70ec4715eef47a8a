/* SPDX-License-Identifier: MIT
 * A kernel runs what it is sent, so it listens on this machine only (127.0.0.0/8, ::1, localhost, or a socket
 * file) and only to messages that are signed: a file with another address or without a key is refused.
 */
#include "interp/jupyter/connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "interp/jupyter/wire.h"

#define QL_CONNECTION_MAX 65536 /* bytes */

static const char *const names[QL_CHANNELS] = {"shell_port", "control_port", "stdin_port", "iopub_port", "hb_port"};

static bool is_loopback(const char *ip)
{
	struct in_addr four;
	struct in6_addr six;

	if (!strcmp(ip, "localhost"))
		return true;
	if (inet_pton(AF_INET, ip, &four) == 1)
		return ntohl(four.s_addr) >> 24 == 127;
	return inet_pton(AF_INET6, ip, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}

static bool refuse(
	char error[QL_CONNECTION_ERROR], const char *file, const char *member, const char *wanted, const char *got)
{
	snprintf(error, QL_CONNECTION_ERROR, "kernel: %.200s: %s: wanted %s, got %s%.80s%s", file, member, wanted,
		got ? "'" : "", got ? got : "none", got ? "'" : "");
	return false;
}

static bool take_ports(const char *file, const cJSON *object, struct ql_connection *c, char error[QL_CONNECTION_ERROR])
{
	for (int i = 0; i < QL_CHANNELS; i++) {
		long long port = ql_wire_integer(object, names[i], 0);
		char got[32];

		snprintf(got, sizeof(got), "%lld", port);
		if (port < 1 || port > 65535)
			return refuse(error, file, names[i], "an integer from 1 to 65535", got);
		for (int k = 0; k < i; k++)
			if (c->port[k] == port)
				return refuse(error, file, names[i], "a port of its own", got);
		c->port[i] = (int)port;
	}
	return true;
}

static bool take(const char *file, const cJSON *object, struct ql_connection *c, char error[QL_CONNECTION_ERROR])
{
	const char *ip = ql_wire_member(object, "ip"), *transport = ql_wire_member(object, "transport");
	const char *key = ql_wire_member(object, "key"), *scheme = ql_wire_member(object, "signature_scheme");

	if (transport && strcmp(transport, "tcp") && strcmp(transport, "ipc"))
		return refuse(error, file, "transport", "tcp or ipc", transport);
	c->ipc = transport && !strcmp(transport, "ipc");
	if (!ip || !*ip || strlen(ip) >= sizeof(c->ip) - 8 || (!c->ipc && !is_loopback(ip)))
		return refuse(error, file, "ip", "an address of this machine (127.0.0.1)", ip);
	if (scheme && strcmp(scheme, "hmac-sha256"))
		return refuse(error, file, "signature_scheme", "hmac-sha256", scheme);
	if (!key || !*key)
		return refuse(error, file, "key", "a key: unsigned messages are not accepted", NULL);
	if (strlen(key) >= sizeof(c->key))
		return refuse(error, file, "key", "at most 512 bytes", "a longer one");
	strcpy(c->ip, strcmp(ip, "localhost") ? ip : "127.0.0.1");
	strcpy(c->key, key);
	return take_ports(file, object, c, error);
}

static bool cannot(char error[QL_CONNECTION_ERROR], const char *file, const char *why)
{
	snprintf(error, QL_CONNECTION_ERROR, "kernel: %.300s: %s", file, why);
	return false;
}

bool ql_connection_read(
	const char *file, struct ql_connection *c, char error[QL_CONNECTION_ERROR], const char **warning)
{
	static char text[QL_CONNECTION_MAX + 1];
	FILE *f = fopen(file, "rbe");
	const char *why = NULL;
	struct stat about;
	size_t n;
	cJSON *object;
	bool good;

	*warning = NULL;
	if (!f)
		return cannot(error, file, strerror(errno));
	n = fread(text, 1, sizeof(text), f);
	if (ferror(f))
		why = strerror(errno);
	else if (n > QL_CONNECTION_MAX)
		why = "wanted a connection file, got more than 64 KiB";
	if (!why && !fstat(fileno(f), &about) && (about.st_mode & (S_IRWXG | S_IRWXO)))
		*warning = "the connection file can be read by others: chmod 600 would keep its key to you";
	fclose(f);
	if (why)
		return cannot(error, file, why);
	object = ql_wire_read(text, n, &why);
	explicit_bzero(text, sizeof(text));
	if (!object) {
		snprintf(error, QL_CONNECTION_ERROR, "kernel: %.200s: wanted a connection file (a JSON object), got %s",
			file, why);
		return false;
	}
	good = take(file, object, c, error);
	cJSON_Delete(object);
	return good;
}

void ql_connection_address(const struct ql_connection *c, enum ql_channel channel, char *out, size_t size)
{
	if (c->ipc)
		snprintf(out, size, "ipc://%s-%d", c->ip, c->port[channel]);
	else if (strchr(c->ip, ':'))
		snprintf(out, size, "tcp://[%s]:%d", c->ip, c->port[channel]);
	else
		snprintf(out, size, "tcp://%s:%d", c->ip, c->port[channel]);
}

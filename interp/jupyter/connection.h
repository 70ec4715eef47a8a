/* SPDX-License-Identifier: MIT
 * The connection file, in which a front end gives a kernel the ports to listen on and the key of its signatures.
 */
#ifndef QUOLL_INTERP_JUPYTER_CONNECTION_H
#define QUOLL_INTERP_JUPYTER_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>

enum ql_channel { QL_CHANNEL_SHELL, QL_CHANNEL_CONTROL, QL_CHANNEL_STDIN, QL_CHANNEL_IOPUB, QL_CHANNEL_HEARTBEAT };
#define QL_CHANNELS 5

struct ql_connection {
	char ip[108]; /* of a loopback device; the path of a socket file for ipc */
	char key[513];
	int port[QL_CHANNELS];
	bool ipc;
};

#define QL_CONNECTION_ERROR 512

/* False, with the reason in `error`, when the file is not to be trusted or not understood. *warning is NULL or a
 * constant. */
bool ql_connection_read(
	const char *file, struct ql_connection *c, char error[QL_CONNECTION_ERROR], const char **warning);
/* The address of a channel as libzmq wants it. */
void ql_connection_address(const struct ql_connection *c, enum ql_channel channel, char *out, size_t size);

#endif

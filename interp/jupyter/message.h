/* SPDX-License-Identifier: MIT
 * Messages of Jupyter's protocol, version 5.4: identities, "<IDS|MSG>", signature, and four JSON objects,
 * each a frame (https://jupyter-client.readthedocs.io/en/stable/messaging.html).
 */
#ifndef QUOLL_INTERP_JUPYTER_MESSAGE_H
#define QUOLL_INTERP_JUPYTER_MESSAGE_H

#include "interp/jupyter/hmac.h"
#include "interp/jupyter/wire.h"

#define QL_ENVELOPE_FRAMES 32                   /* of one message, at most */
#define QL_MESSAGE_MAX_BYTES ((size_t)64 << 20) /* of one that comes in */
#define QL_PROTOCOL "5.4"

struct ql_wire_frame {
	char *at;
	size_t n;
};

/* Owns its frames, which are malloc's. */
struct ql_envelope {
	struct ql_wire_frame frame[QL_ENVELOPE_FRAMES];
	int n;
};

/* Adds a copy; false: there is no memory or no room. */
bool ql_envelope_add(struct ql_envelope *f, const void *bytes, size_t n);
void ql_envelope_free(struct ql_envelope *f);

/* Who signs, and which signatures were seen: the last 32768 at least. Not to be used by two threads at once.
 */
struct ql_signer {
	char key[513];
	char session[33];
	unsigned long long count; /* of messages made */
	struct ql_seen *seen;
};

/* False: there is no memory or no randomness. */
bool ql_signer_begin(struct ql_signer *s, const char *key);
void ql_signer_end(struct ql_signer *s);

struct ql_message {
	struct ql_envelope frames;
	int identities; /* the first frames */
	cJSON *header, *content;
	const char *type;            /* of the header */
	struct ql_wire_frame parent; /* the header as it came, to be sent back: borrowed from the frames */
};

/* Takes the frames, good or bad. NULL: *m is to be freed; else why the message is to be dropped (a constant)
 * and there is nothing to free. "" says that it is well signed, but its content was refused: *m is to be
 * freed, content is NULL and *why_content is the reason. */
const char *ql_message_read(
	struct ql_signer *s, struct ql_envelope *frames, struct ql_message *m, const char **why_content);
void ql_message_free(struct ql_message *m);

/* The signed frames of a message after `identities` (of `to`, or one topic). False: there is no memory. */
bool ql_message_make(struct ql_signer *s, const struct ql_wire_frame *identity, int identities, const char *type,
	struct ql_wire_frame parent, struct ql_wire_frame metadata, const struct ql_wire *content,
	struct ql_envelope *out);

#endif

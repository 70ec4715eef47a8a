/* SPDX-License-Identifier: MIT
 * The signature is HMAC-SHA256 over the four JSON frames, in hexadecimal. It is looked at before anything
 * else of a message. A signature that was seen before is a replay. Those seen are kept in two tables of
 * prefixes: when the newer is full, it becomes the older one, so between QL_SEEN and 2 QL_SEEN of them are
 * known.
 */
#include "interp/jupyter/message.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#define QL_SEEN 32768
#define SLOTS ((size_t)2 * QL_SEEN)

static const char delimiter[] = "<IDS|MSG>";

struct ql_seen {
	struct {
		uint64_t slot[SLOTS][2]; /* 16 bytes of the digest; 0 0: free */
		int n;
	} table[2];
	int newer;
};

/* ---- frames ---- */

bool ql_envelope_add(struct ql_envelope *f, const void *bytes, size_t n)
{
	char *copy = f->n < QL_ENVELOPE_FRAMES ? malloc(n ? n : 1) : NULL;

	if (!copy)
		return false;
	if (n)
		memcpy(copy, bytes, n);
	f->frame[f->n++] = (struct ql_wire_frame){copy, n};
	return true;
}

void ql_envelope_free(struct ql_envelope *f)
{
	for (int i = 0; i < f->n; i++)
		free(f->frame[i].at);
	f->n = 0;
}

/* ---- the signer ---- */

bool ql_signer_begin(struct ql_signer *s, const char *key)
{
	unsigned char noise[16];

	*s = (struct ql_signer){0};
	snprintf(s->key, sizeof(s->key), "%s", key);
	if (getrandom(noise, sizeof(noise), 0) != sizeof(noise))
		return false;
	for (size_t i = 0; i < sizeof(noise); i++)
		snprintf(s->session + 2 * i, 3, "%02x", noise[i]);
	s->seen = calloc(1, sizeof(*s->seen));
	return s->seen != NULL;
}

void ql_signer_end(struct ql_signer *s)
{
	free(s->seen);
	memset(s, 0, sizeof(*s));
}

static void sign(const struct ql_signer *s, const struct ql_wire_frame part[4], uint8_t digest[QL_SHA256_BYTES])
{
	struct ql_hmac h;

	ql_hmac_start(&h, s->key, strlen(s->key));
	for (int i = 0; i < 4; i++)
		ql_hmac_add(&h, part[i].at, part[i].n);
	ql_hmac_end(&h, digest);
}

/* The slot of the value, or the free one where it would be. */
static uint64_t *slot_of(struct ql_seen *seen, int table, const uint64_t value[2])
{
	size_t i = value[0] % SLOTS;

	for (;;) {
		uint64_t *slot = seen->table[table].slot[i];

		if ((slot[0] == value[0] && slot[1] == value[1]) || (!slot[0] && !slot[1]))
			return slot;
		i = (i + 1) % SLOTS;
	}
}

/* True when the digest was seen; else notes it. */
static bool was_seen(struct ql_seen *seen, const uint8_t digest[QL_SHA256_BYTES])
{
	uint64_t value[2], *slot;
	int other = !seen->newer;

	memcpy(value, digest, sizeof(value));
	slot = slot_of(seen, other, value);
	if (slot[0] || slot[1])
		return true;
	slot = slot_of(seen, seen->newer, value);
	if (slot[0] || slot[1])
		return true;
	if (seen->table[seen->newer].n == QL_SEEN) {
		memset(&seen->table[other], 0, sizeof(seen->table[other]));
		seen->newer = other;
		slot = slot_of(seen, seen->newer, value);
	}
	memcpy(slot, value, sizeof(value));
	seen->table[seen->newer].n++;
	return false;
}

/* ---- reading ---- */

static int find_delimiter(const struct ql_envelope *f)
{
	for (int i = 0; i < f->n; i++)
		if (f->frame[i].n == sizeof(delimiter) - 1 && !memcmp(f->frame[i].at, delimiter, sizeof(delimiter) - 1))
			return i;
	return -1;
}

static const char *check_signature(struct ql_signer *s, const struct ql_wire_frame *frame)
{
	uint8_t digest[QL_SHA256_BYTES];
	char hex[QL_HMAC_HEX];

	sign(s, frame + 1, digest);
	ql_hmac_hex(digest, hex);
	if (frame->n != sizeof(hex) || !ql_hmac_equal(frame->at, hex, sizeof(hex)))
		return "a wrong signature: its sender has another key than the connection file";
	return was_seen(s->seen, digest) ? "a replayed message" : NULL;
}

static const char *parse(struct ql_message *m, const struct ql_wire_frame part[4], const char **why_content)
{
	const char *why, *id;

	m->header = ql_wire_read(part[0].at, part[0].n, &why);
	m->parent = part[0];
	m->type = ql_wire_member(m->header, "msg_type");
	id = ql_wire_member(m->header, "msg_id");
	if (!m->header || !m->type || !id || strlen(m->type) > 100)
		return "a header that is none";
	m->content = ql_wire_read(part[3].at, part[3].n, why_content);
	return m->content ? NULL : "";
}

const char *ql_message_read(
	struct ql_signer *s, struct ql_envelope *frames, struct ql_message *m, const char **why_content)
{
	const char *why = NULL;
	int at;

	*m = (struct ql_message){.frames = *frames};
	frames->n = 0;
	at = find_delimiter(&m->frames);
	if (at < 0 || m->frames.n < at + 6)
		why = "too few frames";
	if (!why)
		why = check_signature(s, m->frames.frame + at + 1);
	m->identities = at;
	if (!why)
		why = parse(m, m->frames.frame + at + 2, why_content);
	if (why && *why)
		ql_message_free(m);
	return why;
}

void ql_message_free(struct ql_message *m)
{
	cJSON_Delete(m->header);
	cJSON_Delete(m->content);
	ql_envelope_free(&m->frames);
	*m = (struct ql_message){0};
}

/* ---- making ---- */

static void write_header(struct ql_signer *s, const char *type, struct ql_wire *out)
{
	struct timespec now;
	struct tm parts;
	char date[32];

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &parts);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &parts);
	ql_wire_print(out, "{\"msg_id\":\"%s_%llu\",\"session\":\"%s\",\"username\":\"quoll\",\"date\":\"%s.%06ldZ\",",
		s->session, ++s->count, s->session, date, now.tv_nsec / 1000);
	ql_wire_print(out, "\"msg_type\":\"%s\",\"version\":\"" QL_PROTOCOL "\"}", type);
}

bool ql_message_make(struct ql_signer *s, const struct ql_wire_frame *identity, int identities, const char *type,
	struct ql_wire_frame parent, struct ql_wire_frame metadata, const struct ql_wire *content,
	struct ql_envelope *out)
{
	static char braces[] = "{}";
	static const struct ql_wire_frame nothing = {braces, 2};
	struct ql_wire header = {0};
	struct ql_wire_frame part[4] = {
		nothing, parent.n ? parent : nothing, metadata.n ? metadata : nothing, {content->at, content->n}};
	uint8_t digest[QL_SHA256_BYTES];
	char hex[QL_HMAC_HEX];
	bool good = !content->failed && identities + 6 <= QL_ENVELOPE_FRAMES;

	out->n = 0;
	write_header(s, type, &header);
	part[0] = (struct ql_wire_frame){header.at, header.n};
	good = good && !header.failed;
	if (good)
		sign(s, part, digest);
	for (int i = 0; i < identities && good; i++)
		good = ql_envelope_add(out, identity[i].at, identity[i].n);
	if (good) {
		ql_hmac_hex(digest, hex);
		good = ql_envelope_add(out, delimiter, sizeof(delimiter) - 1) && ql_envelope_add(out, hex, sizeof(hex));
	}
	for (int i = 0; i < 4 && good; i++)
		good = ql_envelope_add(out, part[i].at, part[i].n);
	ql_wire_free(&header);
	if (!good)
		ql_envelope_free(out);
	return good;
}

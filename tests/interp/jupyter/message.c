/* SPDX-License-Identifier: MIT
 * HMAC against the vectors of RFC 4231, JSON in and out, messages and their signatures, connection files.
 */
#include "interp/jupyter/message.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interp/jupyter/connection.h"
#include "interp/jupyter/hmac.h"
#include "tests/check.h"

/* ---- HMAC ---- */

static bool hmac_is(const void *key, size_t key_size, const void *data, size_t size, const char *wanted)
{
	uint8_t digest[QL_SHA256_BYTES];
	char hex[QL_HMAC_HEX];
	struct ql_hmac h;

	ql_hmac_start(&h, key, key_size);
	for (size_t i = 0; i < size; i++) /* byte by byte */
		ql_hmac_add(&h, (const char *)data + i, 1);
	ql_hmac_end(&h, digest);
	ql_hmac_hex(digest, hex);
	return !memcmp(hex, wanted, strlen(wanted));
}

static void test_hmac(void)
{
	static const char seventh[] =
		"This is a test using a larger than block-size key and a larger than block-size data. "
		"The key needs to be hashed before being used by the HMAC algorithm.";
	uint8_t key[131], data[50];

	CASE("RFC 4231");
	memset(key, 0x0b, 20);
	CHECK(hmac_is(key, 20, "Hi There", 8, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"), "1");
	CHECK(hmac_is("Jefe", 4, "what do ya want for nothing?", 28,
		      "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"),
		"2");
	memset(key, 0xaa, sizeof(key));
	memset(data, 0xdd, sizeof(data));
	CHECK(hmac_is(key, 20, data, 50, "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"), "3");
	for (int i = 0; i < 25; i++)
		key[i] = (uint8_t)(i + 1);
	memset(data, 0xcd, sizeof(data));
	CHECK(hmac_is(key, 25, data, 50, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"), "4");
	memset(key, 0x0c, 20);
	CHECK(hmac_is(key, 20, "Test With Truncation", 20, "a3b6167473100ee06e0c796c2955552b"), "5");
	memset(key, 0xaa, sizeof(key));
	CHECK(hmac_is(key, 131, "Test Using Larger Than Block-Size Key - Hash Key First", 54,
		      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"),
		"6");
	CHECK(hmac_is(key, 131, seventh, sizeof(seventh) - 1,
		      "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"),
		"7");
	CASE("equal bytes");
	CHECK(ql_hmac_equal("abc", "abc", 3) && !ql_hmac_equal("abc", "abd", 3) && !ql_hmac_equal("xbc", "abc", 3),
		"no");
}

/* ---- JSON ---- */

static bool quotes_as(const char *bytes, size_t n, const char *wanted)
{
	struct ql_wire w = {0};
	bool good;

	ql_wire_quote(&w, bytes, n);
	good = w.n == strlen(wanted) && !memcmp(w.at, wanted, w.n);
	if (!good)
		printf("got %.*s\n", (int)w.n, w.at);
	ql_wire_free(&w);
	return good;
}

static bool base64_is(const char *bytes, const char *wanted)
{
	struct ql_wire w = {0};
	bool good;

	ql_wire_base64(&w, bytes, strlen(bytes));
	good = w.n == strlen(wanted) && (!w.n || !memcmp(w.at, wanted, w.n));
	ql_wire_free(&w);
	return good;
}

static void test_quoting(void)
{
	CASE("texts in JSON");
	CHECK(quotes_as("a\"\\/\n\t\r\b\f\1\x1f\x7f", 12, "\"a\\\"\\\\/\\n\\t\\r\\b\\f\\u0001\\u001f\\u007f\""),
		"escapes");
	CHECK(quotes_as("a\0b", 3, "\"a\\u0000b\""), "the byte 0");
	CHECK(quotes_as("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""),
		"UTF-8");
	CHECK(quotes_as("\xff\xc3", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""), "no UTF-8");
	CHECK(quotes_as("\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""), "a surrogate");
	CHECK(quotes_as("\xc0\xaf", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""), "overlong");
	CASE("RFC 4648");
	CHECK(base64_is("", "") && base64_is("f", "Zg==") && base64_is("fo", "Zm8="), "1");
	CHECK(base64_is("foo", "Zm9v") && base64_is("foob", "Zm9vYg==") && base64_is("foobar", "Zm9vYmFy"), "2");
}

static bool refused(const char *text, const char *wanted)
{
	const char *why = NULL;
	cJSON *object = ql_wire_read(text, strlen(text), &why);
	bool good = !object && why && !strcmp(why, wanted);

	if (!good)
		printf("%.40s: %s\n", text, why ? why : "taken");
	cJSON_Delete(object);
	return good;
}

static void test_reading(void)
{
	static const char good[] = " {\"a\":\"\\\\u0000\",\"n\":7,\"f\":1.5,\"b\":true} \n";
	char deep[300] = "{\"a\":";
	const char *why;
	cJSON *object;

	CASE("JSON that is refused");
	CHECK(refused("", "no JSON") && refused("{", "no JSON") && refused("{} x", "no JSON"), "broken");
	CHECK(refused("[1]", "no object") && refused("3", "no object"), "no object");
	CHECK(refused("{\"a\":1,\"b\":2,\"a\":3}", "a name twice"), "twice");
	CHECK(refused("{\"a\":\"x\\u0000y\"}", "a text with a NUL character"), "NUL");
	CHECK(refused("{\"a\\u0000b\":1}", "a text with a NUL character"), "NUL in a name");
	memset(deep + 5, '[', 150);
	memset(deep + 155, ']', 100);
	CHECK(refused(deep, "too many levels"), "depth");
	CASE("JSON that is taken");
	object = ql_wire_read(good, strlen(good), &why);
	CHECK(object && !strcmp(ql_wire_member(object, "a"), "\\u0000"), "an escaped backslash");
	CHECK(ql_wire_integer(object, "n", 0) == 7 && ql_wire_integer(object, "f", -1) == -1, "integers");
	CHECK(ql_wire_flag(object, "b", false) && ql_wire_flag(object, "n", true) && !ql_wire_member(object, "n"),
		"kinds");
	cJSON_Delete(object);
}

/* ---- messages ---- */

static const struct ql_wire_frame nothing = {NULL, 0};

static struct ql_envelope made(struct ql_signer *s, const char *type, const char *content)
{
	struct ql_wire_frame identity = {(char[]){'m', 'e'}, 2};
	struct ql_envelope out = {.n = 0};
	struct ql_wire text = {0};

	ql_wire_put(&text, content);
	CHECK(ql_message_make(s, &identity, 1, type, nothing, nothing, &text, &out), "no memory");
	ql_wire_free(&text);
	return out;
}

static struct ql_envelope copy_of(const struct ql_envelope *e)
{
	struct ql_envelope copy = {.n = 0};

	for (int i = 0; i < e->n; i++)
		ql_envelope_add(&copy, e->frame[i].at, e->frame[i].n);
	return copy;
}

static bool dropped(struct ql_signer *s, struct ql_envelope *e, const char *wanted)
{
	struct ql_message m;
	const char *why_content, *why = ql_message_read(s, e, &m, &why_content);
	bool good = why && !strcmp(why, wanted) && e->n == 0;

	if (!why || !*why)
		ql_message_free(&m);
	if (!good)
		printf("wanted %s, got %s\n", wanted, why ? why : "a message");
	return good;
}

static void test_messages(void)
{
	struct ql_signer ours, theirs;
	struct ql_envelope e, again;
	struct ql_message m;
	const char *why;

	ql_signer_begin(&ours, "the key");
	ql_signer_begin(&theirs, "the key");
	CASE("a message there and back");
	e = made(&theirs, "hello", "{\"a\":1}");
	again = copy_of(&e);
	CHECK(!ql_message_read(&ours, &e, &m, &why) && !strcmp(m.type, "hello") && m.identities == 1, "read");
	CHECK(ql_wire_integer(m.content, "a", 0) == 1 && m.parent.n > 10 && e.n == 0, "content");
	ql_message_free(&m);
	CASE("dropped: a replay, another key, a changed byte, too few frames");
	CHECK(dropped(&ours, &again, "a replayed message"), "replay");
	strcpy(theirs.key, "another key");
	e = made(&theirs, "hello", "{}");
	CHECK(dropped(&ours, &e, "a wrong signature: its sender has another key than the connection file"), "key");
	strcpy(theirs.key, "the key");
	e = made(&theirs, "hello", "{\"a\":1}");
	e.frame[6].at[5] = '2';
	CHECK(dropped(&ours, &e, "a wrong signature: its sender has another key than the connection file"), "content");
	e = made(&theirs, "hello", "{}");
	e.frame[2].n = 63;
	CHECK(dropped(&ours, &e, "a wrong signature: its sender has another key than the connection file"),
		"a shorter signature");
	e = made(&theirs, "hello", "{}");
	free(e.frame[--e.n].at);
	CHECK(dropped(&ours, &e, "too few frames"), "frames");
	e = (struct ql_envelope){.n = 0};
	CHECK(dropped(&ours, &e, "too few frames"), "no frame");
	CASE("well signed with content that is no object");
	e = made(&theirs, "hello", "[1]");
	why = NULL;
	CHECK(*ql_message_read(&ours, &e, &m, &why) == '\0' && !m.content && why, "content");
	ql_message_free(&m);
	ql_signer_end(&ours);
	ql_signer_end(&theirs);
}

static void test_memory_of_replays(void)
{
	struct ql_signer ours, theirs;
	struct ql_envelope kept = {.n = 0};
	bool good = true;

	ql_signer_begin(&ours, "k");
	ql_signer_begin(&theirs, "k");
	CASE("replays are known among the last 32768 messages");
	for (int i = 0; i < 70000; i++) {
		struct ql_envelope e = made(&theirs, "x", "{}");
		struct ql_message m;
		const char *why;

		if (i == 20000)
			kept = copy_of(&e);
		good = good && !ql_message_read(&ours, &e, &m, &why);
		ql_message_free(&m);
		if (i == 52700)
			CHECK(dropped(&ours, &kept, "a replayed message"), "it was forgotten");
	}
	CHECK(good, "a good one was dropped");
	ql_envelope_free(&kept);
	ql_signer_end(&ours);
	ql_signer_end(&theirs);
}

/* ---- connection files ---- */

#define PORTS "\"shell_port\":5001,\"iopub_port\":5002,\"stdin_port\":5003,\"control_port\":5004,\"hb_port\":5005"

static const char *read_as(const char *text, mode_t mode, struct ql_connection *c, const char **warning)
{
	static char error[QL_CONNECTION_ERROR];
	char name[] = "/tmp/quoll-connection-XXXXXX";
	int fd = mkstemp(name);

	fchmod(fd, mode);
	if (write(fd, text, strlen(text)) < 0 || close(fd))
		return "no file";
	*error = '\0';
	if (ql_connection_read(name, c, error, warning))
		*error = '\0';
	unlink(name);
	return error;
}

static void test_connections(void)
{
	struct ql_connection c;
	const char *warning;
	char address[160];

	CASE("connection files that are taken");
	CHECK(!*read_as("{" PORTS ",\"ip\":\"127.0.0.1\",\"key\":\"k\",\"transport\":\"tcp\"}", 0600, &c, &warning),
		"tcp");
	CHECK(c.port[QL_CHANNEL_HEARTBEAT] == 5005 && c.port[QL_CHANNEL_SHELL] == 5001 && !warning, "ports");
	ql_connection_address(&c, QL_CHANNEL_IOPUB, address, sizeof(address));
	CHECK(!strcmp(address, "tcp://127.0.0.1:5002"), "%s", address);
	CHECK(!*read_as("{" PORTS ",\"ip\":\"::1\",\"key\":\"k\"}", 0644, &c, &warning) && warning, "a warning");
	CHECK(!*read_as("{" PORTS ",\"ip\":\"localhost\",\"key\":\"k\"}", 0600, &c, &warning), "localhost");
	CHECK(!*read_as("{" PORTS ",\"ip\":\"/tmp/x\",\"key\":\"k\",\"transport\":\"ipc\"}", 0600, &c, &warning),
		"ipc");
	CASE("connection files that are refused");
	CHECK(strstr(read_as("{" PORTS ",\"ip\":\"0.0.0.0\",\"key\":\"k\"}", 0600, &c, &warning),
		      "ip: wanted an address"),
		"ip");
	CHECK(strstr(read_as("{" PORTS ",\"ip\":\"192.168.1.1\",\"key\":\"k\"}", 0600, &c, &warning), "192.168.1.1"),
		"ip");
	CHECK(strstr(read_as("{" PORTS ",\"ip\":\"*\",\"key\":\"k\"}", 0600, &c, &warning), "'*'"), "any");
	CHECK(strstr(read_as("{" PORTS ",\"ip\":\"127.0.0.1\",\"key\":\"\"}", 0600, &c, &warning), "unsigned"), "key");
	CHECK(strstr(read_as("{" PORTS ",\"ip\":\"127.0.0.1\"}", 0600, &c, &warning), "unsigned"), "no key");
	CHECK(strstr(read_as("{" PORTS ",\"ip\":\"127.0.0.1\",\"key\":\"k\",\"signature_scheme\":\"hmac-md5\"}", 0600,
			     &c, &warning),
		      "hmac-sha256"),
		"scheme");
	CHECK(strstr(read_as("{\"shell_port\":0,\"ip\":\"127.0.0.1\",\"key\":\"k\"}", 0600, &c, &warning),
		      "1 to 65535"),
		"port");
	CHECK(strstr(read_as("{" PORTS ",\"ip\":\"127.0.0.1\",\"ip\":\"127.0.0.2\",\"key\":\"k\"}", 0600, &c, &warning),
		      "twice"),
		"twice");
	CHECK(strstr(read_as("not JSON", 0600, &c, &warning), "wanted a connection file"), "no JSON");
}

int main(void)
{
	test_hmac();
	test_quoting();
	test_reading();
	test_messages();
	test_memory_of_replays();
	test_connections();
	return check_end();
}

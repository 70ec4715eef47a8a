/* SPDX-License-Identifier: MIT
 * A state machine over bytes: UTF-8, control characters, ESC x (Alt), CSI and SS3 sequences of xterm, VTE,
 * the Linux console, rxvt and the kitty protocol's "u" form, bracketed paste. Sources: ECMA-48 5.4, xterm's
 * ctlseqs. It never fails: what is unknown is swallowed as a whole and comes out as QL_KEY_UNKNOWN.
 */
#include "interp/repl/keys.h"

#include <string.h>

#define QL_SEQUENCE 32 /* bytes of the longest control sequence that is waited for */

static const char paste_end[] = "\033[201~";

static bool give(struct ql_keys *k, uint32_t *key, uint32_t value)
{
	k->state = QL_KEYS_PLAIN;
	*key = value;
	return true;
}

static uint32_t control_key(unsigned char byte)
{
	switch (byte) {
	case '\r':
	case '\n': /* the terminal turns one into the other, so that io.read gets lines of what was typed
		      ahead */
		return QL_KEY_ENTER;
	case '\t': return QL_KEY_TAB;
	case 8:
	case 127: return QL_KEY_BACKSPACE;
	case 0: return ' ' | QL_KEY_CTRL;
	default: /* 1 to 26 are Ctrl-A to Ctrl-Z, 28 to 31 Ctrl-\ ] ^ _ */
		return (byte <= 26 ? byte + 'a' - 1u : byte + 64u) | QL_KEY_CTRL;
	}
}

static bool begin_utf8(struct ql_keys *k, unsigned char byte, uint32_t *key)
{
	k->wanted = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : 2;
	if (byte < 0xC2 || byte > 0xF4)
		return give(k, key, QL_KEY_UNKNOWN);
	k->utf8[0] = (char)byte;
	k->n_utf8 = 1;
	k->state = QL_KEYS_UTF8;
	return false;
}

static bool feed_plain(struct ql_keys *k, unsigned char byte, uint32_t *key)
{
	if (byte == 27) {
		k->state = QL_KEYS_AFTER_ESCAPE;
		return false;
	}
	if (byte < 32 || byte == 127)
		return give(k, key, control_key(byte));
	return byte < 128 ? give(k, key, byte) : begin_utf8(k, byte, key);
}

static bool feed_utf8(struct ql_keys *k, unsigned char byte, uint32_t *key)
{
	size_t length;
	uint32_t c;

	if ((byte & 0xC0) != 0x80) { /* a broken character: the byte begins something new */
		k->state = QL_KEYS_PLAIN;
		return feed_plain(k, byte, key);
	}
	k->utf8[k->n_utf8++] = (char)byte;
	if (k->n_utf8 < k->wanted)
		return false;
	c = ql_bytes_char(k->utf8, (size_t)k->n_utf8, &length);
	return give(k, key, length == (size_t)k->n_utf8 && c >= 0xA0 ? c : QL_KEY_UNKNOWN);
}

static bool feed_escape(struct ql_keys *k, unsigned char byte, uint32_t *key)
{
	if (byte == '[' || byte == 'O') {
		k->state = byte == '[' ? QL_KEYS_CSI : QL_KEYS_SS3;
		k->length = k->n_numbers = 0;
		k->strange = k->console = false;
		memset(k->number, 0, sizeof(k->number));
		return false;
	}
	if (byte == 27) { /* the first one was the key; the second may begin a sequence */
		*key = QL_KEY_ESCAPE;
		return true;
	}
	k->state = QL_KEYS_PLAIN;
	if (byte >= 128)
		return give(k, key, QL_KEY_UNKNOWN);
	feed_plain(k, byte, key);
	*key |= QL_KEY_ALT;
	return true;
}

/* xterm's parameter: 1 + the sum of 1 shift, 2 alt, 4 ctrl, 8 meta */
static uint32_t modifiers(unsigned n)
{
	unsigned bits = n ? n - 1 : 0;

	return (bits & 1 ? QL_KEY_SHIFT : 0) | (bits & 10 ? QL_KEY_ALT : 0) | (bits & 4 ? QL_KEY_CTRL : 0);
}

static uint32_t letter_key(unsigned char byte)
{
	static const char letters[] = "ABCDHF";
	static const enum ql_key_name names[] = {
		QL_KEY_UP, QL_KEY_DOWN, QL_KEY_RIGHT, QL_KEY_LEFT, QL_KEY_HOME, QL_KEY_END};
	const char *found = byte ? strchr(letters, byte) : NULL;

	return found ? names[found - letters] : byte == 'M' ? QL_KEY_ENTER : QL_KEY_UNKNOWN;
}

static uint32_t tilde_key(unsigned n)
{
	static const enum ql_key_name names[] = {QL_KEY_UNKNOWN, QL_KEY_HOME, QL_KEY_INSERT, QL_KEY_DELETE, QL_KEY_END,
		QL_KEY_PAGE_UP, QL_KEY_PAGE_DOWN, QL_KEY_HOME, QL_KEY_END};

	return n < sizeof(names) / sizeof(names[0]) ? names[n] : QL_KEY_UNKNOWN;
}

/* A key given by its code point (CSI u, and xterm's modifyOtherKeys). */
static uint32_t code_key(unsigned code, unsigned modifier)
{
	uint32_t how = modifiers(modifier), key = code;

	if (code == 27)
		return QL_KEY_ESCAPE | how;
	if (code < 32 || code == 127)
		key = control_key((unsigned char)code);
	else if (code > 0x10FFFF || (code >= 0x80 && code < 0xA0))
		return QL_KEY_UNKNOWN;
	else if (how & (QL_KEY_CTRL | QL_KEY_ALT))
		key = code >= 'A' && code <= 'Z' ? code + 32 : code;
	if (key < QL_KEY_UP)
		how &= ~QL_KEY_SHIFT; /* the code point has it already */
	return key | how;
}

static bool end_csi(struct ql_keys *k, unsigned char byte, uint32_t *key)
{
	const unsigned *n = k->number;
	uint32_t name = QL_KEY_UNKNOWN;

	if (k->strange)
		return give(k, key, QL_KEY_UNKNOWN);
	if (byte == '~' && n[0] == 200) {
		ql_bytes_set(&k->paste, NULL, 0);
		k->state = QL_KEYS_IN_PASTE;
		return false;
	}
	if (byte == 'u')
		return give(k, key, code_key(n[0], n[1]));
	if (byte == '~' && n[0] == 27)
		return give(k, key, code_key(n[2], n[1]));
	if (byte == 'Z')
		return give(k, key, QL_KEY_TAB | QL_KEY_SHIFT);
	name = byte == '~' ? tilde_key(n[0]) : letter_key(byte);
	return give(k, key, name == QL_KEY_UNKNOWN ? name : name | modifiers(n[1]));
}

static bool feed_csi(struct ql_keys *k, unsigned char byte, uint32_t *key)
{
	if (k->console)
		return give(k, key, QL_KEY_UNKNOWN);
	if (byte == 27) { /* never finished: another one begins */
		k->state = QL_KEYS_AFTER_ESCAPE;
		return false;
	}
	if (++k->length > QL_SEQUENCE || byte < 32 || byte > 126)
		return give(k, key, QL_KEY_UNKNOWN);
	if (byte == '[' && k->length == 1) {
		k->console = true;
		return false;
	}
	if (byte >= '0' && byte <= '9') {
		unsigned *n = &k->number[k->n_numbers];

		if (*n < 10000000)
			*n = *n * 10 + (byte - '0');
	} else if (byte == ';') {
		k->n_numbers += k->n_numbers < 3;
	} else if (byte < 64) {
		k->strange = true;
	} else {
		return end_csi(k, byte, key);
	}
	return false;
}

static bool feed_ss3(struct ql_keys *k, unsigned char byte, uint32_t *key)
{
	if (byte >= '0' && byte <= '9' && ++k->length < QL_SEQUENCE) { /* some send ESC O 5 C */
		k->number[1] = (unsigned)(byte - '0');
		return false;
	}
	if (byte == 27) {
		k->state = QL_KEYS_AFTER_ESCAPE;
		return false;
	}
	return give(k, key, letter_key(byte) | (letter_key(byte) == QL_KEY_UNKNOWN ? 0 : modifiers(k->number[1])));
}

/* Ctrl-C ends a paste whose end got lost on the way. */
static bool feed_paste(struct ql_keys *k, unsigned char byte, uint32_t *key)
{
	size_t n = sizeof(paste_end) - 1;

	if (byte == 3)
		return give(k, key, 'c' | QL_KEY_CTRL);
	ql_bytes_add(&k->paste, (const char *)&byte, 1);
	if (byte != '~' || k->paste.size < n || memcmp(k->paste.at + k->paste.size - n, paste_end, n))
		return false;
	ql_bytes_replace(&k->paste, k->paste.size - n, k->paste.size, NULL, 0);
	return give(k, key, QL_KEY_PASTE);
}

bool ql_keys_feed(struct ql_keys *k, unsigned char byte, uint32_t *key)
{
	switch (k->state) {
	case QL_KEYS_UTF8: return feed_utf8(k, byte, key);
	case QL_KEYS_AFTER_ESCAPE: return feed_escape(k, byte, key);
	case QL_KEYS_CSI: return feed_csi(k, byte, key);
	case QL_KEYS_SS3: return feed_ss3(k, byte, key);
	case QL_KEYS_IN_PASTE: return feed_paste(k, byte, key);
	case QL_KEYS_PLAIN: break;
	}
	return feed_plain(k, byte, key);
}

bool ql_keys_waiting(const struct ql_keys *k)
{
	return k->state != QL_KEYS_PLAIN && k->state != QL_KEYS_IN_PASTE;
}

bool ql_keys_flush(struct ql_keys *k, uint32_t *key)
{
	switch (k->state) {
	case QL_KEYS_AFTER_ESCAPE: return give(k, key, QL_KEY_ESCAPE);
	case QL_KEYS_CSI: return give(k, key, k->length ? QL_KEY_UNKNOWN : '[' | QL_KEY_ALT);
	case QL_KEYS_SS3: return give(k, key, 'O' | QL_KEY_ALT);
	case QL_KEYS_UTF8: return give(k, key, QL_KEY_UNKNOWN);
	case QL_KEYS_PLAIN:
	case QL_KEYS_IN_PASTE: break;
	}
	return false;
}

void ql_keys_free(struct ql_keys *k)
{
	ql_bytes_free(&k->paste);
}

static const struct {
	const char *name;
	uint32_t key;
} names[] = {
	{"Up", QL_KEY_UP},
	{"Down", QL_KEY_DOWN},
	{"Right", QL_KEY_RIGHT},
	{"Left", QL_KEY_LEFT},
	{"Home", QL_KEY_HOME},
	{"End", QL_KEY_END},
	{"Delete", QL_KEY_DELETE},
	{"PageUp", QL_KEY_PAGE_UP},
	{"PageDown", QL_KEY_PAGE_DOWN},
	{"Enter", QL_KEY_ENTER},
	{"Tab", QL_KEY_TAB},
	{"Backspace", QL_KEY_BACKSPACE},
	{"Escape", QL_KEY_ESCAPE},
	{"Space", ' '},
};

uint32_t ql_key_named(const char *name, size_t n)
{
	uint32_t how = 0;
	size_t length;

	for (; n > 2 && name[1] == '-'; name += 2, n -= 2)
		how |= *name == 'C' ? QL_KEY_CTRL : *name == 'M' ? QL_KEY_ALT : *name == 'S' ? QL_KEY_SHIFT : 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strlen(names[i].name) == n && !memcmp(names[i].name, name, n))
			return names[i].key | how;
	if (n > 0) {
		uint32_t c = ql_bytes_char(name, n, &length);

		if (length == n)
			return c | how;
	}
	return QL_KEY_UNKNOWN;
}

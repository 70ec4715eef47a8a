/* SPDX-License-Identifier: MIT
 * Keys: from the bytes that a terminal sends to one number for each key.
 */
#ifndef QUOLL_INTERP_REPL_KEYS_H
#define QUOLL_INTERP_REPL_KEYS_H

#include "interp/host/bytes.h"

/* A key is a code point or one of these, plus modifiers. Ctrl-A is 'a' | QL_KEY_CTRL. */
enum ql_key_name {
	QL_KEY_NONE = 0,
	QL_KEY_UP = 0x110000, /* above Unicode */
	QL_KEY_DOWN,
	QL_KEY_RIGHT,
	QL_KEY_LEFT,
	QL_KEY_HOME,
	QL_KEY_END,
	QL_KEY_INSERT,
	QL_KEY_DELETE,
	QL_KEY_PAGE_UP,
	QL_KEY_PAGE_DOWN,
	QL_KEY_ENTER,
	QL_KEY_TAB,
	QL_KEY_BACKSPACE,
	QL_KEY_ESCAPE,
	QL_KEY_PASTE,  /* the text is in struct ql_keys */
	QL_KEY_UNKNOWN /* a sequence that is none of ours: to be ignored */
};

#define QL_KEY_SHIFT (UINT32_C(1) << 24)
#define QL_KEY_ALT (UINT32_C(1) << 25)
#define QL_KEY_CTRL (UINT32_C(1) << 26)
#define QL_KEY_CODE UINT32_C(0xFFFFFF)

#define QL_KEYS_WAIT 50 /* ms: an escape byte followed by nothing for so long is the key Escape */

enum ql_keys_state { QL_KEYS_PLAIN, QL_KEYS_UTF8, QL_KEYS_AFTER_ESCAPE, QL_KEYS_CSI, QL_KEYS_SS3, QL_KEYS_IN_PASTE };

struct ql_keys {
	enum ql_keys_state state;
	unsigned number[4];    /* of a control sequence */
	int n_numbers, length; /* bytes of it so far */
	bool strange;          /* it has a prefix or intermediate byte */
	bool console;          /* ESC [ [ x of the Linux console */
	char utf8[4];
	int n_utf8, wanted;
	struct ql_bytes paste;
};

/* One byte. True: *key is complete. */
bool ql_keys_feed(struct ql_keys *k, unsigned char byte, uint32_t *key);
/* A sequence has begun; when nothing follows within QL_KEYS_WAIT, ql_keys_flush says what it was. */
bool ql_keys_waiting(const struct ql_keys *k);
bool ql_keys_flush(struct ql_keys *k, uint32_t *key);
void ql_keys_free(struct ql_keys *k);

/* "C-a", "M-f", "S-Tab", "Up", "C-Right", "x"; QL_KEY_UNKNOWN when it is no name. Length `n`. */
uint32_t ql_key_named(const char *name, size_t n);

#endif

/* SPDX-License-Identifier: MIT
 * Fuzzes tokenizers: tokenizer.json, vocab.json with merges.txt, .gguf and llama2.c's files, and texts of any bytes that they encode.
 */
#include "tests/fuzz/scripted.h"

static const char *const NAMES[] = {"tokenizer.json", "vocab.json", "merges.txt", "t.gguf", "t.bin", "text", NULL};

static const char CHUNK[] =
	"local folder = ...\n"
	"local function read(name)\n"
	"	local f = io.open(folder .. '/' .. name, 'rb')\n"
	"	if not f then return nil end\n"
	"	local s = f:read 'a'\n"
	"	f:close()\n"
	"	return s\n"
	"end\n"
	"local path = read 't.gguf' and folder .. '/t.gguf' or read 't.bin' and folder .. '/t.bin' or folder\n"
	"local t = data.tokenizer(path)\n"
	"local text, message = read 'text' or 'Ein Text, two of 3.', nil\n"
	"local function ran(ok, result)\n"
	"	if not ok and tostring(result):find '^quoll/' then error(result, 0) end\n"
	"	return ok and result\n"
	"end\n"
	"local ids = ran(pcall(t.encode, t, text))\n"
	"ran(pcall(t.encode, t, text, {bos = true, eos = true, special = false}))\n"
	"if ids then assert(type(ran(pcall(t.decode, t, ids))) == 'string') end\n"
	"local all = {}\n"
	"for i = 1, math.min(#t.vocab, 300) do all[i] = i end\n"
	"ran(pcall(t.decode, t, all))\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	return scripted(CHUNK, NAMES, data, n);
}

/* SPDX-License-Identifier: MIT
 * Fuzzes folders of Hugging Face: config.json, one file of tensors or an index and shards, generation_config.json; .gguf models. What
 * loads runs on two tokens.
 */
#include "tests/fuzz/scripted.h"

static const char *const NAMES[] = {"config.json", "model.safetensors", "model.safetensors.index.json", "a.safetensors",
	"b.safetensors", "generation_config.json", "m.gguf", NULL};

static const char CHUNK[] = "local folder = ...\n"
			    "local f = io.open(folder .. '/m.gguf', 'rb')\n"
			    "if f then f:close() end\n"
			    "local m = nn.load(f and folder .. '/m.gguf' or folder)\n"
			    "local ok, message = pcall(m, tensor({{1, 2}}, 'int32'))\n"
			    "if not ok and tostring(message):find '^quoll/' then error(message, 0) end\n";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	return scripted(CHUNK, NAMES, data, n);
}

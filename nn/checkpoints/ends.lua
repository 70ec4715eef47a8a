-- SPDX-License-Identifier: MIT
-- What m:generate wants to know beside the model: where its tokenizer is, and the tokens that end a text.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local sources = internal.import 'nn/checkpoints/sources'
local ends = {}

-- Numbers from 0 in a field, one or a list, as tokens from 1; nil without any.
local function tokens_of(what, field, value, list)
	if value == nil then return list end
	if base.is_tensor(value) then value = value:totable() end
	for _, id in ipairs(type(value) == 'table' and value or {value}) do
		local n = math.type(id) and math.tointeger(id)
		if not n or n < 0 or n >= 1 << 31 then base.fail('load: %s: %s: wanted a token, got %s', what, field, base.describe(id)) end
		list = list or {}
		list[#list + 1] = n + 1
	end
	return list
end

local FILES = {{'tokenizer.json'}, {'vocab.json', 'merges.txt'}}

-- generation_config.json comes before config.json, as in transformers.
function ends.of_folder(origin, folder, config)
	folder = folder:gsub('(.)/+$', '%1')
	for _, files in ipairs(FILES) do
		local there = true
		for _, file in ipairs(files) do there = there and internal.exists(folder .. '/' .. file) end
		if there then origin.tokenizer = origin.tokenizer or folder end
	end
	local path = folder .. '/generation_config.json'
	local own = internal.exists(path) and sources.json(path).eos_token_id
	if own then
		origin.eos = tokens_of(path, 'eos_token_id', own)
	else
		origin.eos = tokens_of(folder .. '/config.json', 'eos_token_id', config.eos_token_id)
	end
end

function ends.of_gguf(origin, file, metadata)
	if metadata['tokenizer.ggml.model'] ~= nil then origin.tokenizer = file end
	for _, name in ipairs {'eos', 'eot', 'eom'} do
		local field = ('tokenizer.ggml.%s_token_id'):format(name)
		origin.eos = tokens_of(file, field, metadata[field], origin.eos)
	end
end

return ends

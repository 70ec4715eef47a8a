-- SPDX-License-Identifier: MIT
-- Section stories: the perplexity of stories260K from Hugging Face's and llama.cpp's files, without a judge.
local here = ...

local STORIES = {'hf', 'hf_sharded', 'hf_bf16', 'stories260K-F32.gguf', 'stories260K-Q8_0.gguf', 'stories260K-Q4_0.gguf', 'stories260K-Q4_1.gguf'}

local function section()
	local rows, list, first = {columns = {'file', 'perplexity', 'change'}}, {}, nil
	for i, ids in ipairs(dofile(here .. '../tests/golden/stories_ids.lua')) do
		local n = ids:size(1) - 1
		list[i] = {ids:narrow(1, 1, n):unsqueeze(1), ids:narrow(1, 2, n):unsqueeze(1)}
	end
	for _, name in ipairs(STORIES) do
		local path = data.find('models/stories260K/' .. name .. (name:find 'gguf' and '' or '/config.json'))
		local found = path and nn.load((path:gsub('/config%.json$', ''))):evaluate(list, {metric = 'perplexity', log = false}).perplexity
		first = first or found
		rows[#rows + 1] = found and {name, ('%.4f'):format(found), ('%+.2f %%'):format((found / first - 1) * 100)} or
			{name, '-', 'skipped: not in the data folder (QUOLL_DATA)'}
	end
	return rows
end

return {run = section}

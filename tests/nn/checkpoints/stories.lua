-- SPDX-License-Identifier: MIT
-- labels: full
-- The perplexity of stories260K as other programs have saved it (models/README.md of the data has the figures of Q8_0, Q4_0 and Q4_1:
-- -0.07, +10.81 and +8.11 %).
local texts = dofile((debug.getinfo(1, 'S').source:match '^@(.*)tests/' or '') .. 'tests/golden/stories_ids.lua')
local FILES = {hf = 3.5056, hf_sharded = 3.5056, hf_bf16 = 3.5059, ['stories260K-F32.gguf'] = 3.5056, ['stories260K-F16.gguf'] = 3.5056,
	['stories260K-BF16.gguf'] = 3.5055, ['stories260K-Q8_0.gguf'] = 3.5031, ['stories260K-Q4_0.gguf'] = 3.8846, ['stories260K-Q4_1.gguf'] = 3.7900}

for file, want in pairs(FILES) do
	it('the perplexity of stories260K as ' .. file, function()
		local config = data.find('models/stories260K/' .. (file:find 'gguf' and file or file .. '/config.json'))
		if not config then return skip 'real input: no data folder (QUOLL_DATA, ./data)' end
		local list = {}
		for i, ids in ipairs(texts) do
			local n = ids:size(1) - 1
			list[i] = {ids:narrow(1, 1, n):unsqueeze(1), ids:narrow(1, 2, n):unsqueeze(1)}
		end
		local found = nn.load((config:gsub('/config%.json$', ''))):evaluate(list, {metric = 'perplexity', log = false}).perplexity
		assert(math.abs(found - want) < 1e-4, found)
	end)
end

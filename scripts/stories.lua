-- SPDX-License-Identifier: MIT
-- What weights of 8 and 4 bits do to stories260K, on texts that the float model wrote itself:
--   quoll scripts/stories.lua              perplexity and bytes with weights in float32, int8/1 and int4:32, and with inputs in integers, too
--                                          (with QUOLL_DATA)
--   quoll scripts/stories.lua --sample     writes tests/golden/stories_ids.lua anew: 20 texts, seeds 1 to 20, temperature 1,
--                                          256 tokens each after the mark of the beginning
-- The ids are kept because float products may differ in their last bits from machine to machine, and then a draw may, too.
local file, tokens = data.find 'weights/stories260K.bin', data.find 'weights/tok512.bin'
if not file or not tokens then
	io.stderr:write 'stories: wanted weights/stories260K.bin and weights/tok512.bin in a data folder (QUOLL_DATA, ./data)\n'
	os.exit(1)
end
local here = (arg and arg[0] or ''):match '^(.*)scripts/[^/]*$' or ''
local golden = here .. 'tests/golden/stories_ids.lua'
local TEXTS, STEPS, LINE = 20, 256, 114
local model = nn.llama(file)

-- An id as two digits to the base 32.
local DIGITS = '0123456789abcdefghijklmnopqrstuv'
local function digits(id)
	local hi, lo = id // 32 + 1, id % 32 + 1
	return DIGITS:sub(hi, hi) .. DIGITS:sub(lo, lo)
end

local function sample()
	local begin = data.tokenizer(tokens):encode('', {bos = true})
	local out = assert(io.open(golden, 'w'))
	out:write('-- SPDX-License-Identifier: MIT\n-- Made by scripts/stories.lua --sample: 20 texts of stories260K, a list of tensors; an id is ',
		'two digits to the base 32.\nlocal texts = {}\nfor text in ([[\n')
	for seed = 1, TEXTS do
		tensor.seed(seed)
		local parts = {}
		for i, id in ipairs(model:generate(begin, {steps = STEPS, temperature = 1}):totable()) do parts[i] = digits(id) end
		local text = table.concat(parts)
		for at = 1, #text, LINE do out:write(text:sub(at, at + LINE - 1), '\n') end
		out:write '.\n'
	end
	out:write(']]):gsub(\'\\n\', \'\'):gmatch \'[^.]+\' do\n\tlocal ids = {dtype = \'int64\'}\n',
		'\tfor pair in text:gmatch \'..\' do ids[#ids + 1] = tonumber(pair, 32) end\n\ttexts[#texts + 1] = tensor(ids)\nend\nreturn texts\n')
	out:close()
	print('written: ' .. golden)
end

-- A list of batches (x, y): y is the token after each of x.
local function batches(texts)
	local list = {}
	for i, ids in ipairs(texts) do
		local n = ids:size(1) - 1
		list[i] = {ids:narrow(1, 1, n):unsqueeze(1), ids:narrow(1, 2, n):unsqueeze(1)}
	end
	return list
end

local function measure()
	local texts, rows = batches(dofile(golden)), {columns = {'weights', 'perplexity', 'change', 'bytes'}}
	for _, weights in ipairs {'float32', 'int8/1', 'int4:32', 'int8/1, dynamic'} do
		local spec, mode = weights:match '[^,]+', weights:find ', ' and 'dynamic' or 'weight_only'
		local m = weights == 'float32' and model or model:quantize{mode = mode, weight = spec}
		local found = m:evaluate(texts, {metric = 'perplexity', log = false}).perplexity
		rows[#rows + 1] = {weights = weights, perplexity = found, bytes = m:nbytes(),
			change = ('%+.2f %%'):format(100 * (found / (rows[1] and rows[1].perplexity or found) - 1))}
	end
	return report(rows)
end

if arg and arg[1] == '--sample' then
	sample()
elseif arg and arg[1] then
	io.stderr:write(('stories: wanted nothing or --sample, got %s\n'):format(arg[1]))
	os.exit(1)
else
	print(measure())
end

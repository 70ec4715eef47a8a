-- SPDX-License-Identifier: MIT
-- m:generate: a language model continues texts. How the model takes steps is in nn/base/decoder.lua, how a token is drawn in the op
-- nn.sample, how tokens become text in nn/base/pieces.lua.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local decoder = internal.import 'nn/base/decoder'
local fit = internal.import 'nn/base/fit'
local module = internal.import 'nn/base/module'
local pieces = internal.import 'nn/base/pieces'
local prompt = internal.import 'nn/base/prompt'
local texts = internal.import 'nn/base/texts'
local fail, describe = base.fail, base.describe
local methods, method = module.methods, module.method

---------------------------------------------------------------- random numbers

-- Stream `seed` of SplitMix64 (Steele et al., 2014): its i-th number, from 0 to below 1. Each row has one of its own.
local function mixed(z)
	z = (z ~ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ~ (z >> 27)) * 0x94d049bb133111eb
	return z ~ (z >> 31)
end

local function uniform(seed, i) return (mixed(mixed(seed) + i * 0x9e3779b97f4a7c15) >> 11) * 2.0 ^ -53 end

---------------------------------------------------------------- options

local OPTIONS = {{'steps', 'integer', 'new tokens at most (default 100)'},
	{'temperature', 'number', '0 takes the likeliest token (default; 1 where another option of drawing is given)'},
	{'topk', 'integer', 'draw among so many of the likeliest'}, {'topp', 'number', 'among the fewest of the likeliest with this probability in all'},
	{'minp', 'number', 'among those at least this times as likely as the likeliest'},
	{'repetition', 'number', 'above 1: tokens that the text has already become less likely (default 1)'},
	{'seed', 'integer', "of the random numbers; row i has the stream seed + i - 1 (default: all rows take those of tensor.seed)"},
	{'stop', 'any', 'tokens or texts that end a text: one, or a list'}, {'eos', 'any', 'tokens that end a text: one, a list, false (default: those of the file)'},
	{'kv', 'any', "format of the cache: 'float16', 'int8', 'int4:32', {k=, v=, recent=} (default float32)"},
	{'tokenizer', 'any', 'data.tokenizer, or the name of its file (default: that of the file of nn.load)'},
	{'stream', 'any', 'true: print text as it comes; a function of the new piece (text, or a token) and the row, which ends the row by false'},
	{'ends', 'true or false', 'also return why each text ended, and how many tokens are new'}, {'prompt', 'any', 'what m:prompt or m:loadprompt gives'}, {'pad', 'integer', 'what fills rows of a tensor that end before others (default: eos, else 1)'}}

local generate = method('generate', "m:generate(ids, {steps=100, temperature=0})  m:generate('Once upon', {temperature=0.8, topp=0.9, stream=true})",
	[[Goes on with texts: ids are the numbers of tokens (n), a list, a batch (B, n), or a list of rows of any lengths; text, or a list of texts, needs a
tokenizer, which models of `nn.load` have where their file or folder has one. Returns what was given with the new part after it (a
tensor of a batch where rows end at different places is filled with pad=). With ends=true further results are why the text ended ('eos', 'stop',
'length' (steps= tokens were made), 'stream' or 'interrupted') and the number of new tokens; for batches these are lists. The token that ended a text is part of ids, a stop
text is not part of the text. Each row gets what it would get alone, whatever rows are beside it (with seed=, where tokens are drawn).

By default the likeliest token follows (temperature 0). With temperature, topk, topp, minp or seed tokens are drawn (`nn.sample`) from
softmax(logits / temperature), of which topk, topp and minp leave the likely ones. repetition divides the logits of tokens that are in the text
where they are above 0, and multiplies others (CTRL, as in transformers). The same seed gives the same tokens on any number of threads.

kv is the format in which keys and values are kept: codes take less memory, and have their effect on the text (m:evaluate(data, {kv=}) measures it).
Without an axis a position of a head has a scale, or blocks of it ('int4:32'). With an axis blocks run along that of (row, position, channel of all heads):
kv={k='uint4/2:32+min', v='uint4/3:32+min', recent=32} keeps keys with a scale and a minimum for each channel and 32 positions, as keys have channels
that are large at all positions, and values with one for each position and 32 channels. The last recent= positions (default 0), and those of a block that is not
complete, are floats; a block is coded once.
A text of a Transformer that becomes longer than its context goes on with the second half of it.

stream=true prints one text as it comes, in whole characters; at the prompt this is the default for text (end the line with ; not to see it
again), and Ctrl-C ends the text: what there is is returned. Chat templates are not evaluated: write the text with the model's marks.]],
	[[m = nn.Transformer{vocab=10, d=8, heads=2, layers=1, ff=16}
print(m:generate({1, 5, 3}, {steps=4}):size())  --> 7
ids, why, n = m:generate({{1, 5, 3}, {2}}, {steps=4, temperature=0.8, topp=0.9, seed=1, ends=true})
print(#ids, why[2], n[2])  --> 2 length 4]], OPTIONS)

local function check_number(o, name, lowest, highest, above)
	local value = o[name]
	if value == nil or (above and value > lowest or not above and value >= lowest) and value <= highest then return end
	local range = highest == math.huge and (above and 'above %g' or '%g or more') or above and 'above %g, at most %g' or 'from %g to %g'
	fail('generate: %s: wanted ' .. (highest == math.huge and not above and '' or 'a number ') .. range .. ', got %s', name,
		table.unpack(highest == math.huge and {lowest, value} or {lowest, highest, value}))
end

local function check_options(o)
	if o.steps ~= nil and o.steps < 0 then fail('generate: steps: wanted 0 or more, got %d', o.steps) end
	if o.topk ~= nil and o.topk < 1 then fail('generate: topk: wanted 1 or more, got %d', o.topk) end
	check_number(o, 'temperature', 0, math.huge)
	check_number(o, 'topp', 0, 1, true)
	check_number(o, 'minp', 0, 1)
	check_number(o, 'repetition', 0, math.huge, true)
	if o.temperature == math.huge then fail 'generate: temperature: wanted a finite number, got inf' end
end

-- A set of tokens, and a list of texts.
local function ends_of(name, given)
	local ids, list = {}, {}
	if given == nil or given == false then return ids, list end
	for i, value in ipairs(type(given) == 'table' and not getmetatable(given) and base.list('generate: ' .. name, given) or {given}) do
		if math.type(value) == 'integer' then
			ids[value] = true
		elseif type(value) == 'string' and value ~= '' and name == 'stop' then
			list[#list + 1] = value
		else
			fail('generate: %s: item %d: wanted a token%s, got %s', name, i, name == 'stop' and ' or text' or '', describe(value))
		end
	end
	return ids, list
end

-- The tokens that end a text by the file of the model, else by the tokenizer.
local function own_ends(m, t)
	local origin = rawget(m, 'origin')
	if origin and origin.eos then return origin.eos end
	return t and t.after and #t.after == 1 and t.after or nil
end

local function drawing(o)
	local asked = o.topk or o.topp or o.minp or o.seed
	local temperature = o.temperature or asked and 1 or 0
	if temperature == 0 then return nil end
	return {temperature = temperature, topk = o.topk, topp = o.topp, minp = o.minp}
end

-- Where someone sees what comes, and Ctrl-C means this text, not the program.
local function at_prompt() return internal.prompting() or internal.kernel ~= nil end

local function printer(piece)
	io.stdout:write(piece)
	io.stdout:flush()
end

local function stream_of(m, o, read)
	local stream = o.stream
	if stream == nil and read.kind == 'text' and read.one and at_prompt() then stream = true end
	if stream == true then
		read.tokenizer = read.tokenizer or texts.tokenizer('generate', m)
		if not read.tokenizer then fail 'generate: stream: wanted a function of the tokens, or a tokenizer, got true without one' end
		if #read.rows > 1 then fail('generate: stream: wanted a function for %d texts, got true', #read.rows) end
		return printer, true, true
	end
	if stream and type(stream) ~= 'function' then fail('generate: stream: wanted true, false or a function, got %s', describe(stream)) end
	return stream or nil, read.kind == 'text', false
end

---------------------------------------------------------------- rows

-- One text on its way: ids with the new ones after them, why it ended, its text.
local function row_of(g, i, ids)
	local row = {number = i, ids = table.move(ids, 1, #ids, 1, {}), began = #ids, parts = {}, drawn = 0}
	if g.wants_text then row.pieces = pieces.new(g.tokenizer, ids, g.stop_texts) end
	if g.repetition then
		row.seen, row.list = {}, {}
		for _, id in ipairs(ids) do
			if not row.seen[id] then row.seen[id], row.list[#row.list + 1] = true, id end
		end
	end
	return row
end

-- Gives a piece to the stream; false: it wants no more.
local function tell(g, row, piece)
	if not g.stream or piece == '' then return true end
	return internal.unyieldable(g.stream, piece, row.number) ~= false
end

local function finish(g, row, why)
	row.why = row.why or why
	local rest = row.pieces and not row.cut and row.pieces:finish() or ''
	row.parts[#row.parts + 1] = rest
	if g.as_text then tell(g, row, rest) end
end

local function append(g, row, id)
	row.ids[#row.ids + 1] = id
	if row.seen and not row.seen[id] then row.seen[id], row.list[#row.list + 1] = true, id end
	local good, why = true, g.eos[id] and 'eos' or g.stop[id] and 'stop' or nil
	if row.pieces and why ~= 'stop' then
		local piece, cut = row.pieces:add(id)
		row.parts[#row.parts + 1], row.cut = piece, cut
		if g.as_text then good = tell(g, row, piece) end
		if cut then why = 'stop' end
	end
	if not g.as_text then good = tell(g, row, id) end
	row.why = why or not good and 'stream' or #row.ids - row.began >= g.steps and 'length' or nil
	if row.why then finish(g, row) end
end

---------------------------------------------------------------- the next tokens

-- Logits of tokens that the text has: l / r above 0, else l * r.
local function repeated(g, logits, rows)
	local list = {}
	for i, row in ipairs(rows) do
		local x, ids = logits:narrow(1, i, 1), tensor {dtype = 'int64', table.unpack(row.list)}:unsqueeze(1):to(logits:device())
		local l = x:gather(2, ids)
		list[i] = x:scatter(2, ids, tensor.where(l:gt(0), l / g.repetition, l * g.repetition))
	end
	return tensor.cat(list, {axis = 1})
end

-- Random numbers of the rows: of their own streams, or of tensor.seed's.
local function shares(g, rows, device)
	if not g.seed then return tensor.rand {#rows, device = device} end
	local u = {dtype = 'float64'}
	for i, row in ipairs(rows) do
		u[i], row.drawn = uniform(g.seed + row.number - 1, row.drawn), row.drawn + 1
	end
	return tensor(u):to(device)
end

local function choose(g, logits, rows)
	if logits:dtype() ~= 'float32' then logits = logits:to 'float32' end
	if g.repetition then logits = repeated(g, logits, rows) end
	if not g.drawing then return logits:argmax(-1):totable() end
	return nn.sample(logits, shares(g, rows, logits:device()), g.drawing):totable()
end

-- The rows that go on, by number; the decoder forgets the others, if it can.
local function going_on(d, rows)
	local list, left = {}, {}
	for i, row in ipairs(rows) do
		if not row.why then list[#list + 1], left[#left + 1] = i, row end
	end
	if #left == 0 or #left == #rows then return left, #left end
	return d:keep(list) and left or rows, #left
end

local function run(g, d, rows)
	local logits = d:begin()
	while true do
		local tokens = choose(g, logits, rows)
		for i, row in ipairs(rows) do
			if not row.why then append(g, row, tokens[i]) end
		end
		local left
		rows, left = going_on(d, rows)
		if left == 0 then return end
		tokens = {}
		for i, row in ipairs(rows) do tokens[i] = row.ids[#row.ids] end
		logits = d:step(tokens)
	end
end

-- Rows of one batch; a model without a cache takes such of different lengths one after the other.
local function run_rows(g, m, rows, o)
	local batches, same = {}, true
	for _, row in ipairs(rows) do same = same and #row.ids == #rows[1].ids end
	if same or decoder.takes_lengths(m) then batches[1] = rows else for i, row in ipairs(rows) do batches[i] = {row} end end
	for _, batch in ipairs(batches) do
		local ids = {}
		for i, row in ipairs(batch) do ids[i] = row.ids end
		local d <close> = decoder.new(m, ids, g.steps, o)
		run(g, d, table.move(batch, 1, #batch, 1, {}))
	end
end

---------------------------------------------------------------- results

local function padded(g, rows, device)
	local most, list = 0, {dtype = 'int64'}
	for _, row in ipairs(rows) do most = math.max(most, #row.ids) end
	for i, row in ipairs(rows) do
		list[i] = table.move(row.ids, 1, #row.ids, 1, {})
		for k = #row.ids + 1, most do list[i][k] = g.pad end
	end
	return tensor(list):to(device)
end

local function results(g, read, rows, device)
	local list, why, n = {}, {}, {}
	for i, row in ipairs(rows) do
		why[i], n[i] = row.why, #row.ids - row.began
		list[i] = read.kind == 'text' and read.given[i] .. table.concat(row.parts) or tensor {dtype = 'int64', table.unpack(row.ids)}:to(device)
	end
	if read.one then list, why, n = list[1], why[1], n[1] elseif not read.list then list = padded(g, rows, device) end
	if not g.ends then return list end
	return list, why, n
end

local function least(set)
	local found
	for id in next, set do found = math.min(found or id, id) end
	return found
end

local function settings(m, o, read)
	local g = {steps = o.steps or 100, ends = o.ends, drawing = drawing(o), repetition = o.repetition ~= 1 and o.repetition or nil, seed = o.seed}
	g.stop, g.stop_texts = ends_of('stop', o.stop)
	g.stream, g.as_text, g.prints = stream_of(m, o, read)
	if #g.stop_texts > 0 then read.tokenizer = read.tokenizer or texts.tokenizer('generate', m) end
	if #g.stop_texts > 0 and not read.tokenizer then fail 'generate: stop: wanted tokens, or a tokenizer= for texts, got text without one' end
	g.tokenizer, g.wants_text = read.tokenizer, read.kind == 'text' or g.as_text or #g.stop_texts > 0
	local eos = o.eos
	if eos == nil then eos = own_ends(m, g.tokenizer) end
	g.eos = ends_of('eos', eos)
	g.pad = o.pad or next(g.eos) and least(g.eos) or 1
	return g
end

local function check_kv(m, o)
	if o.prompt ~= nil then o.kv = prompt.kv(prompt.check('generate', m, o.prompt, o.kv)) end
	if o.kv ~= nil and not decoder.takes_lengths(m) then
		fail('generate: kv: wanted a model with a cache of keys and values, as nn.Transformer, got %s', module.class_of(m).name)
	end
end

function methods.generate(m, given, options)
	module.parts_of(m, 'generate')
	if type(options) == 'table' and rawget(options, 'chat') ~= nil then texts.refuse_chat('generate', m, rawget(options, 'tokenizer')) end
	local o = base.options(generate, options)
	check_options(o)
	local read = texts.read('generate', m, given, o.tokenizer)
	local g, rows = settings(m, o, read), {}
	check_kv(m, o)
	for i, ids in ipairs(read.rows) do rows[i] = row_of(g, i, ids) end
	local _ <close> = fit.in_mode(m, false)
	local _ <close> = internal.nograd()
	if g.steps == 0 then
		for _, row in ipairs(rows) do row.why = 'length' end
	elseif at_prompt() then
		internal.interruptible(run_rows, g, m, rows, o)
	else
		run_rows(g, m, rows, o)
	end
	for _, row in ipairs(rows) do
		if not row.why then finish(g, row, 'interrupted') end
	end
	if g.prints then printer '\n' end
	return results(g, read, rows, module.device(m) or 'cpu')
end

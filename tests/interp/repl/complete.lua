-- SPDX-License-Identifier: MIT
-- Completion as the editor and Jupyter ask for it.
local internal = debug.getregistry()['quoll.internal']
local complete = internal.import 'interp/repl/complete'

-- Matches of a text with the cursor at its end, as 'text text', with the part of the text that they replace.
local function matches(text)
	local got, list = complete(text, #text), {}
	for i, match in ipairs(got.matches) do list[i] = match.text end
	return table.concat(list, ' '), text:sub(got.from + 1, got.to), got
end

local function check(text, wanted, part)
	local list, replaced = matches(text)
	if list ~= wanted or part and replaced ~= part then
		error(('%s: wanted %s for %s, got %s for %s'):format(text, wanted, part or '?', list, replaced), 2)
	end
end

-- All of these are among the matches, or with `none` not one of them.
local function has(text, wanted, none)
	local list = ' ' .. matches(text) .. ' '
	for word in wanted:gmatch '%S+' do
		local found = list:find(' ' .. word .. ' ', 1, true) ~= nil
		if found == (none or false) then
			error(('%s: %s %s in %s'):format(text, word, none and 'is' or 'is not', list), 2)
		end
	end
end

-- The names of a registry, without those in `none`, as they come or sorted and quoted.
local function registry(file, none, quoted)
	local list = {}
	for name in io.open(file):read 'a':gmatch '\nX%(([%w_]+)' do
		if name ~= none then list[#list + 1] = quoted and "'" .. name .. "'" or name end
	end
	if quoted then table.sort(list) end
	assert(#list > 5, file)
	return table.concat(list, ' ')
end

x = tensor.zeros(2, 3)
m = nn.Linear(3, 4)
plain = {alpha = 1, beta = function() end, inner = {deep = {deeper = 1}}, ['not a name'] = 1}

describe('names', function()
	it('are globals, keywords, modules and their members', function()
		check('tens', 'tensor', 'tens')
		check('loca', 'local', 'loca')
		check('y = tensor.zer', 'zeros', 'zer')
		check('string.re', 'rep reverse')
		check('nn.Conv', 'Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d')
		has('pri', 'print')
	end)
	it('are those that the input itself has used', function()
		check('local something = 1\nprint(some', 'something')
		check('function f(argument_one)\n  return argument_', 'argument_one')
	end)
	it('are found in any case of letters when none fits', function() check('TENS', 'tensor') end)
	it('are none in comments, numbers and behind words that name something new', function()
		check('-- tens', '')
		check('--[[ tens', '')
		check('12', '')
		check('local tens', '')
		check('function tens', '')
	end)
	it('keep the cursor, not the end of the text', function()
		local got = complete('tens = 1', 4)
		assert(got.from == 0 and got.to == 4 and got.matches[1].text == 'tensor')
	end)
end)

describe('members', function()
	it('are methods of tensors, also of what calls return', function()
		check('x:su', 'sub sub_ sum', 'su')
		check('x:sum():medi', 'median')
		check('x[1]:argm', 'argmax argmin')
		check('tensor.ones(2, 3):argm', 'argmax argmin')
		check('tensor{1, 2}:argm', 'argmax argmin')
		check("x:quantize 'int8':dequ", 'dequantize')
		check('(x):argm', 'argmax argmin')
	end)
	it('are methods and fields of modules', function()
		check('m:quan', 'quantize')
		check('m.wei', 'weight')
		check('nn.Linear(3, 4):fi', 'fit')
		check('m:eval():quan', 'quantize')
	end)
	it('are fields of tables, functions only behind a colon', function()
		check('plain.', 'alpha beta inner')
		check('plain:', 'beta')
		check('plain.inner.deep.d', 'deeper')
	end)
	it('are those of strings and reports', function()
		check("('x'):rev", 'reverse')
		check('x:error(x):sor', 'sort')
	end)
	it('run nothing of the user', function()
		local ran = 0
		local function spy() ran = ran + 1 end
		hostile = setmetatable({own = 1}, {__index = spy, __pairs = spy, __len = spy, __call = spy, __tostring = spy,
			__name = 'spy', __eq = spy})
		derived = setmetatable({}, {__index = hostile})
		setmetatable(_G, {__index = spy, __newindex = spy})
		matches 'hostile.'
		matches 'derived.ow'
		matches 'hostile:'
		matches 'hostile.a.b'
		matches 'hostile{'
		matches 'hostile():x'
		matches 'host'
		matches 'unknown.fie'
		setmetatable(_G, nil)
		assert(ran == 0, ran .. ' calls')
		check('derived.ow', 'own')
		hostile, derived = nil, nil
	end)
end)

describe('options', function()
	it('of a call are named with their text', function()
		check('x:sum{', 'axis= keep=', '')
		local _, _, got = matches 'x:sum{a'
		assert(got.matches[1].text == 'axis=' and got.matches[1].kind == 'option')
		assert(got.matches[1].doc:find 'axes', got.matches[1].doc)
		has('nn.Linear(3, 4, {b', 'bias= break')
		has('m:fit(d, {', 'loss= epochs= opt=')
		has("m:quantize{mode='static', ", 'weight= input=')
	end)
	it('that are given already are left out', function()
		check('x:sum{axis=1, ', 'keep=')
		has('x:sum{axis=1, ', 'axis=', true)
	end)
	it('have values', function()
		check("x:linear(x, {act='re", 'relu relu6')
		check('x:linear(x, {act=', "'gelu' 'hardswish' 'relu' 'relu6' 'sigmoid' 'silu' 'tanh'")
		check("tensor.zeros{2, dtype='bf", 'bfloat16')
		check("m:quantize{mode='wei", 'weight_only')
		check("quant.spec{scheme='asy", 'asymmetric')
	end)
end)

describe('specs as tables', function()
	-- what quant.spec itself says that it takes
	local names = {}
	for name in select(2, pcall(quant.spec, {none = 1})):match 'known: (.*)$':gmatch '[%w_]+' do names[#names + 1] = name .. '=' end
	table.sort(names)
	local FIELDS = table.concat(names, ' ')
	for _, name in ipairs {'axis', 'bits', 'block', 'dtype', 'observer', 'scheme', 'zero_point'} do assert(FIELDS:find(name .. '=', 1, true)) end
	it('have fields with their text, wherever one stands', function()
		for _, text in ipairs {'quant.spec{', 'quant.spec({', 'x:quantize{', 'x:fake{', 'x:quantize({', 'quant.observer{',
			'quant.params(0, 1, {', 'quant.estimate(m, {', 'm:quantize{weight={', "m:quantize{mode='static', input={",
			'tensor.randn{3, quant={', 'x:matmul(x, {out={', 'm:calibrate(x, {input={', 'quant.compare(x, {{',
			"quant.compare(x, {'int8', {", "m:quantize{rules={{'linear.*', {",
			"m:quantize{rules={{'linear.*', weight={"} do
			check(text, FIELDS, '')
		end
		check('quant.search(m, {choices={{', (FIELDS:gsub(' minimum=', ' method= minimum=')), '')
		has("quant.search(m, {choices={{'int4/1', method='", 'gptq mse')
		local _, _, got = matches 'quant.spec{sch'
		assert(got.matches[1].text == 'scheme=' and got.matches[1].doc:find 'codes stand', got.matches[1].doc)
	end)
	it('leave out what this table has, not what others have', function()
		has("m:quantize{mode='auto', weight={dtype='int8', ", 'axis= scheme=')
		has("m:quantize{mode='auto', weight={dtype='int8', ", 'dtype= mode=', true)
		has('m:quantize{weight={bits=4}, ', 'input= mode=')
		has('m:quantize{weight={bits=4}, ', 'weight= bits=', true)
	end)
	it('have values', function()
		check("quant.spec{dtype='int", 'int8 int16 int6 int5 int4 int3 int2')
		check("x:quantize{scheme='", registry 'quant/schemes.def')
		check("m:quantize{weight={observer='", registry('quant/observers.def', 'function'))
		check('m:quantize{weight={observer=', registry('quant/observers.def', 'function', true))
		check("quant.spec{rounding='", 'float single double exact stochastic')
		check("x:quantize{priority='", 'accuracy speed')
		local _, _, got = matches "x:quantize{scheme='sy"
		assert(got.matches[1].doc ~= '' and got.matches[1].doc:find 'code', got.matches[1].doc)
	end)
	it('rules have fields and values of their own', function()
		check("m:quantize{rules={{'linear.*', ", 'emit= input= method= mode= optional= output= weight=')
		check("m:quantize{rules={{'linear.*', mode='st", 'static')
		check("g:quantize{rules={{'linear.*', 'int8@ent", 'entropy')
		check("quant.search(m, {choices={'int8@ms", 'mse', 'ms')
		has("quant.search(m, {choices={'int8@m", 'minmax mse')
	end)
	it('other tables have none', function()
		has('quant.spec{scale={', 'dtype=', true)
		has('{', 'dtype=', true)
		has('unknown_function{', 'dtype=', true)
		has('print({', 'dtype=', true)
	end)
end)

describe('values that the help lists', function()
	it('are completed', function()
		check("data.mnist{split='", 'train validation test all')
		check("m:quantize{mode='", 'auto static dynamic weight_only qat train')
		check("unknown:quantize{mode='st", 'static')
		check("quant.sensitivity(m, {mode='", 'weight_only static dynamic auto')
		check("nn.Transformer{act='", 'gelu gelutanh relu silu swiglu')
		check("quant.search(m, {method='", 'exact greedy')
		has("report{}:plot{kind='", 'bar box heat hist line scatter')
	end)
	it('are none where it lists none', function()
		check("nn.Linear(2, 3, {name='zzz", '')
		check("sweep.run{shard='zzz", '')
	end)
end)

describe('specs', function()
	it('are completed part by part', function()
		has("x:quantize 'int", 'int8 int4 int4:32 int8/1 int4:32+min')
		check("x:quantize 'mxf", 'mxfp8_e4m3 mxfp8_e5m2 mxfp6_e2m3 mxfp6_e3m2 mxfp4')
		check("quant.formats 'nvf", 'nvfp4')
		check("quant.spec{dtype='nvf", 'nvfp4')
		check("x:quantize('uint8@ent", 'entropy', 'ent')
		check("x:quantize 'int4:", '16 32 64 128 256', '')
		check("quant.compare(x, {'int8', 'uint1", 'uint16')
		has("m:quantize{weight='int", 'int8')
		check("quant.observer 'uint8@perc", 'percentile')
	end)
end)

describe('methods of post-training quantization', function()
	it('are completed as names, in chains, with their options', function()
		has("nn.Linear(1, 1):quantize{method='", 'rtn mse gptq awq biascorrect')
		check("nn.Linear(1, 1):quantize{mode='weight_only', method={'mse', 'gp", 'gptq')
		check("nn.Linear(1, 1):quantize{method={'aw", 'awq')
		check("quant.methods(m, {'rtn', 'gp", 'gptq')
		check("quant.methods(m, {{'mse', 'gp", 'gptq')
		has('quant.methods(m, {}, {', 'data= test= metric= sizes=')
		has("nn.Linear(1, 1):quantize{method={'awq', {'gptq', ", 'act= damp= static=')
		has("nn.Linear(1, 1):quantize{method={'awq', {'gptq', da", 'damp=')
	end)
end)

describe('strings', function()
	it('are file names, folders with a slash', function()
		check("io.open 'tests/interp/repl/compl", 'complete.lua', 'compl')
		check("dofile('tests/inte", 'interp/', 'inte')
		check("tensor.load 'README", 'README.md')
		check("print [[tests/interp/repl/complete.l", 'complete.lua')
		check("io.open 'no/such/folder/x", '')
	end)
	it('are names of help', function()
		check("help 'x:argm", 'x:argmax x:argmin')
		check("help('quant.compa", 'quant.compare')
	end)
	it('are keys of a table in brackets', function()
		check("plain['", 'alpha beta inner not a name', '')
		check("plain.inner['de", 'deep')
		check("plain['not a", 'not a name', 'not a')
	end)
	it('are dtypes for x:to', function() check("x:to 'bfl", 'bfloat16') end)
	it('are devices for x:to, m:to and device=', function()
		check("x:to 'cp", 'cpu')
		check("nn.Linear(1, 1):to 'cp", 'cpu')
		check("tensor.zeros{2, device='cp", 'cpu')
		check("gpu.fallback 'wa", 'warn')
	end)
end)

describe('other inputs', function()
	it('are magics, ?names and files of shell commands', function()
		check('%timei', 'timeit', 'timei')
		has('%', 'time timeit who')
		check('?quant.compa', 'quant.compare', 'quant.compa')
		check('!cat tests/interp/repl/compl', 'complete.lua')
		check('%time tens', 'tensor', 'tens')
		check('%%timei', 'timeit', 'timei')
		check('%%time tens', 'tensor', 'tens')
		check('%%time\ntens', 'tensor', 'tens')
	end)
	it('are files where a %word takes them, folders behind %cd', function()
		local folder = os.tmpname()
		os.execute(('rm %s && mkdir -p "%s/zoo two" && touch %s/zoo.lua'):format(folder, folder, folder))
		check(('%%cd %s/z'):format(folder), 'zoo two/', 'z')
		check(('%%cd %s/zoo t'):format(folder), 'zoo two/', 'zoo t')
		check(('%%cd "%s/zoo t'):format(folder), 'zoo two/', 'zoo t')
		check('%cd tests/inte', 'interp/', 'inte')
		check('%cd tests/interp/repl/compl', '', 'compl')
		check(('%%ls %s/z'):format(folder), 'zoo two/ zoo.lua', 'z')
		check('%sh ls tests/interp/repl/compl', 'complete.lua', 'compl')
		check('%sh ls tests/inte', 'interp/', 'inte')
		check('%%sh\nls\ncat tests/interp/repl/compl', 'complete.lua', 'compl')
		check('%%bash\ncat tests/interp/repl/compl', 'complete.lua', 'compl')
		check('%run tests/interp/repl/compl', 'complete.lua', 'compl')
		os.execute(('rm -r %s'):format(folder))
	end)
end)

it('any text gives an answer', function()
	local texts = {'', ' ', '.', ':', ')', 'x:', 'x.', '((', '}', '{', '{{{', '"', "'", '[[', '[==[', '--', '%', '?', '!', 'a.b.c.d',
		'x:sum(', 'a:b:c', '...', '::', 'goto ', 'f{a=', 'f{a={b=', "f'", 'x[', 'x[1].', ']:', '\255', 'x\0y',
		('('):rep(300), ('a.'):rep(300)}
	for _, text in ipairs(texts) do
		local got = complete(text, #text)
		assert(got.from <= got.to and got.to <= #text and type(got.matches) == 'table', text)
	end
	local all = "local t = {a = x:sum{axis=1}} for i = 1, #t do print(t[i]:relu 'x', \"y\") end -- c"
	for i = 0, #all do complete(all, i) end
end)

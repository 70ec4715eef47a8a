-- SPDX-License-Identifier: MIT
-- g:match: rules without doing anything.
tensor.seed(13)
local m = nn.Sequential{nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3, {bias=false}), nn.module(function(_, v) return v:cumsum(2) end), nn.Flatten(),
	nn.Linear(128, 10, {name='fc1'})}:eval()
local x = tensor.randn(2, 3, 8, 8)
local g = graph.trace(m, x)

it('reports the rule, specs, bits and bytes of each node; g stays as it is', function()
	local before = tostring(g)
	local r = g:match({{'fc.*', 'int4/1'}, {'conv2', false}, {'conv.*', 'int8'}}, {mode='dynamic'})
	print(r:where{node='fc1'}.rule, r:where{node='fc1'}.weight, r:where{node='fc1'}.bytes)  --> 1 int4/1 680
	print(r:where{node='conv2'}.rule, r:where{node='conv2'}.mode, r:where{node='conv2'}.bits, r:where{node='conv2'}.why)  --> 2 float 32.0 a rule says so
	print(r:where{node='conv1'}.rule, r:where{node='conv1'}.bytes, r:where{node='conv1'}.float_bytes)  --> 3 220 864
	print(#r, tostring(g) == before)  --> 3 true
end)

it('says what would be refused, and which rules match nothing', function()
	local r = g:match({{'module.*', 'int8'}, {'lstm.*', 'int8'}, {'conv1', mode='static'}}, {fuse=false})
	assert(r:where{node='module1'}.why:find "^error: 'cumsum' has no integer version")
	assert(r:where{node='conv1'}.why:find "^error: mode 'static' wanted a calibrated input")
	print(tostring(r):find("matched nothing: rule 2 ('lstm.*')", 1, true) ~= nil)  --> true
	r = g:match({{'.*', mode='dynamic', optional=true}, {'fc1', false}})
	print(tostring(r):gsub('%s+', ' '):match 'rule 2.*')  --> rule 2 ('fc1') does nothing: rule 1 before it took all that it matches
	print(pcall(g.match, g, {{'[', 'int8'}}))  --> false ...wanted a POSIX extended regular expression...
end)

it('measures milliseconds once for each op with its sizes and specs', function()
	local r = g:match({}, {mode='dynamic', ms=true, batch=4})
	for _, row in ipairs(r) do assert(row.ms > 0) end
	local again = g:match({}, {mode='dynamic', ms=true, batch=4})
	for i, row in ipairs(again) do assert(row.ms == r[i].ms, row.node) end
	local other = g:match({{'fc1', false}}, {mode='dynamic', ms=true, batch=4})
	assert(other:where{node='conv1'}.ms == r:where{node='conv1'}.ms and other:where{node='fc1'}.mode == 'float')
	quant.log 'reset'
	g:match({}, {mode='weight_only', weight='int4:16', ms=true})
	print(#quant.log():where{op='conv2d', path='fallback'})  --> 0
end)

it('sums the weights that layers share once', function()
	local shared = nn.Linear(64, 64, {bias=false})
	local g = graph.trace(nn.Sequential{shared, nn.ReLU(), shared, nn.ReLU(), shared}, tensor.ones(1, 64))
	print(tostring(g:match({}, {mode='dynamic'})):match 'weights %d+ bytes, before %d+')  --> weights 4352 bytes, before 16384
	print(tostring(g:match({{'.*', false}})):match 'weights %d+ bytes, before %d+')  --> weights 16384 bytes, before 16384
	-- two kinds of codes of it: both are kept
	print(tostring(g:match({{'linear1_2$', 'int4'}}, {mode='dynamic'})):match 'weights %d+ bytes, before %d+')  --> weights 6404 bytes, before 16384
end)

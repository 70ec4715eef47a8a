-- SPDX-License-Identifier: MIT
-- labels: full
-- g:match tells of every node of the tutorials' models what g:quantize makes of it, under several lists of rules.
local FIELDS = {'op', 'rule', 'mode', 'weight', 'input', 'output', 'bits', 'bytes', 'float_bytes', 'why'}

-- What g:match tells of each node is what g:quantize makes of it; where it tells of an error, g:quantize raises that.
local function agree(name, graph_of, rules, o)
	local r = graph_of:match(rules, o)
	local wrong
	for _, row in ipairs(r) do wrong = wrong or row.why:match '^error: (.*)' end
	local options = {rules=rules}
	for key, value in pairs(o) do options[key] = value end
	local good, q, made = pcall(graph_of.quantize, graph_of, options)
	local unused = not good and q:find 'wanted a pattern that matches' and (tostring(r):find 'matched nothing' or tostring(r):find 'does nothing')
	if wrong or unused then
		assert(unused or not good and q:find(wrong, 1, true), ('%s: match says %s, quantize %s'):format(name, wrong, good and 'does it' or q))
		return 'error'
	end
	assert(good, q)
	local shown = {}
	for _, row in ipairs(r) do shown[row.node] = row end
	for _, row in ipairs(made) do
		local told = shown[row.node]
		assert(told or row.mode == 'float' and row.rule == '-', name .. ': ' .. row.node)
		for _, field in ipairs(told and FIELDS or {}) do
			assert(told[field] == row[field], ('%s: %s: %s: match %s, quantize %s'):format(name, row.node, field, told[field], row[field]))
		end
		local node = q.nodes[row.node]
		if node and node.attrs.out then assert(row.output == node.attrs.out.name) end
	end
	return 'the same'
end

local folder = debug.getinfo(1, 'S').source:match '^@(.*)tests/' or ''
local function pictures(n, channels, size) return tensor.randn(n, channels, size, size) end
local function words(n) return tensor.randint {n, 8, low=1, high=40, dtype='int32'} end
local models = {
	mlp = function(n) return pictures(n, 1, 28) end, lenet = function(n) return pictures(n, 1, 28) end,
	resnet8 = function(n) return pictures(n, 3, 32) end, resnet9 = function(n) return pictures(n, 3, 32) end,
	resnet20 = function(n) return pictures(n, 3, 32) end, transformer = words, lstm = words,
}
local lists = {
	{}, {{'.*conv.*', 'int4/1'}, {'.*linear.*', 'int8'}}, {{'.*(conv|linear|lstm|attention).*1', false}}, {{'.*add.*', mode='static', optional=true}},
	{{'.*', 'int8', optional=true}}, {{'.*relu.*', 'int8'}}, {{'.*', weight='float32', optional=true}}, {{'.*norm.*', mode='static'}}, {{'.*add.*', 'int8'}},
	{function(node) return #node.name % 2 == 0 and 'int4/1' or nil end},
}

for name, make in pairs(models) do
	it('match reports what quantize does: ' .. name, function()
		tensor.seed(14)
		local made, x = (dofile(folder .. 'tutorials/models/' .. name .. '.lua')):eval(), make(2)
		local layers, all = graph.trace(made, x), graph.trace(made, x):calibrate({{x, x}}, {log=false})
		made:calibrate({{x, x}}, {log=false})
		local found = {}
		for i, rules in ipairs(lists) do
			for _, g in ipairs {layers, all} do
				for _, mode in ipairs {'static', 'dynamic', 'weight_only'} do
					local what = agree(('%s, rules %d, %s'):format(name, i, mode), g, rules, {mode=mode})
					found[what] = (found[what] or 0) + 1
				end
			end
		end
		assert(found['the same'] > 20, found['the same'])
	end)
end

-- SPDX-License-Identifier: MIT
-- Rotations of the vectors to which the blocks of a language model add (the residual stream): x R in place of x, with W R in layers that read it,
-- R' W in layers that write to it. Norms between have no gains then: these go into the layers after them. Which parts read and write the class
-- of a model says (`stream`, nn/modules).
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local hadamard = internal.import 'nn/quantize/hadamard'
local module = internal.import 'nn/base/module'
local methods, method = module.methods, module.method
local streams = {}

-- The streams within a model: {size=, tables=, readers=, writers=} each.
local function find(m)
	local list = {}
	module.walk(m, function(_, inner)
		local class = module.class_of(inner)
		local found = class.stream and class.stream(inner)
		if found and found.size then list[#list + 1] = found end
	end)
	return list
end

---------------------------------------------------------------- what stands against it

-- Calls each(module, field, axis) with all weights of a stream whose axis is that of its vectors.
local function each_weight(stream, each)
	for _, entry in ipairs(stream.tables) do each(entry[1], entry[2], 2) end
	for _, reader in ipairs(stream.readers) do
		for _, layer in ipairs(reader.layers) do each(layer, 'weight', 2) end
	end
	for _, layer in ipairs(stream.writers) do each(layer, 'weight', 1) end
end

-- The names of a model's modules.
local function names_of(m)
	local names = {}
	module.walk(m, function(name, inner) names[inner] = name == '' and 'model' or name end)
	return names
end

-- How many places of the stream have a tensor: the table and the head may share theirs.
local function places_of(stream)
	local count = {}
	for _, entry in ipairs(stream.tables) do count[rawget(entry[1], entry[2])] = true end
	return count
end

local function check_weights(stream, names, shared)
	local tables, why = places_of(stream), nil
	each_weight(stream, function(m, field, axis)
		local w, class, name = rawget(m, field), module.class_of(m), names[m]
		if not w or w:dim() ~= 2 or w:size(axis) ~= stream.size then
			why = why or ("wanted the weight of '%s' to have %d numbers along axis %d, got another"):format(name, stream.size, axis)
		elseif w:quantized() then
			why = why or ("wanted float weights, got codes in '%s'"):format(name)
		elseif shared[m] or shared[w] and not tables[w] then
			why = why or ("wanted '%s' in one place of the model, got several"):format(name)
		elseif class.columns and rawget(m, 'order') then
			why = why or ("wanted the inputs of '%s' in their order, got another"):format(name)
		end
	end)
	for _, layer in ipairs(stream.writers) do
		if rawget(layer, 'act') then why = why or ("wanted '%s' without activation, got '%s'"):format(names[layer], layer.act) end
	end
	return why
end

-- Whether all norms commute with rotations: 'length', 'mean', or nil and why not.
local function turns_of(stream, names, shared)
	local kind = 'length'
	for _, reader in ipairs(stream.readers) do
		local class = module.class_of(reader.norm)
		local own = class.turns and class.turns(reader.norm)
		if not own then return nil, ("wanted '%s' to be a norm of each vector (RMSNorm, LayerNorm), got %s"):format(names[reader.norm], class.name) end
		if shared[reader.norm] or shared[reader.norm.weight] then return nil, ("wanted '%s' in one place of the model, got several"):format(names[reader.norm]) end
		if own == 'mean' then kind = 'mean' end
	end
	return kind
end

-- Why a model's streams cannot be rotated; nil: they can.
function streams.refuses(m)
	local list, names, shared = find(m), names_of(m), module.shared(m)
	if #list == 0 then return 'wanted a language model whose blocks add to one vector after a norm (nn.Transformer), got none' end
	for _, stream in ipairs(list) do
		local kind, why = turns_of(stream, names, shared)
		if not kind then return why end
		why = check_weights(stream, names, shared)
		if why then return why end
		if hadamard.block(stream.size) < 4 then return ('wanted vectors of a size that 4 divides, got %d'):format(stream.size) end
	end
end

---------------------------------------------------------------- at work

local function put(m, field, value) module.set_tensor(m, field, value:to 'float32') end

local function real(m, field) return rawget(m, field):detach():to 'float64' end

-- What a norm adds goes through the layer: into its bias.
local function add_bias(layer, weight, beta)
	if beta:abs():max():item() == 0 then return end
	local sum = weight:matmul(beta)
	if rawget(layer, 'bias') then return put(layer, 'bias', real(layer, 'bias') + sum) end
	module.parameter(layer, 'bias', sum:to 'float32')
end

-- Gains and biases of the norm become part of the layers, and these read turned vectors.
local function turn_reader(reader, turn)
	local norm = reader.norm
	local gains, beta = real(norm, 'weight'), rawget(norm, 'bias') and real(norm, 'bias')
	for _, layer in ipairs(reader.layers) do
		local w = real(layer, 'weight')
		if beta then add_bias(layer, w, beta) end
		put(layer, 'weight', turn(w * gains:view(1, gains:nelem())))
	end
	put(norm, 'weight', tensor.ones(gains:nelem()):to(gains:device()))
	if beta then put(norm, 'bias', beta * 0) end
end

local function turn_writer(layer, turn)
	put(layer, 'weight', turn(real(layer, 'weight'):t()):t():contiguous())
	if rawget(layer, 'bias') then put(layer, 'bias', turn(real(layer, 'bias'))) end
end

-- Rotates all streams of a model; its function stays. Returns what the report says.
function streams.rotate(m, seed)
	local names, said = names_of(m), {}
	for i, stream in ipairs(find(m)) do
		local r = hadamard.rotation(stream.size, seed + i - 1, turns_of(stream, names, {}) == 'mean')
		for _, reader in ipairs(stream.readers) do turn_reader(reader, r.turn) end -- a shared head gets its own weight first
		for _, entry in ipairs(stream.tables) do put(entry[1], entry[2], r.turn(real(entry[1], entry[2]))) end
		for _, layer in ipairs(stream.writers) do turn_writer(layer, r.turn) end
		said[i] = ('rotated by Hadamard matrices of size %d%s'):format(r.block,
			r.block < stream.size and (', %d in the %d numbers of a vector'):format(stream.size // r.block, stream.size) or '')
	end
	return table.concat(said, '; ')
end

local options = method('rotate', 'm:rotate{seed=1}', [[Returns a copy of a language model (nn.Transformer, nn.load of its kinds) whose vectors between blocks are multiplied by a Hadamard matrix
with random signs, and all weights that read or write them turn back: the function stays up to rounding, and no channel of the inputs of
layers is much larger than the others. Gains of norms go into the layers after them, so a head that shared the embedding's weight gets its own.
m:quantize{method='rotate'} does it where it makes the quantized model better. No data is needed; calibrate afterwards.]],
	[[m = nn.Transformer{vocab=10, d=8, heads=2, layers=1, ff=16}
x = tensor{{1, 5, 3}, dtype='int32'}
print(m:rotate()(x):error(m(x)).max < 1e-5)  --> true]], {{'seed', 'integer', 'of the signs (default 1)'}})
function methods.rotate(m, o)
	module.parts_of(m, 'rotate')
	o = base.options(options, o)
	local new = m:clone()
	local why = streams.refuses(new)
	if why then base.fail('rotate: %s', why) end
	local _ <close> = internal.nograd()
	streams.rotate(new, o.seed or 1)
	return new
end

return streams

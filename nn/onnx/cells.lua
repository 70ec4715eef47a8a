-- SPDX-License-Identifier: MIT
-- Recurrent layers of ONNX step by step, for what nn.rnn, nn.gru and nn.lstm do not have: other activations, clip, peepholes and coupled
-- gates. x is (batch, steps, input).
local cells = {}

local MOST = 2048 -- steps

---------------------------------------------------------------- activations

-- The function and the defaults of its alpha and beta.
local FUNCTIONS = {
	relu = {function(x) return x:relu() end}, tanh = {function(x) return x:tanh() end}, sigmoid = {function(x) return x:sigmoid() end},
	softsign = {function(x) return x:softsign() end}, softplus = {function(x) return x:softplus() end},
	affine = {function(x, a, b) return x * a + b end, 1.0, 0.0}, scaledtanh = {function(x, a, b) return (x * b):tanh() * a end, 1.0, 1.0},
	hardsigmoid = {function(x, a, b) return (x * a + b):clamp(0, 1) end, 0.2, 0.5}, leakyrelu = {function(x, a) return x:leakyrelu(a) end, 0.01},
	elu = {function(x, a) return x:elu(a) end, 1.0}, thresholdedrelu = {function(x, a) return x:threshold(a, 0) end, 1.0},
}

-- The activations of each direction: {names = …, functions…}, plain if they are the defaults without clip. Numbers are taken in order by
-- the functions that have some.
function cells.activations(n, defaults, directions)
	local names, alphas, betas = n:attr 'activations', n:attr 'activation_alpha' or {}, n:attr 'activation_beta' or {}
	local clip, all, used_a, used_b = n:attr 'clip', {}, 0, 0
	if names and #names ~= #defaults * directions then n:fail('activations: wanted %d, got %d', #defaults * directions, #names) end
	for d = 1, directions do
		local list = {plain = not clip, names = {}}
		for i, default in ipairs(defaults) do
			local name = (names and names[(d - 1) * #defaults + i] or default):lower()
			local known = FUNCTIONS[name]
			if not known then n:fail("activations: wanted one of those of ONNX's recurrent layers, got '%s'", name) end
			local f, a, b = known[1], known[2], known[3]
			if a then used_a, a = used_a + 1, alphas[used_a + 1] or a end
			if b then used_b, b = used_b + 1, betas[used_b + 1] or b end
			list[i] = function(x) return f(clip and x:clamp(-clip, clip) or x, a, b) end
			list.names[i], list.plain = name, list.plain and name == default:lower()
		end
		all[d] = list
	end
	return all
end

---------------------------------------------------------------- steps

-- y and the last states of cell(gates of the step, states…) -> states, of which the first is the output. lens (batch, 1): a sequence
-- that has ended keeps its states and gives 0; backwards it begins at its end.
local function over_steps(n, x, states, lens, back, cell)
	local steps, ys = x:size(2), {}
	if steps < 1 or steps > MOST then n:fail('wanted 1 to %d steps with these options, got %d', MOST, steps) end
	for i = 1, steps do
		local t = back and steps - i + 1 or i
		local new = {cell(x:select(2, t), table.unpack(states))}
		ys[t] = new[1]
		if lens then
			local on = lens:ge(t)
			ys[t] = tensor.where(on, new[1], n:quietly(function() return tensor {0, dtype = x:dtype()} end))
			for k, state in ipairs(new) do new[k] = tensor.where(on, state, states[k]) end
		end
		states = new
	end
	return tensor.stack(ys, {axis = 2}), table.unpack(states)
end

-- Gate i of the last axis.
local function part(x, i, hidden) return x:narrow(x:dim(), (i - 1) * hidden + 1, hidden) end

local function linear(x, w, b)
	if b then return x:linear(w, b) end
	return x:linear(w)
end

---------------------------------------------------------------- cells

local split, made = {}, {}

function made.RNN(p, f)
	return function(x, h) return f[1](x + linear(h, p.r, p.rb)) end
end

-- Gates z r h.
function split.GRU(p, rows)
	p.gates, p.new = rows(p.r, 1, 2), rows(p.r, 3, 1)
	if p.rb then p.gates_b, p.new_b = rows(p.rb, 1, 2), rows(p.rb, 3, 1) end
end

function made.GRU(p, f, n)
	local hidden, late = p.hidden, n:attr('linear_before_reset', 0) ~= 0
	return function(x, h)
		local both = linear(h, p.gates, p.gates_b)
		local z, r = f[1](part(x, 1, hidden) + part(both, 1, hidden)), f[1](part(x, 2, hidden) + part(both, 2, hidden))
		local g = f[2](part(x, 3, hidden) + (late and r * linear(h, p.new, p.new_b) or linear(r * h, p.new, p.new_b)))
		return g - z * g + z * h
	end
end

-- Gates i o f c, peepholes i o f.
function split.LSTM(p, rows)
	if p.peepholes then p.seen = {rows(p.peepholes, 1, 1), rows(p.peepholes, 2, 1), rows(p.peepholes, 3, 1)} end
end

function made.LSTM(p, f, n)
	local hidden, coupled = p.hidden, n:attr('input_forget', 0) ~= 0
	local function gate(all, i, c)
		local x = part(all, i, hidden)
		return p.seen and x + c * p.seen[i] or x
	end
	return function(x, h, c)
		local all = x + linear(h, p.r, p.rb)
		local i = f[1](gate(all, 1, c))
		local forget = coupled and 1 - i or f[1](gate(all, 3, c))
		local cell = forget * c + i * f[2](part(all, 4, hidden))
		return f[1](gate(all, 2, cell)) * f[3](cell), cell
	end
end

-- The tensors of direction d of an op: given {w, r, b, peepholes, hidden}.
function cells.parameters(op, d, given)
	local p = {hidden = given.hidden, w = given.w:select(1, d), r = given.r:select(1, d), peepholes = given.peepholes and given.peepholes:select(1, d)}
	local function rows(x, first, count) return x:narrow(1, (first - 1) * p.hidden + 1, count * p.hidden) end
	if given.b then
		local both, count = given.b:select(1, d), p.w:size(1)
		p.wb, p.rb = both:narrow(1, 1, count), both:narrow(1, count + 1, count)
	end
	if split[op] then split[op](p, rows) end
	return p
end

-- That direction, with functions f: y (batch, steps, hidden) and the last states.
function cells.run(n, x, p, f, states, lens, back)
	return over_steps(n, linear(x, p.w, p.wb), states, lens, back, made[n.op](p, f, n))
end

return cells

-- SPDX-License-Identifier: MIT
-- quoll run --watch: which cells run again when the file changes, and that all is then as after a run from the top.
local internal = debug.getregistry()['quoll.internal']
local notebook, runner, rounds = internal.import 'interp/notebook/notebook', internal.import 'interp/notebook/run', internal.import 'interp/notebook/stale'

local path = os.tmpname() .. '.lua'

local function open(cells)
	local f = assert(io.open(path, 'w'))
	f:write('-- %%\n', table.concat(cells, '\n-- %%\n'), '\n')
	f:close()
	return notebook.open(path)
end

-- What the cells put out, in one text for each.
local function shown(nb)
	local list = {}
	for i, cell in ipairs(nb.cells) do
		local text = {}
		for _, o in ipairs(cell.outputs or {}) do
			text[#text + 1] = o.text or o.evalue or o.data['text/plain']
		end
		list[i] = table.concat(text, '|')
	end
	return (table.concat(list, '\n'):gsub("; did you mean '[^']*'%?", '')) -- of names that are nil by now, too
end

-- A notebook that is run and then saved in other states. w:save(cells) returns the numbers of the cells that ran.
local function watch(cells)
	local names, self = {}, setmetatable({}, {__close = function(w) w:close() end})
	for name in next, _G do names[name] = true end
	self.nb = open(cells)
	self.run = runner.new(self.nb, {quiet = true}):begin()
	self.run:all()
	function self:save(new)
		local nb, ran = open(new), {}
		local round = rounds.round(self.nb, nb)
		self.run:take(nb)
		local how, last = self.run:all(function(cell)
			local wanted = round:wants(cell)
			ran[#ran + 1] = wanted and cell.index or nil
			return wanted
		end)
		round:finish(how == 'failed' and last or nil)
		self.nb = nb
		return table.concat(ran, ' ')
	end
	function self.close()
		for name in next, _G do if not names[name] then _G[name] = nil end end
		for name in pairs(internal.locals()) do internal.forget_local(name) end
	end
	return self
end

local function from_the_top(cells)
	local w <close> = watch(cells)
	return shown(w.nb)
end

-- Each later state must run just the cells of `wanted`, and show what a run from the top shows.
local function check(states, wanted)
	local texts = {}
	do
		local w <close> = watch(states[1])
		for i = 2, #states do
			local ran = w:save(states[i])
			texts[i] = shown(w.nb)
			assert(ran == wanted[i - 1], ('state %d: ran %s, wanted %s'):format(i, ran, wanted[i - 1]))
		end
	end
	for i = 2, #states do
		local top = from_the_top(states[i])
		assert(texts[i] == top, ('state %d: %s\nfrom the top: %s'):format(i, texts[i], top))
	end
end

it('runs what changed and what read it', function()
	check({{'a = 1', 'b = a + 1', 'print(7)', 'b'}, {'a = 5', 'b = a + 1', 'print(7)', 'b'}}, {'1 2 4'})
	check({{'a = 1', 'b = a + 1', 'b'}, {'a = 1 -- note', 'b = a + 1', 'b'}}, {'1'})
	check({{'a = 1', 'b = a % 2', 'b'}, {'a = 3', 'b = a % 2', 'b'}}, {'1 2'})
	check({{'a = 1', 'a'}, {'a = 1', 'a', 'a * 2'}, {'a = 1', 'a * 2'}}, {'3', ''})
	check({{'a = 1', 'a'}, {'a = 1', '-- only words', 'a'}}, {''})
end)
it('follows functions, locals and changes in place', function()
	check({{'local k = 2', 'local function f(x) return k * x end', 'f(3)', 'k + 1'}, {'local k = 4', 'local function f(x) return k * x end', 'f(3)', 'k + 1'}},
		{'1 2 3 4'})
	check({{'function f(x) return 2 * x end', 'g = f', 'function h() return g(4) end', 'h()', '1'},
		{'function f(x) return 3 * x end', 'g = f', 'function h() return g(4) end', 'h()', '1'}}, {'1 2 4'})
	check({{'x = tensor{1, 2}', 'x:mul_(2);', 'x', '1'}, {'x = tensor{1, 2}', 'x:mul_(3);', 'x', '1'}}, {'1 2 3'})
	check({{'x = tensor{1, 2}', 'x:mul_(2);', 'x'}, {'x = tensor{1, 2}', 'x'}}, {'1 2'})
	check({{'t = {1}', 't[2] = 5', '#t'}, {'t = {1}', 't[3] = 5', 't[2], t[3]'}}, {'1 2 3'})
end)
it('is as from the top when a cell is gone, moved or overwrites', function()
	check({{'a = 1', 'a = 2', 'a', 'a = 5', 'a'}, {'a = 1', 'a', 'a = 5', 'a'}}, {'1 2 3'})
	check({{'a = 1', 'a', 'a = 3', 'a'}, {'a = 7', 'a', 'a = 3', 'a'}}, {'1 2 3'})
	check({{'a = 1', 'b = 2', 'a, b'}, {'a = 1', 'a, b'}}, {'2'})
	check({{'a = 1', 'a = a + 1', 'a'}, {'a = 1', 'a = a + 2', 'a'}}, {'1 2 3'})
	check({{'n = 1', 'print(n)', 'n = 2', 'print(n)'}, {'n = 2', 'print(n)', 'n = 1', 'print(n)'}}, {'1 3 4'})
	check({{'a = 1', 'c = 4', 'a = 2', 'a'}, {'a = 1', 'c = 4', 'a = 3', 'a'}}, {'3 4'})
end)
it('goes on behind a cell that failed', function()
	check({{'a = 1', 'b = a', 'print(b)', 'print(a)'}, {'a = 2', 'b = a + nothing', 'print(b)', 'print(a)'},
		{'a = 2', 'b = a * 2', 'print(b)', 'print(a)'}}, {'1 2', '2 3 4'})
	check({{'t = {}', 't.n = 1', 't.n'}, {'t = {}', 't.n = 3 error "x"', 't.n'}, {'t = {}', 't.m = 3', 't.n'}}, {'1 2', '1 2 3'})
end)
it('draws the random numbers of a run from the top', function()
	check({{'tensor.seed(3)', 'x = tensor.rand(2)', 'y = tensor.rand(2)', 'y'}, {'tensor.seed(3)', 'x = tensor.rand(2)', 'y = tensor.rand(2) * 2', 'y'}},
		{'3 4'})
	check({{'tensor.seed(3)', 'x = tensor.rand(2)', 'x'}, {'tensor.seed(4)', 'x = tensor.rand(2)', 'x'}}, {'1 2 3'})
end)
it('is as from the top after 300 changes by chance', function()
	local state = 12345
	local function random(n)
		state = (state * 1103515245 + 12345) & 0x7fffffff
		return (state >> 8) % n + 1
	end
	local pieces = {'a = 1', 'a = 2', 'b = a', 'b = (b or 0) + 1', 'c = {a, b}', 'c[1] = b', 'x = tensor{1, 2}', 'x:add_(a or 1);', 'print(a, b)',
		'print(x)', 'print(#c, c[1])', 'function f() return a end', 'b = f()', 'local l = b', 'l = a', 'print(l)', 'print(1)', 'b = a or error "no a"',
		'a = nil', 'x = x * 2', 'for i = 1, 2 do b = i end'}
	local function changed(cells)
		local new, what = table.move(cells, 1, #cells, 1, {}), random(3)
		if what == 1 and #new > 3 then
			table.remove(new, random(#new))
		elseif what == 2 and #new < 10 then
			table.insert(new, random(#new), pieces[random(#pieces)])
		else
			new[random(#new)] = pieces[random(#pieces)]
		end
		return new
	end
	local cells = {}
	for i = 1, 6 do cells[i] = pieces[random(#pieces)] end
	for trial = 1, 30 do
		local states = {}
		do
			local w <close> = watch(cells)
			for step = 1, 10 do
				cells = changed(cells)
				local ran = w:save(cells)
				states[step] = {cells, shown(w.nb), ran}
			end
		end
		for i, s in ipairs(states) do
			local top = from_the_top(s[1])
			if s[2] ~= top then for k = 1, i do print(k, table.concat(states[k][1], ' / '), states[k][3]) end end
			assert(s[2] == top, ('trial %d, state %d:\n%s\nshown:\n%s\nfrom the top:\n%s'):format(trial, i,
				table.concat(s[1], '\n'), s[2], top))
		end
	end
end)
os.remove(path)
it('reads cells in which lines are no Lua', function()
	check({{'a = 1', '!true\nb = a\n!true\nc = a * 2', 'b + c', 'print(7)'}, {'a = 5', '!true\nb = a\n!true\nc = a * 2', 'b + c', 'print(7)'}}, {'1 2 3'})
	check({{'a = 1', 'b = 2\n!true\nlocal k = a', 'k', 'b'}, {'a = 5', 'b = 2\n!true\nlocal k = a', 'k', 'b'}}, {'1 2 3'})
	check({{'a, d = 1, 1', "!echo it's >/dev/null\nb = a", 'd', 'b'}, {'a, d = 2, 1', "!echo it's >/dev/null\nb = a", 'd', 'b'}}, {'1 2 4'})
	check({{'a = 1', '-- %set precision 3\nb = a', 'b'}, {'a = 4', '-- %set precision 3\nb = a', 'b'}}, {'1 2 3'})
end)

-- SPDX-License-Identifier: MIT
-- %% [markdown]
-- # 0  The prompt
--
-- `./quoll` starts the prompt. This page is a tour: each cell below passes a few inputs to a fresh prompt and shows what a user
-- would see. Try them in a prompt of your own; `%magics` lists the commands that begin with `%`, `help` explains the rest, Ctrl-D
-- exits.

-- %%
-- Runs the inputs in a fresh prompt and prints the session as it appears on a terminal. Input from a pipe is not echoed, so the
-- inputs are inserted after their prompts. `session` is the last session.
session = ''
function show(inputs, arguments)
	local name = os.tmpname()
	local file = assert(io.open(name, 'w'))
	file:write(table.concat(inputs, '\n'), '\n')
	file:close()
	local pipe = io.popen(('"/proc/$PPID/exe" %s --plot text -i <%s 2>&1'):format(arguments or '', name))
	local text, n, parts, at = pipe:read 'a':gsub('   %.%.%.: ', ''), 0, {}, 1
	pipe:close()
	os.remove(name)
	local restored = text:match '^.-nothing was run[^\n]*\n()'
	if restored then parts[1], at = text:sub(1, restored - 1), restored end
	while true do
		local from, to = text:find('In %[%d+%]: ', at)
		local first, last = text:find('debug: ', at, true)
		if first and (not from or first < from) then from, to = first, last end
		if not from then break end
		n = n + 1
		parts[#parts + 1] = text:sub(at, to) .. (inputs[n] and inputs[n]:gsub('\n', '\n   ...: ') .. '\n' or '')
		at = to + 1
	end
	parts[#parts + 1] = text:sub(at)
	text = table.concat(parts):gsub('In %[%d+%]: $', '')
	session = text
	print(text)
end

-- %% [markdown]
-- ## Values and earlier results
--
-- The value of an input is printed and stored in `Out[n]` and `_`; a `;` at the end suppresses the output. `local` variables persist
-- between inputs, as real locals that closures share. `In` and `Out` are bounded, and large tensors stay in `Out` only while
-- something else references them.

-- %%
show {
	'6 * 7',
	'_ + 1',
	'local n = 0 function count() n = n + 1 return n end',
	'count() count()',
	'n',
	'tensor.randn(3, 4);',
	'Out[1] + Out[2]',
}
assert(session:find 'Out%[5%]: 2\n' and session:find 'Out%[7%]: 85\n')

-- %% [markdown]
-- ## Help
--
-- `?name` explains a name, `??name` adds the source of functions written in Lua, `?*part*` searches names and descriptions. For a
-- misspelled name the closest existing one is suggested, everywhere.

-- %%
show {'?x:clamp', '?*sensitiv*', 'tesnor{1, 2}', 'tensor{1, 2}:quantise "int8"', "tensor{1, 2}:quantize 'int9'", '%tiem 1 + 1'}
assert(session:find "did you mean 'tensor'" and session:find "did you mean 'quantize'" and session:find "did you mean 'time'")

-- %% [markdown]
-- ## The cost of an input, and the path that it took
--
-- Ops that fell back from integers to floats are reported below the input; `%explain` says which, why, and which kernels the others
-- used. `%time` runs code once, `%bench` many times and returns a report, which is a value like any other.

-- %%
show {
	"q = tensor.randn(256, 256):quantize 'int8/1'",
	'y = q:matmul(q:t():contiguous()) z = (q + 1):exp();',
	'%explain',
	'%time q:dequantize():sum();',
	'%set footer on',
	'w = tensor.zeros(1000, 1000)',
}
assert(session:find 'fell back to float32; %%explain' and session:find 'gemm_' and session:find ' %+3.8 MiB at the peak')

-- %% [markdown]
-- ## Stale inputs
--
-- The prompt tracks the values that each input reads, also through the functions that it calls. When one of these values changes (a
-- tensor in place, a field of a table, a model in training), the input becomes stale; `%run stale` runs such inputs again under
-- their numbers.

-- %%
show {
	'x = tensor{1, 2, 3}',
	'function energy() return (x * x):sum():item() end',
	'e = energy()',
	'x:mul_(10);',
	'%stale',
	'%run stale',
	'e',
	'%stale',
}
assert(session:find 'In%[3%] read x, changed by In%[4%]' and session:find 'Out%[7%]: 1400.0' and session:find 'nothing is stale')

-- %% [markdown]
-- ## Errors
--
-- A traceback shows the line, and every tensor and model in the failing expression with shape, dtype and quantization. `%debug`
-- inspects the failed call: the variables of each frame are available, `up` and `down` change the frame, and any expression is
-- evaluated in the context of the error.

-- %%
show {
	'net = {layers = {{w = tensor.ones(4, 3)}, {w = tensor.ones(5, 5)}}}',
	'function forward(v)\n  for i = 1, 2 do v = v:matmul(net.layers[i].w) end\n  return v\nend',
	'forward(tensor.ones(2, 4))',
}
assert(session:find 'net.layers%[i%]%.w = float32%(5, 5%)' and session:find 'v = float32%(2, 3%)')

-- %%
show {'function f(a) local b = a:sum(1) error "stop" end', 'f(tensor.ones(2, 2))', '%debug', 'vars', 'b * 2', 'up', 'quit', "'back'"}
assert(session:find 'a +float32%(2, 2%)' and session:find 'Out%[4%]: "back"')

-- %% [markdown]
-- ## Running inputs again, and saving them
--
-- `%run 3`, `%run 2-5`, `%run above` and `%run file.lua` run inputs or files, `%edit` opens an input in $EDITOR and runs the result,
-- `%history -f notes.lua` writes the inputs as a notebook, which is also a script.

-- %%
notes = os.tmpname()
show {'total = 0', 'total = total + 21', '%run 2', 'total', '%history -n 2', '%history -f ' .. notes, '%run ' .. notes, 'total'}
assert(session:find 'Out%[4%]: 42')
os.remove(notes)

-- %% [markdown]
-- ## Saving variables
--
-- `%save file` writes all variables (or the named ones) to one .safetensors file: tensors with their quantization, models,
-- optimizers, tables including shared references, strings and numbers. Variables that cannot be saved are listed. `%load` restores
-- them and executes nothing from the file.

-- %%
kept = os.tmpname() .. '.safetensors'
show {
	"m = nn.Sequential{nn.Linear(3, 2), nn.ReLU()} q = tensor{1, 2}:quantize 'int8' notes = {tries = {1, 2.5}} function f() end",
	'%save ' .. kept,
	'm, q, notes = nil',
	'%load ' .. kept,
	'q:dtype(), notes.tries[2], #m:parameters()',
}
assert(session:find 'not kept: f %(a function%)' and session:find 'Out%[5%]: "int8"\t2.5\t2')
os.remove(kept)
os.remove((kept:gsub('%.safetensors$', '')))

-- %% [markdown]
-- ## Recovery after a crash
--
-- On a terminal every input and its output is on disk before the next prompt appears. After a crash, a closed window or `kill -9`,
-- `quoll --restore` shows the session and puts its inputs into `In`; nothing runs until you enter `%run above`. In this cell the
-- journal is named explicitly, and the prompt kills itself.

-- %%
journal = os.tmpname()
os.remove(journal)
show({'x = 41', 'x + 1', 'os.execute "kill -9 $PPID"'}, '--journal ' .. journal)
show({'In[2]', '%run 1-2', 'x'}, '--restore ' .. journal .. ' --journal none')
assert(session:find 'nothing was run' and session:find 'Out%[6%]: 41')
os.remove(journal)

-- %% [markdown]
-- ## Settings
--
-- `%set` lists the settings of the prompt, `%set name value` changes one, `--save` keeps it for later sessions.

-- %%
show {'%set precision 2', 'tensor{1 / 3, 2 / 3}', '%set plot text', "plot.line{{1, 4, 9, 16}, title='squares'}", '%set plto none'}
assert(session:find '0.33  0.67' and session:find 'squares' and session:find "did you mean 'plot'")

-- %% [markdown]
-- Figures appear in the terminal itself if it supports kitty, iTerm2 or sixel graphics, otherwise as text.
-- Next: `01_first_steps.lua`.

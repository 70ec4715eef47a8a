-- SPDX-License-Identifier: MIT
-- %%set, and what the settings do.
local prompt = dofile 'tests/tools/prompt.lua'
local session, check, has = prompt.session, prompt.check, prompt.has

it('%set lists, shows and changes', function()
	has('%set', 'colours', 'editing_mode', 'footer', 'plot', 'precision', 'stale', 'width')
	has('%set precision', 'precision     4        0 to 16')
	check('%set precision 2\ntensor{1.23456}', 'Out[2]: float32(1)  1.23\n')
	check('%set precision=7\ntensor{0.5}', 'Out[2]: float32(1)  0.5000000\n')
	check('%set width 20\n{"aaaaaaaa", "bbbbbbbb"}', 'Out[2]:\n{\n  "aaaaaaaa",\n  "bbbbbbbb"\n}\n')
end)

it('wrong names and values are errors that suggest', function()
	check('%set precison 2', "set: no setting 'precison'; did you mean 'precision'?\n")
	check('%set precision 99', "set: precision: wanted an integer from 0 to 16, got '99'\n")
	check('%set precision x', "set: precision: wanted an integer from 0 to 16, got 'x'\n")
	check('%set width 5', "set: width: wanted an integer from 0 to 1000, got '5'\n")
	check('%set footer onn', "set: footer: wanted one of auto on off, got 'onn'; did you mean 'on'?\n")
	check('%set a b c', 'set: wanted a name and a value, got 3 words\n')
end)

it('footer: on shows time and bytes, off not even fallbacks', function()
	local out = session '%set footer on\nx = tensor.zeros(1024)'
	assert(out:find '\n?%d+%.%d+ %ws, tensors %+%d+%.%d KiB at the peak\n$', out)
	check("%set footer off\nq = tensor{1, 2}:quantize 'int8'\n(q + 1);", '')
	has("q = tensor{1, 2}:quantize 'int8'\n(q + 1);", '1 op fell back to float32; %explain shows why')
end)

it('plot: text, none; the environment is followed', function()
	local text = session '%set plot text\nplot.line{{1, 4, 9}, title="squares"}'
	assert(text:find 'squares', text)
	local none = session '%set plot none\nplot.line{{1, 4, 9}, title="squares"}'
	assert(not none:find 'squares\n', none)
	check('os.getenv "QUOLL_PLOT"\n%set plot kitty\nos.getenv "QUOLL_PLOT"\n%set plot auto\nos.getenv "QUOLL_PLOT"',
		'Out[1]: "text"\nOut[3]: "kitty"\nOut[5]: ""\n', '--plot text')
end)

it('--save keeps them in a file that a terminal reads; see tests/interp/repl/editing.c', function()
	local folder = os.tmpname()
	os.remove(folder)
	check('%set precision 2 --save\n%set --save', ('saved in %s/quoll/settings\n'):format(folder):rep(2), nil,
		'export XDG_CONFIG_HOME=' .. folder .. ';')
	local file = io.open(folder .. '/quoll/settings')
	assert(file:read 'a' == '# Settings of the prompt: %set name value --save writes them, %set lists them.\nprecision 2\n')
	file:close()
	os.execute('rm -r ' .. folder)
end)

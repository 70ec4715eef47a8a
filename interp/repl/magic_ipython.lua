-- SPDX-License-Identifier: MIT
-- Words that users of IPython type: what to use here instead; and %reset, which is the same.
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local magics = {}

local ANSWERS = {
	alias = 'make a function of Lua, or !command', autocall = 'f{…} and f "…" need no brackets in Lua',
	automagic = 'a word of the prompt always begins with %',
	autoreload = "package.loaded['name'] = nil, then require 'name'; %run file.lua",
	capture = 'the output of a cell is kept with the notebook; io.write and print can be replaced',
	clear = 'Ctrl-L clears the screen', cls = 'Ctrl-L clears the screen', colors = '%set colours on, off or auto',
	conda = '!conda …', config = '%set lists the settings',
	cpaste = 'paste into the prompt: a paste of several lines is one input, and prompts in it are cut off',
	del = '%forget name', doctest_mode = 'nothing to switch: prompts >>> in a paste are cut off',
	env = "os.getenv 'NAME'; !env", file = 'io.open; %history -f file keeps the inputs',
	html = 'a [markdown] cell holds text; quoll run nb.lua --html out.html',
	javascript = 'an exported notebook holds no script',
	latex = 'formulas are written between $ signs in a [markdown] cell',
	load_ext = 'nothing is to be loaded: plot, sweep, bench and the rest are there',
	logstart = 'every session is recorded: %journal', lsmagic = '%magics', magic = '%magics',
	matplotlib = "nothing to switch on: plot.line(x) draws in the terminal (%set plot …) and in Jupyter",
	memit = '%time reports the memory of tensors, %bench its peak',
	notebook = '%history -f file.lua writes a notebook of the inputs',
	page = '?name and values are printed whole; the terminal scrolls',
	paste = 'paste into the prompt: a paste of several lines is one input, and prompts in it are cut off',
	pastebin = '%history -f file',
	pdb = '%debug after an error looks at its variables; nothing is to be switched on',
	pdef = '?name shows how a function is called', pdoc = '?name', pfile = '??name', pinfo = '?name',
	pinfo2 = '??name', pip = 'luarocks: !luarocks install …', precision = '%set precision 6',
	profile = '%explain reports ops and kernels, %time time and memory, %bench the spread',
	prun = '%explain reports ops and kernels, %time time and memory, quant.log() counts ops by kernel',
	psearch = '?*part*', psource = '??name', pycat = '!cat file', pylab = 'plot, tensor and quant are there',
	python = '!python3 file.py', quickref = "%magics; help 'prompt'", recall = '%run 3, or the arrow up',
	rehashx = '!command finds all programs', rep = '%run 3, or the arrow up',
	rerun = '%run 3, %run 3-5, %run above', reset_selective = '%forget name ...', script = '%%sh or %%bash',
	store = '%save file, %load file', system = '!command', sx = '!command',
	tb = 'the traceback is printed below the error; %debug shows its variables',
	unload_ext = 'nothing is to be unloaded', whos = '%who', who_ls = '%who',
	writefile = "io.open(name, 'w'):write(text):close()", xdel = '%forget name',
	xmode = 'tracebacks always show the tensors of the failing line; %debug looks around',
}

-- What to use in place of a word of IPython, or nil.
function magics.answer(word)
	return ANSWERS[word]
end

local function variables()
	local globals, locals = {}, {}
	for name in next, _G do
		if type(name) == 'string' and not base.is_given(name) then globals[#globals + 1] = name end
	end
	for name in pairs(internal.locals()) do locals[#locals + 1] = name end
	return globals, locals
end

function magics.reset(text)
	local word = text:match '^%s*(.-)%s*;?%s*$'
	local globals, locals = variables()
	local n = #globals + #locals
	if word ~= '' and word ~= '-f' then error(("reset: wanted -f or nothing, got '%s'"):format(word), 0) end
	if word == '' then
		print(('%%reset -f drops %d variable%s and all of Out; %%forget name drops one'):format(n, n == 1 and '' or 's'))
		return
	end
	for _, name in ipairs(globals) do rawset(_G, name, internal.baseline[name]) end -- of the start, where there was one
	for _, name in ipairs(locals) do internal.forget_local(name) end
	for key in pairs(type(Out) == 'table' and Out or {}) do Out[key] = nil end
	rawset(_G, '_', nil)
	internal.postmortem = nil
	internal.import 'interp/input/stale'.begin() -- what earlier inputs read is gone, and no reason to run them again
	collectgarbage()
	print(('%d variable%s dropped'):format(n, n == 1 and '' or 's'))
end

return magics

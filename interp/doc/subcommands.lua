-- SPDX-License-Identifier: MIT
-- What the subcommands of the program take: the one table behind `quoll NAME --help`, unknown options, and the completions
-- of shells. An entry:
--   name       'run', 'sweep report'
--   usage      one line or several after `quoll`
--   text       what it does
--   options    list of {name, argument or nil, text, values}: values are words separated by blanks, or 'FILE'
--   example    lines of a shell
--   files      what its arguments are: 'FILE'; else their words
--   passes     options that it does not know are for the script
local _, internal = ...
local base = internal.import 'interp/prelude/base'
local subcommands = {}

local LEVELS = 'ref avx2 avxvnni avx512vnni amx native'

local list = {
	{name = 'run', usage = 'run notebook [options] [-- argument...]', files = 'FILE', text = [[
Runs the cells of a notebook in their order, each as an input of the prompt: locals live on, the value of a last expression is
shown. A notebook is a Lua file whose comments `-- %%` cut it into cells, or a Jupyter notebook (.ipynb). In a cell `-- %word` (or
`%word`, then the file is no Lua) is that word of the prompt, help 'magics'; !command runs in the shell. The first error ends
the run with exit code 1, unless the cell has the tag `raises`: it must fail then (`raises-exception`: it may). Jupyter knows the
second one only, so it is written beside the first in an .ipynb. Cells with the tag `skip` do not run. What was shown is kept in a side file, nb.out.json. What stands behind -- is what the cells see in arg[1] and
so on.]],
		options = {{'--html', 'F', 'writes the notebook with its outputs as one page; also when an error ended the run', 'FILE'},
			{'--ipynb', 'F', 'the same as a Jupyter notebook; figures as PNG, once, since front ends show no SVG of a notebook that is not trusted', 'FILE'}, {'--md', 'F', 'the same as Markdown', 'FILE'},
			{'--param', 'name=value', 'sets a variable after the cell with the tag `parameters`, which must assign it; may be repeated. The value gets the type that it has there: number, true or false, text'},
			{'--watch', nil, 'goes on: whenever the file is saved, the cells that changed run again, and those whose variables are not as they left or read them, so that all is as after a run from the top; Ctrl-C ends it'},
			{'--cached', nil, 'shows the kept outputs without running, when no cell (and no parameter) has changed since; else runs all. Files that cells read are not looked at'},
			{'--out', 'F', 'the side file; --out - keeps none', 'FILE'}},
		example = 'quoll run nb.lua --html nb.html --param epochs=3'},
	{name = 'convert', usage = 'convert from to', files = 'FILE', options = {}, text = [[
Converts a notebook by the endings of the names: from .lua (with `-- %%`) or .ipynb to .lua, .ipynb, .html or .md. Nothing
is run. Outputs come from the side file of a .lua notebook, nb.out.json, as far as they belong to the text that is there now,
or from the .ipynb, and go to the side file of a .lua.]], example = 'quoll convert nb.ipynb nb.lua'},
	{name = 'test', usage = 'test FILE_OR_FOLDER … [--kernel NAME] [-- ARGUMENT …]', files = 'FILE', text = [[
Runs Lua files and compares what they print with their --> lines; arguments behind -- are those of the files.
A notebook, a Lua file with `-- %%` lines or an .ipynb, runs cell by cell, as with `quoll run`: the tags skip and raises
hold, %words and !commands run, the value that a cell shows is compared, too. A file with it(…) is a plain test.
Of a folder, the Lua files and the notebooks below it are taken, an .ipynb beside the .lua of its name not.
A file whose name begins with '-' is written ./-name. Exit code 1 when a test failed.]],
		options = {{'--kernel', 'NAME', 'the fastest kernels that the files may use: ' .. LEVELS, LEVELS}},
		example = 'quoll test tests/mine.lua --kernel avx2'},
	{name = 'sweep', files = 'FILE', passes = true, usage = [==[
sweep file.lua [name=value,value …] [options]
sweep report FILE [options]
sweep merge [--into FILE] FILE…
sweep diff A B [options]]==], text = [[
Runs a batch experiment: the trials of a script that calls sweep.run. name=value,value … chooses among the parameters. The same
command again does only what is missing. Options that it does not know are for the script. quoll sweep report --help, merge
--help and diff --help tell what they take; quoll -e "help 'sweep'" tells more.]],
		options = {{'--jobs', 'N', 'trials that run at the same time (default 1; timings need 1)'}, {'--retry', 'N', 'how often a trial that fails is tried again'},
			{'--timeout', '10m', 'limit for one trial: seconds, or with s m h d'}, {'--memory', '2G', 'limit for one trial: MiB, or with M G'},
			{'--device', 'NAMES', 'where trials make their tensors: cuda, or cuda:0,cuda:1 for jobs in turn'},
			{'--fail-fast', nil, 'ends the sweep with the first trial that fails'}, {'--keep-going', nil, 'continues after failures, whatever the script says'},
			{'--force', nil, 'runs again what is done'}, {'--dry-run', nil, 'only lists the trials'},
			{'--shard', 'i/n', 'only the i-th of n parts, in a results file of its own'}, {'--db', 'FILE', 'the results file', 'FILE'},
			{'--seeds', 'N', 'how many seeds for each configuration'}},
		example = 'quoll sweep scripts/ptq.lua model=mlp bits=8,4 --jobs 2'},
	{name = 'sweep report', usage = 'sweep report FILE [options]', files = 'FILE', text = [[
Shows the results of a sweep as a table, with the trials that no other beats in both columns (the Pareto front) marked, or writes it.
The rows are the finished trials of the script as it was when the sweep last ran; a note counts those of earlier versions.]],
		options = {{'--study', 'NAME', 'which study of a file with several'}, {'--html', 'FILE', 'writes a page with the table and the plot', 'FILE'},
			{'--csv', 'FILE', 'writes the rows', 'FILE'}, {'--md', 'FILE', 'writes the table as Markdown', 'FILE'},
			{'--x', 'COLUMN', 'what is on the x axis, less is better'}, {'--y', 'COLUMN', 'what is on the y axis'},
			{'--env', nil, 'also machine, version, load and so on of each trial'}, {'--all', nil, 'also trials of earlier versions of the script'}},
		example = 'quoll sweep report scripts/ptq.db --html ptq.html --x bytes --y value'},
	{name = 'sweep merge', usage = 'sweep merge [--into FILE] FILE…', files = 'FILE', text = [[
Joins results files, as those of the shards of a sweep. A trial that differs between two files is a conflict: it is named, and the
exit code is 1.]],
		options = {{'--into', 'FILE', 'the file to write to (default: that of the shards, without the number)', 'FILE'}},
		example = 'quoll sweep merge ptq.1of2.db ptq.2of2.db'},
	{name = 'sweep diff', usage = 'sweep diff A B [options]', files = 'FILE', text = [[
Compares two results files, trial by trial: differences of the metrics, with confidence intervals over the seeds.]],
		options = {{'--study', 'NAME', 'which study of files with several'}, {'--level', '0.95', 'of the intervals'}},
		example = 'quoll sweep diff old.db new.db --level 0.99'},
	{name = 'doc', usage = 'doc [form] [file]', files = 'FILE', text = [[
Writes what help knows to the file, or to stdout. Without a form it follows from the ending of the name (.html .md .1 .lua); else it
is --md. For the language server, .luarc.json: {"workspace.library": ["quoll.lua"], "runtime.version": "Lua 5.4"}]],
		options = {{'--html', nil, 'the reference manual as one page'}, {'--md', nil, 'the reference manual in Markdown'},
			{'--man', nil, 'the manual page of the program, for man'},
			{'--luals', nil, 'definitions for the Lua language server: completion, types and texts in editors'},
			{'--luacheck', nil, 'a .luacheckrc that knows the globals of Quoll'}, {'--bash', nil, 'completion of the command line, to be sourced'},
			{'--zsh', nil, 'the same for zsh'}, {'--fish', nil, 'the same for fish'}},
		example = 'quoll doc --bash >~/.local/share/bash-completion/completions/quoll'},
	{name = 'bench', usage = [==[
bench [ROW …] [options]
bench kernels [options]]==], files = "limits float32 int8 'int8 dynamic' 'int4 dynamic' 'int4 weights' 'conv float32' 'conv int8' quantize dequantize elementwise kernels", text = [[
Measures what this machine does at most (multiply-adds, memory, caches) and Quoll's share of it for each family of kernels and size; ROW names families,
all without one. Takes up to a minute, on a machine that does nothing else. kernels: every kernel beside the portable one, on one thread.
In Lua: bench.machine, bench.kernels; quoll -e "help 'bench.machine'" explains the columns.]],
		options = {{'--threads', 'N,M', 'numbers of threads (default: one for each core)'}, {'--time', 'S', 'seconds for everything (default 60); with kernels for each of them (default 0.02)'},
			{'--out', 'FILE', 'also writes the report: .csv .json .md .html', 'FILE'}, {'--json', 'FILE', 'the same as JSON', 'FILE'},
			{'--plot', 'FILE', 'draws the shares as bars: .png .svg .pdf', 'FILE'}},
		example = 'quoll bench limits int8 --threads 1,2 --json bench.json --plot bench.svg'},
	{name = 'doctor', usage = 'doctor', options = {}, files = '', text = [[
Tells what was found on this machine and why not: processor, kernels, plots, Jupyter, GPU, data. Exit code 1 when something is wrong.]],
		example = 'quoll doctor'},
	{name = 'kernel', usage = [==[
kernel FILE
kernel install [options]
kernel uninstall [options]]==], files = 'install uninstall', text = [[
Runs as a Jupyter kernel; FILE is the connection file that Jupyter writes. install registers it with Jupyter.]],
		options = {}, example = 'quoll kernel install --user'},
	{name = 'kernel install', usage = 'kernel install [options]', files = '', text = 'Writes the kernel specification that makes Jupyter offer Quoll.',
		options = {{'--user', nil, 'for this user (the default)'}, {'--prefix', 'DIR', 'below DIR/share/jupyter', 'FILE'},
			{'--name', 'NAME', 'what the kernel is called (default quoll)'}}, example = 'quoll kernel install --prefix ~/venv'},
	{name = 'kernel uninstall', usage = 'kernel uninstall [options]', files = '', text = 'Removes the kernel specification.',
		options = {{'--user', nil, 'for this user (the default)'}, {'--prefix', 'DIR', 'below DIR/share/jupyter', 'FILE'},
			{'--name', 'NAME', 'what the kernel is called (default quoll)'}}, example = 'quoll kernel uninstall'},
}
subcommands.list = list

for _, entry in ipairs(list) do
	subcommands[entry.name] = entry
	entry.options[#entry.options + 1] = {'--help', nil, 'this text'}
end

-- Commands of two words, as 'report merge diff' of sweep.
function subcommands.below(name)
	local words = {}
	for _, entry in ipairs(list) do words[#words + 1] = entry.name:match('^' .. name .. ' (%S+)$') end
	return words
end

---------------------------------------------------------------- --help

function subcommands.usage(name)
	local lines = {}
	for line in subcommands[name].usage:gmatch '[^\n]+' do
		lines[#lines + 1] = (#lines == 0 and 'usage: quoll ' or '       quoll ') .. line
	end
	return table.concat(lines, '\n')
end

function subcommands.help(name)
	local entry, out, width = subcommands[name], {subcommands.usage(name), ''}, 0
	base.wrap(out, entry.text, '', 100)
	out[#out + 1] = ''
	for _, o in ipairs(entry.options) do width = math.max(width, #o[1] + #(o[2] or '') + 1) end
	for _, o in ipairs(entry.options) do
		local first = #out + 1
		base.wrap(out, o[3], (' '):rep(width + 4), 100)
		out[first] = ('  %-' .. width .. 's  %s'):format(o[1] .. (o[2] and ' ' .. o[2] or ''), out[first]:sub(width + 5))
	end
	table.move({'', 'example:', '  ' .. entry.example}, 1, 3, #out + 1, out)
	return table.concat(out, '\n')
end

---------------------------------------------------------------- what was typed

local function option_of(entry, word)
	for _, o in ipairs(entry.options) do
		if o[1] == word:match '^[^=]+' then return o end
	end
end

local function unknown(entry, word)
	local names = {}
	for _, o in ipairs(entry.options) do names[#names + 1] = o[1] end
	io.stderr:write(('quoll: %s: %s: no such option%s (quoll %s --help lists them)\n'):format(entry.name, word,
		base.near(word:match '^[^=]+', names), entry.name))
	return 2
end

-- Arguments of the command before it runs, its name first: the exit code when they ask for help or hold an option that there is
-- not, else nil. What is after -- is none of ours.
function subcommands.check(arguments)
	local entry = subcommands[arguments[1] .. ' ' .. (arguments[2] or '')]
	local i = entry and 3 or 2
	entry = entry or subcommands[arguments[1]]
	if type(entry) ~= 'table' then return nil end
	local script = false -- behind it everything may be the script's
	while arguments[i] and arguments[i] ~= '--' do
		local word = arguments[i]
		local option = word:find '^%-.' and option_of(entry, word)
		if not script and (word == '-h' or word == '--help') then
			print(subcommands.help(entry.name))
			return 0
		elseif word:find '^%-.' and not script and (not option or not option[2] and word:find '=') then
			return unknown(entry, word)
		end
		script = script or entry.passes and not word:find '^%-'
		i = i + (option and option[2] and not word:find '=' and 2 or 1)
	end
end

return subcommands

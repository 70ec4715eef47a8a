-- SPDX-License-Identifier: MIT
-- What luacheck must know of Quoll: written by `quoll doc --luacheck`.
std = 'lua54'
read_globals = {'bench', 'data', 'gpu', 'graph', 'help', 'hw', 'jupyter', 'nn', 'optim', 'plot', 'quant', 'report',
	'source', 'sweep', 'tensor', 'who'}
max_line_length = false
-- 512: `for x in batches do … break end` takes the first. 581: `not (a < b)` is true of a NaN.
ignore = {'512', '581'}
-- what the program gives its libraries, the prompt and the files that it runs
files['interp'] = {globals = {'In', 'Out', 'arg', 'hw', 'io.write', 'os.exit'}}
files['interp/doctest'] = {globals = {'__fails', 'describe', 'it', 'pending', 'skip'}}
files['nn'] = {globals = {'graph', 'quant'}}
files['quant'] = {globals = {'quant'}}
-- notebooks and scripts make globals at their top level, as inputs of the prompt do
files['tutorials'] = {allow_defined = true, ignore = {'131', '213'}}
files['scripts'] = {allow_defined_top = true}
-- 431: many small cases in a file, each with an x of its own
files['tests'] = {read_globals = {'skip', 'pending', 'describe', 'it'}, allow_defined = true, ignore = {'131', '431'}}

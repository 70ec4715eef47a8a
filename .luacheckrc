-- SPDX-License-Identifier: MIT
-- What luacheck must know of Quoll: written by `quoll doc --luacheck`.
std = 'lua54'
read_globals = {'bench', 'data', 'gpu', 'graph', 'help', 'hw', 'jupyter', 'nn', 'optim', 'plot', 'quant', 'report',
	'source', 'sweep', 'tensor', 'who'}
max_line_length = false
-- notebooks and scripts make globals at their top level, as inputs of the prompt do
files['tutorials'] = {allow_defined = true, ignore = {'131', '213', '512'}}
files['scripts'] = {allow_defined_top = true}
files['tests'] = {read_globals = {'skip', 'pending', 'describe', 'it'}, allow_defined = true, ignore = {'131'}}

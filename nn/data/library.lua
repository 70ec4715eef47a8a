-- SPDX-License-Identifier: MIT
-- data: the search path of data files, the data sets of nn/data.def, and the loader.
local data, internal = ...
local base = internal.import 'interp/prelude/base'
local fail, doc, describe = base.fail, base.doc, base.describe

doc {name = 'data', kind = 'module', usage = "data.mnist{split='train'}  data.loader(ds, {batch=128})",
	text = [[Data sets, the loader that makes batches of them, and where their files are looked for. Nothing is ever
downloaded: an error lists which files to get, from where, and where to put them. `data.synth` needs no files.]]}

doc {name = 'data.folders', usage = 'data.folders()',
	text = [[The folders in which data.find looks, in this order: that of the option --data or of QUOLL_DATA (alone,
when one is given), else ./data, else quoll in the user's data folder (XDG_DATA_HOME, else ~/.local/share).]],
	example = "print(#data.folders() >= 1)  --> true"}

function data.folders()
	local given = os.getenv 'QUOLL_DATA'
	if given and given ~= '' then return {given} end
	local list, home, user = {'data'}, os.getenv 'HOME', os.getenv 'XDG_DATA_HOME'
	if user and user:sub(1, 1) == '/' then
		list[2] = user .. '/quoll'
	elseif home and home ~= '' then
		list[2] = home .. '/.local/share/quoll'
	end
	return list
end

doc {name = 'data.find', usage = "data.find 'mnist/t10k-images-idx3-ubyte.gz'",
	text = [[The path of a file of data, or nil and the reason: the first of data.folders that has it. An absolute
name stands for itself.]],
	example = [[file, why = data.find 'no/such/file'
print(file, why ~= nil)  --> nil true]]}

function data.find(name)
	if type(name) ~= 'string' or name == '' then fail('find: wanted the name of a file, got %s', describe(name)) end
	local folders = data.folders()
	if name:sub(1, 1) == '/' then return internal.exists(name) and name or nil, ('there is no %s'):format(name) end
	for _, folder in ipairs(folders) do
		if internal.exists(folder .. '/' .. name) then return folder .. '/' .. name end
	end
	return nil, ('there is no %s in %s'):format(name, table.concat(folders, ' or '))
end

for _, file in ipairs(internal.registry 'nn/data') do data[file:match '[^/]+$'] = internal.import(file) end
data.loader = internal.import 'nn/data/loader'.new

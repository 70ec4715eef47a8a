-- SPDX-License-Identifier: MIT
-- Figures of methods of post-training quantization (help 'methods') beside their goals:
--   quoll scripts/ptq_methods.lua [SECTION ...]      (default: all)
--     resnets      images of 1000 that ResNet8 and ResNet20 name, weights of 4 and 3 bits; 256 images without labels
--     stories      perplexity of stories260K on held-out texts, weights of 4 and 3 bits in blocks; 32 texts that the model wrote
--     characters   the word LSTM and the character Transformer of the tutorials, weights of 4 bits in blocks
--     imports      models of other programs: KWS from TFLite, magika from ONNX
--     activations  activations of 8 bits, also with planted outliers
--     kv           codes of keys and values in generation
--     sizes        how much calibration data is enough
--     time         seconds and memory
--     bits         the same codes on every kernel and number of threads, and of a run that went on
-- Each figure is the mean over calibration data of three seeds, with the least and the largest; SEEDS=1 takes fewer. Rows whose methods do not exist are named as
-- missing. Data: the folder of QUOLL_DATA. Each section is a file of scripts/ptq_methods.
local here = (arg and arg[0] or ''):match '^(.*/)[^/]*$' or './'
local ORDER = {'resnets', 'stories', 'characters', 'imports', 'activations', 'kv', 'sizes', 'time', 'bits'}
local known = {}
for _, name in ipairs(ORDER) do known[name] = true end
for _, name in ipairs(arg) do
	if not known[name] then
		io.stderr:write(('ptq_methods: wanted of %s, got %s\n'):format(table.concat(ORDER, ' '), name))
		os.exit(1)
	end
end

local tools = assert(loadfile(here .. 'ptq_methods/tools.lua'))(here)
for _, name in ipairs(#arg > 0 and arg or ORDER) do
	local section = assert(loadfile(here .. 'ptq_methods/' .. name .. '.lua'))(here, tools)
	print('== ' .. name)
	local good, why = pcall(section)
	local skipped = not good and type(why) == 'string' and why:match 'skipped: .*'
	if skipped then print(skipped) elseif not good then error(why, 0) end
end

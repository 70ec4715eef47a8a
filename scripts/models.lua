-- SPDX-License-Identifier: MIT
-- Models from outside, beside the programs that they come from:
--   quoll scripts/models.lua [SECTION ...]    files others nodes tflite ops quantized out stories c load run generate (default: all)
--     files    the models of the data folder (QUOLL_DATA): outputs beside onnxruntime without optimization
--     others   20 exports of torchvision and transformers with random weights, by both of torch's exporters
--     nodes    the node tests of the onnx package
--     tflite   MLPerf Tiny's models beside LiteRT's reference kernels, 200 random inputs: outputs, of integers their codes
--     ops      each op of TFLite, by types, beside LiteRT's reference kernels: what differs
--     quantized  models that PyTorch quantized and exported: codes of the outputs beside onnxruntime and PyTorch, and beside the exported C
--     out      graphs that are written as ONNX: codes within the network and labels beside onnxruntime without optimization
--     stories  the perplexity of stories260K from Hugging Face's and llama.cpp's files, without a judge
--     c        the exported C of models: its self-test and memory, without a judge
--     load     time of graph.load beside an onnxruntime session with basic optimization
--     run      time of g:run, float32 and static int8, one row, 1 and 2 threads, beside onnxruntime (default optimization; quantize_static with
--              the same input) and LiteRT (XNNPACK); the least of three turns
--     generate tokens a second of Llama shapes with random weights beside llama.cpp, from its source package (an environment of its own, or
--              that of LLAMA_PYTHON; building takes minutes); GENERATE_MOST=110 leaves out models of more million parameters
-- Each is a file of scripts/models. The judges are packages of PyPI, in an environment that is made for the run and removed after it, or those of MODELS_PYTHON. Sections
-- whose judge or data is missing are named.
local here = (arg and arg[0] or ''):match '^(.*/)[^/]*$' or './'
local ORDER = {'files', 'others', 'nodes', 'tflite', 'ops', 'quantized', 'out', 'stories', 'c', 'load', 'run', 'generate'}
local known = {}
for _, name in ipairs(ORDER) do known[name] = true end
for _, name in ipairs(arg) do
	if not known[name] then
		io.stderr:write(('models: wanted of %s, got %s\n'):format(table.concat(ORDER, ' '), name))
		os.exit(1)
	end
end

local judges = assert(loadfile(here .. 'models/judges.lua'))(here)
for _, name in ipairs(#arg > 0 and arg or ORDER) do
	local section = assert(loadfile(here .. 'models/' .. name .. '.lua'))(here, judges)
	print('== ' .. name)
	if section.needs and not judges.has(section.needs) then
		print('skipped: no ' .. section.needs)
	else
		local rows, why = section.run()
		print(rows and report(rows) or 'skipped: ' .. why)
	end
end
os.execute(('rm -rf "%s"'):format(judges.folder))

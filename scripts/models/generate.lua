-- SPDX-License-Identifier: MIT
-- Section generate: tokens a second of Llama shapes with random weights beside llama.cpp, from its source package (an environment of its
-- own, or that of LLAMA_PYTHON; building takes minutes). GENERATE_MOST=110 leaves out models of more million parameters.
local _, judges = ...
local run, folder, internal, judge = judges.run, judges.folder, judges.internal, judges.judge

-- {name, million parameters, shapes}
local LLAMAS = {{'15 M', 15, {vocab = 32000, d = 288, heads = 6, layers = 6, ff = 768}}, {'110 M', 110, {vocab = 32000, d = 768, heads = 12, layers = 12, ff = 2048}},
	{'1.1 B', 1100, {vocab = 32000, d = 2048, heads = 32, kvheads = 4, layers = 22, ff = 5632}}}
local PROMPT, CONTEXT, STEPS = 512, 128, 64

-- The program that runs llama.cpp, or nil.
local function llama_python()
	local given = os.getenv 'LLAMA_PYTHON' or judges.python
	if given and run(('"%s" -c "import llama_cpp"'):format(given)) then return given end
	io.stderr:write('models: building llama-cpp-python of PyPI …\n')
	local at = folder .. '/llama'
	local made = run(('python3 -m venv "%s" && CMAKE_ARGS="-DGGML_NATIVE=ON -DLLAMA_BUILD_TOOLS=OFF -DLLAVA_BUILD=OFF" "%s/bin/pip" install -q llama-cpp-python --no-binary llama-cpp-python'):format(at, at))
	return made and at .. '/bin/python' or nil
end

-- Tokens a second of llama.cpp for the model in this format: of the prompt and of generation.
local function rates_of_llama(program, shape, format, threads)
	local file = folder .. '/m.gguf'
	local m = internal.import 'interp/bench/random_model'(shape, {weight = format, mode = 'weight_only'}, PROMPT + CONTEXT + STEPS)
	quant.gguf(m, {file = file, metadata = {['tokenizer.ggml.model'] = 'none'}})
	m = nil -- luacheck: ignore 311
	collectgarbage()
	local ok, out = run(('"%s" "%s" generate "%s" %d %d %d %d'):format(program, judge, file, threads, PROMPT, CONTEXT, STEPS))
	os.remove(file)
	if ok then return out:match '([%d.]+) ([%d.]+)' end
end

-- A row: the better of two runs of each program, one after the other, as other work on the machine only makes them slower.
local function compare_llama(program, model, format, other, threads)
	local prompt, rate, prompt_of, rate_of, limit = 0, 0, 0, 0, nil
	for _ = 1, 2 do
		local r = bench.generate(model[3], {weight = format, prompt = PROMPT, context = CONTEXT, steps = STEPS, threads = threads})
		prompt, rate, limit = math.max(prompt, r[1].prompt_rate), math.max(rate, r[1].rate), math.max(limit or 0, r[1].most or 0)
		collectgarbage()
		local ok, a, b = pcall(function() return rates_of_llama(program, model[3], other, threads) end)
		if ok and a then prompt_of, rate_of = math.max(prompt_of, tonumber(a)), math.max(rate_of, tonumber(b)) end
	end
	local function ratio(x, y) return y > 0 and ('%.2f'):format(x / y) or '-' end
	return {model[1], format, threads, ('%.0f'):format(prompt), ('%.0f'):format(prompt_of), ratio(prompt, prompt_of), ('%.1f'):format(rate), ('%.1f'):format(rate_of),
		ratio(rate, rate_of), ratio(rate, limit or 0)}
end

local function section()
	local program = llama_python()
	if not program then return nil, 'llama-cpp-python could not be built' end
	local rows, most = {columns = {'model', 'format', 'threads', 'prompt/s', 'llama.cpp', 'ratio', 'tokens/s', 'llama.cpp ', 'ratio ', 'of reading'}}, tonumber(os.getenv 'GENERATE_MOST')
	for _, model in ipairs(LLAMAS) do
		for _, f in ipairs {{'int4:32', 'q4_0'}, {'q4_0', 'q4_0'}, {'q4_k', 'q4_k'}} do
			local fits = f[1] ~= 'q4_k' or model[3].d % 256 == 0
			if fits and model[2] <= (most or math.huge) then
				for _, threads in ipairs {1, 2} do rows[#rows + 1] = compare_llama(program, model, f[1], f[2], threads) end
			end
		end
	end
	rows.note = ('prompt of %d tokens, generation after %d; mode dynamic, beside llama.cpp in q4_0 (int4:32, q4_0) or q4_k'):format(PROMPT, CONTEXT)
	return rows
end

return {run = section}

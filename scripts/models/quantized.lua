-- SPDX-License-Identifier: MIT
-- Section quantized: models that PyTorch quantized and exported: codes of the outputs beside onnxruntime and PyTorch, and beside the
-- exported C.
local here, judges = ...
local run, folder = judges.run, judges.folder

local NETS = {resnet = {'eager-x86', 'eager-qnnpack', 'fx-x86', 'fx-qnnpack', 'pt2e-xnnpack', 'pt2e-x86'}, mobile = {'eager-x86', 'eager-qnnpack',
	'fx-x86', 'fx-qnnpack', 'pt2e-xnnpack', 'pt2e-x86'}, resnet20 = {'fx-x86', 'pt2e-xnnpack'}} -- the exporter has no eager form of pads

-- The scale of the last codes.
local function last_scale(g)
	for i = #g.order, 1, -1 do
		local spec = g.nodes[g.order[i]].results[1].spec
		if spec and spec.scale then return type(spec.scale) == 'number' and spec.scale or spec.scale:item() end
	end
end

-- Differences in codes: the share that is equal, the largest one.
local function in_codes(a, b, scale)
	local off = ((a - b) / scale):abs()
	return ('%.2f %%, %.0f'):format(off:lt(0.5):to 'float64':mean():item() * 100, off:max():item())
end

-- Whether the program of an exported graph gives the bits of g:run for these inputs.
local function equal_c(g, x)
	local at = folder .. '/quantized_c'
	g:export {dir = at, name = 'net', samples = x, vectors = x:size(1)}
	local made, out = run(('make -s -C "%s" && "%s/net" --selftest'):format(at, at))
	os.execute(('rm -rf "%s"'):format(at))
	return made and out:match '[^\n]*passed[^\n]*' or 'failed: ' .. out:sub(-80)
end

local function section()
	local rows = {columns = {'model', 'ours, onnxruntime', 'ours, PyTorch', 'onnxruntime, PyTorch', 'C beside ours'}}
	for _, net in ipairs {'resnet', 'mobile', 'resnet20'} do
		for _, kind in ipairs(NETS[net]) do
			local row = {net .. ' ' .. kind}
			rows[#rows + 1] = row
			if net == 'resnet20' and not data.find 'weights/resnet20-cifar10.safetensors' then
				row[2] = 'skipped: not in the data folder (QUOLL_DATA)'
			elseif not run(('"%s" "%smodels/quantized.py" %s %s "%s"'):format(judges.python, here, kind, net, folder)) then
				row[2] = 'skipped: PyTorch could not export it'
			else
				local g, t = graph.load(folder .. '/m.onnx'), tensor.load(folder .. '/m.npz')
				local y, scale = g:run(t.x), last_scale(g)
				row[2], row[3], row[4] = in_codes(y, t.ort, scale), in_codes(y, t.torch, scale), in_codes(t.ort, t.torch, scale)
				row[5] = equal_c(g, t.x:narrow(1, 1, 8))
			end
		end
	end
	rows.note = 'share of equal codes of 100 outputs, and by how many codes the others are off, at most'
	return rows
end

return {needs = 'onnxruntime, torch, torchao', run = section}

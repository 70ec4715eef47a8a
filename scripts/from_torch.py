#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Takes a PyTorch model to Quoll.

  scripts/from_torch.py MODEL.py:MAKE [--out m.onnx] [--exporter dynamo|torchscript] [--opset 18] [--fixed] [--quoll ./quoll]

MAKE is a function of MODEL.py that returns the model and an example of its inputs: `return model, (x,)`. The model is exported by
torch.onnx (torch.export first; where that fails, TorchScript), with the first axis of each input as the batch unless --fixed. Then Quoll
loads the file and its outputs are compared with PyTorch's; the exit status is 1 if they differ by more than 1e-4 of the largest value.
Needs torch, onnx and onnxscript.
"""
import argparse, importlib.util, os, subprocess, sys, tempfile

CHECK = r'''
local path, npz, batch = arg[1], arg[2], arg[3] == 'batch'
local t, worst = tensor.load(npz), 0
local sizes = {}
for name, x in pairs(t) do
	local input = name:match '^in%.(.*)$'
	if input then sizes[input] = {x:size()} end
	if input and batch then sizes[input][1] = 'B' end
end
local g = graph.load{path, inputs = sizes}
local given = {}
for i, name in ipairs(g.inputs) do given[i] = t['in.' .. name] end
local got = {g:run(#given == 1 and given[1] or given)}
for i, y in ipairs(got) do
	local want = t['out.' .. i]
	worst = math.max(worst, (y - want):abs():max():item() / math.max(want:abs():max():item(), 1e-30))
end
local layers = #nn.Graph(g):parameters()
print(('Quoll: %d nodes, %d parameters, largest error %.1e of the largest output'):format(#g.order, layers, worst))
if not (worst <= 1e-4) then os.exit(1) end
'''


def made(where):
    file, _, name = where.partition(':')
    if not name:
        sys.exit('from_torch: wanted MODEL.py:MAKE, got %r' % where)
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    spec = importlib.util.spec_from_file_location('model_of_user', file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model, inputs = getattr(module, name)()
    return model.eval(), inputs if isinstance(inputs, (tuple, list)) else (inputs,)


def export(model, inputs, names, o):
    import torch
    ways = [o.exporter] if o.exporter else ['dynamo', 'torchscript']
    for way in ways:
        options = dict(input_names=names, opset_version=o.opset)
        if way == 'dynamo':
            options['dynamo'] = True
            if not o.fixed:
                batch = torch.export.Dim('batch')
                options['dynamic_shapes'] = tuple({0: batch} if x.dim() else None for x in inputs)
        else:
            options['dynamo'] = False
            if not o.fixed:
                options['dynamic_axes'] = {n: {0: 'batch'} for n, x in zip(names, inputs) if x.dim()}
        try:
            with torch.no_grad():
                torch.onnx.export(model, tuple(inputs), o.out, **options)
            return way
        except Exception as e:  # the exporters raise errors of many kinds
            print('from_torch: %s failed: %s' % (way, str(e).strip().splitlines()[0][:200]), file=sys.stderr)
    sys.exit('from_torch: no exporter took the model')


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('model')
    p.add_argument('--out', default='m.onnx')
    p.add_argument('--exporter', choices=['dynamo', 'torchscript'])
    p.add_argument('--opset', type=int, default=18)
    p.add_argument('--fixed', action='store_true')
    p.add_argument('--quoll', default=os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'quoll'))
    o = p.parse_args()
    import numpy, torch
    model, inputs = made(o.model)
    names = ['x'] if len(inputs) == 1 else ['x%d' % (i + 1) for i in range(len(inputs))]
    way = export(model, inputs, names, o)
    with torch.no_grad():
        outputs = model(*inputs)
    outputs = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
    with tempfile.TemporaryDirectory() as folder:
        values = {'in.' + n: x.numpy() for n, x in zip(names, inputs)}
        values.update({'out.%d' % (i + 1): y.numpy() for i, y in enumerate(outputs)})
        numpy.savez(folder + '/v.npz', **values)
        with open(folder + '/check.lua', 'w') as f:
            f.write(CHECK)
        done = subprocess.run([o.quoll, folder + '/check.lua', o.out, folder + '/v.npz', 'fixed' if o.fixed else 'batch'])
    print('%s: written by the exporter %s' % (o.out, way))
    sys.exit(done.returncode)


if __name__ == '__main__':
    main()

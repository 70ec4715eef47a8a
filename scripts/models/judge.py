# SPDX-License-Identifier: MIT
"""The side of scripts/models.lua that needs packages of PyPI: makes models and expected values.

  judge.py export NAME EXPORTER OPSET DIR   writes DIR/m.onnx and DIR/m.npz (inputs 'in.NAME', outputs 'out.NAME' of onnxruntime)
  judge.py run FILE DIR [NAME=SIZES ...]    writes DIR/m.npz for a file
  judge.py nodes DIR                        writes the node tests of the onnx package: NAME.onnx, NAME.inK.pb, NAME.outK.pb, index.json
  judge.py tflite FILE DIR N                writes DIR/m.npz: 'in' and 'out' of N random inputs in LiteRT's reference kernels
  judge.py ops DIR N                        runs DIR/1.tflite to N.tflite with i_1.npy, … in the same; writes i_out_1.npy, … or i.err
  judge.py static FILE DIR [NAME=SIZES ...] writes DIR/static.onnx, the file quantized by quantize_static (QDQ, per channel) on the inputs of
                                            DIR/m.npz
  judge.py time FILE DIR THREADS            prints milliseconds of a run with these inputs, the least in half a second; default optimization,
                                            of .tflite LiteRT with XNNPACK
  judge.py codes FILE DIR                   checks a file in full and runs it on DIR/in.npz without optimization; DIR/at.npz has the codes wanted
                                            within the network. Writes outputs to DIR/out.npz; prints how many of the codes are equal, how many
                                            there are, by how much others are off, and how many differ where each layer is given the codes wanted
  judge.py load FILE ...                    prints milliseconds to make a session with basic optimization, the least of five
  judge.py generate FILE THREADS PROMPT CONTEXT STEPS   prints tokens a second of llama.cpp: of a prompt, the best of three, and of
                                            generation after CONTEXT tokens, by the median of STEPS steps

Models have random weights (seed 0). EXPORTER is torchscript or dynamo (torch.onnx.export).
"""
import json, os, sys, time, warnings

import numpy as np

warnings.filterwarnings('ignore')


def images(size=224, batch=1):
    import torch
    return (torch.randn(batch, 3, size, size, generator=torch.Generator().manual_seed(1)),)


def vision(name, size=224, **options):
    def make():
        import torchvision
        return torchvision.models.get_model(name, weights=None, **options), images(size), ['x']
    return make


def text(kind, **options):
    """A small model of transformers; its logits or last hidden state."""
    def make():
        import torch, transformers
        config = getattr(transformers, kind + 'Config')(**options)
        cls = {'Bert': 'BertModel', 'DistilBert': 'DistilBertModel', 'GPT2': 'GPT2LMHeadModel', 'Llama': 'LlamaForCausalLM',
               'Qwen2': 'Qwen2ForCausalLM', 'Albert': 'AlbertModel', 'Roberta': 'RobertaModel'}[kind]
        model = getattr(transformers, cls)(config)
        model.config.use_cache = False

        class Wrapped(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.m = model

            def forward(self, ids):
                out = self.m(ids, use_cache=False) if cls.endswith(('LM', 'LMHeadModel')) else self.m(ids)
                return out.logits if hasattr(out, 'logits') else out.last_hidden_state
        ids = torch.randint(1, 500, (1, 24), generator=torch.Generator().manual_seed(2))
        return Wrapped(), (ids,), ['ids']
    return make


SMALL = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128, vocab_size=512)
MODELS = {
    'resnet18': vision('resnet18'), 'mobilenet_v2': vision('mobilenet_v2'), 'mobilenet_v3_small': vision('mobilenet_v3_small'),
    'efficientnet_b0': vision('efficientnet_b0'), 'squeezenet1_1': vision('squeezenet1_1'), 'shufflenet_v2': vision('shufflenet_v2_x0_5'),
    'densenet121': vision('densenet121'), 'regnet_y_400mf': vision('regnet_y_400mf'), 'convnext_tiny': vision('convnext_tiny'),
    'googlenet': vision('googlenet', init_weights=False), 'vit_b_16': vision('vit_b_16'), 'swin_t': vision('swin_t'), 'mnasnet0_5': vision('mnasnet0_5'),
    'bert': text('Bert', **SMALL), 'distilbert': text('DistilBert', dim=64, n_layers=2, n_heads=4, hidden_dim=128, vocab_size=512),
    'gpt2': text('GPT2', n_embd=64, n_layer=2, n_head=4, vocab_size=512, n_positions=64),
    'llama': text('Llama', num_key_value_heads=2, **SMALL), 'qwen2': text('Qwen2', num_key_value_heads=2, **SMALL),
    'roberta': text('Roberta', max_position_embeddings=64, **SMALL), 'albert': text('Albert', embedding_size=32, **SMALL),
}


def session(path, level, threads=2):
    import onnxruntime as ort
    so = ort.SessionOptions()
    so.log_severity_level = 3
    so.intra_op_num_threads = threads
    so.graph_optimization_level = level
    return ort.InferenceSession(path, so, providers=['CPUExecutionProvider'])


def expected(path, feed, out):
    import onnxruntime as ort
    s = session(path, ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
    values = {'in.' + k: v for k, v in feed.items()}
    for o, v in zip(s.get_outputs(), s.run(None, feed)):
        values['out.' + o.name] = v
    np.savez(os.path.join(out, 'm.npz'), **values)


def export(name, exporter, opset, out):
    import torch
    torch.manual_seed(0)
    model, inputs, names = MODELS[name]()
    model.eval()
    path = os.path.join(out, 'm.onnx')
    with torch.no_grad():
        torch.onnx.export(model, inputs, path, input_names=names, output_names=['y'], opset_version=int(opset), dynamo=exporter == 'dynamo',
                          **({'external_data': False} if exporter == 'dynamo' else {}))
    expected(path, {n: x.numpy() for n, x in zip(names, inputs)}, out)


def run(path, out, sizes):
    import onnxruntime as ort
    given = dict(s.split('=') for s in sizes)
    rng, feed = np.random.default_rng(0), {}
    for i in session(path, ort.GraphOptimizationLevel.ORT_DISABLE_ALL).get_inputs():
        shape = [int(n) for n in given[i.name].split(',') if n] if i.name in given else [n if isinstance(n, int) else 1 for n in i.shape]
        if 'int' in i.type:
            feed[i.name] = rng.integers(1, 200, shape).astype(np.int64 if '64' in i.type else np.int32)
        else:
            feed[i.name] = rng.standard_normal(shape).astype(np.float32)
        if i.name == 'sr':
            feed[i.name] = np.array(16000, np.int64)
    expected(path, feed, out)


def nodes(out):
    import onnx
    from onnx import numpy_helper
    from onnx.backend.test.case.node import collect_testcases
    index = []
    for case in collect_testcases(None):
        record = {'name': case.name}
        onnx.save(case.model, f'{out}/{case.name}.onnx')
        try:
            given, wanted = case.data_sets[0]
            for kind, values, infos in (('in', given, case.model.graph.input), ('out', wanted, case.model.graph.output)):
                for k, v in enumerate(values):
                    if not infos[k].type.HasField('tensor_type'):
                        raise ValueError('no tensor')
                    t = v if isinstance(v, onnx.TensorProto) else numpy_helper.from_array(np.asarray(v))
                    open(f'{out}/{case.name}.{kind}{k}.pb', 'wb').write(t.SerializeToString())
            record['inputs'] = [case.model.graph.input[k].name for k in range(len(given))]
            record['outputs'] = len(wanted)
        except (ValueError, TypeError) as e:
            record['skip'] = str(e)[:60]
        index.append(record)
    json.dump(index, open(f'{out}/index.json', 'w'))


def ops(out, count):
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    for i in range(1, int(count) + 1):
        try:
            it = Interpreter('%s/%d.tflite' % (out, i), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
            it.allocate_tensors()
            for k, t in enumerate(it.get_input_details()):
                it.set_tensor(t['index'], np.load('%s/%d_%d.npy' % (out, i, k + 1)).reshape(t['shape']))
            it.invoke()
            for k, t in enumerate(it.get_output_details()):
                np.save('%s/%d_out_%d.npy' % (out, i, k + 1), it.get_tensor(t['index']))
        except Exception as e:
            with open('%s/%d.err' % (out, i), 'w') as f:
                f.write(str(e))


def tflite(path, out, count):
    from ai_edge_litert.interpreter import Interpreter, OpResolverType
    it = Interpreter(path, experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    it.allocate_tensors()
    i, o = it.get_input_details()[0], it.get_output_details()[0]
    rng, given, got = np.random.default_rng(0), [], []
    for _ in range(int(count)):
        if i['dtype'] == np.float32:
            x = rng.standard_normal(i['shape']).astype(np.float32)
        else:
            info = np.iinfo(i['dtype'])
            x = np.clip(np.round(rng.standard_normal(i['shape']) * 50 + (info.min + info.max) / 2), info.min, info.max).astype(i['dtype'])
        it.set_tensor(i['index'], x)
        it.invoke()
        given.append(x[0])
        got.append(it.get_tensor(o['index'])[0])
    np.savez(os.path.join(out, 'm.npz'), **{'in': np.stack(given), 'out': np.stack(got)})


def inputs_of(out):
    values = np.load(os.path.join(out, 'm.npz'))
    return {k[3:]: values[k] for k in values.files if k.startswith('in.')}


def static(path, out):
    import onnx
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    model = onnx.load(path)
    names = {i.name for i in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in names]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    if model.opset_import[0].version < 13:  # scales of channels
        model = onnx.version_converter.convert_version(model, 13)
    ready = os.path.join(out, 'ready.onnx')
    onnx.save(model, ready)

    class Reader(CalibrationDataReader):
        def __init__(self):
            self.rest = [inputs_of(out)]

        def get_next(self):
            return self.rest.pop() if self.rest else None
    quantize_static(ready, os.path.join(out, 'static.onnx'), Reader(), quant_format=QuantFormat.QDQ, per_channel=True,
                    activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)


def least(run):
    run()
    best, end = 1e9, time.perf_counter() + .5
    while time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
    print('%.4f' % (best * 1e3))


def time_of(path, out, threads):
    if path.endswith('.tflite'):
        from ai_edge_litert.interpreter import Interpreter
        it = Interpreter(path, num_threads=int(threads))
        it.allocate_tensors()
        i = it.get_input_details()[0]
        it.set_tensor(i['index'], np.load(os.path.join(out, 'm.npz'))['in'])
        return least(it.invoke)
    import onnxruntime as ort
    s, feed = session(path, ort.GraphOptimizationLevel.ORT_ENABLE_ALL, int(threads)), inputs_of(out)
    return least(lambda: s.run(None, feed))


def model_session(model):
    import onnxruntime as ort
    so = ort.SessionOptions()
    so.log_severity_level = 3
    so.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    return ort.InferenceSession(model.SerializeToString(), so, providers=['CPUExecutionProvider'])


def layer(model, name, values):
    """A value of the model from the nearest of the given ones."""
    from onnx import helper
    made, constants = {o: n for n in model.graph.node for o in n.output}, {t.name: t for t in model.graph.initializer}
    todo, feed, nodes = [name], {}, []
    while todo:
        t = todo.pop()
        if t in values and t != name:
            feed[t] = values[t]
        elif t in made and made[t] not in nodes:
            nodes.append(made[t])
            todo += [i for i in made[t].input if i]
    nodes = [n for n in model.graph.node if n in nodes]
    used = {i for n in nodes for i in n.input}

    def info(n, shape):
        return helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(values[n].dtype), shape)
    graph = helper.make_graph(nodes, 'layer', [info(n, v.shape) for n, v in feed.items()], [info(name, None)], [t for n, t in constants.items() if n in used])
    return model_session(helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)).run(None, feed)[0]


def codes(path, out):
    import onnx
    onnx.checker.check_model(path, full_check=True)
    model, feed, wanted = onnx.load(path), dict(np.load(os.path.join(out, 'in.npz'))), dict(np.load(os.path.join(out, 'at.npz')))
    outputs = [o.name for o in model.graph.output]
    made = {o for n in model.graph.node for o in n.output}
    names = [n for n in wanted if n in made]
    for n in names:
        if n not in outputs:
            model.graph.output.append(onnx.helper.make_empty_tensor_value_info(n))
    s = model_session(model)
    got = dict(zip([o.name for o in s.get_outputs()], s.run(None, feed)))
    np.savez(os.path.join(out, 'out.npz'), **{str(i): got[n] for i, n in enumerate(outputs)})
    off = [np.abs(got[n].astype(np.int64) - wanted[n].astype(np.int64)) for n in names]
    alone = sum(int((layer(model, n, {**feed, **wanted}) != wanted[n]).sum()) for n in names)
    print(sum(int((d == 0).sum()) for d in off), sum(d.size for d in off), max([int(d.max()) for d in off] + [0]), alone)


def generate(path, threads, prompt, context, steps):
    import llama_cpp
    model = llama_cpp.Llama(path, n_ctx=max(prompt, context + steps + 1), n_batch=max(prompt, context), n_ubatch=max(prompt, context), n_threads=threads,
                            n_threads_batch=threads, verbose=False)

    def fill(count):
        model.reset()
        start = time.perf_counter()
        model.eval([i * 7919 % model.n_vocab() for i in range(count)])
        return time.perf_counter() - start
    best, times = min(fill(prompt) for _ in range(3)), []
    fill(context)
    for i in range(steps):
        start = time.perf_counter()
        model.eval([i + 1])
        times.append(time.perf_counter() - start)
    print(prompt / best, 1 / sorted(times)[len(times) // 2])


def load(paths):
    import onnxruntime as ort
    for path in paths:
        best = 1e9
        for _ in range(5):
            begin = time.perf_counter()
            session(path, ort.GraphOptimizationLevel.ORT_ENABLE_BASIC)
            best = min(best, time.perf_counter() - begin)
        print('%.3f' % (best * 1e3))


if __name__ == '__main__':
    what, rest = sys.argv[1], sys.argv[2:]
    if what == 'export':
        export(*rest)
    elif what == 'run':
        run(rest[0], rest[1], rest[2:])
    elif what == 'nodes':
        nodes(rest[0])
    elif what == 'codes':
        codes(*rest)
    elif what == 'tflite':
        tflite(*rest)
    elif what == 'ops':
        ops(*rest)
    elif what == 'static':
        static(*rest)
    elif what == 'time':
        time_of(*rest)
    elif what == 'generate':
        generate(rest[0], *map(int, rest[1:]))
    else:
        load(rest)

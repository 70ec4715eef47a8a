# SPDX-License-Identifier: MIT
"""Whole networks in onnxruntime: the float graph that Quoll writes (scripts/bench_nets.lua) as ONNX, node by node, so that both
programs run the same weights; int8 by quantize_static (QDQ, u8 activations, s8 weights per channel, minmax of the same images),
dynamic by quantize_dynamic. Batch norm is folded first, as onnxruntime's own preparation does; its other optimizations are the
default ones. The float session must give Quoll's output, else the item is an error."""
import json, logging, math, os, subprocess, tempfile
import numpy as np


def read_tensors(path):
    """name -> array of a safetensors file."""
    with open(path, 'rb') as f:
        head = json.loads(f.read(int.from_bytes(f.read(8), 'little')))
        data = f.read()
    kinds = dict(F32='f4', I64='i8')
    return {k: np.frombuffer(data[v['data_offsets'][0]:v['data_offsets'][1]], kinds[v['dtype']]).reshape(v['shape'])
            for k, v in head.items() if k != '__metadata__'}


def pair(value, default):
    value = value or [default]
    return [value[0]] * 2 if len(value) == 1 else list(value)


class Graph:
    """ONNX nodes of Quoll's nodes."""

    def __init__(self, nodes, tensors, batch):
        from onnx import helper
        self.make, self.tensors, self.inits, self.out, self.batch = helper.make_node, tensors, {}, [], batch
        self.heads = {}
        for node in nodes:
            getattr(self, node['op'])(node['name'], node.get('attrs', {}), *node.get('inputs', []))

    def const(self, name, value):
        self.inits[name] = np.ascontiguousarray(value)
        return name

    def given(self, name):
        return self.const(name, self.tensors[name]) if name in self.tensors else name

    def node(self, op, name, *inputs, **attrs):
        self.out.append(self.make(op, [self.given(i) for i in inputs], [name], name=name, **attrs))
        return name

    def input(self, name, a):
        pass

    # ---- convolutional networks

    def conv2d(self, name, a, x, w, b=None):
        pad = a.get('pad') or [0]
        top, bottom, left, right = pad if len(pad) == 4 else pair(pad, 0)[:1] * 2 + pair(pad, 0)[1:] * 2
        self.node('Conv', name, x, w, *([b] if b else []), pads=[top, left, bottom, right], strides=pair(a.get('stride'), 1),
                  kernel_shape=self.tensors[w].shape[2:])

    def batchnorm(self, name, a, x, weight, bias, mean, var):
        """Folded into the convolution before it."""
        conv = self.out[-1]
        assert conv.output[0] == x and conv.op_type == 'Conv'
        t = self.tensors
        scale = (t[weight] / np.sqrt(t[var] + a['eps'])).astype('f')
        shift = t[bias] - t[mean] * scale
        if len(conv.input) > 2:
            shift = shift + self.inits[conv.input[2]] * scale
        w = self.const(name + '.w', self.inits.pop(conv.input[1]) * scale[:, None, None, None])
        b = self.const(name + '.b', shift.astype('f'))
        attrs = {p.name: list(p.ints) for p in conv.attribute}
        self.out[-1] = self.make('Conv', [conv.input[0], w, b], [name], name=name, **attrs)

    def relu(self, name, a, x):
        self.node('Relu', name, x)

    def maxpool2d(self, name, a, x):
        k = pair(a['k'], 1)
        self.node('MaxPool', name, x, kernel_shape=k, strides=pair(a.get('stride'), k[0]))

    def avgpool2d(self, name, a, x):
        self.node('GlobalAveragePool', name, x)

    def pad(self, name, a, x):
        s = a['sizes']  # left right, top bottom, front back
        before, after = [0] + s[4::-2], [0] + s[5::-2]
        self.node('Pad', name, x, self.const(name + '.pads', np.array(before + after, 'i8')))

    def reshape(self, name, a, x):
        self.node('Reshape', name, x, self.const(name + '.size', np.array(a['size'], 'i8')))

    view = reshape

    # ---- networks for text

    def embedding(self, name, a, w, ids):
        one = self.const(name + '.one', np.array(1, 'i8'))  # numbers begin at 1 in Quoll
        self.node('Sub', name + '.ids', ids, one)
        self.node('Gather', name, w, name + '.ids')

    def narrow(self, name, a, x):
        first = a['start'] - 1
        self.tensors[name] = self.tensors[x].take(range(first, first + a['length']), a['axis'] - 1)

    def add(self, name, a, x, y):
        self.node('Add', name, x, y)

    def gelu(self, name, a, x):
        self.node('Gelu', name, x)

    def layernorm(self, name, a, x, w, b):
        self.node('LayerNormalization', name, x, w, b, epsilon=a['eps'])

    def linear(self, name, a, x, w, b=None):
        turned = self.const(w + '.t', self.tensors[w].T)
        self.node('MatMul', name + '.product' if b else name, x, turned)
        if b:
            self.node('Add', name, name + '.product', b)

    def transpose(self, name, a, x):
        order = [0, 1, 2, 3]
        order[a['a'] - 1], order[a['b'] - 1] = order[a['b'] - 1], order[a['a'] - 1]
        self.node('Transpose', name, x, perm=order)
        self.heads[name] = x

    def attention(self, name, a, q, k, v):
        """onnxruntime's fused one, on (batch, steps, heads * size): its operands before they were turned."""
        flat = [self.node('Reshape', name + s, self.heads[t], self.const(name + '.flat', np.array([0, 0, -1], 'i8')))
                for s, t in (('.q', q), ('.k', k), ('.v', v))]
        heads = next(i for i in self.out if i.output[0] == self.heads[q])
        size = self.inits[heads.input[1]]
        self.node('MultiHeadAttention', name + '.flatout', *flat, num_heads=int(size[2]), unidirectional=int(a.get('causal', False)),
                  domain='com.microsoft')
        self.node('Reshape', name + '.parts', name + '.flatout', heads.input[1])
        self.node('Transpose', name, name + '.parts', perm=[0, 2, 1, 3])

    def zeros(self, name, a):
        pass  # the first state, ONNX's default

    def lstm(self, name, a, x, h, c, wih, whh, bih, bhh):
        t, steps = self.tensors, name + '.steps'
        turn = lambda w: np.concatenate([np.split(w, 4)[i] for i in (0, 3, 1, 2)])[None]  # i f g o -> i o f c
        self.node('Transpose', steps, x, perm=[1, 0, 2])
        both = [self.const(wih, turn(t[wih])), self.const(whh, turn(t[whh])),
                self.const(bih + '+', np.concatenate([turn(t[bih]), turn(t[bhh])], 1))]
        for key in (wih, whh):
            t.pop(key)
        self.node('LSTM', name + '.all', steps, *both, hidden_size=t[bhh].shape[0] // 4)
        self.node('Squeeze', name + '.one', name + '.all', self.const(name + '.axis', np.array([1], 'i8')))
        self.node('Transpose', name, name + '.one', perm=[1, 0, 2])

    def model(self, nodes):
        from onnx import helper as h, TensorProto as P, numpy_helper as nh
        x, last = self.tensors['.input'], nodes[-1]['name']
        kind = P.INT64 if x.dtype == 'i8' else P.FLOAT
        g = h.make_graph(self.out, 'net', [h.make_tensor_value_info('input', kind, x.shape)],
                         [h.make_tensor_value_info(last, P.FLOAT, self.tensors['.output'].shape)],
                         [nh.from_array(v, k) for k, v in self.inits.items()])
        return h.make_model(g, opset_imports=[h.make_opsetid('', 21), h.make_opsetid('com.microsoft', 1)], ir_version=10)


class Images:
    """The photographs that Quoll was calibrated with, for quantize_static; in rows as the model's batch wants them."""

    def __init__(self, x, batch):
        rows = [x[i % len(x)] for i in range(math.ceil(len(x) / batch) * batch)]
        self.parts = iter([np.stack(rows[i:i + batch]) for i in range(0, len(rows), batch)])

    def get_next(self):
        part = next(self.parts, None)
        return None if part is None else {'input': part}


def quantized(path, way, tensors, batch):
    import onnxruntime
    from onnxruntime import quantization as q
    onnxruntime.set_default_logger_severity(3)
    to = path + '.' + way
    if way == 'int8':
        q.quantize_static(path, to, Images(tensors['.calibration'], batch), quant_format=q.QuantFormat.QDQ, per_channel=True,
                          activation_type=q.QuantType.QUInt8, weight_type=q.QuantType.QInt8)
    else:
        q.quantize_dynamic(path, to, per_channel=True, weight_type=q.QuantType.QInt8, op_types_to_quantize=['MatMul', 'LSTM'],
                           extra_options={'DefaultTensorType': 1})
    return to


def build(quoll, name, way, batch, threads):
    """The function to time."""
    import onnx, onnxruntime as ort
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([quoll, os.path.join(here, 'bench_nets.lua'), name, str(batch), folder], check=True)
        nodes = json.load(open(os.path.join(folder, name + '.json')))
        tensors = read_tensors(os.path.join(folder, name + '.safetensors'))
        path = os.path.join(folder, name + '.onnx')
        onnx.save(Graph(nodes, dict(tensors), batch).model(nodes), path)
        run = lambda s: s.run(None, {'input': tensors['.input']})[0]
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        open_ = lambda p: ort.InferenceSession(p, options, providers=['CPUExecutionProvider'])
        s = open_(path)
        error = np.abs(run(s) - tensors['.output']).max() / np.abs(tensors['.output']).max()
        if error > 1e-4:
            raise RuntimeError("the ONNX graph's output is off by %g" % error)
        if way != 'float32':
            logging.disable(logging.WARNING)
            s = open_(quantized(path, way, tensors, batch))
    bound = s.io_binding()
    bound.bind_cpu_input('input', tensors['.input'])
    bound.bind_output(s.get_outputs()[0].name, 'cpu')
    return lambda: s.run_with_iobinding(bound)


def case(case, item, a, threads):
    if case == 'nets':
        return build(a['quoll'], a['net'], a['way'], a['batch'], threads)


PEERS = {'ort': case}

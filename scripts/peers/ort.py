# SPDX-License-Identifier: MIT
"""onnxruntime: single nodes, with results bound so that none is copied. ort: floats; MatMulIntegerToFloat (u8 x s8, scales, bias),
MatMulNBits at accuracy level 0. Others are named by their op: ort_qlinear, ort_s32 (MatMulInteger), ort_dynq
(DynamicQuantizeMatMul), ort_acc4 (MatMulNBits at accuracy level 4: activations in 8 bits), ort_qconv (QLinearConv)."""
import numpy as np

R = np.random


def session(op, inputs, result, inits, threads, domain='', **attrs):
    """A model of one node; inputs in order, those in `inits` are constants, the one that is not is fed: (name, array)."""
    import onnxruntime as ort
    from onnx import helper as h, TensorProto as P, numpy_helper as nh
    kind = {'float32': P.FLOAT, 'uint8': P.UINT8, 'int8': P.INT8, 'int32': P.INT32}
    (name, x), = [(k, v) for k, v in inputs.items() if k not in inits]
    g = h.make_graph([h.make_node(op, list(inputs), ['Y'], domain=domain, **attrs)], 'g',
                     [h.make_tensor_value_info(name, kind[x.dtype.name], x.shape)], [h.make_tensor_value_info('Y', kind[result], None)],
                     [nh.from_array(inputs[k], k) for k in inits])
    m = h.make_model(g, opset_imports=[h.make_opsetid('', 21), h.make_opsetid('com.microsoft', 1)], ir_version=10)
    o = ort.SessionOptions()
    o.intra_op_num_threads, o.log_severity_level = threads, 3
    s = ort.InferenceSession(m.SerializeToString(), o, providers=['CPUExecutionProvider'])
    b = s.io_binding()
    b.bind_cpu_input(name, x)
    b.bind_output('Y', 'cpu')
    return lambda _=x: s.run_with_iobinding(b)


def only(op, threads, result, inputs, domain='', **attrs):
    """All inputs but the first are constants."""
    return session(op, inputs, result, list(inputs)[1:], threads, domain, **attrs)


def floats(*shape):
    return R.rand(*shape).astype('f')


def u8(*shape):
    return R.randint(0, 255, shape).astype('u1')


def s8(*shape):
    return R.randint(-127, 127, shape).astype('i1')


F = lambda v: np.array(v, 'f')
Z = np.array(3, 'u1')
MS = 'com.microsoft'


def integer(op):
    def case(case, item, a, threads):
        if case not in ('gemm_i8', 'gemm_i8_dynamic') or (case == 'gemm_i8_dynamic') != (op == 'DynamicQuantizeMatMul'):
            return None
        m, n, k = a['M'], a['N'], a['K']
        scales, zeros, bias = np.full(n, .01, 'f'), np.zeros(n, 'i1'), floats(n)
        if op == 'MatMulIntegerToFloat':
            return only(op, threads, 'float32', dict(A=u8(m, k), B=s8(k, n), s=F(.01), bs=scales, z=Z, bz=zeros, bias=bias), MS)
        if op == 'DynamicQuantizeMatMul':
            return only(op, threads, 'float32', dict(A=floats(m, k), B=s8(k, n), bs=scales, bz=zeros, bias=bias), MS)
        if op == 'MatMulInteger':
            return only(op, threads, 'int32', dict(A=u8(m, k), B=s8(k, n), z=Z))
        return only(op, threads, 'uint8', dict(A=u8(m, k), s=F(.01), z=Z, B=s8(k, n), bs=scales, bz=zeros, ys=F(5), yz=Z))
    return case


def nbits(case0, level):
    def case(case, item, a, threads):
        if case != case0:
            return None
        n, k, block = a['N'], a['K'], 32
        return only('MatMulNBits', threads, 'float32', dict(A=floats(a['M'], k), B=u8(n, k // block, block // 2), S=floats(n * k // block)), MS,
                    K=k, N=n, bits=4, block_size=block, accuracy_level=level)
    return case


def quantize(item, n, threads):
    x, s, z = floats(n // 4096, 4096), F(1 / 127), np.array(0, 'i1')
    if item == 'quant_tensor':
        return only('QuantizeLinear', threads, 'int8', dict(A=x, s=s, z=z))
    if item == 'quant_block32':
        shape = (n // 4096, 128)
        return only('QuantizeLinear', threads, 'int8', dict(A=x, s=floats(*shape), z=np.zeros(shape, 'i1')), axis=1, block_size=32)
    if item == 'dequant_tensor':
        return only('DequantizeLinear', threads, 'float32', dict(A=(x * 127).astype('i1'), s=s, z=z))
    if item == 'minmax':  # one of the two
        return only('ReduceMax', threads, 'float32', dict(A=x), keepdims=0)
    return None


def dynamic_quantize(n, threads):
    import onnxruntime as ort
    from onnx import helper as h, TensorProto as P
    x = floats(n // 4096, 4096)
    info = h.make_tensor_value_info
    g = h.make_graph([h.make_node('DynamicQuantizeLinear', ['A'], ['C', 's', 'z'])], 'g', [info('A', P.FLOAT, x.shape)],
                     [info('C', P.UINT8, None)])
    o = ort.SessionOptions()
    o.intra_op_num_threads = threads
    s = ort.InferenceSession(h.make_model(g, opset_imports=[h.make_opsetid('', 21)], ir_version=10).SerializeToString(), o,
                             providers=['CPUExecutionProvider'])
    b = s.io_binding()
    b.bind_cpu_input('A', x)
    b.bind_output('C', 'cpu')
    return lambda _=x: s.run_with_iobinding(b)


def nnops(item, threads):
    if item == 'softmax_4096x1024':
        return only('Softmax', threads, 'float32', dict(A=floats(4096, 1024)), axis=-1)
    if item == 'gelu_4M':
        return only('Gelu', threads, 'float32', dict(A=floats(4 << 20)), MS)
    if item == 'layernorm_4096x1024':
        return only('LayerNormalization', threads, 'float32', dict(A=floats(4096, 1024), w=floats(1024), b=floats(1024)))
    return None


def plain(case, item, a, threads):
    if case == 'gemm_f32':
        return only('MatMul', threads, 'float32', dict(A=floats(a['M'], a['K']), B=floats(a['K'], a['N'])))
    if case == 'gemm_i8':
        return integer('MatMulIntegerToFloat')(case, item, a, threads)
    if case == 'quantize':
        return dynamic_quantize(a['n'], threads) if item == 'dyn_quant' else quantize(item, a['n'], threads)
    if case == 'conv' and not a.get('grad'):
        return only('Conv', threads, 'float32', dict(A=floats(a['B'], a['I'], a['H'], a['H']), W=floats(a['O'], a['I'], 3, 3), b=floats(a['O'])),
                    pads=[1] * 4, kernel_shape=[3, 3])
    if case == 'nnops':
        return nnops(item, threads)
    return nbits('w4_float', 0)(case, item, a, threads)


def qconv(case, item, a, threads):
    if case != 'conv_i8':
        return None
    o, groups = a['O'], a.get('groups', 1)
    return only('QLinearConv', threads, 'uint8', dict(A=u8(a['B'], a['I'], a['H'], a['H']), s=F(.05), z=Z, W=s8(o, a['I'] // groups, 3, 3), ws=np.full(o, .01, 'f'),
                wz=np.zeros(o, 'i1'), ys=F(.5), yz=Z, b=np.zeros(o, 'i4')), pads=[1] * 4, kernel_shape=[3, 3], group=groups)


PEERS = {'ort': plain, 'ort_s32': integer('MatMulInteger'), 'ort_qlinear': integer('QLinearMatMul'), 'ort_dynq': integer('DynamicQuantizeMatMul'),
         'ort_acc4': nbits('w4', 4), 'ort_qconv': qconv}

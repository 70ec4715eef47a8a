# SPDX-License-Identifier: MIT
"""OpenVINO's CPU plug-in, for latency, one stream: float32 products and convolutions, int8 by fake quantization (float32 in and
out), int4 weights in blocks of 32."""
import numpy as np

R = np.random


def linear(o, ov, case, a, config):
    """(input, output, what is fed)"""
    m, n, k = a['M'], a['N'], a['K']
    x = given = o.parameter([m, k], ov.Type.f32)
    const = lambda v: o.constant(np.asarray(v, 'f'))
    if case == 'gemm_i8_dynamic':
        given = o.fake_quantize(x, const(0), const(1), const(0), const(1), 256)
        w = o.multiply(o.convert(o.constant(R.randint(-127, 127, (n, k)).astype('i1')), 'f32'), const(np.full((n, 1), .01)))
    elif case == 'gemm_f32':
        w = const(R.rand(n, k))
    else:
        config['DYNAMIC_QUANTIZATION_GROUP_SIZE'] = 32 if case == 'w4' else 0
        codes = ov.op.Constant(ov.Type.u4, ov.Shape([n, k // 32, 32]), R.randint(0, 15, n * k).astype('u1'))
        blocks = o.multiply(o.subtract(o.convert(codes, 'f32'), const(np.full((n, k // 32, 1), 8))), const(R.rand(n, k // 32, 1)))
        w = o.reshape(blocks, o.constant(np.array([n, k], 'i4')), False)
    return x, o.add(o.matmul(given, w, False, True), const(R.rand(1, n))), R.rand(m, k).astype('f')


def case(case, item, a, threads):
    if case not in ('gemm_f32', 'gemm_i8_dynamic', 'w4', 'w4_float', 'conv') or a.get('grad'):
        return None
    import openvino as ov
    from openvino import opset13 as o
    config = dict(INFERENCE_NUM_THREADS=threads, NUM_STREAMS=1, PERFORMANCE_HINT='LATENCY', INFERENCE_PRECISION_HINT='f32')
    if case == 'conv':
        size = [a['B'], a['I'], a['H'], a['H']]
        x, fed, one = o.parameter(size, ov.Type.f32), R.rand(*size).astype('f'), [1, 1]
        y = o.convolution(x, o.constant(R.rand(a['O'], a['I'], 3, 3).astype('f')), one, one, one, one)
    else:
        x, y, fed = linear(o, ov, case, a, config)
    request = ov.Core().compile_model(ov.Model([y], [x]), 'CPU', config).create_infer_request()
    request.set_input_tensor(ov.Tensor(fed, shared_memory=True))
    return lambda _=fed: request.infer()  # the request shares the memory of what is fed


PEERS = {'openvino': case}

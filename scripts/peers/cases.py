# SPDX-License-Identifier: MIT
"""What is measured: the list of rows, the work of each, and the limit of the machine that bounds it.

A row is (case, item, args). `case` says what is computed; every program is asked for the same row and answers or skips it.
"""

SQUARES = [(n, n, n) for n in (256, 512, 1024, 2048, 4096)]
FEW = [(m, 4096, 4096) for m in (1, 8, 32)]
CONV = [(3, 64, 32), (64, 128, 32), (128, 256, 16), (256, 512, 8)]  # ResNet9: inputs, outputs, height; 3 x 3, pad 1
FORMATS = ['int8:32', 'int6:32', 'int5:32', 'int4:32', 'int4/1', 'uint4:32', 'nf4:64', 'fp4_e2m1:32', 'int3:32', 'int2:32', 'fp8_e4m3/1', 'mxfp4', 'mxfp8_e4m3', 'nvfp4',
           'q8_0', 'q6_k', 'q5_k', 'q4_k', 'q4_0', 'q3_k', 'q2_k', 'iq4_nl']


def _products(case, shapes=SQUARES + FEW, cold=True):
    rows = [(case, '%dx%dx%d' % s, dict(M=s[0], N=s[1], K=s[2])) for s in shapes]
    # cold: the weights have left the caches before each call
    return rows + [(case, '1x4096x4096_cold', dict(M=1, N=4096, K=4096, cold=1))] * cold


def _conv(case):
    return [(case, 'b%d_%d-%d_%dx%d' % (b, i, o, h, h), dict(B=b, I=i, O=o, H=h)) for b in (32, 1) for i, o, h in CONV]


def _depthwise():
    return [('conv_i8', 'b%d_depth%d_%dx%d' % (b, c, h, h), dict(B=b, I=c, O=c, H=h, groups=c)) for b, c, h in
            [(1, 32, 112), (1, 128, 56), (1, 256, 28), (1, 512, 14), (32, 128, 28), (32, 512, 14)]]


def _layers():
    """ResNet9 at half width, batch 128: forward, and with all gradients; the norms and pools between."""
    rows = []
    for i, o, h in [(3, 32, 32), (32, 64, 32), (64, 64, 16), (64, 128, 16), (128, 256, 8), (256, 256, 4)]:
        rows += [('conv', 'conv_%d-%d_%dx%d%s' % (i, o, h, h, '_grad' * g), dict(B=128, I=i, O=o, H=h, grad=g)) for g in (0, 1)]
    for c, h in ((32, 32), (64, 16), (256, 8), (256, 4)):
        rows += [(case, '%s_%d_%dx%d%s' % (case, c, h, h, '_grad' * g), dict(B=128, I=c, H=h, grad=g)) for g in (0, 1)
                 for case in ('norm', 'pool')]
    return rows


def _nets():
    rows = []
    for net, ways in [('resnet8', ('float32', 'int8')), ('resnet20', ('float32', 'int8')), ('resnet9', ('float32', 'int8')),
                      ('lstm', ('float32', 'dynamic')), ('transformer', ('float32', 'dynamic'))]:
        # graph: Quoll runs the traced graph, as the others always do; else it calls the module
        rows += [('nets', '%s_%s_b%d%s' % (net, way, b, '_graph' * g), dict(net=net, way=way, batch=b, graph=g)) for way in ways for b in (1, 200) for g in (0, 1)]
    return rows


def _named(case, names, **args):
    return [(case, name, dict(args)) for name in names]


TEXT = ['layernorm_4096x1024', 'attention_b4_h8_t512_d64', 'attention_b32_h4_t128_d32', 'embed_10000x650', 'crossentropy_700x10000',
        'dropout_4M']

ROWS = (
    _named('limit', ['fma', 'int8', 'read', 'copy', 'write', 'quantize', 'l2', 'l3'])
    + _products('gemm_f32') + _products('gemm_i8') + _products('gemm_i8_matmul', [SQUARES[0]] + FEW, False)
    + _products('gemm_i8_dynamic')
    + [('gemm_' + way, '%dx%dx%d' % s, dict(M=s[0], N=s[1], K=s[2])) for way in ('bf16', 'bf16_tiles', 'f16') for s in [(1024,) * 3] + FEW]
    + _products('w4', FEW) + _products('w4_float', FEW)
    + [('format', '%s_%s' % (way, f), dict(M=1, N=4096, K=4096, cold=1, spec=f, way=way)) for way in ('dynamic', 'weight_only') for f in FORMATS]
    + _conv('conv') + _conv('conv_i8') + _depthwise()
    + _named('quantize', ['quant_tensor', 'quant_row', 'dequant_tensor', 'minmax', 'dyn_quant', 'quant_block32', 'observe'], n=64 << 20)
    + _named('nnops', ['chain_4M', 'softmax_4096x1024', 'gelu_4M', 'lstm_650_b20_t35', 'adamw_1M'] + TEXT + [t + '_grad' for t in TEXT])
    + _named('train', ['mlp_784_512_512_10_b128', 'lstm_lm_650_t35_b20_v10000', 'transformer_256x4_t128_b16', 'resnet9_b64', 'lstm_200_t35_b20'])
    + _nets()
    + [('exported', 'resnet8_int8' + ('_' + t if t else ''), dict(target=t)) for t in ('', 'avx2', 'avx512vnni')]
    + _named('elementwise', ['add_16M', 'exp_16M', 'sum_16M', 'softmax_16M'])
    + _layers()
    + _named('overhead', ['add8', 'matmul8', 'add8_grad', 'call_fn', 'loop_add']))

CASES = list(dict.fromkeys(row[0] for row in ROWS))

PRODUCTS = ('gemm_f32', 'gemm_i8', 'gemm_i8_matmul', 'gemm_i8_dynamic', 'gemm_bf16', 'gemm_bf16_tiles', 'gemm_f16', 'w4', 'w4_float')
PASSES = {'quant_tensor': 5, 'quant_row': 5, 'dequant_tensor': 5, 'minmax': 4, 'dyn_quant': 9, 'quant_block32': 5, 'observe': 4}  # bytes an element
BITS = {'w4': 4.5, 'w4_float': 4.5, 'gemm_i8': 8, 'gemm_i8_dynamic': 8, 'gemm_i8_matmul': 8, 'gemm_f32': 32, 'gemm_bf16': 16, 'gemm_bf16_tiles': 16, 'gemm_f16': 16}  # of a weight, scales included


def work(case, item, a):
    """(amount, names of limits): operations or bytes of a call, in 10^9, and what the machine does at most of them in a second, by the
    first of the names that it has. None: no limit of this kind."""
    if case in PRODUCTS and a['M'] == 1:  # each weight is read once
        return a['N'] * a['K'] * BITS[case] / 8e9, ('read',) if a.get('cold') or BITS[case] > 8 else ('l3', 'read')
    if case in PRODUCTS and not case.startswith('gemm_bf16'):
        return 2e-9 * a['M'] * a['N'] * a['K'], ('fma',) if case in ('gemm_f32', 'gemm_f16', 'w4_float') else ('int8',)
    if case in ('conv', 'conv_i8') and not a.get('grad'):
        taps = (3 * a['H'] - 2) ** 2  # those inside of the image
        return 2e-9 * a['B'] * a['I'] / a.get('groups', 1) * a['O'] * taps, ('fma',) if case == 'conv' else ('int8',)
    if case == 'quantize':
        return a['n'] * PASSES[item] / 1e9, ('read',) if item in ('minmax', 'observe') else ('quantize',)
    return None


# case -> who answers it besides Quoll
_TORCH = ['torch', 'torch_onednn', 'torch_fbgemm']
WHO = {
    'gemm_bf16': ['torch'], 'gemm_bf16_tiles': ['torch'], 'gemm_f16': ['torch'],
    'gemm_f32': ['torch', 'torch_onednn', 'ort', 'openvino', 'numpy', 'dnnl2', 'openblas', 'blis', 'ggml_f32'],
    'gemm_i8': _TORCH + ['ort', 'ort_s32', 'ort_qlinear', 'dnnl2', 'dnnl2_s8s8'],
    'gemm_i8_matmul': ['torch'],
    'gemm_i8_dynamic': ['torch_dynamic', 'ort_dynq', 'openvino', 'ggml_q8_0'],
    'w4': ['ort_acc4', 'openvino', 'ggml_q4_0', 'ggml_q4_0_repack', 'ggml_q4_K', 'ggml_q4_K_repack'],
    'w4_float': ['torch', 'ort', 'openvino'],
    'conv': ['torch', 'ort', 'openvino'],
    'conv_i8': ['torch_onednn', 'torch_fbgemm', 'ort_qconv'],
    'quantize': ['torch', 'torch_compile', 'ort', 'numpy'],
    'nnops': ['torch', 'torch_compile', 'ort', 'numpy'],
    'nets': ['ort'],
    'exported': ['tflite'],
    'overhead': ['torch', 'numpy'],
}
FORMAT_PEERS = {'int4:32': ['ggml_q4_0_repack'], 'q8_0': ['ggml_q8_0'], 'q6_k': ['ggml_q6_K'], 'q5_k': ['ggml_q5_K'], 'q4_k': ['ggml_q4_K_repack'],
                'q4_0': ['ggml_q4_0_repack'], 'q3_k': ['ggml_q3_K'], 'q2_k': ['ggml_q2_K_repack'], 'iq4_nl': ['ggml_iq4_nl_repack'], 'mxfp4': ['ggml_mxfp4']}
# Results that are not what Quoll gives in the row: bare 32-bit sums; codes. They are shown, with a ratio of their own.
BARE = {'gemm_i8': ['torch', 'ort_s32', 'dnnl2', 'dnnl2_s8s8'], 'gemm_i8_matmul': []}
CODES = {'gemm_i8': ['torch_fbgemm', 'ort_qlinear']}


def who(case, a):
    if case == 'limit':
        return []
    if case == 'format':
        return FORMAT_PEERS.get(a['spec'], []) if a['way'] == 'dynamic' else []
    return WHO.get(case, ['torch'])

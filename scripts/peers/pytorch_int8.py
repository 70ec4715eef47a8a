# SPDX-License-Identifier: MIT
"""PyTorch's prepared paths. torch_onednn: its oneDNN with prepacked weights, float32 or u8 x s8 with scales and bias to float32 (with
s8 activations it falls to oneDNN's reference code: no peer). torch_fbgemm: FBGEMM, u8 results. torch_dynamic: floats in and out,
activations quantized in the call. torch_compile: fused loops of inductor."""


def prepared(threads):
    import torch
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    return torch


def onednn_product(torch, case, a):
    m, n, k = a['M'], a['N'], a['K']
    bias = torch.rand(n)
    if case == 'gemm_f32':
        x, w = torch.rand(m, k), torch.ops.mkldnn._reorder_linear_weight(torch.rand(n, k), m)
        return lambda: torch.ops.mkldnn._linear_pointwise(x, w, bias, 'none', [], '')
    x = torch.randint(0, 255, (m, k), dtype=torch.uint8)
    w = torch.ops.onednn.qlinear_prepack(torch.randint(-127, 127, (n, k), dtype=torch.int8), [m, k])
    scales, zeros = torch.full((n,), .01), torch.zeros(n, dtype=torch.int32)
    return lambda: torch.ops.onednn.qlinear_pointwise(x, .01, 3, w, scales, zeros, bias, 1.0, 0, torch.float32, 'none', [], '')


def onednn(case, item, a, threads):
    torch = prepared(threads)
    if case in ('gemm_f32', 'gemm_i8'):
        return onednn_product(torch, case, a)
    if case == 'conv_i8':
        last = torch.channels_last
        x = torch.randint(0, 255, (a['B'], a['I'], a['H'], a['H']), dtype=torch.uint8).contiguous(memory_format=last)
        groups = a.get('groups', 1)
        w, scales = torch.randint(-127, 127, (a['O'], a['I'] // groups, 3, 3), dtype=torch.int8), torch.full((a['O'],), .01)
        one, b, zeros = [1, 1], torch.rand(a['O']), torch.zeros(a['O'], dtype=torch.int32)
        p = torch.ops.onednn.qconv_prepack(w, scales, .01, 3, one, one, one, groups, list(x.shape))
        return lambda: torch.ops.onednn.qconv_pointwise(x, .01, 3, p, scales, zeros, b, one, one, one, groups, .05, 2, torch.uint8, 'none', [], '')
    return None


def fbgemm(case, item, a, threads):
    torch = prepared(threads)
    torch.backends.quantized.engine = 'fbgemm'

    def weights(*size):
        n = size[0]
        return torch.quantize_per_channel(torch.rand(size) - .5, torch.full((n,), .004).double(), torch.zeros(n).long(), 0, torch.qint8)

    def codes(*size):
        return torch.quantize_per_tensor(torch.rand(size), .005, 3, torch.quint8)
    if case == 'gemm_i8':
        p, x = torch.ops.quantized.linear_prepack(weights(a['N'], a['K']), torch.rand(a['N'])), codes(a['M'], a['K'])
        return lambda: torch.ops.quantized.linear(x, p, .5, 3)
    if case == 'conv_i8':
        one = [1, 1]
        groups = a.get('groups', 1)
        p = torch.ops.quantized.conv2d_prepack(weights(a['O'], a['I'] // groups, 3, 3), torch.rand(a['O']), one, one, one, groups)
        x = codes(a['B'], a['I'], a['H'], a['H']).contiguous(memory_format=torch.channels_last)
        return lambda: torch.ops.quantized.conv2d(x, p, .5, 3)
    return None


def dynamic(case, item, a, threads):
    if case != 'gemm_i8_dynamic':
        return None
    torch = prepared(threads)
    m, x = torch.ao.nn.quantized.dynamic.Linear(a['K'], a['N']), torch.rand(a['M'], a['K'])
    return lambda: m(x)


def compiled(case, item, a, threads):
    torch = prepared(threads)
    if item == 'chain_4M':
        x, y = torch.rand(4 << 20), torch.rand(4 << 20)
        f = torch.compile(lambda x, y: torch.tanh(x * 2 + y) * x - y)
        return lambda: f(x, y)
    if item in ('gelu_4M', 'softmax_4096x1024'):
        x = torch.rand(4096, 1024)
        f = torch.compile(torch.nn.functional.gelu if item == 'gelu_4M' else lambda x: torch.softmax(x, 1))
        return lambda: f(x)
    if case != 'quantize' or item == 'observe':  # nothing of torch searches a range
        return None
    x = torch.rand(a['n'] // 4096, 4096)
    code = lambda x, s: torch.clamp(torch.round(x * s), -128, 127).to(torch.int8)
    ways = {'quant_tensor': lambda x: code(x, 127.0), 'quant_row': lambda x: code(x, 127 / x.abs().amax(1, keepdim=True)),
            'dyn_quant': lambda x: code(x, 127 / x.abs().amax()), 'dequant_tensor': lambda q: q.float() * (1 / 127),
            'minmax': lambda x: (x.amin(), x.amax()),
            'quant_block32': lambda x: code(x.view(-1, 32), 127 / x.view(-1, 32).abs().amax(1, keepdim=True))}
    f, given = torch.compile(ways[item]), x.to(torch.int8) if item == 'dequant_tensor' else x
    return lambda: f(given)


PEERS = {'torch_onednn': onednn, 'torch_fbgemm': fbgemm, 'torch_dynamic': dynamic, 'torch_compile': compiled}

# SPDX-License-Identifier: MIT
"""PyTorch in float32, as its users write it: layers, networks for text, steps of training; and what it offers for the other rows
without preparation."""
from peers.worker import many

M16 = 16 << 20


def simple(torch, item):
    """Elementwise, and a little more."""
    f = torch.nn.functional
    if item.endswith('_16M'):
        x, y = torch.rand(M16), torch.rand(M16)
        rows = x.view(16384, 1024)
        return {'add_16M': lambda: x + y, 'exp_16M': lambda: torch.exp(x), 'sum_16M': lambda: x.sum(),
                'softmax_16M': lambda: torch.softmax(rows, 1)}[item]
    x, y = torch.rand(4 << 20), torch.rand(4 << 20)
    rows = x.view(4096, 1024)
    return {'softmax_4096x1024': lambda: torch.softmax(rows, 1), 'chain_4M': lambda: torch.tanh(x * 2 + y) * x - y,
            'gelu_4M': lambda: f.gelu(x)}[item]


def stateful(torch, item):
    if item == 'lstm_650_b20_t35':
        m, x = torch.nn.LSTM(650, 650), torch.rand(35, 20, 650)
        return lambda: m(x)
    p = torch.nn.Parameter(torch.rand(1 << 20))
    p.grad = torch.rand(1 << 20)
    return torch.optim.AdamW([p]).step


def quantize(torch, item, n):
    x = torch.rand(n // 4096, 4096)
    if item == 'quant_tensor':
        return lambda: torch.quantize_per_tensor(x, 1 / 127, 0, torch.qint8)
    if item == 'quant_row':
        zero = torch.zeros(x.shape[0], dtype=torch.int64)
        return lambda: torch.quantize_per_channel(x, x.abs().amax(1).div_(127).double(), zero, 0, torch.qint8)
    if item == 'dequant_tensor':
        q = torch.quantize_per_tensor(x, 1 / 127, 0, torch.qint8)
        return q.dequantize
    if item == 'minmax':
        return lambda: torch.aminmax(x)
    if item == 'dyn_quant':
        return lambda: torch.quantize_per_tensor_dynamic(x, torch.qint8, False)
    return None


def products(torch, case, a):
    m, n, k = a['M'], a['N'], a['K']
    if case == 'gemm_f32':
        x, y = torch.rand(m, k), torch.rand(k, n)
        return lambda: x @ y
    if case in ('gemm_bf16', 'gemm_bf16_tiles', 'gemm_f16'):  # both operands and the result
        dtype = torch.float16 if case == 'gemm_f16' else torch.bfloat16
        x, w = torch.rand(m, k).to(dtype), torch.rand(n, k).to(dtype)
        return lambda: torch.nn.functional.linear(x, w)
    if case in ('gemm_i8', 'gemm_i8_matmul'):  # s8 x s8, bare sums, nothing prepacked
        x, y = (torch.randint(-127, 127, s, dtype=torch.int8) for s in ((m, k), (k, n)))
        return lambda: torch._int_mm(x, y)
    if case == 'w4_float':  # 16-bit floats
        w = torch.ops.aten._convert_weight_to_int4pack_for_cpu(torch.randint(0, 16, (n, k), dtype=torch.int32), 1)
        scales, x = torch.rand(k // 32, n, 2, dtype=torch.bfloat16), torch.rand(m, k, dtype=torch.bfloat16)
        return lambda: torch.ops.aten._weight_int4pack_mm_for_cpu(x, w, 32, scales)
    return None


def tiny(torch, item):
    x, m = torch.ones(8), torch.ones(8, 8)
    if item == 'add8':
        return many(lambda: x + x)
    if item == 'matmul8':
        return many(lambda: m @ m)
    if item == 'add8_grad':
        y = torch.ones(8, requires_grad=True)

        def both():
            with torch.enable_grad():
                (y + x).sum().backward()
            y.grad = None
        return many(both, 200)
    return None


def case(case, item, a, threads):
    import torch
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    if case == 'elementwise' or item in ('softmax_4096x1024', 'chain_4M', 'gelu_4M'):
        return simple(torch, item)
    if case == 'nnops':
        return stateful(torch, item) if item in ('lstm_650_b20_t35', 'adamw_1M') else torch_text(torch, item)
    if case == 'train':
        return torch_train(torch, item)
    if case in ('conv', 'norm', 'pool'):
        return torch_layer(torch, case, a)
    if case == 'quantize':
        return quantize(torch, item, a['n'])
    if case == 'overhead':
        return tiny(torch, item)
    return products(torch, case, a) if 'K' in a else None


def with_gradient(torch, forward, leaves):
    """Forward and backward; the gradients are new ones each time."""
    g = torch.rand_like(forward())

    def both():
        for t in leaves:
            t.requires_grad_()
            t.grad = None
        with torch.enable_grad():
            forward().backward(g)
    return both


def torch_text(torch, item):
    f, grad, name = torch.nn.functional, item.endswith('_grad'), item.split('_')[0]
    if name == 'layernorm':
        leaves = [torch.rand(4096, 1024), torch.rand(1024), torch.rand(1024)]
        forward = lambda: f.layer_norm(leaves[0], (1024,), leaves[1], leaves[2])
    elif name == 'attention':
        leaves = [torch.rand((4, 8, 512, 64) if 'b4' in item else (32, 4, 128, 32)) for _ in range(3)]
        forward = lambda: f.scaled_dot_product_attention(*leaves, is_causal=True)
    elif name == 'embed':
        leaves, ids = [torch.rand(10000, 650)], torch.randint(0, 10000, (700,))
        forward = lambda: f.embedding(ids, leaves[0])
    elif name == 'crossentropy':
        leaves, target = [torch.rand(700, 10000)], torch.randint(0, 10000, (700,))
        forward = lambda: f.cross_entropy(leaves[0], target)
    else:
        leaves = [torch.rand(4 << 20)]
        forward = lambda: f.dropout(leaves[0])
    return with_gradient(torch, forward, leaves) if grad else forward


def torch_layer(torch, case, a):
    """A layer of a convolutional network, forward or with its gradients."""
    f = torch.nn.functional
    x = torch.rand(a['B'], a['I'], a['H'], a['H'])
    if case == 'conv':
        x = x.contiguous(memory_format=torch.channels_last)
        leaves, bias = [torch.rand(a['O'], a['I'], 3, 3).contiguous(memory_format=torch.channels_last)], None if a.get('grad') else torch.rand(a['O'])
        forward = lambda: f.conv2d(x, leaves[0], bias, padding=1)
    elif case == 'norm':
        leaves, running = [torch.ones(a['I']), torch.zeros(a['I'])], [torch.zeros(a['I']), torch.ones(a['I'])]
        forward = lambda: f.batch_norm(x, running[0], running[1], leaves[0], leaves[1], training=True)
    else:
        leaves = []
        forward = lambda: f.max_pool2d(x, 2)
    if not a.get('grad'):
        return forward
    return with_gradient(torch, forward, leaves + ([x] if a['I'] > 3 else []))


def torch_train(torch, item):
    """A step of training."""
    torch.set_grad_enabled(True)
    nn = torch.nn
    if item == 'lstm_200_t35_b20':
        m, x, g = nn.LSTM(200, 200), torch.rand(35, 20, 200, requires_grad=True), torch.rand(35, 20, 200)

        def layer():
            m.zero_grad()
            x.grad = None
            m(x)[0].backward(g)
        return layer
    f = nn.functional
    if item.startswith('mlp'):
        m = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
        x, y = torch.rand(128, 784), torch.randint(0, 10, (128,))
        o, loss = torch.optim.SGD(m.parameters(), 0.01, momentum=0.9), lambda: f.cross_entropy(m(x), y)
    elif item.startswith('lstm'):
        e, l, h = nn.Embedding(10000, 650), nn.LSTM(650, 650, 2), nn.Linear(650, 10000)
        x, y = torch.randint(0, 10000, (35, 20)), torch.randint(0, 10000, (700,))
        o = torch.optim.SGD([*e.parameters(), *l.parameters(), *h.parameters()], 1.0)
        loss = lambda: f.cross_entropy(h(l(e(x))[0]).reshape(700, 10000), y)
    elif item.startswith('resnet9'):
        m, last = torch_resnet9(torch), torch.channels_last
        m = m.to(memory_format=last)
        x, y = torch.rand(64, 3, 32, 32).contiguous(memory_format=last), torch.randint(0, 10, (64,))
        o, loss = torch.optim.SGD(m.parameters(), 0.01, momentum=0.9), lambda: f.cross_entropy(m(x), y)
    else:
        e, h = nn.Embedding(10000, 256), nn.Linear(256, 10000)
        layer = nn.TransformerEncoderLayer(256, 8, 1024, 0.0, batch_first=True, norm_first=True)
        t = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        x, y = torch.randint(0, 10000, (16, 128)), torch.randint(0, 10000, (2048,))
        mask = nn.Transformer.generate_square_subsequent_mask(128)
        o = torch.optim.AdamW([*e.parameters(), *t.parameters(), *h.parameters()], 1e-3)
        loss = lambda: f.cross_entropy(h(t(e(x), mask=mask, is_causal=True)).reshape(2048, 10000), y)

    def step():
        o.zero_grad()
        loss().backward()
        o.step()
    return step


def torch_resnet9(torch):
    nn = torch.nn

    def layer(i, o):
        return [nn.Conv2d(i, o, 3, padding=1, bias=False), nn.BatchNorm2d(o), nn.ReLU()]

    class Block(nn.Module):
        def __init__(self, c):
            super().__init__()
            self.inner = nn.Sequential(*layer(c, c), *layer(c, c))

        def forward(self, x):
            return x + self.inner(x)
    return nn.Sequential(*layer(3, 64), *layer(64, 128), nn.MaxPool2d(2), Block(128), *layer(128, 256), nn.MaxPool2d(2),
                         *layer(256, 512), nn.MaxPool2d(2), Block(512), nn.MaxPool2d(4), nn.Flatten(), nn.Linear(512, 10))


PEERS = {'torch': case}

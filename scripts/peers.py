#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times Quoll beside PyTorch on this machine.

  scripts/peers.py [ITEM...] [--threads 2] [--rounds 7] [--budget 0.3] [--quoll build/release/quoll] [--json FILE]

Run it with a Python that has torch. Every peer is a process of its own that answers JSON lines, {"case", "item", "args",
"threads", "budget"} -> {"t": [seconds, ...], "med": s, "cpu": s} or {"skip": why}; `quoll scripts/bench_worker.lua` is one of them.
In each round every peer has a turn, so that a slow minute of the machine hits all of them; a turn in which other
processes used more than 8 % of a core is repeated, up to three times. Prints for each item the fastest call and the
median of the rounds' medians in ms, and Quoll's ratio to the peer for both (below 1: Quoll is faster).
"""
import argparse, json, os, select, statistics, subprocess, sys, time

M16 = 16 << 20
CASES = {
    'add_16M': ('elementwise', {}),
    'exp_16M': ('elementwise', {}),
    'sum_16M': ('elementwise', {}),
    'softmax_16M': ('elementwise', {}),  # 16384 rows of 1024
    'softmax_4096x1024': ('nnops', {}),
    'chain_4M': ('nnops', {}),
    'gelu_4M': ('nnops', {}),
    'lstm_650_b20_t35': ('nnops', {}),
    'adamw_1M': ('nnops', {}),
    'lstm_200_t35_b20': ('train', {}),  # one layer, forward and backward
    'mlp_784_512_512_10_b128': ('train', {}),  # steps of training: forward, backward, optimizer
    'lstm_lm_650_t35_b20_v10000': ('train', {}),
    'transformer_256x4_t128_b16': ('train', {}),
    'resnet9_b64': ('train', {}),
    '512x512x512': ('gemm_f32', dict(M=512, N=512, K=512)),
    '1024x1024x1024': ('gemm_f32', dict(M=1024, N=1024, K=1024)),
    'quant_tensor': ('quantize', dict(n=64 << 20)),
    'dequant_tensor': ('quantize', dict(n=64 << 20)),
    'minmax': ('quantize', dict(n=64 << 20)),
    'add8': ('overhead', {}),
    'matmul8': ('overhead', {}),
}
# What networks for text are made of: forward, and with all gradients.
for item in ('layernorm_4096x1024', 'attention_b4_h8_t512_d64', 'attention_b32_h4_t128_d32', 'embed_10000x650',
             'crossentropy_700x10000', 'dropout_4M'):
    for grad in ('', '_grad'):
        CASES[item + grad] = ('nnops', {})
# Convolutions 3 x 3 of ResNet9 at half width, batch 128: forward, and with both gradients; the norms and pools between.
CONV = [(3, 32, 32), (32, 64, 32), (64, 64, 16), (64, 128, 16), (128, 256, 8), (256, 256, 4)]
for i, o, h in CONV:
    for grad in (0, 1):
        CASES['conv_%d-%d_%dx%d%s' % (i, o, h, h, '_grad' * grad)] = ('conv', dict(B=128, I=i, O=o, H=h, grad=grad))
for c, h in ((32, 32), (64, 16), (256, 8), (256, 4)):
    for grad in (0, 1):
        for case in ('norm', 'pool'):
            CASES['%s_%d_%dx%d%s' % (case, c, h, h, '_grad' * grad)] = (case, dict(B=128, I=c, H=h, grad=grad))
DEFAULT = ['add_16M', 'exp_16M', 'sum_16M', 'softmax_16M']


def torch_case(case, item, a, threads):
    """What a user of PyTorch would write: a function, and the calls it makes."""
    import torch
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    if case == 'elementwise':
        x, y = torch.rand(M16), torch.rand(M16)
        rows = x.view(16384, 1024)
        return {'add_16M': lambda: x + y, 'exp_16M': lambda: torch.exp(x), 'sum_16M': lambda: x.sum(),
                'softmax_16M': lambda: torch.softmax(rows, 1)}[item], 1
    if case == 'train':
        return torch_train(torch, item), 1
    if item == 'lstm_650_b20_t35':
        m, x = torch.nn.LSTM(650, 650), torch.rand(35, 20, 650)
        return lambda: m(x), 1
    if item == 'adamw_1M':
        p = torch.nn.Parameter(torch.rand(1 << 20))
        p.grad = torch.rand(1 << 20)
        return torch.optim.AdamW([p]).step, 1
    if case == 'nnops' and item not in ('softmax_4096x1024', 'chain_4M', 'gelu_4M'):
        return torch_text(torch, item), 1
    if case == 'nnops':
        x, y = torch.rand(4 << 20), torch.rand(4 << 20)
        rows = x.view(4096, 1024)
        return {'softmax_4096x1024': lambda: torch.softmax(rows, 1), 'chain_4M': lambda: torch.tanh(x * 2 + y) * x - y,
                'gelu_4M': lambda: torch.nn.functional.gelu(x)}[item], 1
    if case in ('conv', 'norm', 'pool'):
        return torch_layer(torch, case, a), 1
    if case == 'gemm_f32':
        x, y = torch.rand(a['M'], a['K']), torch.rand(a['K'], a['N'])
        return lambda: x @ y, 1
    if case == 'quantize':
        x = torch.rand(a['n'] // 4096, 4096)
        q = torch.quantize_per_tensor(x, 1 / 127, 0, torch.qint8) if item == 'dequant_tensor' else None
        return {'quant_tensor': lambda: torch.quantize_per_tensor(x, 1 / 127, 0, torch.qint8),
                'dequant_tensor': lambda: q.dequantize(), 'minmax': lambda: torch.aminmax(x)}[item], 1
    x = torch.ones(8) if item == 'add8' else torch.ones(8, 8)
    call = (lambda: x + x) if item == 'add8' else (lambda: x @ x)

    def many():
        for _ in range(1000):
            call()
    return many, 1000


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
        leaves, bias = [torch.rand(a['O'], a['I'], 3, 3)], None if a['grad'] else torch.rand(a['O'])
        forward = lambda: f.conv2d(x, leaves[0], bias, padding=1)
    elif case == 'norm':
        leaves, running = [torch.ones(a['I']), torch.zeros(a['I'])], [torch.zeros(a['I']), torch.ones(a['I'])]
        forward = lambda: f.batch_norm(x, running[0], running[1], leaves[0], leaves[1], training=True)
    else:
        leaves = []
        forward = lambda: f.max_pool2d(x, 2)
    if not a['grad']:
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


def worker():
    """A peer: torch."""
    key, work = None, None
    for line in sys.stdin:
        r = json.loads(line)
        try:
            if key != (r['case'], r['item'], r['threads']):
                key, work = (r['case'], r['item'], r['threads']), None
                work = torch_case(r['case'], r['item'], r['args'], r['threads'])
                stop = time.perf_counter() + .15
                work[0]()
                while time.perf_counter() < stop:
                    work[0]()
            f, calls = work
            times, cpu, stop = [], time.process_time(), time.perf_counter() + r['budget']
            while len(times) < 2 or time.perf_counter() < stop:
                start = time.perf_counter()
                f()
                times.append((time.perf_counter() - start) / calls)
                if times[0] * calls > 1.5:
                    break
            answer = dict(t=sorted(times)[:400], med=statistics.median(times), cpu=time.process_time() - cpu)
        except Exception as e:  # the peer lives on; the item is skipped
            answer = dict(skip='%s: %s' % (type(e).__name__, e))
        print(json.dumps(answer), flush=True)


def busy():
    """Seconds of processor time that all processes have used, in ticks of the kernel."""
    v = [int(x) for x in open('/proc/stat').readline().split()[1:]]
    return (v[0] + v[1] + v[2] + v[5] + v[6] + v[7]) / os.sysconf('SC_CLK_TCK')


class Peer:
    def __init__(self, name, command, threads):
        self.name, self.skipped = name, {}
        env = dict(os.environ, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads))
        self.p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def ask(self, message, timeout=300):
        try:
            self.p.stdin.write(json.dumps(message) + '\n')
            self.p.stdin.flush()
            if not select.select([self.p.stdout], [], [], timeout)[0]:
                return dict(skip='no answer in %d s' % timeout)
            return json.loads(self.p.stdout.readline() or '{"skip":"the worker ended"}')
        except (OSError, ValueError) as e:
            return dict(skip=str(e))

    def close(self):
        self.p.stdin.close()
        self.p.wait(20)


def turn(peer, item, o, budget):
    case, args = CASES[item]
    message = dict(case=case, item=item, args=args, threads=o.threads, budget=budget)
    for attempt in range(4):
        before = busy()
        r = peer.ask(message)
        if 'skip' in r or not budget:
            break
        foreign = busy() - before - r['cpu']
        if foreign < .08 * max(r['med'] * len(r['t']), budget):
            break
        time.sleep(.2)
    if 'skip' in r:
        peer.skipped[item] = r['skip']
        return None
    return r


def measure(peers, item, o):
    """peer name -> (fastest, median of medians) in seconds"""
    got = {}
    for r in range(o.rounds + 1):  # the first round builds and warms up
        for peer in peers:
            if item in peer.skipped:
                continue
            answer = turn(peer, item, o, o.budget if r else 0)
            if answer and r:
                low, medians = got.setdefault(peer.name, ([], []))
                low.append(min(answer['t']))
                medians.append(answer['med'])
            time.sleep(.02)
    return {name: (min(low), statistics.median(medians)) for name, (low, medians) in got.items()}


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('items', nargs='*', metavar='ITEM', help=', '.join(CASES))
    ap.add_argument('--threads', type=int, default=2)
    ap.add_argument('--rounds', type=int, default=7)
    ap.add_argument('--budget', type=float, default=.3, help='seconds of one turn')
    ap.add_argument('--quoll', default=os.path.join(os.path.dirname(os.path.abspath(__file__)), '../build/release/quoll'))
    ap.add_argument('--json', metavar='FILE', help='append one JSON object per item')
    ap.add_argument('--worker', action='store_true', help=argparse.SUPPRESS)
    o = ap.parse_args()
    if o.worker:
        return worker()
    unknown = [i for i in o.items if i not in CASES]
    if unknown:
        ap.error('unknown item %s; known: %s' % (unknown[0], ' '.join(CASES)))
    peers = [Peer('quoll', [o.quoll, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'bench_worker.lua')], o.threads),
             Peer('torch', [sys.executable, os.path.abspath(__file__), '--worker'], o.threads)]
    print('%-20s %10s %10s %10s %10s %7s %7s' % ('item, ms', 'quoll min', 'median', 'torch min', 'median', 'ratio', 'median'))
    for item in o.items or DEFAULT:
        got = measure(peers, item, o)
        for peer in peers:
            if item in peer.skipped:
                print('%-20s skipped: %s: %s' % (item, peer.name, peer.skipped[item]))
        if len(got) < 2:
            continue
        (a, am), (b, bm) = got['quoll'], got['torch']
        print('%-20s %10.4f %10.4f %10.4f %10.4f %7.2f %7.2f' % (item, a * 1e3, am * 1e3, b * 1e3, bm * 1e3, a / b, am / bm))
        if o.json:
            with open(o.json, 'a') as f:
                f.write(json.dumps(dict(item=item, threads=o.threads, quoll_min=a, quoll_median=am, torch_min=b, torch_median=bm)) + '\n')
    for peer in peers:
        peer.close()


main()

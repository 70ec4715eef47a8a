# SPDX-License-Identifier: MIT
"""ggml: a product of a graph of one node, float32 in and out, activations quantized to its 8-bit blocks in the call. GGML_LIB names the
folder of libggml-base.so and libggml-cpu.so (an installed llama.cpp, or the wheel of llama-cpp-python: llama_cpp/lib). _repack: weights in
the buffer type that interleaves rows."""
import ctypes as c, os
import numpy as np

KINDS = {'f32': 0, 'q4_0': 2, 'q8_0': 8, 'q2_K': 10, 'q3_K': 11, 'q4_K': 12, 'q5_K': 13, 'q6_K': 14, 'iq4_nl': 20, 'mxfp4': 39}
P, L, I, Z = c.c_void_p, c.c_int64, c.c_int, c.c_size_t


class Params(c.Structure):
    _fields_ = [('size', Z), ('buffer', P), ('no_alloc', c.c_bool)]


class Library:
    def __init__(self):
        folder = os.environ.get('GGML_LIB')
        if not folder:
            raise RuntimeError('GGML_LIB is not set')
        self.libs = [c.CDLL(os.path.join(folder, 'libggml-%s.so' % n), mode=c.RTLD_GLOBAL) for n in ('base', 'cpu')]

    def call(self, name, result, *args):
        """name(args) with the types (type, value) of args."""
        f = next(getattr(l, name) for l in self.libs if hasattr(l, name))
        f.restype, f.argtypes = result, [a[0] for a in args]
        return f(*(a[1] for a in args))


def version(peer):
    try:
        return 'ggml ' + Library().call('ggml_version', c.c_char_p).decode()
    except StopIteration:  # older than this function
        return 'ggml'


def product(kind, repack, a, threads):
    g, m, n, k = Library(), a['M'], a['N'], a['K']
    cpu = g.call('ggml_backend_cpu_init', P)
    g.call('ggml_backend_cpu_set_n_threads', None, (P, cpu), (I, threads))
    plain = g.call('ggml_backend_get_default_buffer_type', P, (P, cpu))
    packed = g.call('_Z35ggml_backend_cpu_repack_buffer_typev', P) if repack else plain
    context = lambda size: g.call('ggml_init', P, (Params, Params(size, None, True)))
    alloc = lambda ctx, kind: g.call('ggml_backend_alloc_ctx_tensors_from_buft', P, (P, ctx), (P, kind))
    two = lambda ctx, kind, cols, rows: g.call('ggml_new_tensor_2d', P, (P, ctx), (I, kind), (L, cols), (L, rows))
    weights, calls = context(1 << 20), context(1 << 24)
    w = two(weights, kind, k, n)
    alloc(weights, packed)
    data = source = np.random.rand(n, k).astype('f') - .5
    size = source.nbytes
    if kind:
        data = np.zeros(n * k * 4, 'u1')
        size = g.call('ggml_quantize_chunk', Z, (I, kind), (P, source.ctypes.data), (P, data.ctypes.data), (L, 0), (L, n), (L, k), (P, None))
    g.call('ggml_backend_tensor_set', None, (P, w), (P, data.ctypes.data), (Z, 0), (Z, size))
    x = two(calls, 0, k, m)
    y = g.call('ggml_mul_mat', P, (P, calls), (P, w), (P, x))
    graph = g.call('ggml_new_graph', P, (P, calls))
    g.call('ggml_build_forward_expand', None, (P, graph), (P, y))
    alloc(calls, plain)
    rows = np.random.rand(m, k).astype('f') - .5
    g.call('ggml_backend_tensor_set', None, (P, x), (P, rows.ctypes.data), (Z, 0), (Z, rows.nbytes))
    f = next(getattr(l, 'ggml_backend_graph_compute') for l in g.libs if hasattr(l, 'ggml_backend_graph_compute'))
    f.restype, f.argtypes = I, [P, P]
    return lambda: f(cpu, graph)


def peer(name, repack):
    kind, case0 = KINDS[name], {'f32': 'gemm_f32', 'q8_0': 'gemm_i8_dynamic'}.get(name, 'w4' if name.startswith('q4') else '')

    def case(case, item, a, threads):
        if case == case0 or case == 'format' and a['way'] == 'dynamic' and a['spec'].split(':')[0].lower() == name.lower():
            return product(kind, repack, a, threads)
    return case


PEERS = {'ggml_' + name: peer(name, False) for name in KINDS}
PEERS.update({'ggml_%s_repack' % name: peer(name, True) for name in ('q4_0', 'q4_K', 'iq4_nl', 'q2_K')})

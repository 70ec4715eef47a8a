# SPDX-License-Identifier: MIT
"""NumPy, and libraries with C functions: Debian's oneDNN 2 (apt-get install libdnnl2: plain gemm entry points, nothing prepacked),
OpenBLAS and BLIS (libopenblas0-openmp, libblis4-openmp)."""
import ctypes as c
import numpy as np

from peers.worker import many

R = np.random


def floats(*shape):
    return R.rand(*shape).astype('f')


def at(x):
    return x.ctypes.data_as(c.c_void_p)


def numpy_quantize(item, n):
    x = floats(n // 4096, 4096)
    t, q = np.empty_like(x), np.zeros(x.shape, 'i1')

    def code(scale):
        np.multiply(x, scale, out=t)
        np.rint(t, out=t)
        np.clip(t, -128, 127, out=t)
        q[...] = t
    return {'quant_tensor': lambda: code(np.float32(127)), 'minmax': lambda: (x.min(), x.max()),
            'quant_row': lambda: code(127 / np.maximum(x.max(1, keepdims=True), -x.min(1, keepdims=True))),
            'dyn_quant': lambda: code(np.float32(127 / max(x.max(), -x.min()))),
            'dequant_tensor': lambda: np.multiply(q, np.float32(1 / 127), out=t)}.get(item)


def numpy(case, item, a, threads):
    if case == 'gemm_f32':
        x, y = floats(a['M'], a['K']), floats(a['K'], a['N'])
        out = np.empty((a['M'], a['N']), 'f')
        return lambda: np.matmul(x, y, out=out)
    if case == 'quantize' and threads == 1:  # it has one thread
        return numpy_quantize(item, a['n'])
    if item == 'chain_4M' and threads == 1:
        x, y = floats(4 << 20), floats(4 << 20)
        return lambda: np.tanh(x * 2 + y) * x - y
    if item in ('add8', 'matmul8'):
        x = np.ones(8, 'f') if item == 'add8' else np.ones((8, 8), 'f')
        return many((lambda: x + x) if item == 'add8' else lambda: x @ x)
    return None


def blas(path, set_threads):
    def case(case, item, a, threads):
        if case != 'gemm_f32':
            return None
        lib = c.CDLL(path)
        if set_threads:
            getattr(lib, set_threads)(c.c_int(threads))
        m, n, k, i = a['M'], a['N'], a['K'], c.c_int
        x, y, z = floats(m, k), floats(k, n), np.zeros((m, n), 'f')
        return lambda: lib.cblas_sgemm(i(101), i(111), i(111), i(m), i(n), i(k), c.c_float(1), at(x), i(k), at(y), i(n), c.c_float(0),
                                       at(z), i(n))
    return case


def dnnl(kind):
    def case(case, item, a, threads):
        if case not in ('gemm_f32', 'gemm_i8') or (kind == 's8') > (case == 'gemm_i8'):
            return None
        lib, l, ch = c.CDLL('libdnnl.so.2'), c.c_longlong, c.c_char
        m, n, k = a['M'], a['N'], a['K']
        if case == 'gemm_f32':
            x, y, z = floats(m, k), floats(k, n), np.zeros((m, n), 'f')
            return lambda: lib.dnnl_sgemm(ch(b'N'), ch(b'N'), l(m), l(n), l(k), c.c_float(1), at(x), l(k), at(y), l(n), c.c_float(0), at(z), l(n))
        x, y = R.randint(0, 127, (m, k)).astype('u1' if kind == 'u8' else 'i1'), R.randint(-127, 127, (k, n)).astype('i1')
        z, offset = np.zeros((m, n), 'i4'), np.zeros(1, 'i4')
        f, zero = (lib.dnnl_gemm_u8s8s32, c.c_uint8(0)) if kind == 'u8' else (lib.dnnl_gemm_s8s8s32, c.c_int8(0))
        return lambda: f(ch(b'N'), ch(b'N'), ch(b'F'), l(m), l(n), l(k), c.c_float(1), at(x), l(k), zero, at(y), l(n), c.c_int8(0),
                         c.c_float(0), at(z), l(n), at(offset))
    return case


def version(peer):
    """"oneDNN 2.6.3"; of the BLAS libraries only what they are."""
    if not peer.startswith('dnnl2'):
        return peer

    class Version(c.Structure):
        _fields_ = [('major', c.c_int), ('minor', c.c_int), ('patch', c.c_int)]
    f = c.CDLL('libdnnl.so.2').dnnl_version
    f.restype = c.POINTER(Version)
    v = f().contents
    return 'oneDNN %d.%d.%d' % (v.major, v.minor, v.patch)


LIB = '/usr/lib/x86_64-linux-gnu/'
PEERS = {'numpy': numpy, 'dnnl2': dnnl('u8'), 'dnnl2_s8s8': dnnl('s8'),
         'openblas': blas(LIB + 'openblas-openmp/libopenblas.so.0', 'openblas_set_num_threads'),
         'blis': blas(LIB + 'blis-openmp/libblis.so.4', None)}

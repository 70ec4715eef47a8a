# SPDX-License-Identifier: MIT
"""A peer's process: reads requests, one JSON object a line, {"case", "item", "args", "threads", "budget"}, and answers each by
{"t": [seconds, ...], "med": s, "cpu": s} or {"skip": why}. scripts/bench_worker.lua answers the same."""
import concurrent.futures, importlib, importlib.metadata, json, os, statistics, sys, time

MODULES = ['pytorch', 'pytorch_int8', 'ort', 'nets', 'openvino_cpu', 'libraries', 'ggml', 'tflite']
COLD = 80 << 20  # bytes that each core reads to empty its caches


def builders():
    """name of a peer -> its functions case(case, item, args, threads), which give the function to time or None"""
    found = {}
    for name in MODULES:
        for peer, build in importlib.import_module('peers.' + name).PEERS.items():
            found.setdefault(peer, []).append(build)
    return found


def version(peer):
    """Its library and version, for the rows."""
    name = {'ort': 'onnxruntime', 'torch': 'torch', 'openvino': 'openvino', 'numpy': 'numpy', 'tflite': 'ai-edge-litert'}.get(peer.split('_')[0])
    if name:
        return '%s %s' % (name, importlib.metadata.version(name))
    return importlib.import_module('peers.ggml' if peer.startswith('ggml') else 'peers.libraries').version(peer)


def evictor():
    import numpy as np
    blocks = [np.ones(COLD // 4, 'f') for _ in range(os.cpu_count())]
    pool = concurrent.futures.ThreadPoolExecutor(len(blocks))
    return lambda: list(pool.map(lambda x: x.max(), blocks))


def many(f, n=1000):
    """f called n times; counts as n calls."""
    def calls():
        for _ in range(n):
            f()
    calls.per = n
    return calls


def built(builds, r):
    for build in builds:
        f = build(r['case'], r['item'], r['args'], r['threads'])
        if f:
            stop = time.perf_counter() + .15
            f()
            while time.perf_counter() < stop:
                f()
            return f


def timed(f, budget, evict):
    per, times, cpu, stop = getattr(f, 'per', 1), [], 0, time.perf_counter() + budget
    while len(times) < 2 or time.perf_counter() < stop:
        if evict:
            evict()
        used, start = time.process_time(), time.perf_counter()
        f()
        times.append((time.perf_counter() - start) / per)
        cpu += time.process_time() - used
        if times[0] * per > 1.5:
            break
    return dict(t=sorted(times)[:400], med=statistics.median(times), cpu=cpu, n=len(times))


def run(peer):
    out, builds = os.fdopen(os.dup(1), 'w'), builders()[peer]
    os.dup2(2, 1)  # what libraries print
    key = f = evict = None
    for line in sys.stdin:
        r = json.loads(line)
        try:
            if r['case'] == 'version':
                print(json.dumps(dict(version=version(peer))), file=out, flush=True)
                continue
            if key != (r['case'], r['item'], r['threads']):
                key, f = (r['case'], r['item'], r['threads']), None
                f = built(builds, r)
            if f and r['args'].get('cold'):
                evict = evict or evictor()
            answer = timed(f, r['budget'], r['args'].get('cold') and evict) if f else dict(skip='n/a')
        except Exception as e:  # the peer lives on; the row is skipped
            answer = dict(skip=('%s: %s' % (type(e).__name__, e)).replace('\n', ' ')[:200])
        print(json.dumps(answer), file=out, flush=True)

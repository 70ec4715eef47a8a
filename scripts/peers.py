#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times Quoll beside what its users would take instead, and beside the limits of this machine.

  scripts/peers.py [CASE or ITEM ...] [--threads 1,2] [--rounds 5] [--budget 0.1] [--peers torch,ort] [--out FILE]
  scripts/peers.py --list                 cases, items and who answers them
  scripts/peers.py --table FILE ...       a table of results of --out

Run it with a Python that has the packages to compare with, as far as wanted: torch, onnxruntime and onnx, openvino, numpy; libraries:
Debian's libdnnl2, libopenblas0-openmp, libblis4-openmp; ggml by GGML_LIB (scripts/peers/README.md). Each is a process of its own that answers
JSON lines, {"case", "item", "args", "threads", "budget"} -> {"t": [seconds, ...], "med": s, "cpu": s} or {"skip": why};
`quoll scripts/bench_worker.lua` is one of them, and measures the limits (fma, vnni, read, ...: as `quoll bench`). In each round every one has a
turn, so that a slow minute of the machine hits all; a turn in which other processes used more than 8 % of a core is repeated, up to three
times. Prints for each row the fastest call and the median of the rounds' medians in ms, and Quoll's time by each one's (below 1: Quoll is
faster). Rows name who ran, with versions, and who did not, and why.
"""
import argparse, datetime, json, os, select, statistics, subprocess, sys, time

from peers import cases, table, worker

HERE = os.path.dirname(os.path.abspath(__file__))


def busy():
    """Seconds of processor time that all processes have used, in ticks of the kernel."""
    v = [int(x) for x in open('/proc/stat').readline().split()[1:]]
    return (v[0] + v[1] + v[2] + v[5] + v[6] + v[7]) / os.sysconf('SC_CLK_TCK')


class Peer:
    def __init__(self, name, command, threads):
        self.name, self.skipped, self.version = name, {}, ''
        env = dict(os.environ, **{k + '_NUM_THREADS': str(threads) for k in ('OMP', 'MKL', 'OPENBLAS', 'BLIS')})
        self.p = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=env)

    def ask(self, message, timeout=300):
        try:
            self.p.stdin.write(json.dumps(message) + '\n')
            self.p.stdin.flush()
            if not select.select([self.p.stdout], [], [], timeout)[0]:
                self.p.kill()
                return dict(skip='no answer in %d s' % timeout)
            return json.loads(self.p.stdout.readline() or '{"skip":"the process ended"}')
        except (OSError, ValueError) as e:
            return dict(skip=str(e))

    def close(self):
        self.p.stdin.close()
        try:
            self.p.wait(20)
        except subprocess.TimeoutExpired:
            self.p.kill()


def turn(peer, message):
    """Its answer, in peace if possible."""
    for attempt in range(4):
        before = busy()
        r = peer.ask(message)
        if 'skip' in r or not message['budget'] or 'rate' in r or message['args'].get('cold'):
            break
        foreign = busy() - before - r['cpu']
        if foreign < .08 * max(r['med'] * r.get('n', len(r['t'])), message['budget']):
            break
        time.sleep(.2)
    return r


def limit_of(worker_of_limits, names, threads):
    """(name, rate) of the first that there is."""
    for name in names:
        r = turn(worker_of_limits, dict(case='limit', item=name, args={}, threads=threads, budget=.03))
        if 'rate' in r:
            return name, r['rate']


def measure(row, peers, limits, o, threads):
    case, item, args = row
    message = dict(case=case, item=item, args=dict(args, quoll=o.quoll) if case == 'nets' else args, threads=threads)
    got, bounds, work = {}, [], cases.work(case, item, args)
    for r in range(o.rounds + 1):  # the first round builds and warms up
        if r and work:
            bounds.append(limit_of(limits, work[1], threads))
        for peer in peers:
            if item in peer.skipped:
                continue
            answer = turn(peer, dict(message, budget=o.budget if r else 0))
            if 'skip' in answer:
                peer.skipped[item] = answer['skip']
                got.pop(peer.name, None)
            elif r and 'rate' in answer:
                got.setdefault(peer.name, ([], []))[0].append(answer['rate'])
            elif r:
                low, medians = got.setdefault(peer.name, ([], []))
                low.append(min(answer['t']))
                medians.append(answer['med'])
            time.sleep(.01)
    result = dict(case=case, item=item, threads=threads, date=datetime.date.today().isoformat(), machine=table.machine(), rounds=o.rounds)
    if case == 'limit':
        return dict(result, rates={k: (max(v[0]), statistics.median(v[0])) for k, v in got.items()})
    result['times'] = {k: (min(low), statistics.median(medians)) for k, (low, medians) in got.items()}
    result['versions'] = {p.name: p.version for p in peers if p.name in got}
    result['skipped'] = {p.name: p.skipped[item] for p in peers if item in p.skipped and p.skipped[item] != 'n/a'}
    bounds = [b for b in bounds if b]
    if bounds:
        best = max(bounds, key=lambda b: b[1])
        result['limit'] = dict(name=best[0], rate=best[1], seconds=work[0] / best[1])
    return result


def started(names, o, threads, running):
    """Peers by name, started when first needed."""
    for name in names:
        if name not in running:
            own = name in ('quoll', 'limit')
            command = [o.quoll, os.path.join(HERE, 'bench_worker.lua')] if own else [sys.executable, os.path.abspath(__file__), '--worker', name]
            running[name] = Peer(name, command, threads)
            running[name].version = running[name].ask(dict(case='version', args={})).get('version', name)
    return [running[name] for name in names]


def chosen(o, ap):
    rows = [row for row in cases.ROWS if not o.rows or row[0] in o.rows or row[1] in o.rows or '%s/%s' % row[:2] in o.rows]
    known = {name for row in cases.ROWS for name in (row[0], row[1], '%s/%s' % row[:2])}
    for name in o.rows:
        if name not in known:
            ap.error('unknown row %s (--list shows them)' % name)
    return rows


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument('rows', nargs='*', metavar='CASE, ITEM or CASE/ITEM', help='default: all')
    ap.add_argument('--threads', default='2', help='numbers with commas')
    ap.add_argument('--rounds', type=int, default=5)
    ap.add_argument('--budget', type=float, default=.1, help='seconds of one turn')
    ap.add_argument('--peers', help='only these')
    ap.add_argument('--quoll', default=os.path.join(HERE, '../build/release/quoll'))
    ap.add_argument('--out', metavar='FILE', help='append one JSON object per row')
    ap.add_argument('--list', action='store_true')
    ap.add_argument('--table', nargs='+', metavar='FILE')
    ap.add_argument('--worker', help=argparse.SUPPRESS)
    o = ap.parse_args()
    o.quoll = os.path.abspath(o.quoll)
    if o.worker:
        return worker.run(o.worker)
    if o.table:
        return print(table.markdown(o.table))
    rows = chosen(o, ap)
    if o.list:
        return print('\n'.join('%s/%s: %s' % (c, i, ' '.join(['quoll'] + cases.who(c, a))) for c, i, a in rows))
    for threads in [int(t) for t in o.threads.split(',')]:
        running = {}
        for row in rows:
            names = [n for n in cases.who(row[0], row[2]) if not o.peers or n in o.peers.split(',')]
            peers = started(['quoll'] + names, o, threads, running)
            result = measure(row, peers, started(['limit'], o, threads, running)[0], o, threads)
            print(table.text(result), flush=True)
            if o.out:
                with open(o.out, 'a') as f:
                    f.write(json.dumps(result) + '\n')
        for peer in running.values():
            peer.close()


main()

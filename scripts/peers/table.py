# SPDX-License-Identifier: MIT
"""Results of scripts/peers.py as text and as a table in Markdown."""
import json, os

from peers import cases


def machine():
    name = next((l.split(':')[1].strip() for l in open('/proc/cpuinfo') if l.startswith('model name')), 'unknown')
    return '%s, %d cores' % (name, os.cpu_count())


def best(result, names=None):
    """(name, seconds) of the fastest other one among the names."""
    others = [(n, t[0]) for n, t in result['times'].items() if n != 'quoll' and (names is None or n in names)]
    return min(others, key=lambda x: x[1]) if others else None


def groups(result):
    """[(what it gives, names)] of those beside Quoll: what gives the same first."""
    case = result['case']
    other = [('bare sums', cases.BARE.get(case, [])), ('codes', cases.CODES.get(case, []))]
    same = [n for n in result['times'] if not any(n in names for _, names in other)]
    return [('', same)] + [(what, names) for what, names in other if best(result, names)]


def share(result):
    own, limit = result['times'].get('quoll'), result.get('limit')
    return (limit['seconds'] / own[0], limit['name']) if own and limit else None


def text(result):
    head = '%s/%s, %d thread%s' % (result['case'], result['item'], result['threads'], 's' * (result['threads'] > 1))
    if 'rates' in result:
        return '\n'.join('%s: %.1f G/s (median %.1f)' % (head, *v) for v in result['rates'].values()) or head + ': not on this machine'
    lines, own = [head], result['times'].get('quoll')
    for name, (low, median) in sorted(result['times'].items(), key=lambda x: x[1][0]):
        ratio = '' if name == 'quoll' or not own else '%6.2f %6.2f' % (own[0] / low, own[1] / median)
        if name == 'quoll' and share(result):
            ratio = '%.0f %% of %s' % (100 * share(result)[0], share(result)[1])
        lines.append('  %-18s %10.4f %10.4f  %-13s  %s' % (name, low * 1e3, median * 1e3, ratio, result['versions'].get(name, '')))
    lines += ['  %-18s not measured: %s' % pair for pair in result['skipped'].items()]
    return '\n'.join(lines)


def cells(result):
    own = result['times'].get('quoll')
    ratios = []
    for what, names in groups(result):
        fastest = best(result, names)
        if own and fastest:
            ratios.append('%.2f of %s (%.4g)%s' % (own[0] / fastest[1], fastest[0], fastest[1] * 1e3, ', ' + what if what else ''))
    near = ['%s %.4g' % (n, t[0] * 1e3) for n, t in sorted(result['times'].items(), key=lambda x: x[1][0]) if n != 'quoll']
    limit = '%.0f %% %s' % (100 * share(result)[0], share(result)[1]) if share(result) else ''
    return ['%s/%s, %d' % (result['case'], result['item'], result['threads']), '%.4g' % (own[0] * 1e3) if own else 'refused',
            limit, '; '.join(ratios), ', '.join(near)]


def markdown(files):
    """The last result of each row, with what ran at the end."""
    rows, versions, missing, limits = {}, set(), {}, []
    for file in files:
        for line in open(file):
            r = json.loads(line)
            rows[r['case'], r['item'], r['threads']] = r
    order = {row[:2]: i for i, row in enumerate(cases.ROWS)}
    out = ['| case/item, threads | Quoll, ms | of the limit | ratio to the best (ms) | all others, ms |', '|---|---|---|---|---|']
    for key in sorted(rows, key=lambda k: (order.get(k[:2], 0), k[2])):
        r = rows[key]
        if 'rates' in r:
            limits += ['%s %.0f (%d)' % (r['item'], v[0], r['threads']) for v in r['rates'].values()]
            continue
        out.append('| ' + ' | '.join(cells(r)) + ' |')
        versions |= set(r['versions'].values())
        missing.update({n: why for n, why in r['skipped'].items() if n != 'quoll'})
    last = max(rows.values(), key=lambda r: r['date'])
    notes = ['%s, %s; fastest of %d rounds; %s.' % (last['date'], last['machine'], last['rounds'], ', '.join(sorted(versions)))]
    if limits:
        notes.append('Limits in G/s (threads): %s.' % ', '.join(limits))
    if missing:
        notes.append('Not measured: %s.' % '; '.join('%s (%s)' % pair for pair in sorted(missing.items())))
    return '\n'.join(notes + [''] + out)

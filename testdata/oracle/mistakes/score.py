#!/usr/bin/env python3
"""score.py TOOL [MODELS] [--count N] [--seed N] [--keep FOLDER] [--verbose]

Makes single mistakes in the models of a directory (this repository's, if none is given), by a seeded rule, and scores what
`TOOL check` says of each. What was meant is known: it is what stood there before.

A mistake changes one attribute, edge, port, version, type, offset or name, as a slip of a person or of a script would. It counts
if OpenVINO notices it: if it refuses the file, or gives the outputs other types or shapes. It needs openvino (OPENVINO_PYTHON,
this Python if it is not set). Scored are:

  told     some finding is at the layer or line of the mistake
  first    the first finding is at the layer or line of the mistake
  offered  the original is among the remedies: `edits` give it, or the help names it
  certain  there are `edits`
  fixed    `TOOL check --fix` writes a file in which OpenVINO sees the original model
  wrong    `edits` give another text than the original, and OpenVINO sees another model in it
"""
import collections, glob, json, os, random, re, shutil, subprocess, sys, tempfile

PYTHON = os.environ.get('OPENVINO_PYTHON', sys.executable)
SERVER = r'''
import sys, openvino as ov
core = ov.Core()
def describe(model):
    def of(graph):
        rows = []
        for op in graph.get_ordered_ops():
            outputs = [(str(o.get_element_type()), str(o.get_partial_shape())) for o in op.outputs()]
            values = {k: str(v) for k, v in op.get_attributes().items()} if op.get_type_name() != "Constant" else {}
            rows.append((op.get_type_name(), op.get_friendly_name(), outputs, sorted(values.items())))
        return rows
    return repr(of(model))
import hashlib
for line in sys.stdin:
    path = line.rstrip("\n")
    try:
        model = core.read_model(path)
        core.compile_model(model, "CPU")
        print("OK " + hashlib.sha256(describe(model).encode()).hexdigest(), flush=True)
    except Exception as error:
        print("ERR " + " ".join(str(error).split())[-200:], flush=True)
'''


class OpenVino:
    process = None

    def __call__(self, path):
        for _ in range(2):
            if self.process is None or self.process.poll() is not None:
                self.process = subprocess.Popen([PYTHON, '-c', SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                stderr=subprocess.DEVNULL, text=True)
            try:
                self.process.stdin.write(path + '\n')
                self.process.stdin.flush()
                answer = self.process.stdout.readline().strip()
            except BrokenPipeError:
                answer = ''
            if answer:
                return answer
        return 'CRASH'


TAG = re.compile(r'<(\w+)((?:\s+[\w-]+="[^"]*")*)\s*/?>')
ATTRIBUTE = re.compile(r'([\w-]+)="([^"]*)"')
KEPT = {'name', 'names', 'element_type_from'}


def places(text):
    """Each value of an attribute, and each dim: kind, start, end, and the start of its layer or edge."""
    found, owner, stack = [], 0, []
    for tag in TAG.finditer(text):
        name = tag[1]
        if name in ('layer', 'edge', 'port', 'data', 'input', 'output'):
            for attribute in ATTRIBUTE.finditer(tag[2]):
                start = tag.start(2) + attribute.start(2)
                found.append((name, attribute[1], start, start + len(attribute[2]), tag.start(), tag.end()))
    return found


def slip(word, rng):
    """A misspelling."""
    at = rng.randrange(len(word))
    kind = rng.randrange(3)
    if kind == 0 and len(word) > 3:
        return word[:at] + word[at + 1:]
    if kind == 1:
        return word[:at] + word[at] + word[at:]
    return word[:at] + rng.choice('aeixs') + word[at + 1:]


def numbers(value, rng):
    """Another number or list of numbers, as a slip would make it."""
    parts = value.split(',')
    at = rng.randrange(len(parts))
    try:
        number = int(parts[at])
    except ValueError:
        return None
    kind = rng.randrange(7)
    if kind == 0:
        parts[at] = str(number + rng.choice([1, -1, 2]))
    elif kind == 1:
        parts[at] = str(-number - 1)
    elif kind == 2:
        parts[at] = str(number * 10)
    elif kind == 3:
        parts[at] = hex(number) if number >= 0 else str(number) + 'x'
    elif kind == 4 and len(parts) > 1:
        del parts[at]
    elif kind == 5:
        parts.insert(at, parts[at])
    else:
        rng.shuffle(parts)
    return ','.join(parts)


def change(text, rng, size):
    """Makes a mistake: its kind, the new text, and the span of the old one that differs."""
    rules = [attribute, attribute, attribute_name, lost_attribute, edge_end, edge_end, edge_gone, port_type, port_dim,
             port_gone, version, operation, offset, identity, port_map, edge_twice]
    rule = rng.choice(rules)
    made = rule(text, rng)
    return made and (rule.__name__,) + made


def pick(text, rng, wanted):
    all_places = [place for place in places(text) if wanted(place)]
    return rng.choice(all_places) if all_places else None


def replaced(text, start, end, new):
    return None if new is None or text[start:end] == new else (text[:start] + new + text[end:], start, end, new)


def attribute(text, rng):
    skip = {'offset', 'size', 'element_type', 'variable_id'} if rng.random() < .5 else {'offset', 'size'}
    place = pick(text, rng, lambda p: p[0] == 'data' and p[1] not in skip and p[3] > p[2])
    if not place:
        return None
    value = text[place[2]:place[3]]
    new = numbers(value, rng) if re.fullmatch(r'[-\d, ]+', value) else slip(value, rng)
    return replaced(text, place[2], place[3], new)


def attribute_name(text, rng):
    place = pick(text, rng, lambda p: p[0] == 'data')
    if not place:
        return None
    start = place[2] - 2 - len(place[1])
    return replaced(text, start, start + len(place[1]), slip(place[1], rng))


def lost_attribute(text, rng):
    place = pick(text, rng, lambda p: p[0] == 'data')
    return place and replaced(text, place[2] - 3 - len(place[1]), place[3] + 1, '')


def edge_end(text, rng):
    place = pick(text, rng, lambda p: p[0] == 'edge')
    if not place:
        return None
    number = int(text[place[2]:place[3]])
    return replaced(text, place[2], place[3], str(max(0, number + rng.choice([1, -1, 2, 10]))))


def edge_gone(text, rng):
    place = pick(text, rng, lambda p: p[0] == 'edge')
    return place and replaced(text, place[4], place[5], '')


def edge_twice(text, rng):
    one, other = (pick(text, rng, lambda p: p[0] == 'edge' and p[1] == 'to-port') for _ in range(2))
    if not one:
        return None
    tag = text[other[4]:other[5]]
    ends = re.sub(r'from-layer="\d+" from-port="\d+"', re.search(r'from-layer="\d+" from-port="\d+"', text[one[4]:one[5]])[0], tag)
    return replaced(text, other[4], other[5], ends)


def port_type(text, rng):
    place = pick(text, rng, lambda p: p[0] == 'port' and p[1] == 'precision')
    new = place and rng.choice(['FP32', 'FP16', 'I64', 'I32', 'FLOAT', 'INT64', 'FP23'])
    return place and replaced(text, place[2], place[3], new)


def port_dim(text, rng):
    dims = [m for m in re.finditer(r'<dim>(-?\d+)</dim>', text)]
    dim = rng.choice(dims) if dims else None
    return dim and replaced(text, dim.start(1), dim.end(1), str(int(dim[1]) + rng.choice([1, 2, -1])))


def port_gone(text, rng):
    ports = [m for m in re.finditer(r'<port [^>]*?(/>|>.*?</port>)', text, re.S)]
    port = rng.choice(ports) if ports else None
    return port and replaced(text, port.start(), port.end(), '')


def version(text, rng):
    place = pick(text, rng, lambda p: p[0] == 'layer' and p[1] == 'version')
    return place and replaced(text, place[2], place[3], 'opset%d' % rng.randint(1, 16))


def operation(text, rng):
    place = pick(text, rng, lambda p: p[0] == 'layer' and p[1] == 'type')
    return place and replaced(text, place[2], place[3], slip(text[place[2]:place[3]], rng))


def offset(text, rng):
    place = pick(text, rng, lambda p: p[0] == 'data' and p[1] in ('offset', 'size'))
    if not place or not text[place[2]:place[3]].isdigit():
        return None
    number = int(text[place[2]:place[3]])
    return replaced(text, place[2], place[3], str(rng.choice([number + 1, number + 4, number * 2 + 4, max(0, number - 4)])))


def identity(text, rng):
    place = pick(text, rng, lambda p: p[0] == 'layer' and p[1] == 'id' or p[0] == 'port' and p[1] == 'id')
    if not place:
        return None
    number = int(text[place[2]:place[3]])
    return replaced(text, place[2], place[3], str(number + rng.choice([1, 2, 100, 1000])))


def port_map(text, rng):
    place = pick(text, rng, lambda p: p[0] in ('input', 'output'))
    if not place:
        return None
    if rng.random() < .3:
        return replaced(text, place[4], place[5], '')
    value = text[place[2]:place[3]]
    return replaced(text, place[2], place[3], numbers(value, rng) if re.fullmatch(r'-?\d+', value) else slip(value, rng))


def around(text, start):
    """The layer or edge that a place lies in: lines from and to, and the layer's id and name."""
    tags = [(m.start(), m.end()) for m in re.finditer(r'<edge [^>]*>|<layer [^>]*>', text[:start + 1] + text[start + 1:].split('>')[0] + '>') if m.start() <= start]
    begin = tags[-1][0] if tags else 0
    head = re.match(r'<(edge|layer) [^>]*>', text[begin:])
    end = begin + len(head[0]) if head else begin
    name = None
    ends = []
    if head and head[1] == 'layer':
        close = text.find('</layer>', begin)
        if start <= close or close < 0:
            end = close if close > 0 else end
            name = re.search(r'name="([^"]*)"', head[0])
            name = name and name[1]
    elif head:
        ends = [int(n) for n in re.findall(r'(?:from|to)-layer="(\d+)"', head[0])]
    return text.count('\n', 0, begin) + 1, text.count('\n', 0, max(end, start)) + 1, name, ends


def run(tool, path):
    done = subprocess.run([tool, 'check', '--format', 'json', path], capture_output=True, text=True)
    try:
        return json.loads(done.stdout)['diagnostics']
    except (ValueError, KeyError):
        return []


def fix(tool, path):
    """Returns the file that `check --fix` writes, with its weights."""
    fixed = os.path.join(os.path.dirname(path), 'fixed.xml')
    for old in (fixed, fixed[:-3] + 'bin'):
        if os.path.exists(old):
            os.remove(old)
    subprocess.run([tool, 'check', '--fix', path, '-o', fixed], capture_output=True)
    return fixed


def store(folder, name, changed, text, binary):
    """A case for `fixed.py`."""
    os.makedirs(folder, exist_ok=True)
    for end, it in (('.xml', changed), ('.meant.xml', text)):
        open(os.path.join(folder, name + end), 'w', encoding='utf8', newline='').write(it)
    if os.path.exists(binary):
        shutil.copy(binary, os.path.join(folder, name + '.bin'))


def applied(text, edits):
    lines = [0]
    for m in re.finditer('\n', text):
        lines.append(m.end())
    at = lambda line, column: lines[line - 1] + column - 1
    for edit in sorted(edits, key=lambda e: (e['line'], e['column']), reverse=True):
        start, end = at(edit['line'], edit['column']), at(edit['end_line'], edit['end_column'])
        text = text[:start] + edit['text'] + text[end:]
    return text


def plain(text):
    return re.sub(r'\s+', '', text).replace('></edge>', '/>')


def is_at(finding, mistake):
    first, last, name, ends, old_name, old_ends = mistake
    layer = finding['layer'] or {}
    lines = [finding['line']] + [label['line'] for label in finding['labels']]
    if any(line and first <= line <= last for line in lines):
        return True
    return name is not None and layer.get('name') == name or layer.get('name') == old_name is not None or layer.get('id') in ends + old_ends


def main():
    arguments = sys.argv[1:]
    option = lambda name, default: int(arguments[arguments.index(name) + 1]) if name in arguments else default
    count, seed = option('--count', 400), option('--seed', 1)
    keep = arguments[arguments.index('--keep') + 1] if '--keep' in arguments else None
    valued = ('--count', '--seed', '--keep')
    free = [a for i, a in enumerate(arguments) if not a.startswith('--') and (i == 0 or arguments[i - 1] not in valued)]
    if not free:
        sys.exit(__doc__)
    tool = os.path.abspath(free[0])
    folder = free[1] if len(free) > 1 else os.path.join(os.path.dirname(__file__), '../../models')
    rng, openvino = random.Random(seed), OpenVino()
    models = [m for m in sorted(glob.glob(os.path.join(folder, '*.xml')))
              if os.path.getsize(m) < 400_000 and '.promote' not in m and '.ref' not in m]
    rows, kinds = [], collections.defaultdict(lambda: collections.Counter())
    known = {}
    with tempfile.TemporaryDirectory() as room:
        while len(rows) < count:
            model = rng.choice(models)
            text = open(model, encoding='utf8', newline='').read()
            path = os.path.join(room, 'case.xml')
            binary = model[:-3] + 'bin'
            if os.path.exists(path[:-3] + 'bin'):
                os.remove(path[:-3] + 'bin')
            if os.path.exists(binary):
                open(path[:-3] + 'bin', 'wb').write(open(binary, 'rb').read())
            if model not in known:
                open(path, 'w', encoding='utf8', newline='').write(text)
                known[model] = openvino(path)
            if not known[model].startswith('OK'):
                continue
            made = change(text, rng, 0)
            if not made:
                continue
            kind, changed, start, end, new = made
            open(path, 'w', encoding='utf8', newline='').write(changed)
            answer = openvino(path)
            if answer == known[model]:
                continue
            if keep:
                store(keep, '%04d' % len(rows), changed, text, path[:-3] + 'bin')
            found = [f for f in run(tool, path) if f['severity'] != 'note']
            first, last, name, ends = around(changed, start)
            _, _, old_name, old_ends = around(text, start)
            mistake = (first, last, name, ends, old_name, old_ends)
            original = text[start:end]
            helps = ' '.join(' '.join(f['help']) for f in found)
            edits = [f['edits'] for f in found if f.get('edits')]
            results = [applied(changed, e) for e in edits]
            exact = any(plain(r) == plain(text) for r in results)
            wrong = 0
            fixed = bool(edits) and openvino(fix(tool, path)) == known[model]
            for result in results:
                if plain(result) != plain(text):
                    open(path, 'w', encoding='utf8', newline='').write(result)
                    wrong += openvino(path) != known[model]
            words = original.strip()
            whole = re.sub(r'\s+', ' ', text[text.rfind('<', 0, start + 1):text.find('>', end) + 1])
            value = re.search(r'([\w-]+)="$', text[:start])
            wanted = [w for w in ('%s="%s"' % (value[1], words) if value else words, whole if '<edge' in whole else None) if w]
            offered = exact or (bool(results) and not wrong) or any(plain(w) in plain(helps) for w in wanted)
            row = dict(kind=kind, model=os.path.basename(model), told=any(is_at(f, mistake) for f in found),
                       first=bool(found) and is_at(found[0], mistake), offered=offered, certain=bool(edits), fixed=fixed, wrong=wrong > 0)
            rows.append(row)
            kinds[kind]['count'] += 1
            for key in ('told', 'first', 'offered', 'certain', 'fixed', 'wrong'):
                kinds[kind][key] += row[key]
            bad = not row['offered'] or row['wrong'] or not row['first'] or row['certain'] and not row['fixed']
            if '--verbose' in arguments and bad:
                print('%s %s line %d: %r -> %r' % (kind, row['model'], first, original[:150], new[:150]),
                      ''.join(' ' + k for k in ('told', 'first', 'offered', 'certain', 'fixed', 'wrong') if row[k]))
                for f in found[:3]:
                    print('      %s %s [line %s]: %s | %s' % (f['severity'], f['code'], f['line'], f['message'][:140], ' || '.join(f['help'])[:300]))
                print('      openvino:', answer[:150], flush=True)
    print('| kind | mistakes | told | first at the place | original offered | certain | fixed | wrong certain |')
    print('|---|---|---|---|---|---|---|---|')
    total = collections.Counter()
    for kind, c in sorted(kinds.items()):
        print('| %s | %d | %d | %d | %d | %d | %d | %d |' % (
            kind, c['count'], c['told'], c['first'], c['offered'], c['certain'], c['fixed'], c['wrong']))
        total.update(c)
    share = lambda key: '%.0f %%' % (100 * total[key] / max(1, total['count']))
    shares = [share(key) for key in ('told', 'first', 'offered', 'certain', 'fixed', 'wrong')]
    print('| all | %d | %s |' % (total['count'], ' | '.join(shares)))


if __name__ == '__main__':
    main()

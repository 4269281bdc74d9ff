#!/usr/bin/env python3
"""fixed.py TOOL FOLDER [--verbose]

Runs `TOOL check --fix` on every NAME.xml of a folder with its NAME.bin, and lets OpenVINO read the result.
NAME.meant.xml is the text without the mistakes, if it is known; `score.py --keep FOLDER` writes such pairs. It needs
openvino (OPENVINO_PYTHON, this Python if it is not set).

  nothing    no remedy is certain, nothing was written
  meant      OpenVINO reads and compiles what was written, and sees the model that was meant in it
  other      OpenVINO reads and compiles it, and sees another model
  loads      OpenVINO reads and compiles it, and what was meant is not known
  partly     every line that was changed is now as it was meant, and other mistakes are left
  refused    OpenVINO refuses it, and more is wrong than what `check` says is left
"""
import collections, glob, json, os, shutil, subprocess, sys, tempfile

from score import OpenVino


def lines(path):
    return collections.Counter(line.strip() for line in open(path, encoding='utf8', errors='replace'))


def is_step(case, fixed, meant):
    """Returns whether every new line of `fixed` is one of `meant`, and no line that it lost is."""
    case, fixed, meant = lines(case), lines(fixed), lines(meant)
    return not (fixed - case) - (meant - case) and not (case - fixed) - (case - meant)


def judge(tool, case, openvino, room):
    meant = case[:-len('.xml')] + '.meant.xml'
    fixed = os.path.join(room, 'fixed.xml')
    for old in glob.glob(os.path.join(room, '*')):
        os.remove(old)
    done = subprocess.run([tool, 'check', '--fix', case, '-o', fixed, '--format', 'json'], capture_output=True, text=True)
    if not os.path.exists(fixed) or lines(case) == lines(fixed):
        return 'nothing', ''
    answer = openvino(fixed)
    if not answer.startswith('OK'):
        if os.path.exists(meant) and is_step(case, fixed, meant):
            return 'partly', answer
        try:
            left = sum(it['severity'] == 'error' for it in json.loads(done.stdout)['diagnostics'])
        except (ValueError, KeyError):
            left = 0
        return ('partly' if left and not os.path.exists(meant) else 'refused'), answer
    if not os.path.exists(meant):
        return 'loads', ''
    copy = os.path.join(room, 'meant.xml')
    shutil.copy(meant, copy)
    if os.path.exists(case[:-3] + 'bin'):
        shutil.copy(case[:-3] + 'bin', copy[:-3] + 'bin')
    if openvino(copy) == answer:
        return 'meant', ''
    return ('partly' if is_step(case, fixed, meant) else 'other'), ''


def main():
    arguments = [word for word in sys.argv[1:] if word != '--verbose']
    if len(arguments) != 2:
        sys.exit(__doc__)
    tool, folder = os.path.abspath(arguments[0]), arguments[1]
    openvino, verdicts = OpenVino(), collections.Counter()
    with tempfile.TemporaryDirectory() as room:
        for case in sorted(glob.glob(os.path.join(folder, '*.xml'))):
            if case.endswith('.meant.xml'):
                continue
            verdict, why = judge(tool, case, openvino, room)
            verdicts[verdict] += 1
            if '--verbose' in sys.argv or verdict in ('other', 'refused'):
                print('%-8s %s %s' % (verdict, os.path.basename(case), why), flush=True)
    print(', '.join('%s %d' % it for it in verdicts.most_common()))


if __name__ == '__main__':
    main()

#!/usr/bin/env python3
"""effort.py TOOL FOLDER

Measures the cost of trying fixes. It compares the CPU time of `TOOL check` on every NAME.xml of a folder that has a
mistake with that on NAME.meant.xml, the same model without it, where nothing is tried. `score.py --keep FOLDER` writes
such pairs. Each runs three times, and the least time counts.
"""
import glob, os, resource, shutil, statistics, subprocess, sys, tempfile


def cpu(command):
    def once():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return min(once() for _ in range(3))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    tool, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
    rows = []
    with tempfile.TemporaryDirectory() as room:
        for meant in sorted(glob.glob(os.path.join(folder, '*.meant.xml'))):
            case = meant[:-len('.meant.xml')] + '.xml'
            sound = os.path.join(room, 'sound.xml')
            shutil.copy(meant, sound)
            binary = case[:-3] + 'bin'
            if os.path.exists(binary):
                shutil.copy(binary, sound[:-3] + 'bin')
            times = [cpu([tool, 'check', case]), cpu([tool, 'check', sound])]
            rows.append((*times, os.path.getsize(case), os.path.basename(case)))
            os.path.exists(sound[:-3] + 'bin') and os.remove(sound[:-3] + 'bin')
    wrong, sound, size = (sum(row[at] for row in rows) for at in range(3))
    median = statistics.median(row[0] / row[1] for row in rows)
    print('%d models of %.1f MB of text: %.2f s of CPU with a mistake, %.2f s without, ratio %.1f, of the median model %.1f' % (
        len(rows), size / 1e6, wrong, sound, wrong / sound, median))
    for row in sorted(rows, key=lambda row: row[0] - row[1], reverse=True)[:5]:
        print('  %s: %.3f s with, %.3f s without, %d KB' % (row[3], row[0], row[1], row[2] // 1000))


if __name__ == '__main__':
    main()

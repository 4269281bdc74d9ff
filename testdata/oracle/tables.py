"""Writes the tables in this folder: CSV whose first column lists every key that has these cells.

A table maps a key (one word: an operation, a mode) to rows, and a row's operand to its cells. Keys with equal rows share
them, which keeps the files small enough to read and to commit.
"""
import csv


def write_table(path, columns, table, legend):
    """Writes `{key: {lhs: [cell, ...]}}`, one cell per column. A row is `keys,lhs,cell,...`."""
    shared = {}
    for key, rows in table.items():
        for lhs, cells in rows.items():
            assert len(cells) == len(columns), (key, lhs)
            shared.setdefault((lhs, tuple(cells)), []).append(key)
    with open(path, "w", encoding="utf-8", newline="") as f:
        f.writelines(f"# {line}\n" for line in legend)
        w = csv.writer(f, lineterminator="\n")
        w.writerow(["keys", "lhs", *columns])
        w.writerows([" ".join(keys), lhs, *cells] for (lhs, cells), keys in shared.items())


def read_table(path):
    """Returns the table that `write_table` wrote: (columns, {key: {lhs: [cell, ...]}})."""
    with open(path, encoding="utf-8", newline="") as f:
        rows = csv.reader(line for line in f if not line.startswith("#"))
        columns = next(rows)[2:]
        table = {}
        for keys, lhs, *cells in rows:
            for key in keys.split():
                table.setdefault(key, {})[lhs] = cells
    return columns, table

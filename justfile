# Everything a change must pass, as CI runs it.
ready:
    .ci/run

# Takes new snapshots over after looking at each.
review:
    cargo insta review

# The benches, and docs/benchmarks.md from what they print.
bench:
    cargo bench --workspace

# The archive of a release: program, man pages, completions, licences.
dist:
    .ci/dist

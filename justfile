# Everything a change must pass, as CI runs it.
ready:
    .ci/run

# Takes new snapshots over after looking at each.
review:
    cargo insta review

# The benches, and the tables that they write.
bench:
    cargo bench --workspace

# The archive of a release: program, man pages, completions, licences.
dist:
    .ci/dist

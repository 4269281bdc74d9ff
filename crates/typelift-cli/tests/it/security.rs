//! Promises of `docs/security.md`, each with the tests that hold it.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// The crates that bind the library to another language.
const BINDINGS: [&str; 2] = ["typelift-py", "typelift-web"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the sources of every crate, without tests.
fn sources() -> Vec<PathBuf> {
    let crates = fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path().join("src"));
    let (mut pending, mut sources) = (crates.filter(|path| path.is_dir()).collect::<Vec<_>>(), Vec::new());
    while let Some(folder) = pending.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                pending.extend((!path.ends_with("tests")).then_some(path));
            } else if path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with("tests.rs") {
                sources.push(path);
            }
        }
    }
    sources
}

/// Promises of the page, each with the tests and fuzz targets that hold it.
#[rustfmt::skip]
const PROMISES: &[(&str, &[&str])] = &[
    ("No panic", &[
        "crates/typelift/tests/it/mutations.rs: damaged_fixtures_are_refused_or_survive",
        "crates/typelift/tests/it/corpus.rs: the_corpus_of_models_survives",
        "crates/typelift/fuzz/fuzz_targets/model.rs",
    ]),
    ("A panic stays in one model", &[
        "crates/typelift-cli/src/batch.rs: a_model_that_makes_the_program_panic_is_reported_and_the_others_go_on",
    ]),
    ("Operands, types and shapes", &[
        "crates/typelift/tests/it/promotion_mutations.rs: any_operands_and_shapes_survive",
        "crates/typelift/fuzz/fuzz_targets/promotion.rs",
    ]),
    ("Listings, rules and statements", &[
        "crates/typelift/tests/it/notation_mutations.rs: damaged_texts_survive",
        "crates/typelift/fuzz/fuzz_targets/notation.rs",
    ]),
    ("Nesting", &[
        "crates/typelift/tests/it/corpus.rs: nesting_without_end_survives",
        "crates/typelift/tests/it/bodies.rs: shapes_that_grow_settle_however_deep_the_loops_nest",
    ]),
    ("Size of the text", &[
        "crates/typelift-cli/tests/it/files.rs: what_is_no_model_is_not_read_to_its_end",
        "crates/typelift-cli/tests/it/trust.rs: the_hole_of_a_sparse_text_is_not_read",
    ]),
    ("Time and memory", &[
        "crates/typelift/tests/effort.rs: a_chain_takes_few_allocations_and_little_memory",
        "crates/typelift/tests/effort.rs: misshapen_models_are_looked_at_in_proportion_to_their_size",
        "crates/typelift-cli/tests/effort/main.rs: convert_is_in_proportion_to_misshapen_models",
        "crates/typelift-cli/tests/effort/main.rs: view_is_in_proportion_to_misshapen_models",
        "crates/typelift/tests/effort.rs: effort_is_in_proportion_to_the_graph",
        "crates/typelift/src/model/graph/visits/tests.rs: statements_over_patterns_take_linear_time",
        "crates/typelift/tests/effort.rs: plans_are_read_in_proportion_to_their_lines",
        "crates/typelift/tests/effort.rs: large_graphs_of_every_shape_are_converted",
    ]),
    ("Values of shapes", &[
        "crates/typelift/tests/effort.rs: values_take_no_more_memory_than_their_budget",
    ]),
    ("Values of constants", &[
        "crates/typelift-cli/tests/it/trust.rs: a_small_file_cannot_ask_for_much_memory",
        "crates/typelift/tests/it/quantization.rs: scales_and_reordered_values_keep_to_the_memory_limit",
        "crates/typelift-run/tests/it/verify.rs: inputs_beyond_the_memory_limit_are_refused_by_name",
        "crates/typelift-cli/tests/it/openvino.rs: files_of_inputs_are_regular_and_not_too_large",
    ]),
    ("Seeded hashes", &[
        "crates/typelift/src/base/hash.rs: no_two_tables_hash_alike",
    ]),
    ("Escaped text", &[
        "crates/typelift-cli/tests/it/trust.rs: no_text_of_a_file_reaches_the_terminal_as_it_is",
        "crates/typelift-cli/tests/it/trust.rs: colours_are_all_that_a_terminal_gets",
        "crates/typelift-cli/src/gate.rs: text_of_files_commands_nothing",
    ]),
    ("Numbers in a file", &[
        "crates/typelift/src/model/shape/mod.rs: a_rank_from_a_file_cannot_exhaust_memory",
    ]),
    ("The `.bin`", &[
        "crates/typelift-cli/tests/it/files.rs: weights_that_are_a_pipe_or_a_directory_are_refused_at_once",
    ]),
    ("Other input files", &[
        "crates/typelift-cli/tests/it/trust.rs: a_device_or_a_pipe_is_refused_at_once",
        "crates/typelift-cli/tests/it/trust.rs: the_hole_of_a_sparse_text_is_not_read",
        "crates/typelift-run/tests/it/execution.rs: damaged_execution_graphs_are_read_or_refused",
        "crates/typelift-cli/tests/it/openvino.rs: files_of_inputs_are_regular_and_not_too_large",
    ]),
    ("Files of arrays", &[
        "crates/typelift/fuzz/fuzz_targets/files.rs",
        "crates/typelift/tests/it/files_mutations.rs: damaged_files_of_arrays_and_plans_are_refused_or_survive",
        "crates/typelift/tests/effort.rs: files_of_arrays_take_memory_in_proportion",
        "crates/typelift/src/ops/values/array/file.rs: values_beyond_the_memory_limit_are_refused_and_another_model_may_have_more",
        "crates/typelift/src/ops/values/array/file.rs: only_the_bytes_of_an_array_are_read",
        "crates/typelift/src/ops/values/array/npy.rs: what_is_not_an_array_of_numbers_is_refused",
        "crates/typelift/src/ops/values/array/safetensors.rs: a_header_that_says_more_than_the_file_has_is_refused",
    ]),
    ("Errors", &[
        "crates/typelift/tests/it/malformed.rs: what_openvino_refuses_is_an_error_with_a_place",
    ]),
    ("Output files", &[
        "crates/typelift-cli/tests/it/files.rs: nothing_is_written_over_what_is_read_or_written_too",
        "crates/typelift-cli/tests/it/files.rs: nothing_is_written_over_what_is_read_through_links",
        "crates/typelift-cli/tests/it/files.rs: replacing_the_input_needs_to_be_asked_for",
        "crates/typelift-cli/tests/it/reduce.rs: nothing_that_is_read_is_written_over",
        "crates/typelift-cli/tests/it/trust.rs: a_report_replaces_no_file_that_any_option_reads",
    ]),
    ("Links", &[
        "crates/typelift/src/text/save/tests/mod.rs: links_are_replaced_and_what_they_lead_to_stays",
        "crates/typelift-cli/tests/it/files.rs: weights_behind_a_link_become_a_file_of_their_own",
    ]),
    ("Offsets", &[
        "crates/typelift-cli/tests/it/layout.rs: constants_keep_their_offsets_unless_compacting_saves_enough",
    ]),
    ("Growth", &[
        "crates/typelift-cli/tests/it/layout.rs: overlapping_constants_do_not_grow_without_limit",
    ]),
    ("Interruption", &[
        "crates/typelift/src/text/save/tests/mod.rs: a_kill_at_any_step_mixes_nothing_and_the_next_run_completes_the_pair",
        "crates/typelift/src/text/save/tests/mod.rs: a_disk_that_fails_at_any_step_mixes_nothing",
        "crates/typelift-cli/tests/it/files.rs: a_kill_never_mixes_a_pair",
        "crates/typelift-cli/tests/it/files.rs: an_interrupt_leaves_a_pair_and_nothing_else",
    ]),
    ("Pipes", &[
        "crates/typelift-cli/tests/it/files.rs: a_pipe_that_nobody_reads_is_an_error_and_one_that_is_read_gets_all",
    ]),
    ("Planted files", &[
        "crates/typelift/src/text/save/tests/planted.rs: a_stage_that_is_no_directory_of_this_user_harms_nothing",
        "crates/typelift/src/text/save/tests/planted.rs: a_lock_that_is_no_file_of_this_user_harms_nothing",
        "crates/typelift/src/text/save/tests/planted.rs: a_lock_that_names_other_files_harms_nothing",
        "crates/typelift/src/text/save/tests/planted.rs: links_among_what_a_run_left_harm_nothing",
        "crates/typelift-cli/tests/it/files.rs: what_a_stranger_planted_is_not_believed",
    ]),
    ("Parallel runs", &[
        "crates/typelift/src/text/save/tests/mod.rs: runs_that_write_other_models_into_one_folder_leave_each_other_alone",
        "crates/typelift-cli/tests/it/files.rs: processes_that_write_into_one_folder_leave_each_other_alone",
        "crates/typelift-cli/tests/it/files.rs: processes_that_change_one_model_lose_nothing_without_a_word",
        "crates/typelift/src/text/save/tests/mod.rs: a_save_that_was_overtaken_is_refused",
        "crates/typelift/src/text/save/tests/mod.rs: whether_weights_are_written_is_decided_under_the_lock",
    ]),
    ("No network", &[
        "crates/typelift-cli/tests/it/security.rs: sources_name_neither_the_network_nor_other_programs",
    ]),
    ("The Python of `verify`", &[
        "crates/typelift-cli/tests/it/openvino.rs: a_broken_answer_ends_the_run_in_time",
        "crates/typelift-cli/tests/it/openvino.rs: what_the_python_started_ends_with_it",
        "crates/typelift-cli/tests/it/openvino.rs: a_python_ends_when_the_program_is_killed",
        "crates/typelift-cli/tests/it/openvino.rs: no_telemetry_is_sent",
        "crates/typelift-cli/src/openvino/child.rs: a_tensor_has_the_bytes_of_its_type_and_shape",
        "crates/typelift-cli/src/openvino/child.rs: a_reply_that_is_too_large_or_no_json_is_an_error",
        "crates/typelift-cli/src/openvino/child.rs: replies_with_several_damages_are_replies_or_errors",
    ]),
    ("The command of `reduce`", &[
        "crates/typelift-cli/tests/it/reduce.rs: only_the_weights_of_layers_that_are_left_are_written",
        "crates/typelift-cli/tests/it/reduce.rs: a_command_that_prints_without_end_fills_no_disk",
    ]),
    ("The result of `reduce`", &[
        "crates/typelift-cli/tests/it/reduce.rs: only_the_weights_of_layers_that_are_left_are_written",
        "crates/typelift-cli/tests/it/trust.rs: each_secret_of_an_anonymous_model_is_gone_or_named",
    ]),
    ("Printed commands", &[
        "crates/typelift-cli/tests/it/trust.rs: names_of_files_in_printed_commands_are_quoted",
    ]),
    ("No code from the current folder", &[
        "crates/typelift-cli/tests/it/openvino.rs: no_module_of_the_current_folder_is_run",
        "crates/typelift-cli/tests/it/openvino.rs: the_python_gets_only_whole_paths_to_search",
    ]),
    ("No `unsafe`", &[
        "crates/typelift-cli/tests/it/security.rs: unsafe_code_is_forbidden_everywhere",
    ]),
];

#[test]
fn every_promise_has_tests_that_exist() {
    let page = fs::read_to_string(root().join("docs/security.md")).unwrap();
    let promised: Vec<&str> =
        page.lines().filter_map(|line| Some(line.strip_prefix("- **")?.split_once(".**")?.0)).collect();
    assert_eq!(promised, PROMISES.iter().map(|(promise, _)| *promise).collect::<Vec<_>>());
    for name in PROMISES.iter().flat_map(|(_, tests)| *tests) {
        let (file, test) = name.split_once(": ").unwrap_or((name, ""));
        let text = fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
        let test = if test.is_empty() { "fuzz_target!".to_owned() } else { format!("fn {test}(") };
        assert!(text.contains(&test), "{file} has no {test}");
    }
}

#[test]
fn sources_name_neither_the_network_nor_other_programs() {
    let sources = sources();
    assert!(sources.len() > 50);
    // `reduce` runs the command that it is given, and `verify` a Python.
    let starting = ["typelift-cli/src/process.rs", "reduce/judge.rs"];
    for path in sources.into_iter().filter(|path| !starting.iter().any(|file| path.ends_with(file))) {
        let text = fs::read_to_string(&path).unwrap();
        for name in ["std::net", "TcpStream", "UdpSocket", "process::Command"] {
            assert!(!text.contains(name), "{}: {name}", path.display());
        }
    }
}

#[test]
fn unsafe_code_is_forbidden_everywhere() {
    let manifest = |path: &Path| fs::read_to_string(path.join("Cargo.toml")).unwrap();
    assert!(manifest(&root()).contains("unsafe_code = \"forbid\""));
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let path = entry.unwrap().path();
        // The macros of bindings generate unsafe code, so these crates cannot forbid it. Their sources contain none.
        if BINDINGS.iter().any(|name| path.ends_with(name)) {
            continue;
        }
        assert!(manifest(&path).contains("[lints]\nworkspace = true"), "{}", path.display());
    }
    for path in
        sources().iter().filter(|path| BINDINGS.iter().any(|name| path.components().any(|it| it.as_os_str() == *name)))
    {
        let text = fs::read_to_string(path).unwrap();
        let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
        assert!(!words.any(|word| word == "unsafe" || word == "unsafe_code"), "{}", path.display());
    }
}

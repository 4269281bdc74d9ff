//! Written files: never lost, never mixed, never over input files.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::cli::{entries, folder, model, run, run_with};

/// Returns every file of a folder, with its bytes.
fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let read = |name: String| fs::read(folder.join(&name)).ok().map(|bytes| (name, bytes));
    entries(folder).into_iter().filter_map(read).collect()
}

/// Returns a folder with the model and another one, each with its weights.
fn two_models() -> TempDir {
    let folder = folder();
    fs::write(folder.path().join("other.xml"), model("f16", 2)).unwrap();
    fs::write(folder.path().join("other.bin"), 2.5_f32.to_le_bytes()).unwrap();
    folder
}

#[test]
fn nothing_is_written_over_what_is_read_or_written_too() {
    let folder = two_models();
    let path = folder.path();
    fs::hard_link(path.join("model.xml"), path.join("hard.xml")).unwrap();
    fs::hard_link(path.join("model.bin"), path.join("hard.bin")).unwrap();
    fs::create_dir(path.join("sub")).unwrap();
    let refused = [
        &["convert", "model.xml", "-o", "out.xml", "--report", "model.xml"][..],
        &["convert", "model.xml", "-o", "out.xml", "--report", "model.bin"],
        &["convert", "model.xml", "-o", "out.xml", "--report", "./sub/../model.bin"],
        &["convert", "model.xml", "-o", "out.xml", "--report", "hard.bin"],
        &["convert", "model.xml", "-o", "out.xml", "--report", "out.xml"],
        &["convert", "model.xml", "-o", "out.xml", "--report", "sub/../out.bin"],
        &["convert", "model.xml", "-o", "out.xml", "--report", "absent/report.json"],
        &["convert", "model.xml", "-o", "out.xml", "--report", "sub"],
        &["convert", "model.xml", "--dry-run", "--report", "model.xml"],
        &["convert", "other.xml", "--in-place", "--report", "other.bin"],
        &["convert", "model.xml", "--in-place"],
        &["convert", "model.xml", "-o", "hard.xml"],
        &["convert", "other.xml", "-o", "."],
        &["convert", "model.xml", "other.xml", "-o", "."],
        &["convert", "model.xml", "other.xml", "-o", "out", "--report", "out/other.bin"],
        &["infer", "other.xml", "-o", "./"],
        &["view", "model.xml", "-o", "model.bin"],
        &["view", "model.xml", "-o", "hard.bin"],
        &["view", "model.xml", "-o", "hard.xml"],
        &["view", "model.xml", "other.xml", "-o", "other.bin"],
        &["view", "model.xml", "--bin", "w.bin", "-o", "w.bin"],
        &["view", "model.xml", "-o", "sub"],
        &["convert", "model.xml", "--bin", "w.bin", "-o", "w.bin"],
        &["convert", "model.xml", "--bin", "w.weights", "-o", "w.weights"],
        &["convert", "model.xml", "--bin", "w.bin", "-o", "w.xml", "--report", "w.bin"],
        &["convert", "other.xml", "--bin", "model.bin", "-o", "model.xml"],
        &["rewrite", "other.xml", "--rules", "r.txt", "-o", "r.txt"],
        &["rewrite", "other.xml", "--rules", "r.txt", "-o", "out.xml", "--report", "r.txt"],
        &["rewrite", "other.xml", "--rules", "r.txt", "--dry-run", "--report", "r.txt"],
        &["rewrite", "other.xml", "--rules", "rules.bin", "-o", "rules.xml"],
        &["rewrite", "alone.xml", "--rules", "alone.bin", "--in-place"],
        &["rewrite", "other.xml", "alone.xml", "--rules", "out.v1/alone.bin", "-o", "out.v1"],
    ];
    for weights in ["w.bin", "w.weights"] {
        fs::copy(path.join("model.bin"), path.join(weights)).unwrap();
    }
    fs::create_dir(path.join("out.v1")).unwrap();
    for rules in ["r.txt", "rules.bin", "alone.bin", "out.v1/alone.bin"] {
        fs::write(path.join(rules), "Relu(Relu(x)) => Relu(x)\n").unwrap();
    }
    fs::copy(path.join("other.xml"), path.join("alone.xml")).unwrap();
    let before = contents(path);
    let messages = refused.map(|arguments| {
        let run = run(path, arguments);
        assert_eq!((run.status, run.stdout.as_str()), (2, ""), "{arguments:?} {run:?}");
        assert!(contents(path) == before && !path.join("out").exists(), "{arguments:?}");
        assert_eq!(entries(&path.join("out.v1")), ["alone.bin"]);
        run.stderr
    });
    insta::assert_snapshot!(messages.join(""));
}

/// Links lead to input files as their own names do.
#[cfg(unix)]
#[test]
fn nothing_is_written_over_what_is_read_through_links() {
    let folder = two_models();
    let path = folder.path();
    fs::write(path.join("r.txt"), "Relu(Relu(x)) => Relu(x)\n").unwrap();
    for (file, link) in [("model.xml", "x.html"), ("model.bin", "b.html"), ("r.txt", "r.xml"), ("r.txt", "s.bin")] {
        std::os::unix::fs::symlink(file, path.join(link)).unwrap();
    }
    let before = contents(path);
    for arguments in [
        &["view", "model.xml", "-o", "x.html"][..],
        &["view", "model.xml", "-o", "b.html"],
        &["view", "x.html", "-o", "model.xml"],
        &["view", "x.html", "--bin", "b.html", "-o", "model.bin"],
        &["convert", "other.xml", "--bin", "b.html", "-o", "out.xml", "--report", "model.bin"],
        &["rewrite", "other.xml", "--rules", "r.txt", "-o", "r.xml"],
        &["rewrite", "other.xml", "--rules", "r.xml", "-o", "r.txt"],
        &["rewrite", "other.xml", "--rules", "r.txt", "-o", "s.xml"],
    ] {
        let run = run(path, arguments);
        assert!(run.status == 2 && run.stderr.contains("read from it"), "{arguments:?} {run:?}");
        assert!(contents(path) == before, "{arguments:?}");
    }
}

#[test]
fn weights_that_stay_beside_a_new_graph_are_named() {
    let folder = two_models();
    let path = folder.path();
    let convert = |to: &str| run(path, &["convert", "model.xml", "-o", to, "--weights", "none"]).stderr;
    let said = "`other.bin` was there before and stays as it is; the weights of this model are in `model.bin`\n";
    assert!(convert("other.xml").contains(said), "{}", convert("other.xml"));
    for silent in ["new.xml", "model.xml"] {
        assert!(!convert(silent).contains("stays"), "{silent}");
    }
    let piped = run_with(path, &["convert", "-", "-o", "other.xml", "--weights", "none"], model("f16", 1).as_bytes());
    assert!(piped.stderr.contains("nothing shows that it has the weights of this model"), "{piped:?}");
}

#[test]
fn a_report_is_of_this_run() {
    let folder = folder();
    let path = folder.path();
    let report = path.join("report.json");
    let convert = |file: &str| run(path, &["convert", file, "-o", "out.xml", "--report", "report.json"]).status;
    assert_eq!(convert("model.xml"), 0);
    assert!(report.exists());
    fs::write(path.join("faulty.xml"), model("f64", 1).replace("ConvertPromoteTypes", "Add")).unwrap();
    assert_eq!(convert("faulty.xml"), 1);
    assert!(fs::read_to_string(&report).unwrap().contains("\"severity\": \"error\""));
    assert_eq!(convert("absent.xml"), 2);
    assert!(!report.exists());
    assert_eq!(
        run(path, &["convert", "model.xml", "--dry-run", "--report", if cfg!(windows) { "NUL" } else { "/dev/null" }])
            .status,
        0
    );
}

#[test]
fn a_directory_takes_a_model_by_its_name() {
    let folder = folder();
    let path = folder.path();
    fs::create_dir(path.join("there.v2")).unwrap();
    for directory in ["there.v2", "new/", "new.v1/", "new/er/", "glob"] {
        assert_eq!(run(path, &["convert", "model.xml", "-o", directory]).status, 0, "{directory}");
        assert_eq!(
            entries(&path.join(directory))[..2],
            ["model.bin", "model.xml"].map(|name| name.to_owned()),
            "{directory}"
        );
    }
    let piped = run_with(path, &["infer", "-", "-o", "piped/", "--weights", "none"], model("f16", 1).as_bytes());
    assert_eq!((piped.status, entries(&path.join("piped"))), (0, vec!["model.xml".to_owned()]));
    assert_eq!(run(path, &["convert", "model.xml", "-o", "absent/out.xml"]).status, 2);
    assert!(!path.join("new.bin").exists() && !path.join("absent").exists());
}

#[test]
fn what_is_no_model_is_not_read_to_its_end() {
    let folder = folder();
    let path = folder.path();
    let large = fs::File::create(path.join("large.xml")).unwrap();
    large.set_len(3 << 30).unwrap();
    assert_eq!(run(path, &["check", "large.xml"]).status, 1);
    large.set_len(5 << 30).unwrap();
    assert_eq!(run(path, &["check", "large.xml"]).status, 2);
    #[cfg(unix)]
    for endless in ["/dev/zero", "/dev/urandom"] {
        assert_eq!(run(path, &["check", endless]).status, 1, "{endless}");
    }
}

#[cfg(unix)]
mod unix {
    use std::io::{BufRead, BufReader};
    use std::os::unix::fs::{MetadataExt, symlink};
    use std::path::PathBuf;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::cli::command;

    /// Returns the place where a run prepares the replacement of `out.xml`, and the hash of that name.
    fn stage(folder: &Path) -> (PathBuf, String) {
        let user = fs::metadata(folder).unwrap().uid();
        let hash = b"out.xml"
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        (folder.join(format!(".typelift-{user}.tmp")), format!("{hash:016x}"))
    }

    /// A directory created by somebody else claims that a pair is half written, and which files belong to it.
    #[test]
    fn what_a_stranger_planted_is_not_believed() {
        let home = folder();
        fs::write(home.path().join("keys"), "precious").unwrap();
        let home_before = contents(home.path());
        let verbs = [
            &["stats", "out.xml"][..],
            &["check", "out.xml"],
            &["show", "out.xml"],
            &["infer", "out.xml"],
            &["why", "out.xml", "x"],
            &["diff", "out.xml", "model.xml"],
            &["view", "out.xml", "-o", "-"],
            &["convert", "out.xml", "--dry-run"],
            &["convert", "out.xml", "-o", "-"],
        ];
        for linked in ["", "lock", "xml", "bin", "old"] {
            let folder = folder();
            let path = folder.path();
            let (stage, hash) = stage(path);
            for stage in [&stage, &path.join(format!(".typelift-{hash}.tmp"))] {
                fs::create_dir(stage).unwrap();
                for ending in ["lock", "xml", "bin", "old"] {
                    let file = stage.join(format!("{hash}.{ending}"));
                    if ending == linked {
                        symlink(home.path().join("keys"), file).unwrap();
                    } else {
                        fs::write(file, format!("out.xml\0{}", home.path().join("keys").display())).unwrap();
                    }
                }
            }
            let planted = contents(&stage);
            for arguments in verbs {
                let run = run(path, arguments);
                assert_eq!(run.status, 2, "{arguments:?} {run:?}");
                assert!(contents(&stage) == planted && entries(path).len() == 4, "{arguments:?}");
            }
            for arguments in [
                &["infer", "--in-place", "out.xml"][..],
                &["convert", "model.xml", "-o", "other.xml"],
                &["convert", "model.xml", "-o", "out.xml", "--report", "report.json"],
            ] {
                run(path, arguments);
                assert!(contents(home.path()) == home_before, "{linked} {arguments:?}");
            }
        }
    }

    #[test]
    fn a_run_says_what_it_waits_for() {
        let folder = folder();
        let path = folder.path();
        let (stage, hash) = stage(path);
        fs::create_dir(&stage).unwrap();
        let lock = fs::File::create(stage.join(format!("{hash}.lock"))).unwrap();
        lock.lock().unwrap();
        let mut child = command(path, &["convert", "model.xml", "-o", "out.xml"]);
        let mut child = child.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert_eq!(line, "waiting for another run that is writing `out.xml`\n");
        assert!(!path.join("out.xml").exists() && child.try_wait().unwrap().is_none());
        drop(lock);
        assert!(child.wait().unwrap().success());
        assert_eq!(entries(path), ["model.bin", "model.xml", "out.bin", "out.xml"]);
    }

    /// Many processes write different models into one folder, and some of them are killed.
    #[test]
    fn processes_that_write_into_one_folder_leave_each_other_alone() {
        let folder = folder();
        let path = folder.path();
        let write = |worker: u32| {
            for at in 0..20 {
                let name = format!("out{worker}-{at}.xml");
                let mut child = command(path, &["convert", "model.xml", "-o", &name]);
                let mut child = child.stderr(Stdio::piped()).spawn().unwrap();
                if worker == 0 {
                    std::thread::sleep(Duration::from_millis(at));
                    child.kill().unwrap();
                    child.wait().unwrap();
                } else {
                    let run = child.wait_with_output().unwrap();
                    assert!(run.status.success(), "{name}: {run:?}");
                }
            }
        };
        std::thread::scope(|scope| (0..5).for_each(|worker| drop(scope.spawn(move || write(worker)))));
        assert_eq!(run(path, &["convert", "model.xml", "-o", "last.xml"]).status, 0);
        for worker in 1..5 {
            for name in (0..20).map(|at| format!("out{worker}-{at}")) {
                assert!(
                    path.join(format!("{name}.xml")).exists() && path.join(format!("{name}.bin")).exists(),
                    "{name}"
                );
            }
        }
        let (stage, _) = stage(path);
        // A pair that waits for its graph is kept.
        let left = if stage.exists() { entries(&stage) } else { Vec::new() };
        assert!(left.iter().all(|name| left.contains(&name.replace("lock", "xml"))), "{left:?}");
    }

    /// Processes change one model in place at the same time. A change is there, or its run was refused.
    #[test]
    fn processes_that_change_one_model_lose_nothing_without_a_word() {
        const PROCESSES: usize = 8;
        for _ in 0..3 {
            let folder = folder();
            let path = folder.path();
            fs::write(path.join("model.xml"), model("f16", PROCESSES)).unwrap();
            let change = |at: usize| {
                let statement = format!("rename s{at} renamed{at}");
                let words = match at {
                    0 => vec!["convert", "--compress", "f16", "--in-place", "model.xml"],
                    _ => vec!["rewrite", "-e", &statement, "--in-place", "model.xml"],
                };
                run(path, &words)
            };
            let runs: Vec<crate::cli::Run> = std::thread::scope(|scope| {
                let running: Vec<_> = (0..PROCESSES).map(|at| scope.spawn(move || change(at))).collect();
                running.into_iter().map(|run| run.join().unwrap()).collect()
            });
            let text = fs::read_to_string(path.join("model.xml")).unwrap();
            for (at, run) in runs.iter().enumerate() {
                let mark = if at == 0 {
                    "element_type=\"f16\" shape=\"\" offset".to_owned()
                } else {
                    format!("\"renamed{at}\"")
                };
                match run.status {
                    0 => assert!(text.contains(&mark), "{at}: {run:?} {text}"),
                    _ => assert!(run.status == 2 && run.stderr.contains("run it again"), "{run:?}"),
                }
            }
            assert_eq!(run(path, &["check", "model.xml"]).status, 0);
            assert_eq!(entries(path), ["model.bin", "model.xml"]);
        }
    }

    #[test]
    fn the_device_of_standard_output_is_standard_output() {
        let folder = folder();
        let path = folder.path();
        let graph = run(path, &["convert", "model.xml", "-o", "-"]).stdout;
        for to in ["/dev/stdout", "/dev/fd/1"] {
            assert_eq!(run(path, &["convert", "model.xml", "-o", to]).stdout, graph);
            let file = fs::File::create(path.join("redirected")).unwrap();
            assert!(command(path, &["convert", "model.xml", "-o", to]).stdout(file).status().unwrap().success());
            assert_eq!(fs::read_to_string(path.join("redirected")).unwrap(), graph);
        }
        let page = run(path, &["view", "model.xml", "-o", "/dev/stdout"]).stdout;
        assert!(page.starts_with("<!doctype html>"));
        let report = run(path, &["convert", "model.xml", "--dry-run", "--report", "/dev/stdout"]).stdout;
        assert!(report.starts_with('{'), "{report}");
    }

    /// Linux keeps files in memory below `/dev`. A model there is replaced whole, as on a disk.
    #[cfg(target_os = "linux")]
    #[test]
    fn files_in_memory_are_files() {
        let Ok(memory) = tempfile::tempdir_in("/dev/shm") else { return };
        let folder = folder();
        let out = memory.path().join("out.xml").display().to_string();
        for name in ["first", "second"] {
            let rename = format!("rename x {name}");
            let run = run(folder.path(), &["rewrite", "model.xml", "-e", &rename, "-e", "set c = 2", "-o", &out]);
            assert_eq!(run.status, 0, "{run:?}");
            assert!(fs::read_to_string(&out).unwrap().contains(name));
        }
        assert_eq!(entries(memory.path()), ["out.bin", "out.xml"]);
    }

    /// `convert --weights link` to another file system makes a symbolic link. What replaces the weights replaces the link.
    #[test]
    fn weights_behind_a_link_become_a_file_of_their_own() {
        let folder = folder();
        let path = folder.path();
        fs::create_dir(path.join("store")).unwrap();
        for (link, to) in [("out.bin", "store/old"), ("new.bin", "store/new")] {
            fs::write(path.join("store/old"), "old").unwrap();
            symlink(to, path.join(link)).unwrap();
            let run = run(path, &["convert", "model.xml", "-o", &link.replace("bin", "xml")]);
            let said = format!("`{link}` was a link to `{to}`, which stays as it is; now it is a file\n");
            assert!(run.status == 0 && run.stderr.contains(&said), "{run:?}");
            assert_eq!(fs::read(path.join(link)).unwrap(), fs::read(path.join("model.bin")).unwrap());
            assert!(!path.join(link).is_symlink());
        }
        assert_eq!(entries(&path.join("store")), ["old"]);
        assert_eq!(fs::read_to_string(path.join("store/old")).unwrap(), "old");
        // The same in place, and with the pair that the link leads to.
        let before = fs::read(path.join("model.bin")).unwrap();
        fs::copy(path.join("model.xml"), path.join("far.xml")).unwrap();
        symlink("model.bin", path.join("far.bin")).unwrap();
        let changed = run(path, &["convert", "--types", "f32=f64", "--in-place", "far.xml"]);
        assert!(changed.status == 0 && changed.stderr.contains("`far.bin` was a link to `model.bin`"), "{changed:?}");
        assert_eq!(fs::read(path.join("model.bin")).unwrap(), before);
        assert_eq!(run(path, &["check", "model.xml"]).status, 0);
    }

    #[test]
    fn replacing_the_input_needs_to_be_asked_for() {
        let folder = folder();
        let path = folder.path();
        symlink("model.xml", path.join("link.xml")).unwrap();
        fs::create_dir(path.join("sub")).unwrap();
        let before = contents(path);
        let names = ["model.xml", "./model.xml", "sub/../model.xml", "link.xml", "./"];
        for verb in [&["convert"][..], &["infer"], &["rewrite", "--use", "all"], &["check", "--fix"]] {
            for to in names {
                let run = run(path, &[verb, &["model.xml", "-o", to]].concat());
                assert!(
                    run.status == 2 && run.stderr.contains("use --in-place to replace it"),
                    "{verb:?} {to} {run:?}"
                );
                assert!(contents(path) == before);
            }
        }
        for (verb, to) in [("convert", "out.onnx"), ("infer", "out.txt"), ("view", "out.xml"), ("view", "out.svg")] {
            let run = run(path, &[verb, "model.xml", "-o", to]);
            assert!(run.status == 2 && run.stderr.contains("typelift writes "), "{to} {run:?}");
            assert!(contents(path) == before);
        }
    }

    #[test]
    fn new_weights_do_not_go_into_a_pipe_and_do_not_wait_for_its_reader() {
        let folder = folder();
        let path = folder.path();
        assert!(Command::new("mkfifo").arg(path.join("out.bin")).status().unwrap().success());
        let run = run(path, &["convert", "model.xml", "-o", "out.xml"]);
        assert!(run.status == 2 && run.stderr.contains("`out.bin`: it is not a regular file"), "{run:?}");
        assert!(!path.join("out.xml").exists());
    }

    #[test]
    fn a_pipe_that_nobody_reads_is_an_error_and_one_that_is_read_gets_all() {
        let folder = folder();
        let path = folder.path();
        fs::write(path.join("model.xml"), model("f16", 3_000)).unwrap();
        assert!(Command::new("mkfifo").arg(path.join("pipe")).status().unwrap().success());
        for arguments in [
            &["convert", "model.xml", "-o", "pipe"][..],
            &["convert", "model.xml", "--dry-run", "--report", "pipe"],
            &["view", "model.xml", "-o", "pipe"],
        ] {
            let alone = run(path, arguments);
            let reason = "cannot write `pipe`: nothing reads from this pipe";
            assert!(alone.status == 2 && alone.stderr.contains(reason), "{alone:?}");
        }
        let graph = run(path, &["convert", "model.xml", "-o", "-"]).stdout;
        let mut reader = Command::new("sh").args(["-c", "cat pipe > got"]).current_dir(path).spawn().unwrap();
        assert_eq!(run(path, &["convert", "model.xml", "-o", "pipe"]).status, 0);
        assert!(reader.wait().unwrap().success() && fs::read_to_string(path.join("got")).unwrap() == graph);
    }

    #[test]
    fn the_root_is_no_place_for_a_model() {
        let folder = two_models();
        for arguments in [
            &["convert", "model.xml", "-o", "/"][..],
            &["infer", "model.xml", "-o", "//"],
            &["convert", "model.xml", "other.xml", "-o", "/."],
            &["rewrite", "--use", "all", "model.xml", "-o", "/"],
            &["check", "--fix", "model.xml", "-o", "/"],
        ] {
            let run = run(folder.path(), arguments);
            assert!(run.status == 2 && run.stderr.contains("it is the root of the file system"), "{run:?}");
            assert!(!Path::new("/model.xml").exists());
        }
    }

    #[test]
    fn weights_that_are_a_pipe_or_a_directory_are_refused_at_once() {
        let folder = folder();
        let path = folder.path();
        fs::remove_file(path.join("model.bin")).unwrap();
        assert!(Command::new("mkfifo").arg(path.join("model.bin")).status().unwrap().success());
        for arguments in [&["check", "model.xml"][..], &["convert", "model.xml", "-o", "out.xml"]] {
            let run = run(path, arguments);
            assert_eq!(run.status, 2);
            assert!(run.stderr.contains("`model.bin`: it is not a regular file"), "{run:?}");
        }
        assert_eq!(run(path, &["check", "model.xml", "--bin", "."]).status, 2);
    }

    /// Commands that write a pair. The model in `in.xml` is valid except for an error that `check` fixes, and so is a
    /// model written in place.
    const WRITERS: [&[&str]; 9] = [
        &["convert", "in.xml", "-o", "out.xml"],
        &["check", "--fix", "in.xml", "-o", "out.xml"],
        &["rewrite", "--use", "all", "in.xml", "-o", "out.xml"],
        &["infer", "in.xml", "-o", "out.xml"],
        &["check", "--fix", "--in-place", "out.xml"],
        &["convert", "--compress", "f16", "--in-place", "out.xml"],
        &["convert", "--strip-weights", "random", "in.xml", "-o", "out.xml"],
        &["rewrite", "-e", "rename * y_*", "--in-place", "out.xml"],
        &["reduce", "--finding", "unknown-operation", "--max-runs", "20", "in.xml", "-o", "out.xml"],
    ];

    /// A folder with a pair at `out.xml` and a command that replaces it. The files are larger than one write call.
    struct Writer {
        folder: TempDir,
        arguments: &'static [&'static str],
        old: [Vec<u8>; 2],
        new: [Vec<u8>; 2],
    }

    impl Writer {
        fn of(arguments: &'static [&'static str]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path();
            let sound = model("f16", 300);
            let text = if ["check", "reduce"].contains(&arguments[0]) {
                sound.replacen("\"Const\"", "\"Cnst\"", 1)
            } else {
                sound
            };
            let read = [text.into_bytes(), vec![0x3f; 3 << 20]];
            fs::write(path.join("in.xml"), &read[0]).unwrap();
            fs::write(path.join("in.bin"), &read[1]).unwrap();
            let is_in_place = arguments.contains(&"--in-place");
            let old = if is_in_place { read } else { [model("f32", 1).into_bytes(), vec![1; 1 << 20]] };
            let mut writer = Self { folder, arguments, new: old.clone(), old };
            writer.put();
            writer.run();
            writer.new = pair(writer.path()).map(Option::unwrap);
            assert!(writer.new[0] != writer.old[0], "{arguments:?}");
            writer
        }

        fn path(&self) -> &Path {
            self.folder.path()
        }

        fn put(&self) {
            fs::write(self.path().join("out.xml"), &self.old[0]).unwrap();
            fs::write(self.path().join("out.bin"), &self.old[1]).unwrap();
        }

        fn run(&self) {
            let run = run(self.path(), self.arguments);
            assert_eq!(run.status, 0, "{run:?}");
            assert_eq!(entries(self.path()), ["in.bin", "in.xml", "out.bin", "out.xml"]);
        }

        fn left(&self) -> Left {
            left(self.path(), &self.old, &self.new)
        }

        /// Signals runs at moments spread over them, denser at the end. Returns the remaining files of each.
        fn interrupted(&self, signal: &str, times: u32) -> Vec<Left> {
            self.put();
            let begin = Instant::now();
            self.run();
            let whole = begin.elapsed();
            let tried = (0..times).map(|at| {
                self.put();
                let mut child = command(self.path(), self.arguments);
                let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
                let share = f64::from(at) / f64::from(times);
                std::thread::sleep(whole.mul_f64(share.sqrt() * 1.1).min(Duration::from_secs(5)));
                // The process may have ended already.
                let _ = Command::new("kill").args([signal, &child.id().to_string()]).stderr(Stdio::null()).status();
                child.wait().unwrap();
                self.left()
            });
            tried.collect()
        }
    }

    fn pair(folder: &Path) -> [Option<Vec<u8>>; 2] {
        ["out.xml", "out.bin"].map(|name| fs::read(folder.join(name)).ok())
    }

    /// Remaining files: the old pair, the new one, or weights without a graph. A reading run reports the last case, and
    /// a writing run completes it.
    #[derive(Debug, PartialEq)]
    enum Left {
        Old,
        New,
        Completed,
    }

    fn left(folder: &Path, old: &[Vec<u8>; 2], new: &[Vec<u8>; 2]) -> Left {
        match pair(folder) {
            [Some(xml), Some(bin)] if xml == old[0] && bin == old[1] => Left::Old,
            [Some(xml), Some(bin)] if xml == new[0] && bin == new[1] => Left::New,
            [None, Some(bin)] if bin == old[1] || bin == new[1] => {
                let before = contents(folder);
                let read = run(folder, &["check", "out.xml"]);
                assert!(
                    read.status == 2 && read.stderr.contains("`typelift infer --in-place out.xml` completes it"),
                    "{read:?}"
                );
                assert!(contents(folder) == before);
                assert_eq!(run(folder, &["infer", "--in-place", "out.xml"]).status, 0);
                assert_ne!(left(folder, old, new), Left::Completed);
                Left::Completed
            }
            [xml, bin] => panic!("mixed: {:?} {:?}", xml.map(|xml| xml.len()), bin.map(|bin| bin.len())),
        }
    }

    /// Returns the number of tries of a test; `TYPELIFT_TRIES` sets a larger one.
    fn tries() -> u32 {
        std::env::var("TYPELIFT_TRIES").ok().and_then(|tries| tries.parse().ok()).unwrap_or(25)
    }

    #[test]
    fn a_kill_never_mixes_a_pair() {
        for arguments in WRITERS {
            let writer = Writer::of(arguments);
            let left = writer.interrupted("-KILL", tries().div_ceil(WRITERS.len() as u32));
            assert!(left.contains(&Left::Old), "{left:?}");
            writer.put();
            writer.run();
        }
    }

    #[test]
    fn an_interrupt_leaves_a_pair_and_nothing_else() {
        // An interrupted `reduce` writes the smallest model that it found, which is a third pair.
        for arguments in WRITERS.into_iter().filter(|arguments| arguments[0] != "reduce") {
            let writer = Writer::of(arguments);
            for signal in ["-INT", "-TERM", "-HUP"] {
                let left = writer.interrupted(signal, tries().div_ceil(WRITERS.len() as u32));
                assert!(!left.contains(&Left::Completed), "{left:?}");
                // A signal that arrives before any file exists leaves nothing to remove.
                assert_eq!(entries(writer.path()), ["in.bin", "in.xml", "out.bin", "out.xml"]);
            }
        }
    }

    #[test]
    fn a_file_that_may_not_grow_is_an_error_and_changes_nothing() {
        let writer = Writer::of(WRITERS[0]);
        let path = writer.path();
        for at in 0..tries() {
            writer.put();
            let program = env!("CARGO_BIN_EXE_typelift");
            let limit = 8 * at * 1024 / tries();
            let script = format!("ulimit -f {limit}; exec {program} convert in.xml -o out.xml --report report.json");
            let run = Command::new("sh").args(["-c", &script]).current_dir(path).output().unwrap();
            let left = writer.left();
            match run.status.code() {
                Some(0) => assert_eq!(left, Left::New),
                Some(2) => assert!(left == Left::Old && String::from_utf8_lossy(&run.stderr).contains("cannot write")),
                _ => panic!("{limit}: {run:?}"),
            }
            let _ = fs::remove_file(path.join("report.json"));
            assert_eq!(entries(path), ["in.bin", "in.xml", "out.bin", "out.xml"], "{limit}");
        }
    }

    /// Fills disks of growing size. Needs Linux and the permission to mount in a namespace.
    #[test]
    #[ignore = "needs to mount"]
    fn a_full_disk_is_an_error_and_changes_nothing() {
        for arguments in WRITERS {
            let writer = Writer::of(arguments);
            let path = writer.path();
            fs::create_dir(path.join("disk")).unwrap();
            let size = |pair: &[Vec<u8>; 2]| pair.iter().map(Vec::len).sum::<usize>() / 1024;
            // Both old files fit on the disk; at the end of the test both new ones fit next to them.
            let (least, more) = (size(&writer.old) + 50, size(&writer.new) + 150);
            let times = tries().max(50).div_ceil(WRITERS.len() as u32) as usize;
            for at in 0..times {
                writer.put();
                let size = least + more * at / (times - 1);
                let program = env!("CARGO_BIN_EXE_typelift");
                let arguments = arguments.join(" ").replace("out.xml", "disk/out.xml");
                let script = format!(
                    "mount -t tmpfs -o size={size}k none disk && cp out.xml out.bin disk && rm out.xml out.bin\n\
                     {program} {arguments}; status=$?\n\
                     cp disk/* . && ls -A disk > entries; exit $status"
                );
                let mut run = Command::new("unshare");
                let run = run.args(["--map-root-user", "--mount", "sh", "-c", &script]);
                let run = run.current_dir(path).output().unwrap();
                let expected = if run.status.success() { Left::New } else { Left::Old };
                assert_eq!(writer.left(), expected, "{size} {run:?}");
                assert_eq!(fs::read_to_string(path.join("entries")).unwrap(), "out.bin\nout.xml\n", "{size} {run:?}");
            }
            assert_eq!(writer.left(), Left::New);
        }
    }
}

#[test]
fn weights_of_another_name_are_found_by_their_length() {
    let folder = two_models();
    let path = folder.path();
    fs::remove_file(path.join("other.bin")).unwrap();
    fs::rename(path.join("model.bin"), path.join("weights.bin")).unwrap();
    for command in [&["convert", "model.xml", "-o", "out.xml"][..], &["check", "model.xml"]] {
        let text = said(path, command);
        assert!(text.contains("`--bin weights.bin` names a file of exactly the"), "{command:?}: {text}");
    }
    fs::write(path.join("second.bin"), fs::read(path.join("weights.bin")).unwrap()).unwrap();
    let text = said(path, &["convert", "model.xml", "-o", "out.xml"]);
    assert!(!text.contains("names a file"), "two files have this length: {text}");
}

#[test]
fn a_slip_in_the_name_of_a_folder_leads_to_the_file() {
    let folder = two_models();
    let deep = folder.path().join("models/v1");
    fs::create_dir_all(&deep).unwrap();
    fs::copy(folder.path().join("model.xml"), deep.join("model.xml")).unwrap();
    let text = said(folder.path(), &["check", "model/v1/model.xml"]);
    assert!(text.contains("typelift check models/v1/model.xml"), "{text}");
}

/// The output of a command.
fn said(folder: &Path, arguments: &[&str]) -> String {
    let done = run(folder, arguments);
    format!("{}{}", done.stdout, done.stderr)
}

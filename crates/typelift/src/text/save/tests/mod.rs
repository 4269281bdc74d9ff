//! Tests that interrupt saving at each step, by a kill or by a disk error that occurs once or permanently.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Mutex;
use std::thread::JoinHandle;
use std::{env, process};

use tempfile::TempDir;

use super::stage::interrupt;
use super::*;
use crate::Weights;
use crate::base::file::FileId;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Kill,
    FailOnce,
    FailFromThen,
    /// An interrupt by another thread.
    Interrupt,
}

/// An action of another process in a folder, after this number of steps.
type Other = (usize, fn(PathBuf), PathBuf);

static INTERRUPT: Mutex<Option<JoinHandle<()>>> = Mutex::new(None);

thread_local! {
    /// The event after this number of steps.
    static FAULT: Cell<Option<(usize, Fault)>> = const { Cell::new(None) };
    /// The action of another process.
    static OTHER: Cell<Option<Other>> = const { Cell::new(None) };
}

/// Called before every change of the disk.
pub(super) fn step() -> io::Result<()> {
    match OTHER.take() {
        Some((0, other, folder)) => std::thread::spawn(move || other(folder)).join().unwrap(),
        Some((left, other, folder)) => OTHER.set(Some((left - 1, other, folder))),
        None => {}
    }
    match FAULT.get() {
        None => return Ok(()),
        Some((1.., fault)) => {
            FAULT.set(FAULT.get().map(|(left, _)| (left - 1, fault)));
            return Ok(());
        }
        Some((0, Fault::Kill)) => process::abort(),
        Some((0, Fault::FailOnce)) => FAULT.set(None),
        Some((0, Fault::FailFromThen)) => {}
        Some((0, Fault::Interrupt)) => {
            FAULT.set(None);
            *INTERRUPT.lock().unwrap() = Some(std::thread::spawn(interrupt));
            // The interrupt is given time to end or to wait for this thread. Nothing may be left in either case.
            std::thread::sleep(std::time::Duration::from_millis(20));
            return Ok(());
        }
    }
    Err(io::ErrorKind::StorageFull.into())
}

const OLD: &str = "old";
const CONSTANT: &str = r#"<net name="n" version="11"><layers>
<layer id="0" name="c" type="Const" version="opset1"><data element_type="u8" shape="3" offset="0" size="3"/>
<output><port id="0" precision="U8"><dim>3</dim></port></output></layer>
<layer id="1" name="r" type="Result" version="opset1"><input><port id="0" precision="U8"><dim>3</dim></port></input></layer>
</layers><edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges></net>"#;

fn model() -> Model {
    let mut model = Model::from_xml(CONSTANT).unwrap();
    model.weights = Weights::from_bytes(*b"new");
    model
}

/// Returns the content of `out.xml` and `out.bin` in a folder.
fn pair(folder: &Path) -> [Option<String>; 2] {
    ["out.xml", "out.bin"].map(|name| fs::read_to_string(folder.join(name)).ok())
}

fn new_pair() -> [Option<String>; 2] {
    [Some(CONSTANT.to_owned()), Some("new".to_owned())]
}

fn folder(old: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in old {
        fs::write(folder.path().join(name), OLD).unwrap();
    }
    folder
}

fn entries(folder: &Path) -> BTreeSet<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| PathBuf::from(entry.unwrap().file_name())).collect()
}

/// Checks that an old file is not combined with a new one.
fn assert_not_mixed(before: &[Option<String>; 2], after: &[Option<String>; 2]) {
    let whole = after == before || *after == new_pair();
    assert!(whole || after[0].is_none(), "{after:?}");
}

/// Checks that a pair without a graph is completed with the graph that matches its weights.
fn assert_completed(folder: &Path, before: &[Option<String>; 2], left: &[Option<String>; 2]) {
    let path = folder.join("out.xml");
    assert!(is_half_written(&path).unwrap());
    assert_eq!(pair(folder), *left);
    assert!(recover(&path).unwrap());
    assert_eq!(pair(folder), if left[1] == before[1] { before.clone() } else { new_pair() });
    assert!(!is_half_written(&path).unwrap());
}

fn save(folder: &Path) -> Result<(), SaveError> {
    model().save(folder.join("out.xml"))
}

/// Opens the files of the pair. On Windows, an open file gives way in more steps.
fn open(folder: &Path) -> Vec<File> {
    ["out.xml", "out.bin"].into_iter().flat_map(|name| File::open(folder.join(name))).collect()
}

/// True for each way to save that differs on this system: with files that nobody has open, and with open ones.
const ARE_OPEN: &[bool] = if cfg!(windows) { &[false, true] } else { &[false] };

const BEFORE: [&[&str]; 4] = [&["out.xml", "out.bin"], &["out.xml"], &["out.bin"], &[]];

#[test]
fn a_disk_that_fails_at_any_step_mixes_nothing() {
    for (old, are_open) in BEFORE.into_iter().flat_map(|old| ARE_OPEN.iter().map(move |open| (old, *open))) {
        for fault in [Fault::FailOnce, Fault::FailFromThen] {
            for steps in 0.. {
                let folder = folder(old);
                let before = pair(folder.path());
                let opened = if are_open { open(folder.path()) } else { Vec::new() };
                FAULT.set(Some((steps, fault)));
                let saved = save(folder.path());
                drop(opened);
                let reached = FAULT.take().is_none_or(|(left, _)| left == 0);
                let after = pair(folder.path());
                assert_not_mixed(&before, &after);
                if saved.is_ok() {
                    assert_eq!(after, new_pair());
                }
                if fault == Fault::FailOnce && after[0].is_none() && before[0].is_some() {
                    assert_completed(folder.path(), &before, &after);
                }
                save(folder.path()).unwrap();
                assert_eq!(pair(folder.path()), new_pair());
                assert_eq!(entries(folder.path()).len(), 2, "{:?}", entries(folder.path()));
                if !reached {
                    break;
                }
            }
        }
    }
}

/// Runs a program. None if Wine failed to start it: of thousands of processes, few end there before their first step.
fn output(program: &mut Command) -> Option<Output> {
    const ERROR_INTERNAL_ERROR: i32 = 1359;
    match program.output() {
        Err(error) if cfg!(windows) && error.raw_os_error() == Some(ERROR_INTERNAL_ERROR) => None,
        output => Some(output.unwrap()),
    }
}

/// Runs an action in a separate process, which dies after this number of steps. Returns true if it died.
fn dies(action: &str, steps: usize, folder: &Path) -> bool {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "text::save::tests::child", "--test-threads=1"]).current_dir(folder);
    child.env("TYPELIFT_SAVE_TEST", format!("{action} {steps}"));
    let output = (1..10).find_map(|_| output(&mut child)).unwrap_or_else(|| child.output().unwrap());
    let finished = String::from_utf8_lossy(&output.stdout).contains("1 passed");
    assert_eq!(output.status.success(), finished, "{output:?}");
    !finished
}

/// Runs the action of [`dies`] in the child process; does nothing in an ordinary run.
#[test]
fn child() {
    let Ok(task) = env::var("TYPELIFT_SAVE_TEST") else { return };
    let (action, steps) = task.rsplit_once(' ').unwrap();
    if action == "interrupt" {
        FAULT.set(Some((steps.parse().unwrap(), Fault::Interrupt)));
        let _interrupted_or_not = save(Path::new(""));
        if let Some(thread) = INTERRUPT.lock().unwrap().take() {
            thread.join().unwrap();
            process::abort();
        }
        return;
    }
    FAULT.set(Some((steps.parse().unwrap(), Fault::Kill)));
    match action {
        "save" => save(Path::new("")).unwrap(),
        "save graph" => save_graph(Path::new("")).unwrap(),
        "save open" => {
            let _opened = open(Path::new(""));
            save(Path::new("")).unwrap();
        }
        "save open graph" => {
            let _opened = open(Path::new(""));
            save_graph(Path::new("")).unwrap();
        }
        _ => assert!(recover(Path::new("out.xml")).is_ok()),
    }
}

#[test]
fn a_kill_at_any_step_mixes_nothing_and_the_next_run_completes_the_pair() {
    for (old, are_open) in BEFORE.into_iter().flat_map(|old| ARE_OPEN.iter().map(move |open| (old, *open))) {
        for steps in 0.. {
            let folder = folder(old);
            let before = pair(folder.path());
            let died = dies(if are_open { "save open" } else { "save" }, steps, folder.path());
            let after = pair(folder.path());
            assert_not_mixed(&before, &after);
            let was_missing = after[0].is_none() && before[0].is_some();
            assert_eq!(was_missing, before[0].is_some() && is_half_written(&folder.path().join("out.xml")).unwrap());
            // A kill may also interrupt the completion.
            for steps in 0..if was_missing { usize::MAX } else { 3 } {
                let died = dies("recover", steps, folder.path());
                assert_not_mixed(&before, &pair(folder.path()));
                if !died {
                    break;
                }
            }
            if was_missing {
                // Weights that are out of the way on Windows return.
                let is_old = after[1] == before[1] || after[1].is_none();
                assert_eq!(pair(folder.path()), if is_old { before } else { new_pair() });
            }
            save(folder.path()).unwrap();
            assert_eq!(pair(folder.path()), new_pair());
            assert_eq!(entries(folder.path()).len(), 2, "{:?}", entries(folder.path()));
            if !died {
                break;
            }
        }
    }
}

/// An interrupt left a file that had been created after the removal of the others, once in 5,100 kills.
#[test]
fn an_interrupt_at_any_step_leaves_nothing() {
    for old in [&["out.xml", "out.bin"][..], &[]] {
        for steps in 0.. {
            let folder = folder(old);
            let before = pair(folder.path());
            // A file of another model keeps the directory, so that files can be created after an interrupt too.
            let stage = stage::folder_of(&folder.path().join("out.xml"));
            fs::create_dir(&stage).unwrap();
            fs::write(stage.join("other.new"), OLD).unwrap();
            let interrupted = dies("interrupt", steps, folder.path());
            let after = pair(folder.path());
            assert!(after == before || after == new_pair(), "step {steps}: {after:?}");
            assert_eq!(entries(&stage), BTreeSet::from([PathBuf::from("other.new")]), "step {steps}");
            if !interrupted {
                break;
            }
        }
    }
}

/// The remains of a killed run can be the only copy of the graph.
#[test]
fn an_interrupt_loses_nothing_that_a_killed_run_left() {
    let killed = |steps: usize| {
        let folder = folder(&["out.xml", "out.bin"]);
        dies("save", steps, folder.path());
        let before = pair(folder.path());
        (folder, before)
    };
    let kill = (0..).find(|&steps| killed(steps).1[0].is_none()).unwrap();
    for steps in 0.. {
        let (folder, before) = killed(kill);
        let interrupted = dies("interrupt", steps, folder.path());
        recover(&folder.path().join("out.xml")).unwrap();
        let after = pair(folder.path());
        let is_old = after == [Some(OLD.to_owned()), Some(OLD.to_owned())];
        assert!(is_old || after == new_pair(), "step {steps}: {before:?}, {after:?}");
        if !interrupted {
            break;
        }
    }
}

/// Saves the graph alone and keeps its weights.
fn save_graph(folder: &Path) -> Result<(), SaveError> {
    let options = SaveOptions { weights: WeightsMode::None, ..SaveOptions::default() };
    model().save_with(folder.join("out.xml"), options)
}

#[test]
fn a_single_file_is_the_old_or_the_new_one_whatever_happens_at_any_step() {
    for old in [&["out.xml", "out.bin"][..], &["out.xml"], &[]] {
        for fault in [Fault::Kill, Fault::FailOnce, Fault::FailFromThen] {
            for steps in 0.. {
                let folder = folder(old);
                let [before, weights] = pair(folder.path());
                let done = if fault == Fault::Kill {
                    !dies("save graph", steps, folder.path())
                } else {
                    FAULT.set(Some((steps, fault)));
                    let _failed = save_graph(folder.path());
                    FAULT.take().is_some_and(|(left, _)| left > 0)
                };
                let [after, kept] = pair(folder.path());
                assert!(after == before || after.as_deref() == Some(CONSTANT), "{steps} {fault:?}: {after:?}");
                assert_eq!(kept, weights);
                stage::forget_sweeps();
                save_graph(folder.path()).unwrap();
                assert_eq!(pair(folder.path()), [Some(CONSTANT.to_owned()), weights]);
                assert_eq!(entries(folder.path()).len(), old.len().max(1), "{:?}", entries(folder.path()));
                if done {
                    break;
                }
            }
        }
    }
}

/// Windows replaces no file that is open, so it is moved away before. Readers find no graph until the new one is there.
#[test]
fn a_graph_that_is_open_returns_after_a_kill_at_any_step() {
    for steps in 0.. {
        let folder = folder(&["out.xml", "out.bin"]);
        let path = folder.path().join("out.xml");
        let died = dies("save open graph", steps, folder.path());
        let [left, weights] = pair(folder.path());
        assert_eq!(weights.as_deref(), Some(OLD));
        assert_eq!(left.is_none(), is_half_written(&path).unwrap());
        recover(&path).unwrap();
        let [after, _] = pair(folder.path());
        assert!(after.as_deref() == Some(OLD) || after.as_deref() == Some(CONSTANT), "{steps}: {after:?}");
        assert!(left.is_none() || left == after);
        assert_eq!(entries(folder.path()).len(), 2, "{:?}", entries(folder.path()));
        if !died {
            break;
        }
    }
}

#[test]
fn files_that_are_open_are_replaced_and_those_who_read_them_read_on() {
    let folder = folder(&["out.xml", "out.bin"]);
    let opened = open(folder.path());
    save(folder.path()).unwrap();
    assert_eq!(pair(folder.path()), new_pair());
    for file in &opened {
        assert_eq!(io::read_to_string(file).unwrap(), OLD);
    }
    drop(opened);
    assert_eq!(entries(folder.path()).len(), 2, "{:?}", entries(folder.path()));
}

/// OpenVINO maps the weights of a model so that nobody can move them.
#[cfg(windows)]
#[test]
fn a_file_that_another_program_does_not_share_stays_and_is_named() {
    use std::os::windows::fs::OpenOptionsExt;
    for name in ["out.xml", "out.bin"] {
        let folder = folder(&["out.xml", "out.bin"]);
        let before = pair(folder.path());
        let opened = File::options().read(true).share_mode(1).open(folder.path().join(name)).unwrap();
        let refused = save(folder.path()).unwrap_err().to_string();
        assert!(refused.ends_with(&format!("another program has `{name}` open, and must close it first")), "{refused}");
        drop(opened);
        assert_eq!(pair(folder.path()), before);
        assert_eq!(entries(folder.path()).len(), 2, "{:?}", entries(folder.path()));
    }
}

#[test]
fn a_file_that_is_being_made_is_waited_for() {
    let folder = folder(&["out.xml"]);
    let path = folder.path().join("out.xml");
    let mut running = Single::new(&path).unwrap();
    running.write(&path, |file| file.write_all(b"first")).unwrap();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| replace(&path, |file| file.write_all(b"second")));
        let reader = scope.spawn(|| is_half_written(&path));
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!second.is_finished() && !reader.is_finished());
        running.replace(&path).unwrap();
        second.join().unwrap().unwrap();
        assert!(!reader.join().unwrap().unwrap());
    });
    assert_eq!(fs::read_to_string(&path).unwrap(), "second");
    assert_eq!(entries(folder.path()), BTreeSet::from([PathBuf::from("out.xml")]));
}

#[test]
fn what_a_killed_run_left_goes_and_what_a_running_one_has_stays() {
    let folder = folder(&[".typelift-x.tmp", ".typelift-AbC.tmp"]);
    let path = folder.path();
    assert!(dies("save", 7, path));
    let stage = stage::folder_of(&path.join("out.xml"));
    assert!(entries(&stage).len() > 1, "{:?}", entries(&stage));
    let running = Single::new(&path.join("running.xml")).unwrap();
    let left = entries(&stage);
    assert_eq!(left.len(), 1, "{left:?}");
    stage::forget_sweeps();
    model().save(path.join("other.xml")).unwrap();
    assert_eq!(entries(&stage), left);
    drop(running);
    assert_eq!(entries(path).len(), 4, "{:?}", entries(path));
}

/// Files that are needed to complete another pair are kept.
#[test]
fn what_another_pair_needs_stays() {
    let mut found = 0;
    for steps in 0.. {
        let folder = folder(&["out.xml", "out.bin"]);
        let path = folder.path();
        let before = pair(path);
        if !dies("save", steps, path) {
            break;
        }
        let left = pair(path);
        stage::forget_sweeps();
        model().save(path.join("other.xml")).unwrap();
        assert_eq!(pair(path), left);
        if left[0].is_none() {
            found += 1;
            assert_completed(path, &before, &left);
        } else {
            recover(&path.join("out.xml")).unwrap();
        }
        assert_eq!(entries(path).len(), 4, "{:?}", entries(path));
    }
    assert!(found > 2);
}

/// At each step of a save, another process saves another model in the same folder.
#[test]
fn runs_that_write_other_models_into_one_folder_leave_each_other_alone() {
    for old in BEFORE {
        for steps in 0.. {
            let folder = folder(old);
            let other = |folder: PathBuf| {
                stage::forget_sweeps();
                model().save(folder.join("other.xml")).unwrap();
            };
            OTHER.set(Some((steps, other, folder.path().to_owned())));
            save(folder.path()).unwrap_or_else(|error| panic!("{steps}: {error}"));
            let is_over = OTHER.take().is_some();
            assert_eq!(pair(folder.path()), new_pair());
            assert_eq!(entries(folder.path()).len(), if is_over { 2 } else { 4 }, "{:?}", entries(folder.path()));
            if is_over {
                assert!(steps > 10);
                break;
            }
        }
    }
}

/// Writes `in.xml` and `in.bin`, and returns the model with the options that refuse to undo a change of them.
fn read_pair(folder: &Path) -> (Model, SaveOptions) {
    let path = folder.join("in.xml");
    fs::write(&path, CONSTANT).unwrap();
    fs::write(folder.join("in.bin"), "new").unwrap();
    let read_from = Some((path.clone(), Stamp::at(&path).unwrap()));
    (Model::open(&path).unwrap(), SaveOptions { read_from, ..SaveOptions::default() })
}

/// Two runs in place read the same pair: the second would undo what the first wrote, or mix its weights with the old
/// graph.
#[test]
fn a_save_that_was_overtaken_is_refused() {
    let canonical = WriteOptions { canonical: true, ..WriteOptions::default() };
    for to in ["in.xml", "out.xml"] {
        // The third step is the last before the lock.
        for steps in 0..3 {
            let folder = folder(&["out.xml", "out.bin"]);
            let (model, options) = read_pair(folder.path());
            let options = SaveOptions { in_place: to == "in.xml", text: canonical, ..options };
            let other = |folder: PathBuf| {
                stage::forget_sweeps();
                let path = folder.join("in.xml");
                let other = CONSTANT.replace("\"n\"", "\"other\"");
                replace(&path, |file| file.write_all(other.as_bytes())).unwrap();
            };
            OTHER.set(Some((steps, other, folder.path().to_owned())));
            let saved = model.save_with(folder.path().join(to), options);
            assert!(matches!(saved, Err(SaveError::Changed(_))), "{to} after {steps} steps: {saved:?}");
            assert!(OTHER.take().is_none());
            let text = fs::read_to_string(folder.path().join("in.xml")).unwrap();
            assert!(text.contains("\"other\""), "{text}");
            assert_eq!(pair(folder.path()), [OLD, OLD].map(|text| Some(text.to_owned())));
            assert_eq!(entries(folder.path()).len(), 4, "{:?}", entries(folder.path()));
        }
    }
}

/// The weights at the output are a link to those of the input, and need not be written until another run replaces them.
#[test]
fn whether_weights_are_written_is_decided_under_the_lock() {
    for steps in 0..3 {
        let folder = folder(&[]);
        let (read, options) = read_pair(folder.path());
        let out = folder.path().join("out.xml");
        read.save_with(&out, SaveOptions { weights: WeightsMode::Link, ..SaveOptions::default() }).unwrap();
        let other = |folder: PathBuf| {
            stage::forget_sweeps();
            let mut other = model();
            other.weights = Weights::from_bytes(*b"alt");
            other.save(folder.join("out.xml")).unwrap();
        };
        fs::write(&out, OLD).unwrap();
        OTHER.set(Some((steps, other, folder.path().to_owned())));
        read.save_with(&out, options).unwrap();
        assert!(OTHER.take().is_none());
        assert_eq!(pair(folder.path()), new_pair(), "{steps}");
    }
}

#[cfg(unix)]
#[test]
fn attributes_and_permissions_stay() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder(&["out.xml", "out.bin"]);
    let paths = ["out.xml", "out.bin"].map(|name| folder.path().join(name));
    for path in &paths {
        fs::set_permissions(path, fs::Permissions::from_mode(0o640)).unwrap();
        if xattr::set(path, "user.origin", b"export").is_err() {
            return;
        }
    }
    save(folder.path()).unwrap();
    for path in &paths {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(xattr::get(path, "user.origin").unwrap().as_deref(), Some(&b"export"[..]));
    }
}

#[test]
fn weights_in_a_file_are_copied_left_or_linked_and_never_of_another_file() {
    let folder = folder(&[]);
    let path = folder.path();
    fs::write(path.join("in.xml"), CONSTANT).unwrap();
    fs::write(path.join("in.bin"), "new").unwrap();
    let model = Model::open(path.join("in.xml")).unwrap();
    model.save(path.join("out.xml")).unwrap();
    assert_eq!(pair(path), new_pair());
    model.save(path.join("in.xml")).unwrap();
    let link = SaveOptions { weights: WeightsMode::Link, ..SaveOptions::default() };
    model.save_with(path.join("link.xml"), link.clone()).unwrap();
    assert_eq!(FileId::of(&path.join("link.bin")), FileId::of(&path.join("in.bin")));
    // The file was replaced while the model was open: the open file is copied, not the new one. Windows lets nobody do so.
    if cfg!(unix) {
        fs::write(path.join("else"), "else").unwrap();
        fs::rename(path.join("else"), path.join("in.bin")).unwrap();
        model.save(path.join("out.xml")).unwrap();
        assert_eq!(pair(path), new_pair());
        let in_place = SaveOptions { in_place: true, ..SaveOptions::default() };
        for options in [link, in_place] {
            let refused = model.save_with(path.join("in.xml"), options);
            assert!(matches!(refused, Err(SaveError::Changed(_))), "{refused:?}");
        }
    }
    // The file was changed, so values that were read before may be out of date.
    let model = Model::open(path.join("in.xml")).unwrap();
    fs::write(path.join("in.bin"), "longer").unwrap();
    assert!(matches!(model.save(path.join("out.xml")), Err(SaveError::Changed(_))));
    assert_eq!(pair(path), new_pair());
}

#[test]
fn constants_without_bytes_are_refused_unless_the_weights_are_left_out() {
    let folder = folder(&["out.xml", "out.bin"]);
    let model = Model::from_xml(CONSTANT).unwrap();
    let path = folder.path().join("out.xml");
    assert!(matches!(model.save(&path), Err(SaveError::MissingWeights(_))));
    assert!(matches!(model.save(path.with_extension("bin")), Err(SaveError::NamedAsWeights(_))));
    assert!(matches!(model.save(folder.path()), Err(SaveError::NotAFile(_))));
    assert_eq!(pair(folder.path()), [OLD, OLD].map(|text| Some(text.to_owned())));
    model.save_with(&path, SaveOptions { weights: WeightsMode::None, ..SaveOptions::default() }).unwrap();
    assert_eq!(pair(folder.path()), [CONSTANT, OLD].map(|text| Some(text.to_owned())));
}

/// A kill at any step preserves the linked pair and the files that the links lead to.
#[cfg(unix)]
#[test]
fn links_are_replaced_and_what_they_lead_to_stays() {
    use std::os::unix::fs::symlink;
    for links in [&["out.xml", "out.bin"][..], &["out.xml"], &["out.bin"]] {
        for steps in 0.. {
            let store = folder(&["out.xml", "out.bin"]);
            let folder = folder(&[]);
            let path = folder.path();
            for name in ["out.xml", "out.bin"] {
                let to = store.path().join(name);
                if links.contains(&name) { symlink(to, path.join(name)) } else { fs::write(path.join(name), OLD) }
                    .unwrap();
            }
            let before = pair(path);
            let died = dies("save", steps, path);
            let left = pair(path);
            assert_not_mixed(&before, &left);
            if left[0].is_none() {
                assert_completed(path, &before, &left);
            }
            save(path).unwrap();
            assert_eq!(pair(path), new_pair());
            assert_eq!(pair(store.path()), before, "{links:?} after {steps} steps");
            assert!(!path.join("out.xml").is_symlink() && !path.join("out.bin").is_symlink());
            assert_eq!((entries(path).len(), entries(store.path()).len()), (2, 2), "{:?}", entries(path));
            if !died {
                break;
            }
        }
    }
}

/// A dangling link must not be used as a directory.
#[cfg(unix)]
#[test]
fn a_link_to_nothing_is_replaced() {
    let folder = folder(&[]);
    for name in ["out.xml", "out.bin"] {
        std::os::unix::fs::symlink("absent/file", folder.path().join(name)).unwrap();
    }
    save(folder.path()).unwrap();
    assert_eq!(pair(folder.path()), new_pair());
    assert_eq!(entries(folder.path()).len(), 2);
}

#[cfg(unix)]
mod planted;

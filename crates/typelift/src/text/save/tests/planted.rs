//! Tests with files that an attacker planted in the directory of prepared files: nothing outside of the pair may
//! change.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, chown, symlink};

use super::*;

/// A folder with a model, `home` next to it, and the planted files.
struct Planted {
    root: TempDir,
}

/// The path, the bytes and the inode of each file.
type Tree = BTreeMap<PathBuf, (Vec<u8>, u64)>;

fn tree(folder: &Path) -> Tree {
    let mut tree = Tree::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let found = fs::symlink_metadata(&path).unwrap();
        if found.is_dir() {
            tree.extend(self::tree(&path));
        }
        let bytes = if found.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
        tree.insert(path, (bytes, found.ino()));
    }
    tree
}

impl Planted {
    fn new(old: &[&str]) -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["home", "models"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        let planted = Self { root };
        for ending in ["lock", "xml", "bin", "old", "new"] {
            fs::write(planted.home(&planted.name(ending)), "precious").unwrap();
        }
        fs::write(planted.home("authorized_keys"), "precious").unwrap();
        for name in old {
            fs::write(planted.models(name), OLD).unwrap();
        }
        planted
    }

    fn home(&self, name: &str) -> PathBuf {
        self.root.path().join("home").join(name)
    }

    fn models(&self, name: &str) -> PathBuf {
        self.root.path().join("models").join(name)
    }

    fn stage(&self) -> PathBuf {
        stage::folder_of(&self.models("out.xml"))
    }

    fn name(&self, ending: &str) -> String {
        format!("{}.{ending}", stage::hash(&self.models("out.xml")))
    }

    fn in_stage(&self, ending: &str) -> PathBuf {
        self.stage().join(self.name(ending))
    }

    /// Creates the files of a killed process with these suffixes.
    fn stage_with(&self, endings: &[&str]) {
        fs::create_dir(self.stage()).unwrap();
        for ending in endings {
            fs::write(self.in_stage(ending), "attacker").unwrap();
        }
    }

    /// Saves and recovers models next to the planted files.
    fn attack(&self, what: &str) {
        let home = tree(&self.root.path().join("home"));
        let models = tree(&self.root.path().join("models"));
        let (path, other) = (self.models("out.xml"), self.models("other.xml"));
        let _in_the_way = is_half_written(&path);
        assert!(tree(&self.root.path().join("models")) == models, "{what}: reading wrote");
        stage::forget_sweeps();
        let before = pair(path.parent().unwrap());
        let saved =
            [model().save(&other), model().save(&path), replace(&other, |_| Ok(())).map_err(SaveError::io(&other))];
        for (at, saved) in saved.iter().enumerate() {
            if let Err(error) = saved {
                assert!(error.to_string().contains("in the way"), "{what} {at}: {error}");
            }
        }
        let expected = if saved[1].is_ok() { new_pair() } else { before };
        assert_eq!(pair(path.parent().unwrap()), expected, "{what}");
        let _in_the_way = recover(&path);
        assert!(tree(&self.root.path().join("home")) == home, "{what}");
    }
}

const OLDS: [&[&str]; 3] = [&["out.xml", "out.bin"], &["out.bin"], &[]];

#[test]
fn a_stage_that_is_no_directory_of_this_user_harms_nothing() {
    for old in OLDS {
        for what in ["link", "link to nothing", "link to a file", "file", "owner"] {
            let planted = Planted::new(old);
            match what {
                "link" => symlink(planted.home(""), planted.stage()).unwrap(),
                "link to nothing" => symlink(planted.home("absent"), planted.stage()).unwrap(),
                "link to a file" => symlink(planted.home("authorized_keys"), planted.stage()).unwrap(),
                "file" => fs::write(planted.stage(), "attacker").unwrap(),
                _ => {
                    planted.stage_with(&["lock", "xml", "bin", "old"]);
                    // Only root can change the owner of a directory.
                    if chown(planted.stage(), Some(12_345), None).is_err() {
                        continue;
                    }
                }
            }
            planted.attack(what);
            assert!(fs::symlink_metadata(planted.stage()).is_ok(), "{what}: removed");
        }
    }
}

#[test]
fn a_lock_that_is_no_file_of_this_user_harms_nothing() {
    for old in OLDS {
        for what in ["link", "link to nothing", "hard link", "pipe", "directory", "owner"] {
            let planted = Planted::new(old);
            planted.stage_with(&["xml", "bin", "old", "new"]);
            let lock = planted.in_stage("lock");
            match what {
                "link" => symlink(planted.home("authorized_keys"), &lock).unwrap(),
                "link to nothing" => symlink(planted.home("absent"), &lock).unwrap(),
                "hard link" => fs::hard_link(planted.home("authorized_keys"), &lock).unwrap(),
                "pipe" => assert!(Command::new("mkfifo").arg(&lock).status().unwrap().success()),
                "directory" => fs::create_dir(&lock).unwrap(),
                _ => {
                    fs::write(&lock, "").unwrap();
                    if chown(&lock, Some(12_345), None).is_err() {
                        continue;
                    }
                }
            }
            planted.attack(what);
        }
    }
}

/// The content of a lock is ignored.
#[test]
fn a_lock_that_names_other_files_harms_nothing() {
    for old in OLDS {
        for names in
            ["out.xml\0../home/authorized_keys", "../home/authorized_keys\0out.bin", "/etc/passwd\0/etc/passwd"]
        {
            for endings in [&["xml", "bin"][..], &["xml"], &["old", "bin"], &["xml", "bin", "old"]] {
                let planted = Planted::new(old);
                planted.stage_with(endings);
                fs::write(planted.in_stage("lock"), names).unwrap();
                planted.attack(names);
            }
        }
    }
}

#[test]
fn links_among_what_a_run_left_harm_nothing() {
    for old in OLDS {
        for linked in ["xml", "bin", "old", "new"] {
            for hard in [false, true] {
                for others in [
                    &["lock"][..],
                    &["lock", "xml"],
                    &["lock", "bin"],
                    &["lock", "xml", "bin"],
                    &["lock", "old", "bin"],
                ] {
                    let planted = Planted::new(old);
                    planted.stage_with(others);
                    let (target, link) = (planted.home("authorized_keys"), planted.in_stage(linked));
                    let _replaced = fs::remove_file(&link);
                    if hard {
                        fs::hard_link(target, link).unwrap()
                    } else {
                        symlink(target, link).unwrap()
                    }
                    planted.attack(&format!("{linked} {hard} {others:?}"));
                }
            }
        }
    }
}

/// Completing a pair does not change its weights, even if they are a link.
#[test]
fn weights_that_link_to_another_file_are_not_touched_by_what_completes_a_pair() {
    for endings in [&["lock", "xml", "bin"][..], &["lock", "xml"], &["lock", "old", "bin", "xml"]] {
        let planted = Planted::new(&[]);
        planted.stage_with(endings);
        symlink(planted.home("authorized_keys"), planted.models("out.bin")).unwrap();
        let home = tree(&planted.root.path().join("home"));
        recover(&planted.models("out.xml")).unwrap();
        assert!(tree(&planted.root.path().join("home")) == home, "{endings:?}");
        assert!(planted.models("out.bin").is_symlink());
    }
}

#[test]
fn a_directory_without_locks_is_left_unless_it_is_empty() {
    let planted = Planted::new(&[]);
    planted.stage_with(&["xml", "new"]);
    replace(&planted.models("other"), |_| Ok(())).unwrap();
    assert_eq!(entries(&planted.stage()).len(), 2);
    let planted = Planted::new(&[]);
    planted.stage_with(&[]);
    replace(&planted.models("other"), |_| Ok(())).unwrap();
    assert!(!planted.stage().exists());
}

//! Other programs that a run starts. Each leads a process group of its own, which ends as a whole.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The time that the output of an ended program may take to arrive. A process that left the group can keep it open.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A program and the processes that it starts. They end with this value.
pub(crate) struct Group {
    pub(crate) leader: Child,
    status: Option<ExitStatus>,
}

impl Group {
    /// Starts a program. Ctrl-C is for this program, which ends the group when it is ready.
    pub(crate) fn start(command: &mut Command) -> io::Result<Self> {
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        Ok(Self { leader: command.spawn()?, status: None })
    }

    /// Waits until the program ends or `is_over` returns true, and ends the group. Returns the status of a program that
    /// ended by itself.
    pub(crate) fn wait(&mut self, mut is_over: impl FnMut() -> bool) -> io::Result<Option<ExitStatus>> {
        let mut pause = Duration::from_millis(1);
        loop {
            let has_ended = self.has_ended()?;
            if has_ended || is_over() {
                return self.end().map(|status| has_ended.then_some(status));
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// Waits as long as `limit` for the program, and ends the group.
    pub(crate) fn wait_for(&mut self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        let begin = Instant::now();
        self.wait(|| begin.elapsed() >= limit)
    }

    /// True if the program has ended. Its number stays taken, so that the group can be ended too.
    #[cfg(unix)]
    fn has_ended(&self) -> io::Result<bool> {
        use rustix::process::{WaitId, WaitIdOptions, waitid};
        let Some(pid) = self.pid().filter(|_| self.status.is_none()) else { return Ok(true) };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        Ok(waitid(WaitId::Pid(pid), options)?.is_some())
    }

    #[cfg(not(unix))]
    fn has_ended(&mut self) -> io::Result<bool> {
        Ok(self.leader.try_wait()?.is_some())
    }

    pub(crate) fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        #[cfg(unix)]
        if let Some(group) = self.pid() {
            let _ended = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ended = self.leader.kill();
        let status = self.leader.wait()?;
        self.status = Some(status);
        Ok(status)
    }

    #[cfg(unix)]
    fn pid(&self) -> Option<rustix::process::Pid> {
        rustix::process::Pid::from_raw(self.leader.id().try_into().ok()?)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _status = self.end();
    }
}

/// The output of a program, of which a part is kept. The rest is read too, so that the program can go on.
pub(crate) struct Output {
    kept: Arc<Mutex<Vec<u8>>>,
    ended: Receiver<()>,
}

#[derive(Clone, Copy)]
pub(crate) enum Part {
    First(usize),
    Last(usize),
}

impl Output {
    /// Reads a stream on a thread.
    pub(crate) fn of(mut stream: impl Read + Send + 'static, part: Part) -> io::Result<Self> {
        let (kept, (sender, ended)) = (Arc::<Mutex<Vec<u8>>>::default(), channel());
        let text = kept.clone();
        thread::Builder::new().spawn(move || {
            let mut buffer = [0; 1 << 14];
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                keep(&mut text.lock().unwrap_or_else(PoisonError::into_inner), &buffer[..count], part);
            }
            let _nobody_waits = sender.send(());
        })?;
        Ok(Self { kept, ended })
    }

    pub(crate) fn text(&self) -> Vec<u8> {
        let _ended_or_not = self.ended.recv_timeout(LAST_WORDS);
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn keep(text: &mut Vec<u8>, new: &[u8], part: Part) {
    match part {
        Part::First(most) => text.extend(new.iter().take(most.saturating_sub(text.len()))),
        Part::Last(most) => {
            text.extend(new);
            text.drain(..text.len().saturating_sub(most));
        }
    }
}

/// The path in an environment variable; an empty one counts as not set.
pub(crate) fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Opens a page in the browser. The path is printed, so that a failure to open it needs no message.
pub(crate) fn open_in_browser(page: &Path) {
    let opener = if cfg!(windows) {
        "explorer"
    } else if cfg!(target_os = "macos") {
        "open"
    } else {
        "xdg-open"
    };
    let silent = Stdio::null;
    let _ = Command::new(opener).arg(page).stdin(silent()).stdout(silent()).stderr(silent()).spawn();
}

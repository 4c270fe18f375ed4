//! Reads the files that the kernel shows for each process.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// The longest environment or command line that is read.
const PROC_FILE_BYTES_MAX: u64 = 4 << 20;

/// The usual length of an environment or a command line.
const PROC_FILE_BYTES_USUAL: usize = 4 << 10;

/// A directory such as `/proc`.
#[derive(Debug)]
pub(crate) struct ProcFiles {
    root: PathBuf,
}

/// The fields of the file `stat` of a process.
#[derive(Debug, Clone)]
pub(crate) struct ProcStat {
    pub(crate) name: String,
    pub(crate) parent: u32,
    pub(crate) group: u32,
    pub(crate) session: u32,
    pub(crate) terminal: i64,
    pub(crate) started: u64,
}

impl ProcFiles {
    pub(crate) fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn path(&self, pid: u32, file: &str) -> PathBuf {
        self.root.join(pid.to_string()).join(file)
    }

    pub(crate) fn read(&self, pid: u32, file: &str) -> Option<Vec<u8>> {
        let opened = fs::File::open(self.path(pid, file)).ok()?;
        let mut bytes = Vec::with_capacity(PROC_FILE_BYTES_USUAL);
        opened.take(PROC_FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    pub(crate) fn pids(&self, most: usize) -> Vec<u32> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().filter_map(Result::ok);
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.take(most).collect()
    }
}

pub(crate) fn parse_stat(text: &[u8]) -> Option<ProcStat> {
    let text = String::from_utf8_lossy(text);
    // The name may contain any character, also brackets and spaces.
    let (head, rest) = text.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u32>().ok();
    Some(ProcStat {
        name,
        parent: number(1)?,
        group: number(2)?,
        session: number(3)?,
        terminal: fields.get(4)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

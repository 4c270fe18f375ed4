//! Measures input and output: files larger than memory, large trees, documents while they arrive,
//! and the proxy of an MCP server.

mod bench_server;
mod copying_proxy;
mod echo_server;
mod first_page;
mod proxy;
mod search;
mod steady;
mod streaming;

use std::path::{Path, PathBuf};

pub(crate) use copying_proxy::serve as serve_copies;
pub(crate) use echo_server::serve as serve_echo;

use crate::BenchError;
use crate::report::BenchReport;

/// With this argument, this program acts as the server behind the proxy.
pub(crate) const ECHO_ARGUMENT: &str = "echo-server";

/// With this argument, this program acts as a proxy that only copies.
pub(crate) const COPIES_ARGUMENT: &str = "copying-proxy";

const USAGE: &str = "usage: io [DIR] [--bytes N] [--seconds N] [--only PART]…, with the parts \
                     first_page, search, streaming, proxy, steady; DIR is where files are created";

/// The options of `io`.
struct IoOptions {
    directory: PathBuf,
    /// The size of the file whose first page is read.
    file_bytes: u64,
    /// How many seconds calls arrive at a steady rate.
    seconds: u64,
    only: Vec<String>,
}

impl IoOptions {
    fn parse(words: &[String]) -> Result<Self, BenchError> {
        let mut options = Self {
            directory: std::env::temp_dir(),
            file_bytes: 10_000_000_000,
            seconds: 60,
            only: Vec::new(),
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or(USAGE);
            match word.as_str() {
                "--bytes" => options.file_bytes = value()?.parse()?,
                "--seconds" => options.seconds = value()?.parse()?,
                "--only" => options.only.push(value()?.clone()),
                other if other.starts_with('-') => return Err(USAGE.into()),
                directory => options.directory = PathBuf::from(directory),
            }
        }
        Ok(options)
    }

    fn includes(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == part)
    }
}

pub(crate) fn run(
    jackline: &Path,
    words: &[String],
    report: &mut BenchReport,
) -> Result<(), BenchError> {
    let options = IoOptions::parse(words)?;
    let jackline = &jackline.canonicalize()?;
    let directory = || tempfile::tempdir_in(&options.directory);
    if options.includes("first_page") {
        first_page::run(jackline, directory()?.path(), options.file_bytes, report)?;
    }
    if options.includes("search") {
        search::run(jackline, directory()?.path(), report)?;
    }
    if options.includes("streaming") {
        streaming::run(report)?;
    }
    if options.includes("proxy") {
        proxy::run(jackline, directory()?.path(), report)?;
    }
    if options.includes("steady") {
        steady::run(jackline, directory()?.path(), options.seconds, report)?;
    }
    Ok(())
}

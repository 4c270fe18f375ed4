//! What goes in and out: files larger than memory, large trees, documents while
//! they come, and the proxy before an MCP server.

mod copies;
mod echo;
mod first_page;
mod peer;
mod proxy;
mod search;
mod steady;
mod streaming;

use std::path::{Path, PathBuf};

pub(crate) use copies::serve as serve_copies;
pub(crate) use echo::serve as serve_echo;

use crate::Failure;
use crate::report::Report;

/// The word with which this program starts itself as the server behind the proxy.
pub(crate) const ECHO: &str = "echo-server";

/// The same for a proxy that only copies.
pub(crate) const COPIES: &str = "copying-proxy";

const USAGE: &str = "usage: io [DIR] [--bytes N] [--seconds N] [--only PART]…, with the parts \
                     first_page, search, streaming, proxy, steady; DIR is where files are made";

/// What is measured, and how large it is.
struct Options {
    directory: PathBuf,
    /// How large the file is of which the first page is read.
    file_bytes: u64,
    /// How long calls come at a steady rate.
    seconds: u64,
    only: Vec<String>,
}

impl Options {
    fn parse(words: &[String]) -> Result<Self, Failure> {
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

    fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == part)
    }
}

pub(crate) fn run(jackline: &Path, words: &[String], report: &mut Report) -> Result<(), Failure> {
    let options = Options::parse(words)?;
    let jackline = &jackline.canonicalize()?;
    let place = || tempfile::tempdir_in(&options.directory);
    if options.wants("first_page") {
        first_page::run(jackline, place()?.path(), options.file_bytes, report)?;
    }
    if options.wants("search") {
        search::run(jackline, place()?.path(), report)?;
    }
    if options.wants("streaming") {
        streaming::run(report)?;
    }
    if options.wants("proxy") {
        proxy::run(jackline, place()?.path(), report)?;
    }
    if options.wants("steady") {
        steady::run(jackline, place()?.path(), options.seconds, report)?;
    }
    Ok(())
}

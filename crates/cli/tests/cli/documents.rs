//! Runs every command that a document shows, and compares its output with the document.
//!
//! A page writes commands in ```` ```console ```` blocks: `$ ` starts a command, the lines below
//! it are its output. `…` in a line of the output matches any text; a line that is only `…`
//! matches any number of lines. All blocks of a page run one after the other in one project.
//!
//! Comments directly before a block say more, and readers of the rendered page don't see them:
//!
//! ```text
//! <!-- test: file=PATH -->     the block is the content of this file; write it
//! <!-- test: exit=N -->        the command ends with this exit status instead of 0
//! <!-- test: gate -->          `.ci/run` runs the commands (a build, the whole test suite)
//! <!-- test: skip=REASON -->   the command can't run here; `REASONS` lists the reasons
//! ```
//!
//! A comment `<!-- test: run` runs the shell lines in it, as preparation.
//! To write the real output into the pages: `JACKLINE_WRITE_DOCUMENTS=1 cargo test documents`.

mod matching;
mod page;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use jackline_host::is_started_by_agent_tool;
use page::{CommandCheck, DocumentPage, PageBlock, ShownCommand};

use crate::support::{JACKLINE, install_person_program};

/// Why a command may be shown and not run here.
const REASONS: [&str; 8] = [
    "agent client", // needs Claude Code or another client; `cargo xtask test --clients` has those
    "MCP server",   // needs a server from npm
    "model",        // needs a key or a local model
    "network",      // needs another machine
    "terminal",     // shows a screen or asks a person
    "machine",      // changes the machine: installs, writes into the real home
    "long",         // takes more than a few seconds; the page names the command that runs it
    "other program", // needs a program that this repository does not install
];

/// The pages of the repository, by their path from its root.
fn pages() -> Vec<PathBuf> {
    let root = repository();
    let mut pages = vec![root.join("README.md"), root.join("SECURITY.md")];
    let mut directories = vec![root.join("docs")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[test]
fn every_documented_command_does_what_its_page_shows() {
    // `jackline attempt` finds it beside the program.
    crate::attempt::sandbox();
    #[expect(clippy::disallowed_methods, reason = "only this test has the variable")]
    let is_writing = std::env::var_os("JACKLINE_WRITE_DOCUMENTS").is_some();
    let mut problems = Vec::new();
    let mut commands = 0;
    for path in pages() {
        let name = path.strip_prefix(repository()).unwrap().display().to_string();
        let page = DocumentPage::parse(&fs::read_to_string(&path).unwrap());
        let project = DocumentProject::new();
        let mut outputs = Vec::new();
        for block in &page.blocks {
            for shown in project.play(&name, block, &mut problems) {
                commands += 1;
                outputs.push(shown);
            }
        }
        if is_writing {
            fs::write(&path, page.with_outputs(&outputs)).unwrap();
        }
    }
    assert!(is_writing || problems.is_empty(), "{}", problems.join("\n\n"));
    assert!(commands > 0, "no page shows a command");
}

/// Whether a line of `.ci/run` has all words of a command, with other options between them.
fn is_in_gate(command: &str) -> bool {
    let gate = fs::read_to_string(repository().join(".ci/run")).unwrap();
    gate.lines().any(|line| {
        let mut words = line.split_whitespace();
        command.split_whitespace().all(|wanted| words.any(|word| word == wanted))
    })
}

/// A command in another kind of block would never run.
#[test]
fn commands_are_written_in_console_blocks_only() {
    let mut problems = Vec::new();
    for path in pages() {
        let name = path.strip_prefix(repository()).unwrap().display().to_string();
        for block in DocumentPage::parse(&fs::read_to_string(&path).unwrap()).blocks {
            let PageBlock::Other { language, text, line } = block else { continue };
            let is_shell = matches!(language.as_str(), "" | "sh" | "bash" | "shell");
            let starts = ["$ ", "jackline ", "cargo "];
            let is_command = |text: &&str| starts.iter().any(|start| text.starts_with(start));
            if let Some(command) = text.lines().find(is_command)
                && is_shell
            {
                problems.push(format!("{name}:{line}: `{command}` is not in a `console` block"));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The directory in which the commands of one page run: a git repository in a home of its own.
struct DocumentProject {
    root: tempfile::TempDir,
}

impl DocumentProject {
    fn new() -> Self {
        let project = Self { root: tempfile::tempdir().unwrap() };
        fs::create_dir_all(project.directory()).unwrap();
        let (code, output) = project.run(
            "git init --quiet -b main && git config user.name You && git config user.email you@example.com",
        );
        assert_eq!(code, 0, "{output}");
        project
    }

    fn home(&self) -> PathBuf {
        self.root.path().canonicalize().unwrap().join("you")
    }

    fn directory(&self) -> PathBuf {
        self.home().join("project")
    }

    /// Plays one block, and gives the commands it ran with their output.
    fn play(&self, name: &str, block: &PageBlock, problems: &mut Vec<String>) -> Vec<ShownCommand> {
        match block {
            PageBlock::Other { .. } => Vec::new(),
            PageBlock::Preparation { script, line } => {
                let (code, output) = self.run(script);
                if code != 0 {
                    problems.push(format!("{name}:{line}: the preparation failed:\n{output}"));
                }
                Vec::new()
            }
            PageBlock::File { path, text } => {
                let path = self.directory().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
                Vec::new()
            }
            PageBlock::Console { commands, treatment } => {
                commands.iter().map(|shown| self.check(name, shown, treatment, problems)).collect()
            }
        }
    }

    fn check(
        &self,
        name: &str,
        shown: &ShownCommand,
        treatment: &CommandCheck,
        problems: &mut Vec<String>,
    ) -> ShownCommand {
        let place = format!("{name}:{}: `{}`", shown.line, shown.command);
        match treatment {
            CommandCheck::Skip(reason) => {
                if !REASONS.contains(&reason.as_str()) {
                    problems.push(format!("{place}: `{reason}` is no reason to skip a command"));
                }
                shown.clone()
            }
            CommandCheck::Gate => {
                if !is_in_gate(&shown.command) {
                    problems.push(format!("{place}: `.ci/run` does not run it"));
                }
                shown.clone()
            }
            CommandCheck::Run { exit } => {
                let (code, output) = self.run(&shown.command);
                if code != *exit {
                    problems.push(format!("{place} ended with {code}, not with {exit}:\n{output}"));
                } else if !matching::matches(&shown.output, &output) {
                    let expected = &shown.output;
                    problems.push(format!(
                        "{place}\n--- the page\n{expected}--- the command\n{output}"
                    ));
                }
                ShownCommand { output: matching::merged(&shown.output, &output), ..shown.clone() }
            }
        }
    }

    /// Runs shell lines as the person whose project this is; the exit status and all output.
    fn run(&self, script: &str) -> (i32, String) {
        install_person_program();
        let binaries = Path::new(JACKLINE).parent().unwrap();
        let mut command = Command::new("/usr/bin/unshare");
        if is_started_by_agent_tool() {
            // The reports of hooks are the client's, also where an agent started the tests.
            command.args(["--user", "--map-current-user", "--pid", "--fork", "--kill-child"]);
            command.arg("--mount-proc");
        }
        let output = command
            .args(["/bin/bash", "-c", &format!("exec 2>&1\n{script}")])
            .current_dir(self.directory())
            .env_clear()
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", binaries.display()))
            .env("HOME", self.home())
            .env("LANG", "C.UTF-8")
            .env("JACKLINE_REPOSITORY", repository())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let text = text.replace(&self.home().display().to_string(), "/home/you");
        (output.status.code().unwrap_or(-1), text)
    }
}

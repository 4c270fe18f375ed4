//! What can be said on the command line.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// A guardrail runtime for software agents: decides on every tool call and
/// stop outside the model's reasoning, and can prove afterwards why.
#[derive(Parser)]
#[command(name = "jackline", version, max_term_width = 100)]
#[command(after_help = "Exit codes: 0 fine; 1 the answer is \"no\"; 2 usage or bad input; \
3 the guard itself is broken.\nState lives in $JACKLINE_HOME, else in jackline/ of the XDG state \
directory.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Read events from standard input, one JSON object a line, and answer each with a verdict
    Stdio(StdioArgs),
    /// Check a definition and say everything that is wrong with it
    Check(CheckArgs),
    /// Say what would be decided on a call, by which rule, and what passes instead
    Explain(ExplainArgs),
    /// Have rules, packs, or the whole definition hold
    Enforce(ModesArgs),
    /// Have rules, packs, or the whole definition only write down what they would have done
    Observe(ModesArgs),
    /// Let a repository's definition run commands and loosen your own
    Trust(TrustArgs),
    /// Show where a session stands
    Status(StatusArgs),
    /// List what happened in a session
    Log(LogArgs),
    /// Show one record whole: the event, what the decision rested on, the verdict
    Show(ShowArgs),
    /// Decide every event of a session again and compare the bytes
    Replay(SessionsArgs),
    /// Check the hash chain of a session's journal
    Verify(SessionsArgs),
    /// Run a verification by command to its end; started by the gate
    #[command(hide = true)]
    Verification(VerificationArgs),
    /// Send notices that are on standard input; started by the gate
    #[command(hide = true)]
    Notify,
}

/// Which definition.
#[derive(Args, Default)]
pub(crate) struct StdioArgs {
    /// The definition [default: jackline.yaml here or in a parent]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) definition: Option<PathBuf>,
    /// When all work must be over, as RFC 3339
    #[arg(long, value_name = "TIME")]
    pub(crate) deadline: Option<String>,
    /// The session of events that name none [default: a new one]
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
}

impl StdioArgs {
    /// Understands the plain forms, and leaves everything else, such as
    /// mistakes and questions, to the real parser.
    pub(crate) fn parse_fast(mut words: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut parsed = Self::default();
        while let Some(word) = words.next() {
            let value = words.next()?;
            if value.to_str().is_some_and(|value| value.starts_with('-')) {
                return None;
            }
            match word.to_str()? {
                "-d" | "--definition" => parsed.definition = Some(value.into()),
                "--deadline" => parsed.deadline = Some(value.into_string().ok()?),
                "--session" => parsed.session = Some(value.into_string().ok()?),
                _ => return None,
            }
        }
        Some(parsed)
    }
}

#[derive(Args)]
pub(crate) struct CheckArgs {
    /// The definition [default: jackline.yaml here or in a parent]
    pub(crate) file: Option<PathBuf>,
    /// The same, as other commands take it
    #[arg(short, long, value_name = "FILE", conflicts_with = "file")]
    pub(crate) definition: Option<PathBuf>,
    /// Show what is in force in this workspace: every layer, whose each demand is, what is ignored
    #[arg(long)]
    pub(crate) effective: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(after_help = "Nothing is run, and nothing is written: no journal, no session.\n\n\
Examples:\n  jackline explain \"cd web && git push -f origin main\"\n  \
jackline explain --tool Write --args '{\"file_path\":\"config.yaml\",\"content\":\"a: 1\"}'\n\n\
Exit codes: 0 it may run; 1 it is denied, or a person is asked; 2 usage or bad input; \
3 the guard itself is broken.")]
pub(crate) struct ExplainArgs {
    /// The command line; `-` reads it from standard input
    #[arg(value_name = "CMD", required_unless_present = "args", conflicts_with = "args")]
    pub(crate) line: Option<String>,
    /// The tool [default: Bash, or the one that the definition has for command lines]
    #[arg(long, value_name = "T")]
    pub(crate) tool: Option<String>,
    /// The arguments of the tool, as a JSON object
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// The directory the call works in [default: this one, or the workspace of the session]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Decide as this session stands now: an id, a unique prefix, or a journal file
    /// [default: a new session of this workspace]
    #[arg(long, value_name = "SESSION", conflicts_with = "definition")]
    pub(crate) session: Option<String>,
    /// Who calls: the agent itself, or a sub-agent
    #[arg(long, value_name = "ACTOR", default_value = "main")]
    pub(crate) actor: String,
    /// The definition [default: jackline.yaml here or in a parent]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) definition: Option<PathBuf>,
    /// Print JSON, one object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct TrustArgs {
    /// The definition [default: jackline.yaml here or in a parent]
    pub(crate) file: Option<PathBuf>,
    /// List what is trusted
    #[arg(long, conflicts_with_all = ["file", "revoke", "yes"])]
    pub(crate) list: bool,
    /// Trust it no longer
    #[arg(long, conflicts_with = "yes")]
    pub(crate) revoke: bool,
    /// Trust it without being asked
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print JSON, one object a trusted file
    #[arg(long, requires = "list")]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(after_help = "Protected files, pauses and a person's word hold in every mode.\n\n\
Examples:\n  jackline enforce git/push-force\n  jackline enforce pack/git pack/secrets\n  \
jackline observe\n\nExit codes: 0 it is so; 1 the file was not changed; 2 usage or bad input.")]
pub(crate) struct ModesArgs {
    /// Rules, as `jackline check` lists them, or packs, as pack/NAME [default: the definition's
    /// own mode]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// The definition [default: jackline.yaml here or in a parent]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) definition: Option<PathBuf>,
    /// Show what would be changed, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Args)]
pub(crate) struct StatusArgs {
    /// An id, a unique prefix, or a journal file [default: the latest session of this workspace]
    pub(crate) session: Option<String>,
    /// List all sessions of this machine
    #[arg(long, conflicts_with = "session")]
    pub(crate) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct LogArgs {
    /// An id, a unique prefix, or a journal file [default: the latest session of this workspace]
    pub(crate) session: Option<String>,
    /// Only the last N records
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) last: Option<usize>,
    /// Only what was objected to, or would have been
    #[arg(long)]
    pub(crate) objections: bool,
    /// Print every record, one a line, as in the journal
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ShowArgs {
    /// An id, a unique prefix, or a journal file [default: the latest session of this workspace],
    /// and the number of a record [default: the last one with an objection, else the last one]
    #[arg(value_name = "SESSION] [RECORD", num_args = 0..=2)]
    pub(crate) what: Vec<String>,
    /// Print the record as in the journal
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct SessionsArgs {
    /// Ids, unique prefixes, or journal files [default: the latest session of this workspace]
    pub(crate) sessions: Vec<String>,
    /// All sessions of this machine
    #[arg(long, conflicts_with = "sessions")]
    pub(crate) all: bool,
    /// Print JSON, one object a session
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct VerificationArgs {
    /// Where its task is, and its result will be
    pub(crate) directory: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fast(words: &[&str]) -> Option<StdioArgs> {
        StdioArgs::parse_fast(words.iter().map(OsString::from))
    }

    #[test]
    fn the_fast_parser_agrees_with_the_real_one_or_gives_way() {
        let words = ["-d", "x.yaml", "--deadline", "2026-01-31T12:00:00Z", "--session", "s"];
        let quick = fast(&words).unwrap();
        let all = ["jackline", "stdio"].iter().chain(&words);
        let Command::Stdio(real) = Cli::parse_from(all).command else { panic!("stdio") };
        assert_eq!(quick.definition, real.definition);
        assert_eq!(quick.deadline, real.deadline);
        assert_eq!(quick.session, real.session);
        for odd in [&["--help"][..], &["-d"], &["-dx"], &["--definition=x"], &["x", "y"]] {
            assert!(fast(odd).is_none(), "{odd:?}");
        }
        assert!(fast(&[]).is_some());
    }
}

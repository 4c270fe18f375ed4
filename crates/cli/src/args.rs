//! The arguments of all commands.

mod attempt;
mod evidence;
mod hook;
mod identity;
mod init;
mod mcp;
mod run;
mod tools;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use jackline_clients::{CLIENTS, Client};

pub(crate) use attempt::{AttemptArgs, UndoArgs};
pub(crate) use evidence::{AttestArgs, ExportArgs, VerifyArgs};
pub(crate) use hook::HookArgs;
pub(crate) use identity::{
    IdentityApproveArgs, IdentityCommand, IdentityRevokeArgs, IdentityShowArgs,
};
pub(crate) use init::InitArgs;
pub(crate) use mcp::{McpCommand, ServeArgs, WrapArgs};
pub(crate) use run::RunArgs;
pub(crate) use tools::{ToolsArgs, ToolsCommand};

/// A guardrail runtime for software agents. It decides on every tool call and every stop
/// outside the model's reasoning, and can prove later why it decided so.
#[derive(Parser)]
#[command(name = "jackline", version, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 success; 1 the answer is \"no\"; 2 wrong usage or invalid input; \
3 the guard itself is broken.\nState is stored in $JACKLINE_HOME, or in jackline/ of the XDG state \
directory."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

#[derive(Subcommand)]
pub(crate) enum CliCommand {
    /// Install the guard in the settings of agent clients, or remove it
    Init(InitArgs),
    /// Read events from standard input, one JSON object per line, and answer each with a verdict
    Stdio(StdioArgs),
    /// Answer one event of an agent client: JSON on standard input, JSON on standard output
    Hook(HookArgs),
    /// Guard the tools of MCP servers, or serve guarded tools for a workspace
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Test with the real client whether the guard blocks denied calls
    Doctor(DoctorArgs),
    /// Check a definition and report every problem in it
    Check(CheckArgs),
    /// Explain the decision on a call: which rule applies, and what is allowed instead
    Explain(ExplainArgs),
    /// Start enforcing rules, packs, or the whole definition
    Enforce(ModesArgs),
    /// Stop enforcing rules, packs, or the whole definition: only record what they would do
    Observe(ModesArgs),
    /// Allow a repository's definition to run commands and to relax your own
    Trust(TrustArgs),
    /// List the calls that wait for a person's approval, with their codes
    Pending(PendingArgs),
    /// Allow the call with this approval code
    Allow(AllowArgs),
    /// Refuse the call with this approval code
    Refuse(RefuseArgs),
    /// Turn the guard off for a limited time: violations are recorded but not enforced
    Off(OffArgs),
    /// Turn the guard on again
    On(OnArgs),
    /// Pause a session: no call runs until a person resumes it
    Pause(ControlArgs),
    /// Resume a paused session. A blocker stays until `jackline clear`, a checkpoint until
    /// `jackline ack`
    Resume(ControlArgs),
    /// Stop a session permanently
    Stop(ControlArgs),
    /// Reopen a session: budgets, policies and approvals start from zero
    Reset(ControlArgs),
    /// Acknowledge a checkpoint: the session continues for 25 more iterations, or as many as
    /// `iterations_extension` sets
    Ack(ControlArgs),
    /// Clear a blocker: a session that was in a loop or made no progress continues. A person's
    /// pause stays
    Clear(ClearArgs),
    /// Load the current definition into a running session
    Reload(ReloadArgs),
    /// Let a session complete although its changes were not tested (dangerous)
    SkipTests(SkipTestsArgs),
    /// End an active constraint of a session
    #[command(subcommand)]
    Constraint(ConstraintCommand),
    /// Run an agent on a task, supervised, until the task is done or a stop condition is reached
    Run(RunArgs),
    /// Let a model do a task in attempts; a failed attempt is undone
    Attempt(AttemptArgs),
    /// Restore files to their contents before a session changed them
    Undo(UndoArgs),
    /// List the tools that models wrote, with their failure rates
    Tools(ToolsArgs),
    /// Show the state of a session
    Status(StatusArgs),
    /// Watch running sessions and control them with keys
    Watch(WatchArgs),
    /// List the events of a session
    Log(LogArgs),
    /// Count violations by guard, type and subtype, over all sessions of this workspace
    Violations(ViolationsArgs),
    /// Show one complete record: the event, the facts behind the decision, the verdict
    Show(ShowArgs),
    /// Decide every event of a session again and check that the bytes are the same
    Replay(SessionsArgs),
    /// Show what a definition would have decided about recorded sessions
    Backtest(BacktestArgs),
    /// Export a session to one file
    Export(ExportArgs),
    /// Sign a statement about a session, so that others can check it
    Attest(AttestArgs),
    /// Check the hash chain of a session's journal, or an attestation
    Verify(VerifyArgs),
    /// Show what agents consist of, and approve the agents that may work
    #[command(subcommand)]
    Identity(IdentityCommand),
    /// Run a verification command to its end; started by the gate
    #[command(hide = true, name = "gate-verification")]
    Verification(VerificationArgs),
    /// Send the notifications on standard input; started by the gate
    #[command(hide = true, name = "gate-notify")]
    Notify,
}

/// The arguments of `jackline stdio`.
#[derive(Args, Default)]
pub(crate) struct StdioArgs {
    /// The definition [default: jackline.yaml here or in a parent]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) definition: Option<PathBuf>,
    /// The time when all work must be finished, in RFC 3339 format
    #[arg(long, value_name = "TIME")]
    pub(crate) deadline: Option<String>,
    /// The session for events without a session id [default: a new one]
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
}

impl StdioArgs {
    /// Parses the simple forms. Returns `None` for everything else, such as mistakes and
    /// `--help`, which the full parser handles.
    pub(crate) fn parse_fast(mut arguments: impl Iterator<Item = OsString>) -> Option<Self> {
        let mut parsed = Self::default();
        while let Some(flag) = arguments.next() {
            let value = arguments.next()?;
            if value.to_str().is_some_and(|value| value.starts_with('-')) {
                return None;
            }
            match flag.to_str()? {
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
#[command(
    after_help = "Runs the installed client in scratch directories with a scripted model. It needs no key and no \
network, and does not touch your files.\n\nExit codes: 0 all checks are ok; 1 a check is OPEN (the guard does not \
hold); 2 wrong usage, or the client was not found; 3 a check could not be run."
)]
pub(crate) struct DoctorArgs {
    /// The client to test [default: the first that is installed]
    #[arg(value_parser = hook::client_parser())]
    pub(crate) client: Option<&'static Client>,
    /// The program of the client [default: the one in PATH]
    #[arg(long, value_name = "PATH")]
    pub(crate) client_program: Option<PathBuf>,
    /// Print JSON, one object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct CheckArgs {
    /// The definition [default: jackline.yaml here or in a parent]
    pub(crate) file: Option<PathBuf>,
    /// The definition, in the form that other commands use
    #[arg(short, long, value_name = "FILE", conflicts_with = "file")]
    pub(crate) definition: Option<PathBuf>,
    /// Show every setting and every rule, also those of packs
    #[arg(long)]
    pub(crate) details: bool,
    /// Show what is in force in this workspace: every layer, the origin of each setting, what is
    /// ignored
    #[arg(long)]
    pub(crate) effective: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(after_help = "Runs nothing and writes nothing: no journal, no session.\n\n\
Examples:\n  jackline explain \"cd web && git push -f origin main\"\n  \
jackline explain --tool Write --args '{\"file_path\":\"config.yaml\",\"content\":\"a: 1\"}'\n\n\
Exit codes: 0 the call may run; 1 it is denied, or needs approval; 2 wrong usage or invalid input; \
3 the guard itself is broken.")]
pub(crate) struct ExplainArgs {
    /// The command line; `-` reads it from standard input
    #[arg(value_name = "CMD", required_unless_present = "args", conflicts_with = "args")]
    pub(crate) line: Option<String>,
    /// The tool [default: Bash, or the definition's tool for command lines]
    #[arg(long, value_name = "T")]
    pub(crate) tool: Option<String>,
    /// The arguments of the tool, as a JSON object
    #[arg(long, value_name = "JSON")]
    pub(crate) args: Option<String>,
    /// The working directory of the call [default: this one, or the workspace of the session]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Decide in the current state of this session: an id, a unique prefix, or a journal file
    /// [default: a new session of this workspace]
    #[arg(long, value_name = "SESSION", conflicts_with = "definition")]
    pub(crate) session: Option<String>,
    /// The actor that makes the call: the agent itself, or a sub-agent
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
    /// List the trusted definitions
    #[arg(long, conflicts_with_all = ["file", "revoke", "yes"])]
    pub(crate) list: bool,
    /// Stop trusting the definition
    #[arg(long, conflicts_with = "yes")]
    pub(crate) revoke: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print JSON, one object per trusted file
    #[arg(long, requires = "list")]
    pub(crate) json: bool,
}

/// The help of commands that only a person may run.
const PERSON_ONLY_HELP: &str = "Only a person may run this command, because it lets more calls run. It is refused if an agent \
started it: run it in your own terminal.";

#[derive(Args)]
pub(crate) struct PendingArgs {
    /// List the questions of all directories, and those of sessions that have ended or whose
    /// process is gone, because a session can be resumed
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON, one object per question
    #[arg(long)]
    pub(crate) json: bool,
}

/// The person who runs the command, and the reason. Both are recorded in the journal.
#[derive(Args)]
pub(crate) struct PersonArgs {
    /// Your name for the journal [default: the name of the user]
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// The reason, for the journal
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: Option<String>,
}

#[derive(Args)]
#[command(after_help = PERSON_ONLY_HELP)]
pub(crate) struct AllowArgs {
    /// The approval code, as `jackline pending` shows it
    pub(crate) code: String,
    #[command(flatten)]
    pub(crate) person: PersonArgs,
    /// How long the same call is allowed, such as 10m or 2h [default: once]
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) duration: Option<String>,
}

#[derive(Args)]
pub(crate) struct RefuseArgs {
    /// The approval code, as `jackline pending` shows it
    pub(crate) code: String,
    /// How long the call is refused, such as 10m or 2h [default: for the session]
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) duration: Option<String>,
    #[command(flatten)]
    pub(crate) person: PersonArgs,
}

#[derive(Args)]
#[command(
    after_help = "Works even if the disk is full, the state home is not writable, or a journal is \
broken. Calls that would have been denied are recorded if the journal can be written.\n\n\
Only a person may run this command, because it lets more calls run. It is refused if an agent \
started it: run it in your own terminal."
)]
pub(crate) struct OffArgs {
    /// How long the guard is off, such as 30m or 2h; at most 24h
    #[arg(long = "for", value_name = "TIME", default_value = "30m")]
    pub(crate) duration: String,
    /// The reason; `jackline status` and the journal show it
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: String,
    /// Your name for the journal [default: the name of the user]
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// Only in this directory and below [default: in the workspace that contains it,
    /// according to its sessions or its definition]
    #[arg(long, conflicts_with = "everywhere")]
    pub(crate) here: bool,
    /// Everywhere on this machine, for this user
    #[arg(long)]
    pub(crate) everywhere: bool,
}

#[derive(Args)]
pub(crate) struct OnArgs {
    /// Turn the guard on everywhere, not only here
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Args)]
pub(crate) struct ControlArgs {
    /// An id, a unique prefix, or a journal file [default: the latest session of this workspace]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) person: PersonArgs,
    /// Print JSON, one object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(after_help = PERSON_ONLY_HELP)]
pub(crate) struct ClearArgs {
    /// Only reset the count of failed iterations; a paused session stays paused
    #[arg(long)]
    pub(crate) failures: bool,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

#[derive(Args)]
#[command(
    after_help = "The definition is built again, as for a session that starts now: from its file, the other \
layers and your trust. Used budgets stay used, and a pause stays. A definition that does not load changes \
nothing.\n\n\
Only a person may run this command, because it lets more calls run. It is refused if an agent \
started it: run it in your own terminal."
)]
pub(crate) struct ReloadArgs {
    /// The definition, for a session that was started with its own definition
    #[arg(short, long, value_name = "FILE")]
    pub(crate) definition: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

#[derive(Args)]
#[command(
    after_help = "The session then counts as tested, with passing tests, until its agent changes \
something again.\n\n\
Only a person may run this command, because it lets more calls run. It is refused if an agent \
started it: run it in your own terminal."
)]
pub(crate) struct SkipTestsArgs {
    /// Do not ask for confirmation; requires `--why`
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

#[derive(Subcommand)]
pub(crate) enum ConstraintCommand {
    /// End the constraint now
    #[command(after_help = PERSON_ONLY_HELP)]
    Expire(ExpireArgs),
}

#[derive(Args)]
pub(crate) struct ExpireArgs {
    /// The id of the constraint, as `jackline status` shows it, for example k1
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

#[derive(Args)]
#[command(
    after_help = "Protected files, pauses and a person's decisions are enforced in every mode.\n\n\
Examples:\n  jackline enforce git/push-force\n  jackline enforce pack/git pack/secrets\n  \
jackline observe\n\nExit codes: 0 the mode is set; 1 the file was not changed; 2 wrong usage or invalid input."
)]
pub(crate) struct ModesArgs {
    /// Rules, as `jackline check --details` lists them, or packs, as pack/NAME [default: the mode of the
    /// whole definition]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// The definition [default: jackline.yaml here or in a parent]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) definition: Option<PathBuf>,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Args)]
#[command(
    after_help = "Before the first session of this workspace, it shows the definition that a new session would \
have, and how a session begins. --json then prints {\"session\": null}.\n\n\
Exit codes: 0 success, also without a session; 2 wrong usage, such as a session that does not exist; \
3 the guard itself is broken."
)]
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
#[command(
    after_help = "Keys: up and down (j, k) select a session; p pauses, r resumes, s stops it; a allows and d refuses \
the call that waits for you; Enter shows recent events, ? all keys, q quits. Sessions continue when you quit, \
and never wait for this command.\n\n\
Only a person may use the keys a and r. They are refused if an agent started this command: run it in your own \
terminal."
)]
pub(crate) struct WatchArgs {
    /// Show the sessions of all workspaces [default: of this one]
    #[arg(long)]
    pub(crate) all: bool,
    /// Print one frame as text and exit
    #[arg(long)]
    pub(crate) once: bool,
    /// Your name for the journal [default: the name of the user]
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
}

#[derive(Args)]
#[command(
    after_help = "Counts the violations in the journals, and what `jackline attempt` and programs of \
`jackline run` raised in their attempts.\n\n\
Examples:\n  jackline violations\n  jackline violations --all --json"
)]
pub(crate) struct ViolationsArgs {
    /// Ids, unique prefixes, or journal files [default: all sessions of this workspace]
    pub(crate) sessions: Vec<String>,
    /// Count in the sessions of all workspaces
    #[arg(long, conflicts_with = "sessions")]
    pub(crate) all: bool,
    /// Print JSON, one object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(
    after_help = "Records that say nothing new are not listed: token usage, and results of calls that \
succeeded without any remark. --all lists them too. --json always prints every record.\n\n\
Before the first session of this workspace, the log is empty: the exit code is 0, and --json prints no line. \
A session that does not exist is wrong usage.\n\n\
Exit codes: 0 success; 2 wrong usage; 3 the guard itself is broken."
)]
pub(crate) struct LogArgs {
    /// An id, a unique prefix, or a journal file [default: the latest session of this workspace]
    pub(crate) session: Option<String>,
    /// Only the last N records [default: 50]
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) last: Option<usize>,
    /// Only records with violations, also those that were only observed
    #[arg(long)]
    pub(crate) objections: bool,
    /// Also list bookkeeping: token usage, and results of successful calls
    #[arg(long)]
    pub(crate) all: bool,
    /// Print every record, one per line, as in the journal
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ShowArgs {
    /// An id, a unique prefix, or a journal file [default: the latest session of this workspace],
    /// and the number of a record [default: the last one with a violation, else the last one]
    #[arg(value_name = "SESSION] [RECORD", num_args = 0..=2)]
    pub(crate) session_and_record: Vec<String>,
    /// Print the record as in the journal
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct SessionsArgs {
    /// Ids, unique prefixes, journal files or exports [default: the latest session of this
    /// workspace]
    pub(crate) sessions: Vec<String>,
    /// All sessions of this machine
    #[arg(long, conflicts_with = "sessions")]
    pub(crate) all: bool,
    /// Print JSON, one object per session
    #[arg(long)]
    pub(crate) json: bool,
}

/// The default for `--client`: the first client with readable transcripts.
fn default_client() -> &'static str {
    let readable = CLIENTS.iter().find(|client| client.transcripts.is_some());
    readable.map_or("", |client| client.id.as_str())
}

#[derive(Args)]
#[command(
    after_help = "Runs nothing and writes nothing. All rules and the loop guard are treated as enforced. \
A recorded call counts as executed even if the definition would have denied it. Decisions that depend on the \
files or the repository of that time are listed as undecidable.\n\n\
The format of a file is detected from its contents, compressed with gzip or not:\n  \
runs         one JSON object per line: {id, model, user_breaks, steps: [{turn, tool, args, result,\n               \
is_error}]}\n  \
journals     written by `jackline`; recorded facts and verdicts are used\n  \
transcripts  written by an agent client about its own sessions\n\n\
With --json, one line per run: {\"id\", \"soft\", \"hard\", \"rule\", \"denied\", \"asked\", \"stop\", \
\"undecidable\"}; calls are numbered from 0; soft and hard are the first calls at which a loop was found.\n\n\
Examples:\n  jackline backtest --mine\n  \
jackline backtest --mine --since 7d -d stricter.yaml\n  \
jackline backtest -d new.yaml runs.jsonl.gz\n  \
jackline backtest -d new.yaml 7f3a --json\n\n\
Exit codes: 0 success, whatever was found; 2 wrong usage, nothing to decide on, or a named file \
can't be read; 3 the guard itself is broken."
)]
pub(crate) struct BacktestArgs {
    /// Read the transcripts of your own agent client
    #[arg(long)]
    pub(crate) mine: bool,
    /// The client whose transcripts --mine reads
    #[arg(long, value_name = "CLIENT", default_value = default_client())]
    pub(crate) client: String,
    /// The definition [default: jackline.yaml here or in a parent, else the preset coding-agent]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) definition: Option<PathBuf>,
    /// Only files that were modified within this time: 12h, 30d, 8w
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Print JSON, one object per run
    #[arg(long)]
    pub(crate) json: bool,
    /// Files of runs, journals or transcripts; directories with such files; sessions by id or
    /// prefix
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
}

#[derive(Args)]
pub(crate) struct VerificationArgs {
    /// The directory with the verification task, where the result is written
    pub(crate) directory: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fast(arguments: &[&str]) -> Option<StdioArgs> {
        StdioArgs::parse_fast(arguments.iter().map(OsString::from))
    }

    #[test]
    fn the_fast_parser_agrees_with_the_full_parser_or_returns_none() {
        let words = ["-d", "x.yaml", "--deadline", "2026-01-31T12:00:00Z", "--session", "s"];
        let quick = fast(&words).unwrap();
        let all = ["jackline", "stdio"].iter().chain(&words);
        let CliCommand::Stdio(real) = Cli::parse_from(all).command else { panic!("stdio") };
        assert_eq!(quick.definition, real.definition);
        assert_eq!(quick.deadline, real.deadline);
        assert_eq!(quick.session, real.session);
        for odd in [&["--help"][..], &["-d"], &["-dx"], &["--definition=x"], &["x", "y"]] {
            assert!(fast(odd).is_none(), "{odd:?}");
        }
        assert!(fast(&[]).is_some());
    }
}

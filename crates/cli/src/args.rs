//! What can be said on the command line.

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
    /// Put the guard into the settings of agent clients, or take it out again
    Init(InitArgs),
    /// Read events from standard input, one JSON object a line, and answer each with a verdict
    Stdio(StdioArgs),
    /// Answer one event of an agent client: its JSON on standard input, its JSON on standard output
    Hook(HookArgs),
    /// Guard the tools of MCP servers, or serve bounded ones
    #[command(subcommand)]
    Mcp(McpCommand),
    /// Try out on the client itself whether the guard holds
    Doctor(DoctorArgs),
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
    /// List what waits for a person, with the codes to answer it
    Pending(PendingArgs),
    /// Let exactly the call pass that waits under a code
    Allow(AllowArgs),
    /// Refuse exactly the call that waits under a code
    Refuse(RefuseArgs),
    /// Switch the guard off for a while: objections are written down, and none holds
    Off(OffArgs),
    /// Switch the guard on again
    On(OnArgs),
    /// Hold a session: no call runs until a person says so
    Pause(ControlArgs),
    /// Lift a pause; what lies beneath a person's pause stays: a blocker for `jackline clear`, a checkpoint for `jackline ack`
    Resume(ControlArgs),
    /// End a session for good
    Stop(ControlArgs),
    /// Open a session anew: budgets, policies and what was asked begin again
    Reset(ControlArgs),
    /// Acknowledge a checkpoint: the session goes on for 25 more iterations, or as many as `iterations_extension` says
    Ack(ControlArgs),
    /// Clear a blocker: a session that went in circles, or made no progress, goes on; a person's pause stays
    Clear(ClearArgs),
    /// Let a session go on under the definition as it is now
    Reload(ReloadArgs),
    /// Let a session complete although nothing has tested what it changed (dangerous)
    SkipTests(SkipTestsArgs),
    /// End a constraint that is in force in a session
    #[command(subcommand)]
    Constraint(ConstraintCommand),
    /// Have an agent work on a task on its own, supervised, until it is done or says why not
    Run(RunArgs),
    /// Have a model do a task in attempts, each of which is undone where it fails
    Attempt(AttemptArgs),
    /// Give files back as they were before a session wrote them
    Undo(UndoArgs),
    /// List the tools that attempts have forged, and how they do
    Tools(ToolsArgs),
    /// Show where a session stands
    Status(StatusArgs),
    /// Watch sessions as they go on, and steer them with keys
    Watch(WatchArgs),
    /// List what happened in a session
    Log(LogArgs),
    /// Show one record whole: the event, what the decision rested on, the verdict
    Show(ShowArgs),
    /// Decide every event of a session again and compare the bytes
    Replay(SessionsArgs),
    /// Say what a definition would have done to what agents did in the past
    Backtest(BacktestArgs),
    /// Freeze a session in one file
    Export(ExportArgs),
    /// Sign what a session did, so that others can check it
    Attest(AttestArgs),
    /// Check the hash chain of a session's journal, or an attestation
    Verify(VerifyArgs),
    /// Say who agents are, and which of them may work
    #[command(subcommand)]
    Identity(IdentityCommand),
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
#[command(
    after_help = "Drives the installed client in scratch directories with a scripted model: no key, no \
network, nothing of yours is touched.\n\nExit codes: 0 every line of defence is closed; 1 one is open; \
2 usage, or the client is not found; 3 something could not be tried."
)]
pub(crate) struct DoctorArgs {
    /// The client
    #[arg(value_parser = hook::one_client())]
    pub(crate) client: &'static Client,
    /// The program of the client [default: the one in the search path]
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

/// What is said of who opens something.
const FOR_PEOPLE: &str = "This opens the guard, so it is refused where an agent started it: run it in a terminal \
of your own.";

#[derive(Args)]
pub(crate) struct PendingArgs {
    /// Also what sessions have asked that have ended; one may come back
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON, one object a question
    #[arg(long)]
    pub(crate) json: bool,
}

/// Who says so, and why.
#[derive(Args)]
pub(crate) struct Word {
    /// Who says so [default: the name of the user]
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// Why
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: Option<String>,
}

#[derive(Args)]
#[command(after_help = FOR_PEOPLE)]
pub(crate) struct AllowArgs {
    /// The code, as `jackline pending` shows it
    pub(crate) code: String,
    #[command(flatten)]
    pub(crate) word: Word,
    /// How long the same call may pass, such as 10m or 2h [default: once]
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) lasting: Option<String>,
}

#[derive(Args)]
pub(crate) struct RefuseArgs {
    /// The code, as `jackline pending` shows it
    pub(crate) code: String,
    /// How long it is refused, such as 10m or 2h [default: for the session]
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) lasting: Option<String>,
    #[command(flatten)]
    pub(crate) word: Word,
}

#[derive(Args)]
#[command(after_help = "Works also with a full disk, a state home that can't be written, and a \
broken journal. What would have been denied is written down as long as a journal takes it.\n\n\
This opens the guard, so it is refused where an agent started it: run it in a terminal of your own.")]
pub(crate) struct OffArgs {
    /// How long, such as 30m or 2h; at most 24h
    #[arg(long = "for", value_name = "TIME", default_value = "30m")]
    pub(crate) lasting: String,
    /// Why; it is shown wherever it matters
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: String,
    /// Who says so [default: the name of the user]
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
    /// In this directory and below [default: in the workspace around it, as its
    /// sessions or its definition say]
    #[arg(long, conflicts_with = "everywhere")]
    pub(crate) here: bool,
    /// Everywhere on this machine, for this user
    #[arg(long)]
    pub(crate) everywhere: bool,
}

#[derive(Args)]
pub(crate) struct OnArgs {
    /// End everything that is off, and not only what is off here
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Args)]
pub(crate) struct ControlArgs {
    /// An id, a unique prefix, or a journal file [default: the latest session of this workspace]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) word: Word,
    /// Print JSON, one object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
#[command(after_help = FOR_PEOPLE)]
pub(crate) struct ClearArgs {
    /// Only forget how many iterations have failed; a session that is paused stays so
    #[arg(long)]
    pub(crate) failures: bool,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

#[derive(Args)]
#[command(
    after_help = "The definition is made anew, as for a session that starts now: its file, the other \
layers, what you trust. What was spent stays spent, and a pause stays. One that does not load changes \
nothing.\n\n\
This opens the guard, so it is refused where an agent started it: run it in a terminal of your own."
)]
pub(crate) struct ReloadArgs {
    /// The definition, for a session that was started with one of its own
    #[arg(short, long, value_name = "FILE")]
    pub(crate) definition: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

#[derive(Args)]
#[command(after_help = "The session then counts as tested, and passing, until its agent changes \
something again.\n\n\
This opens the guard, so it is refused where an agent started it: run it in a terminal of your own.")]
pub(crate) struct SkipTestsArgs {
    /// Do it without being asked; `--why` has to be there
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
}

#[derive(Subcommand)]
pub(crate) enum ConstraintCommand {
    /// End it now
    #[command(after_help = FOR_PEOPLE)]
    Expire(ExpireArgs),
}

#[derive(Args)]
pub(crate) struct ExpireArgs {
    /// The constraint, as `jackline status` shows it: k1
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) control: ControlArgs,
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
#[command(
    after_help = "Keys: up and down (j, k) choose; p pauses, r resumes, s stops; a allows and d refuses \
the call that waits for you; Enter shows what happened, ? all keys, q quits. Sessions go on when you quit, \
and nothing they do waits for this.\n\n\
What opens the guard (a, r) is refused where an agent started this: run it in a terminal of your own."
)]
pub(crate) struct WatchArgs {
    /// Sessions of all workspaces [default: of this one]
    #[arg(long)]
    pub(crate) all: bool,
    /// Print one frame as text and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Who presses the keys [default: the name of the user]
    #[arg(long, value_name = "NAME")]
    pub(crate) by: Option<String>,
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
    /// Ids, unique prefixes, journal files or exports [default: the latest session of this workspace]
    pub(crate) sessions: Vec<String>,
    /// All sessions of this machine
    #[arg(long, conflicts_with = "sessions")]
    pub(crate) all: bool,
    /// Print JSON, one object a session
    #[arg(long)]
    pub(crate) json: bool,
}

/// The client whose transcripts are read unless a person names another.
fn default_client() -> &'static str {
    let readable = CLIENTS.iter().find(|client| client.transcripts.is_some());
    readable.map_or("", |client| client.id.as_str())
}

#[derive(Args)]
#[command(
    after_help = "Nothing is run, and nothing is written. The definition is taken as enforced, \
its rules and the loop guard too. What ran is taken as having run, whatever would have been said \
about it; what hangs on files or on a repository of then is listed as undecidable.\n\n\
A file is known by what is in it, packed with gzip or not:\n  \
runs         one JSON object a line: {id, model, user_breaks, steps: [{turn, tool, args, result,\n               \
is_error}]}\n  \
journals     what `jackline` writes; recorded facts and verdicts are used\n  \
transcripts  what an agent client writes of its own sessions\n\n\
With --json, a line a run: {\"id\", \"soft\", \"hard\", \"rule\", \"denied\", \"asked\", \"stop\", \
\"undecidable\"}; calls are numbers from 0, and soft and hard are the first at which a loop was found.\n\n\
Examples:\n  jackline backtest --mine\n  \
jackline backtest --mine --since 7d -d stricter.yaml\n  \
jackline backtest -d new.yaml runs.jsonl.gz\n  \
jackline backtest -d new.yaml 7f3a --json\n\n\
Exit codes: 0 fine, whatever was found; 2 usage, nothing to decide on, or something that was named \
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
    /// Only files that were written to in this time: 12h, 30d, 8w
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Print JSON, one object a run
    #[arg(long)]
    pub(crate) json: bool,
    /// Files of runs, journals, transcripts; directories of them; sessions by id or prefix
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
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

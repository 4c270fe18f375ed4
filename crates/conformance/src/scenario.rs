//! Scenario files: one story each, in YAML.
//!
//! Loading fills in what every step would otherwise repeat: events belong to
//! session `s` and happen at the scenario's clock, and a step that says nothing
//! expects silence, which is `allow`.
//!
//! ```yaml
//! story: One sentence that says what this shows.
//! definition: |
//!   version: 1
//!   completion: { files: [report.md] }
//! files: { draft.md: "text" }      # the workspace at the start, an hour old
//! links: { latest: draft.md }      # symbolic links, by path, to where they lead
//! steps:
//!   - send: { event: stop_proposed }
//!     time: 90                     # seconds since the start, until the next `time`
//!     expect: { decision: deny, completion: { missing: [report.md] }, stop: null }
//!   - write: { report.md: "text" }
//!   - remove: [draft.md]
//!   - holds: { report.md: "text", draft.md: null }   # what is in the workspace now
//!   - restart: true
//!   - "off": maintenance            # a person switches the guard off for half an hour, and why
//!   - "on": true                    # and on again
//!   - approve: s                    # a person approves the agent of this session
//!   - line: 'raw text'
//!     expect: { decision: deny, error: { kind: json } }
//!   - repeat: 3                     # these steps, three times over
//!     from: 1                       # the first number, if it is not 1
//!     every: 60                     # seconds from one time to the next, if any
//!     steps:
//!       - send: { event: tool_finished, call: "c{n}", status: ok }
//! ```
//!
//! `{n}` stands for the number of the repetition in every text of its steps.
//! `{workspace}` in an event or a line stands for the absolute path of the workspace.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use jackline_definition::{Diagnostics, yaml};
use jackline_engine::{Timestamp, nearest};
use serde_json::{Map, Value, json};

/// The session of events that name none.
pub(crate) const SESSION: &str = "s";

/// The home directory of the person in every scenario; nothing is there.
pub(crate) const PERSON: &str = "/Users/person";

/// When every scenario starts: 2026-01-31T12:00:00Z.
pub(crate) const START: Timestamp = Timestamp::from_ms(1_769_860_800_000);

/// How long the guard is switched off, where a scenario says so.
pub(crate) const OFF_MS: u64 = 30 * 60_000;

/// How often steps can be repeated.
const REPEATS_MAX: u64 = 1_000;

/// How long before the start the files of the workspace were written.
pub(crate) const AGE_MS: i64 = 3_600_000;

/// One story and what must be answered in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// `area/name`, as the file is called.
    pub name: String,
    /// One sentence that says what this shows.
    pub story: String,
    /// The definition in force, as YAML.
    pub definition: String,
    /// The workspace at the start, by path.
    pub files: BTreeMap<String, String>,
    /// Symbolic links in it, by path, to where they lead.
    pub links: BTreeMap<String, String>,
    /// What happens.
    pub steps: Vec<Step>,
}

/// One thing that happens.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What the scenario's clock says.
    pub at: Timestamp,
    /// What happens.
    pub act: Act,
}

/// What can happen in a scenario.
#[derive(Debug, Clone, PartialEq)]
pub enum Act {
    /// An adapter sends a line.
    Send {
        /// The line.
        line: String,
        /// What the verdict must hold.
        expect: Value,
    },
    /// Files change.
    Write(BTreeMap<String, String>),
    /// Files go.
    Remove(Vec<String>),
    /// Files must be as they are said to be; none is a file that is not there.
    Holds(BTreeMap<String, Option<String>>),
    /// The product ends and starts again.
    Restart,
    /// A person switches the guard off for half an hour, and says why.
    Off(String),
    /// A person switches it on again.
    On,
    /// A person approves the agent of a session.
    Approve(String),
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send { line, .. } => write!(f, "send {line}"),
            Self::Write(files) => {
                let paths: Vec<&str> = files.keys().map(String::as_str).collect();
                write!(f, "write {}", paths.join(", "))
            }
            Self::Remove(paths) => write!(f, "remove {}", paths.join(", ")),
            Self::Holds(files) => {
                let paths: Vec<&str> = files.keys().map(String::as_str).collect();
                write!(f, "holds {}", paths.join(", "))
            }
            Self::Restart => f.write_str("restart"),
            Self::Off(why) => write!(f, "off {why}"),
            Self::On => f.write_str("on"),
            Self::Approve(session) => write!(f, "approve {session}"),
        }
    }
}

/// Why a scenario can't be played.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file or directory can't be read.
    #[error("can't read `{}`: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the file system said.
        source: std::io::Error,
    },
    /// The file is not YAML.
    #[error("{0}")]
    Yaml(Diagnostics),
    /// The file is not a scenario.
    #[error("{scenario}: {problem}")]
    Malformed {
        /// The scenario.
        scenario: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The file is not where scenarios are.
    #[error("`{}` is not `<area>/<name>.yaml`", .0.display())]
    Misplaced(PathBuf),
}

/// Loads the scenarios below a directory, sorted by name: those that are wanted
/// by their name, and all of them where nothing is said.
pub fn load_corpus(directory: &Path, wanted: Option<&str>) -> Result<Vec<Scenario>, ScenarioError> {
    let mut scenarios = Vec::new();
    for area in entries(directory)? {
        let Some(area_name) = area.file_name().and_then(|name| name.to_str()) else {
            return Err(ScenarioError::Misplaced(area));
        };
        if !area.is_dir() {
            return Err(ScenarioError::Misplaced(area));
        }
        for file in entries(&area)? {
            let stem = file.file_stem().and_then(|stem| stem.to_str());
            let Some(stem) = stem.filter(|_| file.extension().is_some_and(|e| e == "yaml")) else {
                return Err(ScenarioError::Misplaced(file));
            };
            let name = format!("{area_name}/{stem}");
            if wanted.is_some_and(|wanted| wanted != name) {
                continue;
            }
            let source = std::fs::read(&file)
                .map_err(|source| ScenarioError::Unreadable { path: file.clone(), source })?;
            scenarios.push(parse_scenario(&name, &source)?);
        }
    }
    Ok(scenarios)
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>, ScenarioError> {
    let unreadable = |source| ScenarioError::Unreadable { path: directory.to_owned(), source };
    let listed = std::fs::read_dir(directory).map_err(unreadable)?;
    let mut paths = listed
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(unreadable)?;
    paths.sort();
    Ok(paths)
}

/// Reads one scenario.
pub fn parse_scenario(name: &str, source: &[u8]) -> Result<Scenario, ScenarioError> {
    let mut diagnostics = Diagnostics::new(name);
    let root = yaml::parse(source, &mut diagnostics);
    let Some(root) = root.filter(|_| diagnostics.is_empty()) else {
        return Err(ScenarioError::Yaml(diagnostics));
    };
    scenario(name, root.to_json())
        .map_err(|problem| ScenarioError::Malformed { scenario: name.to_owned(), problem })
}

fn scenario(name: &str, value: Value) -> Result<Scenario, String> {
    let mut fields = Fields::new(value, "a scenario")?;
    let story = fields.text("story")?.ok_or("`story` is missing")?;
    if !story.ends_with('.') {
        return Err("`story` is a sentence and ends with a full stop".to_owned());
    }
    let definition = fields.text("definition")?.ok_or("`definition` is missing")?;
    let files = fields.files("files")?.unwrap_or_default();
    let links = fields.files("links")?.unwrap_or_default();
    let Some(Value::Array(items)) = fields.take("steps") else {
        return Err("`steps` must be a list".to_owned());
    };
    fields.finish()?;
    if items.is_empty() {
        return Err("`steps` is empty, so nothing is shown".to_owned());
    }
    let mut at = START;
    let mut steps = Vec::new();
    for (number, item) in items.into_iter().enumerate() {
        let wrong = |problem| format!("step {}: {problem}", number + 1);
        if item.get("repeat").is_some() {
            steps.extend(repeated(item, &mut at).map_err(wrong)?);
        } else {
            steps.push(step(item, &mut at).map_err(wrong)?);
        }
    }
    Ok(Scenario { name: name.to_owned(), story, definition, files, links, steps })
}

/// Steps that are taken several times over.
fn repeated(value: Value, at: &mut Timestamp) -> Result<Vec<Step>, String> {
    let mut fields = Fields::new(value, "a repetition")?;
    let mut number = |key, default| match fields.take(key) {
        None => Ok(default),
        Some(number) => number.as_u64().ok_or(format!("`{key}` must be a whole number")),
    };
    let (times, from, every) = (number("repeat", 0)?, number("from", 1)?, number("every", 0)?);
    let Some(Value::Array(items)) = fields.take("steps") else {
        return Err("a repetition has a list of `steps`".to_owned());
    };
    fields.finish()?;
    if times == 0 || times > REPEATS_MAX || items.is_empty() {
        return Err(format!("steps are repeated between 1 and {REPEATS_MAX} times"));
    }
    let mut steps = Vec::new();
    for n in from..from.saturating_add(times) {
        for item in &items {
            let mut item = item.clone();
            fill_in(&mut item, &n.to_string());
            steps.push(step(item, at)?);
        }
        *at = at.plus_ms(every.saturating_mul(1000));
    }
    Ok(steps)
}

/// Puts the number of a repetition into every text.
fn fill_in(value: &mut Value, number: &str) {
    match value {
        Value::String(text) => *text = text.replace("{n}", number),
        Value::Array(items) => items.iter_mut().for_each(|item| fill_in(item, number)),
        Value::Object(map) => map.values_mut().for_each(|item| fill_in(item, number)),
        _ => {}
    }
}

fn step(value: Value, at: &mut Timestamp) -> Result<Step, String> {
    let mut fields = Fields::new(value, "a step")?;
    match fields.take("time") {
        None => {}
        Some(time) => {
            let seconds = time.as_u64().ok_or("`time` must be whole seconds since the start")?;
            *at = START.plus_ms(seconds.saturating_mul(1000));
        }
    }
    let expect = fields.take("expect");
    let (sent, line) = (fields.take("send"), fields.text("line")?);
    let (written, removed) = (fields.files("write")?, fields.paths("remove")?);
    let (restarted, held) = (fields.take("restart"), fields.held("holds")?);
    let (off, on, approved) = (fields.text("off")?, fields.take("on"), fields.text("approve")?);
    let switched = match (off, on, approved) {
        (Some(why), None, None) => Some(Act::Off(why)),
        (None, Some(Value::Bool(true)), None) => Some(Act::On),
        (None, None, Some(session)) => Some(Act::Approve(session)),
        (None, None, None) => None,
        _ => {
            let one = "a step has `off` and why, `on: true`, or `approve` and a session";
            return Err(one.to_owned());
        }
    };
    fields.finish()?;
    let said = expect.is_some();
    let expect = expect.unwrap_or_else(|| json!({"decision": "allow"}));
    if let (Some(files), None, None) = (&held, &sent, &line)
        && !said
        && written.is_none()
        && removed.is_none()
        && restarted.is_none()
    {
        return Ok(Step { at: *at, act: Act::Holds(files.clone()) });
    }
    let others = (&sent, &line, &written, &removed, &restarted, &held);
    if let (Some(act), (None, None, None, None, None, None)) = (&switched, others)
        && !said
    {
        return Ok(Step { at: *at, act: act.clone() });
    }
    let restarted = restarted.filter(|_| held.is_none() && switched.is_none());
    let act = match (sent, line, written, removed, restarted) {
        (Some(event), None, None, None, None) => {
            Act::Send { line: event_line(event, *at)?, expect }
        }
        (None, Some(line), None, None, None) => Act::Send { line: raw_line(line)?, expect },
        (None, None, Some(files), None, None) if !said => Act::Write(files),
        (None, None, None, Some(paths), None) if !said => Act::Remove(paths),
        (None, None, None, None, Some(Value::Bool(true))) if !said => Act::Restart,
        _ => {
            return Err("a step has one of `send`, `line`, `write`, `remove`, `holds`, `off`, \
                        `on: true` and `restart: true`, and `expect` only with the first two"
                .to_owned());
        }
    };
    Ok(Step { at: *at, act })
}

/// The line of an event, with the session and the time filled in.
fn event_line(event: Value, at: Timestamp) -> Result<String, String> {
    let Value::Object(mut event) = event else { return Err("`send` is an event".to_owned()) };
    event.entry("session").or_insert_with(|| json!(SESSION));
    event.entry("at").or_insert_with(|| json!(at.to_string()));
    Ok(Value::Object(event).to_string())
}

fn raw_line(line: String) -> Result<String, String> {
    if line.trim().is_empty() || line.contains('\n') {
        return Err("`line` is one line with something on it, else nobody answers".to_owned());
    }
    Ok(line)
}

/// A mapping whose keys are taken out one by one; what is left is unknown.
struct Fields {
    map: Map<String, Value>,
    of: &'static str,
    asked: Vec<&'static str>,
}

impl Fields {
    fn new(value: Value, of: &'static str) -> Result<Self, String> {
        match value {
            Value::Object(map) => Ok(Self { map, of, asked: Vec::new() }),
            _ => Err(format!("{of} is a mapping")),
        }
    }

    fn take(&mut self, key: &'static str) -> Option<Value> {
        self.asked.push(key);
        self.map.remove(key)
    }

    fn text(&mut self, key: &'static str) -> Result<Option<String>, String> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(format!("`{key}` must be text")),
        }
    }

    fn files(&mut self, key: &'static str) -> Result<Option<BTreeMap<String, String>>, String> {
        let wrong = || format!("`{key}` must map paths to texts");
        let Some(value) = self.take(key) else { return Ok(None) };
        let Value::Object(map) = value else { return Err(wrong()) };
        let file = |(path, text)| match text {
            Value::String(text) => inside(path).map(|path| (path, text)),
            _ => Err(wrong()),
        };
        map.into_iter().map(file).collect::<Result<_, _>>().map(Some)
    }

    fn held(
        &mut self,
        key: &'static str,
    ) -> Result<Option<BTreeMap<String, Option<String>>>, String> {
        let wrong = || format!("`{key}` must map paths to texts or null");
        let Some(value) = self.take(key) else { return Ok(None) };
        let Value::Object(map) = value else { return Err(wrong()) };
        let file = |(path, text)| match text {
            Value::String(text) => inside(path).map(|path| (path, Some(text))),
            Value::Null => inside(path).map(|path| (path, None)),
            _ => Err(wrong()),
        };
        map.into_iter().map(file).collect::<Result<_, _>>().map(Some)
    }

    fn paths(&mut self, key: &'static str) -> Result<Option<Vec<String>>, String> {
        let wrong = || format!("`{key}` must be a list of paths");
        let Some(value) = self.take(key) else { return Ok(None) };
        let Value::Array(items) = value else { return Err(wrong()) };
        let path = |item| match item {
            Value::String(path) => inside(path),
            _ => Err(wrong()),
        };
        items.into_iter().map(path).collect::<Result<_, _>>().map(Some)
    }

    fn finish(self) -> Result<(), String> {
        let Some(key) = self.map.keys().next() else { return Ok(()) };
        let hint = nearest(key, self.asked.iter().copied())
            .map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
        Err(format!("{} has no `{key}`{hint}", self.of))
    }
}

/// A scenario touches nothing but its own workspace.
fn inside(path: String) -> Result<String, String> {
    match jackline_engine::path::canonical(&path, None) {
        Ok(canonical) if canonical == path && path != "." => Ok(path),
        _ => Err(format!("`{path}` is not a plain path inside the workspace")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(steps: &str) -> Result<Scenario, String> {
        let source = format!("story: A story.\ndefinition: 'version: 1'\nsteps: [{steps}]\n");
        parse_scenario("a/b", source.as_bytes()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_step_gets_the_session_the_time_and_silence() {
        let scenario =
            parse("{ time: 90, send: { event: session_ended } }, { restart: true }").unwrap();
        let line = r#"{"at":"2026-01-31T12:01:30Z","event":"session_ended","session":"s"}"#;
        let expect = json!({"decision": "allow"});
        let act = Act::Send { line: line.to_owned(), expect };
        let at = START.plus_ms(90_000);
        assert_eq!(scenario.steps, [Step { at, act }, Step { at, act: Act::Restart }]);
    }

    #[test]
    fn repeated_steps_are_numbered_and_move_the_clock() {
        let steps = "{ repeat: 2, from: 7, every: 5, steps: [ { send: { event: 'x{n}' } } ] }";
        let scenario = parse(steps).unwrap();
        let line = |n: u32, second: u32| {
            format!(r#"{{"at":"2026-01-31T12:00:0{second}Z","event":"x{n}","session":"s"}}"#)
        };
        let lines: Vec<String> = scenario
            .steps
            .iter()
            .map(|step| match &step.act {
                Act::Send { line, .. } => line.clone(),
                other => panic!("{other}"),
            })
            .collect();
        assert_eq!(lines, [line(7, 0), line(8, 5)]);
    }

    #[test]
    fn what_the_scenario_says_itself_stands() {
        let scenario = parse("{ send: { event: x, session: t, at: null } }").unwrap();
        let Act::Send { line, .. } = &scenario.steps[0].act else { panic!("a send") };
        assert_eq!(line, r#"{"at":null,"event":"x","session":"t"}"#);
    }

    #[test]
    fn unknown_and_misplaced_keys_are_errors() {
        for (steps, problem) in [
            ("{ sends: {} }", "a/b: step 1: a step has no `sends`; did you mean `send`?"),
            ("{ restart: false }", "a/b: step 1: a step has one of"),
            ("{ remove: [a], expect: {} }", "a/b: step 1: a step has one of"),
            ("{ send: {}, line: x }", "a/b: step 1: a step has one of"),
            ("{ line: '' }", "a/b: step 1: `line` is one line"),
            ("{ write: { ../x: y } }", "a/b: step 1: `../x` is not a plain path"),
            ("{ time: -1, restart: true }", "a/b: step 1: `time` must be whole seconds"),
            ("{ repeat: 2 }", "a/b: step 1: a repetition has a list of `steps`"),
            ("{ repeat: 0, steps: [ { restart: true } ] }", "a/b: step 1: steps are repeated"),
            ("{ repeat: x, steps: [] }", "a/b: step 1: `repeat` must be a whole number"),
            ("", "a/b: `steps` is empty"),
        ] {
            let error = parse(steps).unwrap_err();
            assert!(error.starts_with(problem), "{steps}: {error}");
        }
        let duplicate = parse("{ restart: true, restart: true }").unwrap_err();
        assert!(duplicate.contains("duplicate key `restart`"), "{duplicate}");
    }
}

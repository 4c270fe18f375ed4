//! Scenario files: one story per YAML file.
//!
//! Loading adds defaults to every step: events belong to session `s` and happen at the scenario's
//! clock. A step without `expect` expects `allow`.
//!
//! ```yaml
//! story: One sentence that describes the expected behaviour.
//! definition: |
//!   version: 1
//!   completion: { files: [report.md] }
//! files: { draft.md: "text" }      # the workspace at the start, one hour old
//! links: { latest: draft.md }      # symbolic links: path and target
//! needs: [see_exit_status]         # capabilities without which the story ends in another way
//! steps:
//!   - send: { event: stop_proposed }
//!     time: 90                     # seconds since the start, until the next `time`
//!     expect: { decision: deny, completion: { missing: [report.md] }, stop: null }
//!   - write: { report.md: "text" }
//!   - remove: [draft.md]
//!   - holds: { report.md: "text", draft.md: null }   # the expected files of the workspace
//!   - restart: true
//!   - "off": maintenance            # a person turns the guard off for half an hour, with a reason
//!   - "on": true                    # and on again
//!   - approve: s                    # a person approves the agent of this session
//!   - line: 'raw text'
//!     expect: { decision: deny, error: { kind: json } }
//!   - repeat: 3                     # repeat these steps three times
//!     from: 1                       # the first number, if it is not 1
//!     every: 60                     # seconds between repetitions, if any
//!     steps:
//!       - send: { event: tool_finished, call: "c{n}", status: ok }
//! ```
//!
//! `{n}` in a text is replaced by the number of the repetition. `{workspace}` in an event or a line
//! is replaced by the absolute path of the workspace.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use jackline_definition::{Diagnostics, yaml};
use jackline_engine::{Timestamp, nearest_name};
use jackline_runtime::surfaces::SurfaceCapability;
use serde_json::{Map, Value, json};

/// The session of events that name none.
pub(crate) const SESSION: &str = "s";

/// The home directory of the person in every scenario. It is empty.
pub(crate) const PERSON: &str = "/Users/person";

/// The start time of every scenario: 2026-01-31T12:00:00Z.
pub(crate) const START: Timestamp = Timestamp::from_ms(1_769_860_800_000);

/// How long `off` turns the guard off.
pub(crate) const OFF_MS: u64 = 30 * 60_000;

/// The largest number of repetitions.
const REPEATS_MAX: u64 = 1_000;

/// The age of the workspace files at the start.
pub(crate) const FILE_AGE_MS: i64 = 3_600_000;

/// One story and its expected verdicts.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// The name `area/name`, from the file path.
    pub name: String,
    /// One sentence that describes the expected behaviour.
    pub story: String,
    /// The definition in force, as YAML.
    pub definition: String,
    /// The files of the workspace at the start, by path.
    pub files: BTreeMap<String, String>,
    /// Symbolic links in the workspace: path and target.
    pub links: BTreeMap<String, String>,
    /// What a surface must be able to do, if the events alone do not show it. On a surface that
    /// can't do it, the scenario must fail.
    pub needs: Vec<SurfaceCapability>,
    /// The steps.
    pub steps: Vec<ScenarioStep>,
}

impl Scenario {
    /// A text that is longer than any file of the scenario.
    pub(crate) fn long_text(&self) -> String {
        let written = self.steps.iter().filter_map(|step| match &step.act {
            ScenarioAction::Write(files) => Some(files),
            _ => None,
        });
        let texts = written.chain([&self.files]).flat_map(BTreeMap::values);
        let longest = texts.map(String::len).max().unwrap_or(0);
        "printed\n".repeat(longest / 8 + 1)
    }
}

/// One step of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct ScenarioStep {
    /// The time on the scenario's clock.
    pub at: Timestamp,
    /// The action.
    pub act: ScenarioAction,
}

/// An action in a scenario.
#[derive(Debug, Clone, PartialEq)]
pub enum ScenarioAction {
    /// An adapter sends a line.
    Send {
        /// The line.
        line: String,
        /// The expected fields of the verdict.
        expect: Value,
    },
    /// Files change.
    Write(BTreeMap<String, String>),
    /// Files are removed.
    Remove(Vec<String>),
    /// Files must have these contents; `None` means that the file must be missing.
    Contains(BTreeMap<String, Option<String>>),
    /// The product ends and starts again.
    Restart,
    /// A person turns the guard off for half an hour, with a reason.
    Off(String),
    /// A person turns the guard on again.
    On,
    /// A person approves the agent of a session.
    Approve(String),
}

impl fmt::Display for ScenarioAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Send { line, .. } => write!(f, "send {line}"),
            Self::Write(files) => {
                let paths: Vec<&str> = files.keys().map(String::as_str).collect();
                write!(f, "write {}", paths.join(", "))
            }
            Self::Remove(paths) => write!(f, "remove {}", paths.join(", ")),
            Self::Contains(files) => {
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

/// Why a scenario can't be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file or directory can't be read.
    #[error("can't read `{}`: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
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
        /// The problem.
        problem: String,
    },
    /// The file is in the wrong directory or has the wrong extension.
    #[error("the path `{}` must have the form `<area>/<name>.yaml`", .0.display())]
    Misplaced(PathBuf),
}

/// Loads the scenarios below a directory, sorted by name: all of them, or only the wanted one.
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

/// Parses one scenario.
pub fn parse_scenario(name: &str, source: &[u8]) -> Result<Scenario, ScenarioError> {
    let mut diagnostics = Diagnostics::new(name);
    let root = yaml::parse(source, &mut diagnostics);
    let Some(root) = root.filter(|_| diagnostics.is_empty()) else {
        return Err(ScenarioError::Yaml(diagnostics));
    };
    parse_fields(name, root.to_json())
        .map_err(|problem| ScenarioError::Malformed { scenario: name.to_owned(), problem })
}

fn parse_fields(name: &str, value: Value) -> Result<Scenario, String> {
    let mut fields = FieldReader::new(value, "a scenario")?;
    let story = fields.text("story")?.ok_or("`story` is missing")?;
    if !story.ends_with('.') {
        return Err("`story` must be a sentence that ends with a full stop".to_owned());
    }
    let definition = fields.text("definition")?.ok_or("`definition` is missing")?;
    let files = fields.files("files")?.unwrap_or_default();
    let links = fields.files("links")?.unwrap_or_default();
    let needs = fields.capabilities("needs")?;
    let Some(Value::Array(items)) = fields.take("steps") else {
        return Err("`steps` must be a list".to_owned());
    };
    fields.finish()?;
    if items.is_empty() {
        return Err("`steps` is empty, so the scenario checks nothing".to_owned());
    }
    let mut at = START;
    let mut steps = Vec::new();
    for (number, item) in items.into_iter().enumerate() {
        let wrong = |problem| format!("step {}: {problem}", number + 1);
        if item.get("repeat").is_some() {
            steps.extend(parse_repetition(item, &mut at).map_err(wrong)?);
        } else {
            steps.push(parse_step(item, &mut at).map_err(wrong)?);
        }
    }
    Ok(Scenario { name: name.to_owned(), story, definition, files, links, needs, steps })
}

/// Parses steps that are repeated.
fn parse_repetition(value: Value, at: &mut Timestamp) -> Result<Vec<ScenarioStep>, String> {
    let mut fields = FieldReader::new(value, "a repetition")?;
    let mut number = |key, default| match fields.take(key) {
        None => Ok(default),
        Some(number) => number.as_u64().ok_or(format!("`{key}` must be a whole number")),
    };
    let (times, from, every) = (number("repeat", 0)?, number("from", 1)?, number("every", 0)?);
    let Some(Value::Array(items)) = fields.take("steps") else {
        return Err("a repetition must have a list of `steps`".to_owned());
    };
    fields.finish()?;
    if times == 0 || times > REPEATS_MAX || items.is_empty() {
        return Err(format!("steps must be repeated between 1 and {REPEATS_MAX} times"));
    }
    let mut steps = Vec::new();
    for n in from..from.saturating_add(times) {
        for item in &items {
            let mut item = item.clone();
            insert_number(&mut item, &n.to_string());
            steps.push(parse_step(item, at)?);
        }
        *at = at.plus_ms(every.saturating_mul(1000));
    }
    Ok(steps)
}

/// Replaces `{n}` in every text by the number of the repetition.
fn insert_number(value: &mut Value, number: &str) {
    match value {
        Value::String(text) => *text = text.replace("{n}", number),
        Value::Array(items) => items.iter_mut().for_each(|item| insert_number(item, number)),
        Value::Object(map) => map.values_mut().for_each(|item| insert_number(item, number)),
        _ => {}
    }
}

fn parse_step(value: Value, at: &mut Timestamp) -> Result<ScenarioStep, String> {
    let mut fields = FieldReader::new(value, "a step")?;
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
    let (restarted, held) = (fields.take("restart"), fields.optional_files("holds")?);
    let (off, on, approved) = (fields.text("off")?, fields.take("on"), fields.text("approve")?);
    let switched = match (off, on, approved) {
        (Some(why), None, None) => Some(ScenarioAction::Off(why)),
        (None, Some(Value::Bool(true)), None) => Some(ScenarioAction::On),
        (None, None, Some(session)) => Some(ScenarioAction::Approve(session)),
        (None, None, None) => None,
        _ => {
            let one =
                "a step must have `off` with a reason, `on: true`, or `approve` with a session";
            return Err(one.to_owned());
        }
    };
    fields.finish()?;
    let has_expect = expect.is_some();
    let expect = expect.unwrap_or_else(|| json!({"decision": "allow"}));
    if let (Some(files), None, None) = (&held, &sent, &line)
        && !has_expect
        && written.is_none()
        && removed.is_none()
        && restarted.is_none()
    {
        return Ok(ScenarioStep { at: *at, act: ScenarioAction::Contains(files.clone()) });
    }
    let others = (&sent, &line, &written, &removed, &restarted, &held);
    if let (Some(act), (None, None, None, None, None, None)) = (&switched, others)
        && !has_expect
    {
        return Ok(ScenarioStep { at: *at, act: act.clone() });
    }
    let restarted = restarted.filter(|_| held.is_none() && switched.is_none());
    let act = match (sent, line, written, removed, restarted) {
        (Some(event), None, None, None, None) => {
            ScenarioAction::Send { line: event_line(event, *at)?, expect }
        }
        (None, Some(line), None, None, None) => {
            ScenarioAction::Send { line: raw_line(line)?, expect }
        }
        (None, None, Some(files), None, None) if !has_expect => ScenarioAction::Write(files),
        (None, None, None, Some(paths), None) if !has_expect => ScenarioAction::Remove(paths),
        (None, None, None, None, Some(Value::Bool(true))) if !has_expect => ScenarioAction::Restart,
        _ => {
            return Err(
                "a step must have one of `send`, `line`, `write`, `remove`, `holds`, `off`, \
                        `on: true` and `restart: true`, with `expect` only for `send` and `line`"
                    .to_owned(),
            );
        }
    };
    Ok(ScenarioStep { at: *at, act })
}

/// The line of an event, with its session and time.
fn event_line(event: Value, at: Timestamp) -> Result<String, String> {
    let Value::Object(mut event) = event else { return Err("`send` must be an event".to_owned()) };
    event.entry("session").or_insert_with(|| json!(SESSION));
    event.entry("at").or_insert_with(|| json!(at.to_string()));
    Ok(Value::Object(event).to_string())
}

fn raw_line(line: String) -> Result<String, String> {
    if line.trim().is_empty() || line.contains('\n') {
        return Err("`line` must be one line that is not empty, because the product does not answer other input".to_owned());
    }
    Ok(line)
}

/// A mapping whose known keys are taken out. The remaining keys are errors.
struct FieldReader {
    map: Map<String, Value>,
    of: &'static str,
    known_keys: Vec<&'static str>,
}

impl FieldReader {
    fn new(value: Value, of: &'static str) -> Result<Self, String> {
        match value {
            Value::Object(map) => Ok(Self { map, of, known_keys: Vec::new() }),
            _ => Err(format!("{of} must be a mapping")),
        }
    }

    fn take(&mut self, key: &'static str) -> Option<Value> {
        self.known_keys.push(key);
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
            Value::String(text) => check_path(path).map(|path| (path, text)),
            _ => Err(wrong()),
        };
        map.into_iter().map(file).collect::<Result<_, _>>().map(Some)
    }

    fn optional_files(
        &mut self,
        key: &'static str,
    ) -> Result<Option<BTreeMap<String, Option<String>>>, String> {
        let wrong = || format!("`{key}` must map paths to texts or null");
        let Some(value) = self.take(key) else { return Ok(None) };
        let Value::Object(map) = value else { return Err(wrong()) };
        let file = |(path, text)| match text {
            Value::String(text) => check_path(path).map(|path| (path, Some(text))),
            Value::Null => check_path(path).map(|path| (path, None)),
            _ => Err(wrong()),
        };
        map.into_iter().map(file).collect::<Result<_, _>>().map(Some)
    }

    fn capabilities(&mut self, key: &'static str) -> Result<Vec<SurfaceCapability>, String> {
        let wrong = || format!("`{key}` must be a list of capabilities");
        let Some(value) = self.take(key) else { return Ok(Vec::new()) };
        let Value::Array(items) = value else { return Err(wrong()) };
        let capability = |item: Value| item.as_str().and_then(SurfaceCapability::parse);
        items.into_iter().map(|item| capability(item).ok_or_else(wrong)).collect()
    }

    fn paths(&mut self, key: &'static str) -> Result<Option<Vec<String>>, String> {
        let wrong = || format!("`{key}` must be a list of paths");
        let Some(value) = self.take(key) else { return Ok(None) };
        let Value::Array(items) = value else { return Err(wrong()) };
        let path = |item| match item {
            Value::String(path) => check_path(path),
            _ => Err(wrong()),
        };
        items.into_iter().map(path).collect::<Result<_, _>>().map(Some)
    }

    fn finish(self) -> Result<(), String> {
        let Some(key) = self.map.keys().next() else { return Ok(()) };
        let hint = nearest_name(key, self.known_keys.iter().copied())
            .map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
        Err(format!("{} has no key `{key}`{hint}", self.of))
    }
}

/// Checks that a path is inside the workspace of the scenario.
fn check_path(path: String) -> Result<String, String> {
    match jackline_engine::path::canonical_path(&path, None) {
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
    fn a_step_gets_a_default_session_time_and_expectation() {
        let scenario =
            parse("{ time: 90, send: { event: session_ended } }, { restart: true }").unwrap();
        let line = r#"{"at":"2026-01-31T12:01:30Z","event":"session_ended","session":"s"}"#;
        let expect = json!({"decision": "allow"});
        let act = ScenarioAction::Send { line: line.to_owned(), expect };
        let at = START.plus_ms(90_000);
        assert_eq!(
            scenario.steps,
            [ScenarioStep { at, act }, ScenarioStep { at, act: ScenarioAction::Restart }]
        );
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
                ScenarioAction::Send { line, .. } => line.clone(),
                other => panic!("{other}"),
            })
            .collect();
        assert_eq!(lines, [line(7, 0), line(8, 5)]);
    }

    #[test]
    fn explicit_values_of_a_scenario_are_not_changed() {
        let scenario = parse("{ send: { event: x, session: t, at: null } }").unwrap();
        let ScenarioAction::Send { line, .. } = &scenario.steps[0].act else { panic!("a send") };
        assert_eq!(line, r#"{"at":null,"event":"x","session":"t"}"#);
    }

    #[test]
    fn unknown_and_misplaced_keys_are_errors() {
        for (steps, problem) in [
            ("{ sends: {} }", "a/b: step 1: a step has no key `sends`; did you mean `send`?"),
            ("{ restart: false }", "a/b: step 1: a step must have one of"),
            ("{ remove: [a], expect: {} }", "a/b: step 1: a step must have one of"),
            ("{ send: {}, line: x }", "a/b: step 1: a step must have one of"),
            ("{ line: '' }", "a/b: step 1: `line` must be one line"),
            ("{ write: { ../x: y } }", "a/b: step 1: `../x` is not a plain path"),
            ("{ time: -1, restart: true }", "a/b: step 1: `time` must be whole seconds"),
            ("{ repeat: 2 }", "a/b: step 1: a repetition must have a list of `steps`"),
            ("{ repeat: 0, steps: [ { restart: true } ] }", "a/b: step 1: steps must be repeated"),
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

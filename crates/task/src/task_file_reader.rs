//! Reads a task file, and reports all of its errors at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jackline_definition::yaml::{YamlNode, YamlValue};
use jackline_definition::yaml_file_reader::YamlFileReader;
use jackline_model::{LocalModelSpec, check_url};
use serde_json::{Map, Value};

use crate::task_file::{LoadError, TaskFile, read_file};
use crate::task_model::{ChatSpec, ScriptedAnswer, TaskModel, TaskScript};
use crate::task_spec::{ArtifactKind, Delegate, Task};

/// How many seconds a model may take by default.
const TIMEOUT_SECONDS: u64 = 120;

const TASK_KEYS: [&str; 7] =
    ["prompt", "tools", "definition", "model", "context", "delegates", "artifact"];
const DELEGATE_KEYS: [&str; 8] =
    ["prompt", "tools", "model", "context", "delegates", "artifact", "description", "external"];
const MODEL_KEYS: [&str; 5] = ["script", "url", "name", "key_env", "timeout_seconds"];
const SCRIPT_KEYS: [&str; 2] = ["steps", "repeat"];
const ANSWER_KEYS: [&str; 4] = ["text", "file", "timeout", "status"];

/// Reads a task from a file, or from a directory with a `task.yaml`.
pub fn load_task(path: &Path) -> Result<Task, LoadError> {
    let TaskFile { directory, name, form, node, .. } = TaskFile::open(path)?;
    let mut reader = TaskFileReader { form, directory, other_file_error: None };
    let task = node.map(|node| reader.task(&node, &name, &TASK_KEYS));
    if let Some(later) = reader.other_file_error {
        return Err(later);
    }
    match task {
        Some((task, _)) if reader.form.is_valid() => Ok(task),
        _ => Err(LoadError::Wrong(vec![reader.form.into_diagnostics()])),
    }
}

struct TaskFileReader {
    form: YamlFileReader,
    directory: PathBuf,
    /// An error in another file. It is reported if this file has no errors.
    other_file_error: Option<LoadError>,
}

/// The fields that only delegates have.
struct DelegateFields {
    description: Option<String>,
    external: bool,
}

impl TaskFileReader {
    fn task(&mut self, node: &YamlNode, name: &str, known: &[&str]) -> (Task, DelegateFields) {
        let mut task = Task {
            name: name.to_owned(),
            prompt: String::new(),
            tools: Vec::new(),
            definition: None,
            model: TaskModel::Inherited,
            context: Map::new(),
            delegates: BTreeMap::new(),
            artifact: ArtifactKind::Program,
        };
        let mut extra = DelegateFields { description: None, external: false };
        let what = if known == TASK_KEYS { "a task" } else { "a delegate" };
        let fields = self.form.fields(node, what, known);
        for (key, value) in &fields {
            match key.text.as_str() {
                "prompt" => task.prompt = self.form.text(value, "`prompt`").unwrap_or_default(),
                "tools" => task.tools = self.tools(value),
                "definition" => {
                    let file = self.form.text(value, "`definition`");
                    task.definition = file.map(|file| self.directory.join(file));
                }
                "model" => task.model = self.model(value),
                "context" => task.context = self.context(value),
                "delegates" => task.delegates = self.delegates(value, name),
                "artifact" => task.artifact = self.artifact(value),
                "description" => extra.description = self.form.text(value, "`description`"),
                "external" => extra.external = self.form.flag(value, "`external`"),
                _ => {}
            }
        }
        let is_given = |name: &str| fields.iter().any(|(key, _)| key.text == name);
        if !is_given("prompt") {
            self.form.report(node.position, format!("{what} needs a `prompt`"), None);
        }
        if known == TASK_KEYS && !is_given("model") {
            let hint = "add `model: { script: FILE }` or `model: { url: …, name: … }`";
            self.form.report(node.position, "a task needs a `model`", Some(hint.to_owned()));
        }
        (task, extra)
    }

    fn tools(&mut self, node: &YamlNode) -> Vec<String> {
        let known = || jackline_workspace::tools().iter().map(|spec| spec.name);
        self.form.names(node, ("`tools`", "tool"), known)
    }

    fn context(&mut self, node: &YamlNode) -> Map<String, Value> {
        match node.to_json() {
            Value::Object(mut fields) => {
                for own in ["tools", "delegates"] {
                    if fields.remove(own).is_some() {
                        let message = format!(
                            "`{own}` is reserved in `context`: it lists what may be called"
                        );
                        self.form.report(
                            node.position,
                            message,
                            Some("choose another name".to_owned()),
                        );
                    }
                }
                fields
            }
            Value::Null => Map::new(),
            _ => {
                let message = format!("`context` must be a mapping, not {}", node.describe());
                self.form.report(node.position, message, None);
                Map::new()
            }
        }
    }

    fn delegates(&mut self, node: &YamlNode, parent: &str) -> BTreeMap<String, Delegate> {
        let YamlValue::Map(entries) = &node.value else {
            let message = format!("`delegates` must be a mapping, not {}", node.describe());
            self.form.report(node.position, message, None);
            return BTreeMap::new();
        };
        let mut delegates = BTreeMap::new();
        for (key, value) in entries {
            let name = format!("{parent}.{}", key.text);
            let (task, DelegateFields { description, external }) =
                self.task(value, &name, &DELEGATE_KEYS);
            let description = description.unwrap_or_else(|| key.text.clone());
            delegates.insert(key.text.clone(), Delegate { description, external, task });
        }
        delegates
    }

    fn artifact(&mut self, node: &YamlNode) -> ArtifactKind {
        match self.form.text(node, "`artifact`").as_deref() {
            Some("plan") => ArtifactKind::Plan,
            Some("program") | None => ArtifactKind::Program,
            Some(other) => {
                let message = format!("`artifact` can't be `{other}`");
                self.form.report(
                    node.position,
                    message,
                    Some("use `program` or `plan`".to_owned()),
                );
                ArtifactKind::Program
            }
        }
    }

    fn model(&mut self, node: &YamlNode) -> TaskModel {
        if let YamlValue::Text(name) = &node.value
            && let Some(path) = LocalModelSpec::path_in(name)
        {
            let timeout = Duration::from_secs(TIMEOUT_SECONDS);
            let path = self.directory.join(path);
            return TaskModel::Local(LocalModelSpec { path, window: None, timeout });
        }
        let fields = self.form.fields(node, "`model`", &MODEL_KEYS);
        let get = |name: &str| fields.iter().find(|(key, _)| key.text == name).map(|(_, it)| it);
        let (script, url) = (get("script"), get("url"));
        match (script, url) {
            (Some(script), None) => {
                let Some(file) = self.form.text(script, "`script`") else {
                    return TaskModel::Inherited;
                };
                self.script(&file)
            }
            (None, Some(url)) => {
                let at = url.position;
                let url = self.form.text(url, "`url`").unwrap_or_default();
                if !url.is_empty()
                    && let Err(error) = check_url(&url)
                {
                    self.form.report(at, format!("`url` {error}"), None);
                }
                let name = get("name").and_then(|name| self.form.text(name, "`name`"));
                if get("name").is_none() {
                    self.form.report(node.position, "a model with a `url` needs a `name`", None);
                }
                let key_env = get("key_env").and_then(|key| self.form.text(key, "`key_env`"));
                let timeout_seconds = get("timeout_seconds")
                    .map(|it| self.form.seconds(it, "`timeout_seconds`", TIMEOUT_SECONDS));
                TaskModel::Chat(ChatSpec {
                    url,
                    name: name.unwrap_or_default(),
                    key_env,
                    timeout_seconds: timeout_seconds.unwrap_or(TIMEOUT_SECONDS),
                })
            }
            _ => {
                let message = "`model` needs either `script` or `url`, or is `local:FILE.gguf`";
                self.form.report(node.position, message, None);
                TaskModel::Inherited
            }
        }
    }

    /// Reads a script file, relative to the task file.
    fn script(&mut self, file: &str) -> TaskModel {
        let path = self.directory.join(file);
        let read = read_file(&path).and_then(|source| {
            let directory = path.parent().unwrap_or(Path::new(".")).to_owned();
            let mut reader =
                Self { form: YamlFileReader::for_file(&path), directory, other_file_error: None };
            let parsed = reader.form.parse(&source);
            let script = parsed.map(|node| reader.answers(&node));
            if let Some(later) = reader.other_file_error {
                return Err(later);
            }
            match script {
                Some(script) if reader.form.is_valid() => Ok(script),
                _ => Err(LoadError::Wrong(vec![reader.form.into_diagnostics()])),
            }
        });
        match read {
            Ok(script) => TaskModel::Script(script),
            Err(error) => {
                self.other_file_error.get_or_insert(error);
                TaskModel::Inherited
            }
        }
    }

    fn answers(&mut self, node: &YamlNode) -> TaskScript {
        let mut script = TaskScript::default();
        for (key, value) in self.form.fields(node, "a script", &SCRIPT_KEYS) {
            match key.text.as_str() {
                "repeat" => script.repeats = self.form.flag(value, "`repeat`"),
                _ => {
                    for item in self.form.list(value, "`steps`") {
                        script.answers.extend(self.answer(item));
                    }
                }
            }
        }
        script
    }

    fn answer(&mut self, node: &YamlNode) -> Option<ScriptedAnswer> {
        if let YamlValue::Text(text) = &node.value {
            return Some(ScriptedAnswer::Text(text.clone()));
        }
        let fields = self.form.fields(node, "an answer", &ANSWER_KEYS);
        let [(key, value)] = fields.as_slice() else {
            self.form.report(
                node.position,
                "an answer must be text or a mapping with exactly one key",
                None,
            );
            return None;
        };
        match (key.text.as_str(), &value.value) {
            ("text", YamlValue::Text(text)) => Some(ScriptedAnswer::Text(text.clone())),
            ("text", YamlValue::Null) => Some(ScriptedAnswer::Text(String::new())),
            ("timeout", YamlValue::Bool(true)) => Some(ScriptedAnswer::Timeout),
            ("status", YamlValue::Integer(status @ 100..=599)) => {
                u16::try_from(*status).ok().map(ScriptedAnswer::Status)
            }
            ("file", YamlValue::Text(file)) => match read_file(&self.directory.join(file)) {
                Ok(bytes) => {
                    Some(ScriptedAnswer::Text(String::from_utf8_lossy(&bytes).into_owned()))
                }
                Err(error) => {
                    self.other_file_error.get_or_insert(error);
                    None
                }
            },
            (name, _) => {
                let message = format!("`{name}` of an answer can't be {}", value.describe());
                self.form.report(value.position, message, None);
                None
            }
        }
    }
}

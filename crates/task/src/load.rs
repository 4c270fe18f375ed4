//! Reads a task file, and says everything that is wrong with it at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jackline_definition::form::Form;
use jackline_definition::yaml::{Node, NodeValue};
use jackline_model::{LocalSpec, check_url};
use serde_json::{Map, Value};

use crate::model::{Answer, Chat, ModelSpec, Script};
use crate::spec::{ArtifactKind, Delegate, Task};
use crate::task_file::{LoadError, TaskFile, read_file};

/// How long a model may take, unless told.
const TIMEOUT_SECONDS: u64 = 120;

const TASK: [&str; 7] =
    ["prompt", "tools", "definition", "model", "context", "delegates", "artifact"];
const DELEGATE: [&str; 8] =
    ["prompt", "tools", "model", "context", "delegates", "artifact", "description", "external"];
const MODEL: [&str; 5] = ["script", "url", "name", "key_env", "timeout_seconds"];
const SCRIPT: [&str; 2] = ["answers", "repeat"];
const ANSWER: [&str; 4] = ["text", "file", "timeout", "status"];

/// Reads a task: a file, or a directory with a `task.yaml`.
pub fn load(path: &Path) -> Result<Task, LoadError> {
    let TaskFile { directory, name, form, node, .. } = TaskFile::open(path)?;
    let mut reader = Reader { form, directory, later: None };
    let task = node.map(|node| reader.task(&node, &name, &TASK));
    if let Some(later) = reader.later {
        return Err(later);
    }
    match task {
        Some((task, _)) if reader.form.is_right() => Ok(task),
        _ => Err(LoadError::Wrong(vec![reader.form.wrong()])),
    }
}

struct Reader {
    form: Form,
    directory: PathBuf,
    /// What is wrong with another file, told where nothing is wrong with this one.
    later: Option<LoadError>,
}

/// What only delegates say.
struct Besides {
    description: Option<String>,
    external: bool,
}

impl Reader {
    fn task(&mut self, node: &Node, name: &str, known: &[&str]) -> (Task, Besides) {
        let mut task = Task {
            name: name.to_owned(),
            prompt: String::new(),
            tools: Vec::new(),
            definition: None,
            model: ModelSpec::Inherited,
            context: Map::new(),
            delegates: BTreeMap::new(),
            artifact: ArtifactKind::Program,
        };
        let mut besides = Besides { description: None, external: false };
        let what = if known == TASK { "a task" } else { "a delegate" };
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
                "description" => besides.description = self.form.text(value, "`description`"),
                "external" => besides.external = self.form.flag(value, "`external`"),
                _ => {}
            }
        }
        let is_given = |name: &str| fields.iter().any(|(key, _)| key.text == name);
        if !is_given("prompt") {
            self.form.complain(node.at, format!("{what} needs a `prompt`"), None);
        }
        if known == TASK && !is_given("model") {
            let hint = "give `model: { script: FILE }` or `model: { url: …, name: … }`";
            self.form.complain(node.at, "a task needs a `model`", Some(hint.to_owned()));
        }
        (task, besides)
    }

    fn tools(&mut self, node: &Node) -> Vec<String> {
        let known = || jackline_workspace::tools().iter().map(|spec| spec.name);
        self.form.names(node, ("`tools`", "tool"), known)
    }

    fn context(&mut self, node: &Node) -> Map<String, Value> {
        match node.to_json() {
            Value::Object(mut fields) => {
                for own in ["tools", "delegates"] {
                    if fields.remove(own).is_some() {
                        let message = format!("`{own}` of the context is what may be called");
                        self.form.complain(
                            node.at,
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
                self.form.complain(node.at, message, None);
                Map::new()
            }
        }
    }

    fn delegates(&mut self, node: &Node, parent: &str) -> BTreeMap<String, Delegate> {
        let NodeValue::Map(entries) = &node.value else {
            let message = format!("`delegates` must be a mapping, not {}", node.describe());
            self.form.complain(node.at, message, None);
            return BTreeMap::new();
        };
        let mut delegates = BTreeMap::new();
        for (key, value) in entries {
            let name = format!("{parent}.{}", key.text);
            let (task, Besides { description, external }) = self.task(value, &name, &DELEGATE);
            let description = description.unwrap_or_else(|| key.text.clone());
            delegates.insert(key.text.clone(), Delegate { description, external, task });
        }
        delegates
    }

    fn artifact(&mut self, node: &Node) -> ArtifactKind {
        match self.form.text(node, "`artifact`").as_deref() {
            Some("plan") => ArtifactKind::Plan,
            Some("program") | None => ArtifactKind::Program,
            Some(other) => {
                let message = format!("`artifact` can't be `{other}`");
                self.form.complain(node.at, message, Some("one of `program`, `plan`".to_owned()));
                ArtifactKind::Program
            }
        }
    }

    fn model(&mut self, node: &Node) -> ModelSpec {
        if let NodeValue::Text(name) = &node.value
            && let Some(path) = LocalSpec::path_in(name)
        {
            let timeout = Duration::from_secs(TIMEOUT_SECONDS);
            let path = self.directory.join(path);
            return ModelSpec::Local(LocalSpec { path, window: None, timeout });
        }
        let fields = self.form.fields(node, "`model`", &MODEL);
        let get = |name: &str| fields.iter().find(|(key, _)| key.text == name).map(|(_, it)| it);
        let (script, url) = (get("script"), get("url"));
        match (script, url) {
            (Some(script), None) => {
                let Some(file) = self.form.text(script, "`script`") else {
                    return ModelSpec::Inherited;
                };
                self.script(&file)
            }
            (None, Some(url)) => {
                let at = url.at;
                let url = self.form.text(url, "`url`").unwrap_or_default();
                if !url.is_empty()
                    && let Err(error) = check_url(&url)
                {
                    self.form.complain(at, format!("`url` {error}"), None);
                }
                let name = get("name").and_then(|name| self.form.text(name, "`name`"));
                if get("name").is_none() {
                    self.form.complain(node.at, "a model with a `url` needs a `name`", None);
                }
                let key_env = get("key_env").and_then(|key| self.form.text(key, "`key_env`"));
                let timeout_seconds = get("timeout_seconds")
                    .map(|it| self.form.seconds(it, "`timeout_seconds`", TIMEOUT_SECONDS));
                ModelSpec::Chat(Chat {
                    url,
                    name: name.unwrap_or_default(),
                    key_env,
                    timeout_seconds: timeout_seconds.unwrap_or(TIMEOUT_SECONDS),
                })
            }
            _ => {
                let message = "`model` needs either `script` or `url`, or is `local:FILE.gguf`";
                self.form.complain(node.at, message, None);
                ModelSpec::Inherited
            }
        }
    }

    /// Reads a script beside the task.
    fn script(&mut self, file: &str) -> ModelSpec {
        let path = self.directory.join(file);
        let read = read_file(&path).and_then(|source| {
            let directory = path.parent().unwrap_or(Path::new(".")).to_owned();
            let mut reader = Self { form: Form::of(&path), directory, later: None };
            let parsed = reader.form.parse(&source);
            let script = parsed.map(|node| reader.answers(&node));
            if let Some(later) = reader.later {
                return Err(later);
            }
            match script {
                Some(script) if reader.form.is_right() => Ok(script),
                _ => Err(LoadError::Wrong(vec![reader.form.wrong()])),
            }
        });
        match read {
            Ok(script) => ModelSpec::Script(script),
            Err(error) => {
                self.later.get_or_insert(error);
                ModelSpec::Inherited
            }
        }
    }

    fn answers(&mut self, node: &Node) -> Script {
        let mut script = Script::default();
        for (key, value) in self.form.fields(node, "a script", &SCRIPT) {
            match key.text.as_str() {
                "repeat" => script.repeats = self.form.flag(value, "`repeat`"),
                _ => {
                    for item in self.form.list(value, "`answers`") {
                        script.answers.extend(self.answer(item));
                    }
                }
            }
        }
        script
    }

    fn answer(&mut self, node: &Node) -> Option<Answer> {
        if let NodeValue::Text(text) = &node.value {
            return Some(Answer::Text(text.clone()));
        }
        let fields = self.form.fields(node, "an answer", &ANSWER);
        let [(key, value)] = fields.as_slice() else {
            self.form.complain(node.at, "an answer is text, or has exactly one key", None);
            return None;
        };
        match (key.text.as_str(), &value.value) {
            ("text", NodeValue::Text(text)) => Some(Answer::Text(text.clone())),
            ("text", NodeValue::Null) => Some(Answer::Text(String::new())),
            ("timeout", NodeValue::Bool(true)) => Some(Answer::Timeout),
            ("status", NodeValue::Integer(status @ 100..=599)) => {
                u16::try_from(*status).ok().map(Answer::Status)
            }
            ("file", NodeValue::Text(file)) => match read_file(&self.directory.join(file)) {
                Ok(bytes) => Some(Answer::Text(String::from_utf8_lossy(&bytes).into_owned())),
                Err(error) => {
                    self.later.get_or_insert(error);
                    None
                }
            },
            (name, _) => {
                let message = format!("`{name}` of an answer can't be {}", value.describe());
                self.form.complain(value.at, message, None);
                None
            }
        }
    }
}

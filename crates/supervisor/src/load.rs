//! Reads a task file, and says everything that is wrong with it at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jackline_definition::Diagnostics;
use jackline_definition::form::{FILE_BYTES_MAX, Form};
use jackline_definition::yaml::{Node, NodeValue};
use jackline_engine::ClientId;
use jackline_host::read_regular;
use jackline_model::scripted::Script;
use jackline_model::{LocalSpec, Provider};
use jackline_task::{LoadError, TaskFile};

use crate::engines::{EngineKind, EngineSpec, Reach};
use crate::spec::{Acts, RunTask};

/// How long a model may take, unless told.
pub(crate) const TIMEOUT_SECONDS: u64 = 600;

/// How many tokens a model that plays a script has room for.
pub(crate) const SCRIPTED_WINDOW: u64 = 200_000;

const TASK: [&str; 9] =
    ["prompt", "definition", "copy", "acts", "tools", "model", "scripts", "role", "sensitive"];
const ACTS: [(&str, Acts); 2] = [("tools", Acts::Tools), ("programs", Acts::Programs)];
const MODEL: [&str; 8] =
    ["script", "provider", "name", "url", "key_env", "timeout_seconds", "window", "worker"];

/// The provider that is a file of this machine.
const LOCAL: &str = "local";

/// Why an agent program does not act by programs.
pub(crate) const NOT_BY_WORKERS: &str =
    "has a model write programs, and a `worker` is an agent that acts in its own way";

/// Reads a task: a file, or a directory with a `task.yaml`.
pub fn load(path: &Path) -> Result<RunTask, LoadError> {
    let TaskFile { path: file, directory, name, form, node } = TaskFile::open(path)?;
    let mut reader = Reader { form, directory, elsewhere: Vec::new() };
    let task = node.map(|node| reader.task(&node, name, &file));
    let mut wrong = Vec::new();
    if !reader.form.is_right() {
        wrong.push(reader.form.wrong());
    }
    wrong.extend(reader.elsewhere);
    match task {
        Some(task) if wrong.is_empty() => Ok(task),
        _ => Err(LoadError::Wrong(wrong)),
    }
}

struct Reader {
    form: Form,
    directory: PathBuf,
    /// What is wrong with scripts.
    elsewhere: Vec<Diagnostics>,
}

impl Reader {
    fn task(&mut self, node: &Node, name: String, file: &Path) -> RunTask {
        let mut task = RunTask {
            name,
            file: file.canonicalize().unwrap_or_else(|_| file.to_owned()),
            prompt: String::new(),
            definition: None,
            copy: None,
            acts: Acts::Tools,
            tools: Vec::new(),
            engine: None,
            scripts: BTreeMap::new(),
            role: None,
            sensitive: false,
        };
        let (mut prompted, mut acts_at) = (false, node.at);
        for (key, value) in self.form.fields(node, "a task", &TASK) {
            match key.text.as_str() {
                "prompt" => {
                    prompted = true;
                    task.prompt = self.form.text(value, "`prompt`").unwrap_or_default();
                }
                "definition" => task.definition = self.path(value, "`definition`", Path::is_file),
                "copy" => task.copy = self.path(value, "`copy`", Path::is_dir),
                "acts" => {
                    acts_at = value.at;
                    let words = ACTS.map(|(word, _)| word);
                    let word = self.form.word(value, "`acts`", &words);
                    let named = |(known, _): &&(&str, Acts)| Some(*known) == word;
                    task.acts = ACTS.iter().find(named).map_or(Acts::Tools, |(_, acts)| *acts);
                }
                "tools" => task.tools = self.tools(value),
                "model" => task.engine = self.model(value),
                "scripts" => task.scripts = self.scripts(value),
                "role" => task.role = self.form.text(value, "`role`"),
                "sensitive" => task.sensitive = self.form.flag(value, "`sensitive`"),
                _ => {}
            }
        }
        if !prompted {
            self.form.complain(node.at, "a task needs a `prompt`", None);
        }
        if task.acts == Acts::Programs && task.engine.as_ref().is_some_and(EngineSpec::is_worker) {
            let hint = "name a model by its `provider`, or leave `acts` out".to_owned();
            self.form.complain(acts_at, format!("`acts: programs` {NOT_BY_WORKERS}"), Some(hint));
        }
        task
    }

    /// A path beside the file, which has to be there.
    fn path(&mut self, node: &Node, what: &str, is: fn(&Path) -> bool) -> Option<PathBuf> {
        let path = self.directory.join(self.form.text(node, what)?);
        if !is(&path) {
            let message = format!("{what} names `{}`, which is not there", path.display());
            self.form.complain(node.at, message, None);
        }
        Some(path)
    }

    fn tools(&mut self, node: &Node) -> Vec<String> {
        let known = || jackline_workspace::tools().iter().map(|spec| spec.name);
        self.form.names(node, ("`tools`", "tool"), known)
    }

    fn scripts(&mut self, node: &Node) -> BTreeMap<String, Script> {
        let NodeValue::Map(entries) = &node.value else {
            let message = format!("`scripts` must be a mapping, not {}", node.describe());
            self.form.complain(node.at, message, None);
            return BTreeMap::new();
        };
        let script = |(key, value): &(jackline_definition::yaml::Key, Node)| {
            Some((key.text.clone(), self.script(value)?))
        };
        entries.iter().filter_map(script).collect()
    }

    fn model(&mut self, node: &Node) -> Option<EngineSpec> {
        if let NodeValue::Text(name) = &node.value {
            let Some(path) = LocalSpec::path_in(name) else {
                let hint = "`local:FILE.gguf`, or a mapping with a `provider` and a `name`";
                let message = format!("`model` can't be `{name}`");
                self.form.complain(node.at, message, Some(hint.to_owned()));
                return None;
            };
            return Some(self.local(path, None, Duration::from_secs(TIMEOUT_SECONDS)));
        }
        let fields = self.form.fields(node, "`model`", &MODEL);
        let get = |name: &str| fields.iter().find(|(key, _)| key.text == name).map(|(_, it)| it);
        let name = get("name").and_then(|it| self.form.text(it, "`name`"));
        let window = get("window").and_then(|it| self.window(it));
        let ways = [get("script"), get("provider"), get("worker")];
        let (label, kind) = match ways {
            [Some(script), None, None] => {
                let label = name.unwrap_or_else(|| "scripted".to_owned());
                (label, EngineKind::Script(self.script(script)?))
            }
            [None, Some(provider), None] => {
                let word = self.form.text(provider, "`provider`")?;
                let parsed = if word == LOCAL { Ok(None) } else { word.parse().map(Some) };
                let provider: Option<Provider> = match parsed {
                    Ok(provider) => provider,
                    Err(error) => {
                        let hint = format!("`{LOCAL}` is a GGUF file of this machine");
                        self.form.complain(provider.at, error.to_string(), Some(hint));
                        return None;
                    }
                };
                let Some(model) = name else {
                    self.form.complain(node.at, "a model with a `provider` needs a `name`", None);
                    return None;
                };
                let seconds = get("timeout_seconds")
                    .map(|it| self.form.seconds(it, "`timeout_seconds`", TIMEOUT_SECONDS));
                let timeout = Duration::from_secs(seconds.unwrap_or(TIMEOUT_SECONDS));
                let Some(provider) = provider else {
                    for name in ["url", "key_env"] {
                        if let Some(node) = get(name) {
                            let message = format!("a model of this machine has no `{name}`");
                            self.form.complain(node.at, message, None);
                        }
                    }
                    return Some(self.local(&model, window, timeout));
                };
                let reach = Reach {
                    provider,
                    model: model.clone(),
                    url: get("url").and_then(|it| self.form.text(it, "`url`")),
                    key_env: get("key_env").and_then(|it| self.form.text(it, "`key_env`")),
                    timeout,
                };
                (format!("{provider}/{model}"), EngineKind::Model(reach))
            }
            [None, None, Some(worker)] => self.worker(worker, name)?,
            _ => {
                let message = "`model` needs exactly one of `script`, `provider` and `worker`";
                self.form.complain(node.at, message, None);
                return None;
            }
        };
        let usual = matches!(kind, EngineKind::Script(_)).then_some(SCRIPTED_WINDOW);
        let window = window.or(usual);
        Some(EngineSpec { label, kind, when: Vec::new(), budget: None, window })
    }

    /// A file of this machine, beside the task.
    fn local(&self, path: &str, window: Option<u64>, timeout: Duration) -> EngineSpec {
        let local = LocalSpec { path: self.directory.join(path), window, timeout };
        EngineSpec {
            label: format!("{LOCAL}/{path}"),
            kind: EngineKind::Local(local),
            when: Vec::new(),
            budget: None,
            window,
        }
    }

    fn window(&mut self, node: &Node) -> Option<u64> {
        if let NodeValue::Integer(tokens @ 1..) = node.value {
            return Some(tokens.unsigned_abs());
        }
        self.form.complain(node.at, "`window` is no number of tokens", None);
        None
    }

    fn worker(&mut self, node: &Node, model: Option<String>) -> Option<(String, EngineKind)> {
        if let NodeValue::List(items) = &node.value {
            let words: Vec<String> = items
                .iter()
                .filter_map(|item| self.form.text(item, "a word of `worker`"))
                .collect();
            let Some(program) = words.first().cloned() else {
                self.form.complain(node.at, "`worker` has no command", None);
                return None;
            };
            return Some((program, EngineKind::Command(words)));
        }
        let word = self.form.text(node, "`worker`")?;
        if let Ok(client) = ClientId::parse(&word) {
            return Some((word, EngineKind::Client { client, model }));
        }
        let hint = "the word of an agent client, or a list of words that are a command line";
        self.form.complain(node.at, format!("`worker` can't be `{word}`"), Some(hint.to_owned()));
        None
    }

    /// Reads a script beside the task.
    fn script(&mut self, node: &Node) -> Option<Script> {
        let path = self.directory.join(self.form.text(node, "`script`")?);
        let source = match read_regular(&path, FILE_BYTES_MAX) {
            Ok(source) => source,
            Err(error) => {
                let message = format!("can't read `{}`: {error}", path.display());
                self.form.complain(node.at, message, None);
                return None;
            }
        };
        let mut form = Form::of(&path);
        let script = form.parse(&source).and_then(|node| match Script::parse(&node.to_json()) {
            Ok(script) => Some(script),
            Err(errors) => {
                for error in errors {
                    form.complain(node.at, error.to_string(), None);
                }
                None
            }
        });
        if !form.is_right() {
            self.elsewhere.push(form.wrong());
            return None;
        }
        script
    }
}

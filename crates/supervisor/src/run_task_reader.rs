//! Reads a task file, and reports all of its errors at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jackline_definition::Diagnostics;
use jackline_definition::yaml::{YamlNode, YamlValue};
use jackline_definition::yaml_file_reader::{FILE_BYTES_MAX, YamlFileReader};
use jackline_engine::ClientId;
use jackline_host::read_regular;
use jackline_model::scripted::ModelScript;
use jackline_model::{LocalModelSpec, Provider};
use jackline_task::{LoadError, TaskFile};

use crate::engines::{EngineKind, EngineSpec, RemoteModel};
use crate::run_task::{ActionMode, RunTask};

/// How many seconds a model may take by default.
pub(crate) const TIMEOUT_SECONDS: u64 = 600;

/// The context window of a scripted model, in tokens.
pub(crate) const SCRIPTED_WINDOW: u64 = 200_000;

const TASK_KEYS: [&str; 9] =
    ["prompt", "definition", "copy", "acts", "tools", "model", "scripts", "role", "sensitive"];
const ACTION_MODES: [(&str, ActionMode); 2] =
    [("tools", ActionMode::Tools), ("programs", ActionMode::Programs)];
const MODEL_KEYS: [&str; 8] =
    ["script", "provider", "name", "url", "key_env", "timeout_seconds", "window", "worker"];

/// The provider word for a model file on this machine.
const LOCAL_PROVIDER: &str = "local";

/// Why `acts: programs` can't be combined with a worker.
pub(crate) const PROGRAMS_NEED_MODEL: &str =
    "needs a model that writes programs; a `worker` is an agent program with its own way to act";

/// Reads a task from a file, or from a directory with a `task.yaml`.
pub fn load_run_task(path: &Path) -> Result<RunTask, LoadError> {
    let TaskFile { path: file, directory, name, form, node } = TaskFile::open(path)?;
    let mut reader = RunTaskReader { form, directory, script_errors: Vec::new() };
    let task = node.map(|node| reader.task(&node, name, &file));
    let mut wrong = Vec::new();
    if !reader.form.is_valid() {
        wrong.push(reader.form.into_diagnostics());
    }
    wrong.extend(reader.script_errors);
    match task {
        Some(task) if wrong.is_empty() => Ok(task),
        _ => Err(LoadError::Wrong(wrong)),
    }
}

struct RunTaskReader {
    form: YamlFileReader,
    directory: PathBuf,
    /// The errors in script files.
    script_errors: Vec<Diagnostics>,
}

impl RunTaskReader {
    fn task(&mut self, node: &YamlNode, name: String, file: &Path) -> RunTask {
        let mut task = RunTask {
            name,
            file: file.canonicalize().unwrap_or_else(|_| file.to_owned()),
            prompt: String::new(),
            definition: None,
            copy: None,
            action_mode: ActionMode::Tools,
            tools: Vec::new(),
            engine: None,
            scripts: BTreeMap::new(),
            role: None,
            sensitive: false,
        };
        let (mut prompted, mut acts_at) = (false, node.position);
        for (key, value) in self.form.fields(node, "a task", &TASK_KEYS) {
            match key.text.as_str() {
                "prompt" => {
                    prompted = true;
                    task.prompt = self.form.text(value, "`prompt`").unwrap_or_default();
                }
                "definition" => task.definition = self.path(value, "`definition`", Path::is_file),
                "copy" => task.copy = self.path(value, "`copy`", Path::is_dir),
                "acts" => {
                    acts_at = value.position;
                    let words = ACTION_MODES.map(|(word, _)| word);
                    let word = self.form.word(value, "`acts`", &words);
                    let named = |(known, _): &&(&str, ActionMode)| Some(*known) == word;
                    task.action_mode = ACTION_MODES
                        .iter()
                        .find(named)
                        .map_or(ActionMode::Tools, |(_, acts)| *acts);
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
            self.form.report(node.position, "a task needs a `prompt`", None);
        }
        if task.action_mode == ActionMode::Programs
            && task.engine.as_ref().is_some_and(EngineSpec::is_worker)
        {
            let hint = "name a model with `provider`, or remove `acts`".to_owned();
            self.form.report(
                acts_at,
                format!("`acts: programs` {PROGRAMS_NEED_MODEL}"),
                Some(hint),
            );
        }
        task
    }

    /// A path relative to the task file. It must exist.
    fn path(&mut self, node: &YamlNode, what: &str, is: fn(&Path) -> bool) -> Option<PathBuf> {
        let path = self.directory.join(self.form.text(node, what)?);
        if !is(&path) {
            let message = format!("{what} names `{}`, which does not exist", path.display());
            self.form.report(node.position, message, None);
        }
        Some(path)
    }

    fn tools(&mut self, node: &YamlNode) -> Vec<String> {
        let known = || jackline_workspace::tools().iter().map(|spec| spec.name);
        self.form.names(node, ("`tools`", "tool"), known)
    }

    fn scripts(&mut self, node: &YamlNode) -> BTreeMap<String, ModelScript> {
        let YamlValue::Map(entries) = &node.value else {
            let message = format!("`scripts` must be a mapping, not {}", node.describe());
            self.form.report(node.position, message, None);
            return BTreeMap::new();
        };
        let script = |(key, value): &(jackline_definition::yaml::YamlKey, YamlNode)| {
            Some((key.text.clone(), self.script(value)?))
        };
        entries.iter().filter_map(script).collect()
    }

    fn model(&mut self, node: &YamlNode) -> Option<EngineSpec> {
        if let YamlValue::Text(name) = &node.value {
            let Some(path) = LocalModelSpec::path_in(name) else {
                let hint = "write `local:FILE.gguf`, or a mapping with a `provider` and a `name`";
                let message = format!("`model` can't be `{name}`");
                self.form.report(node.position, message, Some(hint.to_owned()));
                return None;
            };
            return Some(self.local(path, None, Duration::from_secs(TIMEOUT_SECONDS)));
        }
        let fields = self.form.fields(node, "`model`", &MODEL_KEYS);
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
                let parsed = if word == LOCAL_PROVIDER { Ok(None) } else { word.parse().map(Some) };
                let provider: Option<Provider> = match parsed {
                    Ok(provider) => provider,
                    Err(error) => {
                        let hint =
                            format!("for a GGUF file on this machine, write `{LOCAL_PROVIDER}`");
                        self.form.report(provider.position, error.to_string(), Some(hint));
                        return None;
                    }
                };
                let Some(model) = name else {
                    self.form.report(
                        node.position,
                        "a model with a `provider` needs a `name`",
                        None,
                    );
                    return None;
                };
                let seconds = get("timeout_seconds")
                    .map(|it| self.form.seconds(it, "`timeout_seconds`", TIMEOUT_SECONDS));
                let timeout = Duration::from_secs(seconds.unwrap_or(TIMEOUT_SECONDS));
                let Some(provider) = provider else {
                    for name in ["url", "key_env"] {
                        if let Some(node) = get(name) {
                            let message = format!(
                                "a model of provider `{LOCAL_PROVIDER}` can't have a `{name}`"
                            );
                            self.form.report(node.position, message, None);
                        }
                    }
                    return Some(self.local(&model, window, timeout));
                };
                let reach = RemoteModel {
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
                self.form.report(node.position, message, None);
                return None;
            }
        };
        let usual = matches!(kind, EngineKind::Script(_)).then_some(SCRIPTED_WINDOW);
        let window = window.or(usual);
        Some(EngineSpec { label, kind, when: Vec::new(), budget: None, window })
    }

    /// An engine for a model file, relative to the task file.
    fn local(&self, path: &str, window: Option<u64>, timeout: Duration) -> EngineSpec {
        let local = LocalModelSpec { path: self.directory.join(path), window, timeout };
        EngineSpec {
            label: format!("{LOCAL_PROVIDER}/{path}"),
            kind: EngineKind::Local(local),
            when: Vec::new(),
            budget: None,
            window,
        }
    }

    fn window(&mut self, node: &YamlNode) -> Option<u64> {
        if let YamlValue::Integer(tokens @ 1..) = node.value {
            return Some(tokens.unsigned_abs());
        }
        self.form.report(node.position, "`window` must be a positive number of tokens", None);
        None
    }

    fn worker(&mut self, node: &YamlNode, model: Option<String>) -> Option<(String, EngineKind)> {
        if let YamlValue::List(items) = &node.value {
            let words: Vec<String> = items
                .iter()
                .filter_map(|item| self.form.text(item, "a word of `worker`"))
                .collect();
            let Some(program) = words.first().cloned() else {
                self.form.report(node.position, "`worker` is an empty command line", None);
                return None;
            };
            return Some((program, EngineKind::Command(words)));
        }
        let word = self.form.text(node, "`worker`")?;
        if let Ok(client) = ClientId::parse(&word) {
            return Some((word, EngineKind::Client { client, model }));
        }
        let hint = "write the name of an agent client, or a list with the words of a command line";
        self.form.report(
            node.position,
            format!("`worker` can't be `{word}`"),
            Some(hint.to_owned()),
        );
        None
    }

    /// Reads a script file, relative to the task file.
    fn script(&mut self, node: &YamlNode) -> Option<ModelScript> {
        let path = self.directory.join(self.form.text(node, "`script`")?);
        let source = match read_regular(&path, FILE_BYTES_MAX) {
            Ok(source) => source,
            Err(error) => {
                let message = format!("can't read `{}`: {error}", path.display());
                self.form.report(node.position, message, None);
                return None;
            }
        };
        let mut form = YamlFileReader::for_file(&path);
        let script =
            form.parse(&source).and_then(|node| match ModelScript::parse(&node.to_json()) {
                Ok(script) => Some(script),
                Err(errors) => {
                    for error in errors {
                        form.report(node.position, error.to_string(), None);
                    }
                    None
                }
            });
        if !form.is_valid() {
            self.script_errors.push(form.into_diagnostics());
            return None;
        }
        script
    }
}

//! Loads definitions by checksum. Each is read and compiled once, and pinned for a session until a
//! person reloads it.
//!
//! The definition of a workspace consists of layers: the managed file, the user's file and the
//! repository's file. If they no longer load, the last good definition stays in force.

mod compiled;
mod reload;
mod survey;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jackline_definition::{
    CombinedDefinition, Diagnostic, Diagnostics, FILE_NAME, Layer, LayerDefinition,
    LoadedDefinition, combine, load_with,
};
use jackline_engine::bounds::CUSTOM_POLICIES_MAX;
use jackline_engine::definition::{Policy, PolicyRule, StoredDefinition};
use jackline_engine::facts::{DefinitionFact, PinsFact};
use jackline_engine::{Definition, Digest};
use jackline_journal::{SessionLog, StoreError};

use compiled::{CompiledDefinitions, LastGoodDefinition};
use jackline_host::AgentApprovals;
use jackline_host::HostAccess;
use jackline_host::TrustStore;
use jackline_host::clock;
use jackline_host::environment::LayerFiles;
use jackline_host::off_switch::OffSwitch;
pub(crate) use reload::ReloadCandidate;
use survey::{ExtendedFiles, LayerContents, LayerFilePaths, RecordingReader, real_path};

/// Why there is no definition.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// No file was found.
    #[error("no `{FILE_NAME}` in `{}` or above it; create one, or pass a file with -d", .0.display())]
    NotFound(PathBuf),
    /// The file can't be read.
    #[error("can't read the definition `{}`: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: std::io::Error,
    },
    /// The file has errors.
    #[error("{0}")]
    Invalid(Diagnostics),
    /// Each file is valid, but the layers contradict each other.
    #[error("the layers of the definition contradict each other: {}", .0.join("; "))]
    Contradictory(Vec<String>),
    /// A registered extension that the definition does not name would never be asked, although it
    /// looks like a guard.
    #[error("the extension `{0}` is registered, but the definition does not name it")]
    UnusedExtension(String),
    /// Without the workspace, it is unclear which definition applies.
    #[error("the workspace `{}` no longer exists", .0.display())]
    NoWorkspace(PathBuf),
    /// A person passed the file explicitly, which makes it trusted. So they must pass it again.
    #[error(
        "the session runs under `{file}`, which is not in its workspace or above it; pass the \
         definition again: `jackline reload -d {file}`",
        file = .0.display()
    )]
    OutsideWorkspace(PathBuf),
    /// There are no files to reload.
    #[error("a program created this definition in code, so only that program can change it")]
    BuiltInCode,
    /// The state of a session is bounded, and so is the memory of custom policies.
    #[error("too many custom policies: a definition may have at most {CUSTOM_POLICIES_MAX}")]
    TooManyPolicies,
}

impl DefinitionError {
    /// The errors in one line: the first one, and how many more there are.
    pub fn brief(&self) -> String {
        let problems: Vec<String> = match self {
            Self::Invalid(diagnostics) => diagnostics.iter().map(ToString::to_string).collect(),
            other => return other.to_string(),
        };
        match problems.as_slice() {
            [] => self.to_string(),
            [only] => only.clone(),
            [first, _] => format!("{first} (and 1 more problem)"),
            [first, more @ ..] => format!("{first} (and {} more problems)", more.len()),
        }
    }
}

/// A definition and its source.
#[derive(Debug, Clone)]
pub struct ResolvedDefinition {
    /// The definition for the engine.
    pub definition: Arc<Definition>,
    /// The digest of the stored form, by which journals identify it.
    pub stored: Digest,
    /// The SHA-256 checksum of the source files.
    pub checksum: Digest,
    /// The source files without symbolic links, the repository's first. Empty if a program created
    /// the definition in code.
    pub files: Vec<PathBuf>,
    /// Why the files don't load, if this is the last good definition.
    pub broken: Option<String>,
}

/// The definition of a workspace, combined from its layers.
#[derive(Debug, Clone)]
pub struct EffectiveDefinition {
    /// The layers with their checksums, from the highest down.
    pub layers: Vec<(Layer, PathBuf, Digest)>,
    /// Whether the repository's file is trusted.
    pub trusted: bool,
    /// The checksum of all layers together.
    pub checksum: Digest,
    /// The combined rules: which are in force and which are ignored.
    pub combined: CombinedDefinition,
    /// Warnings about the files.
    pub warnings: Vec<Diagnostic>,
}

impl EffectiveDefinition {
    /// The repository's file without symbolic links, and its checksum, to which trust applies.
    pub fn repository(&self) -> Option<(PathBuf, Digest)> {
        let repository = self.layers.iter().find(|(layer, ..)| *layer == Layer::Repository);
        repository.map(|(_, file, checksum)| (real_path(file), *checksum))
    }
}

/// Finds, compiles and caches definitions.
pub struct Definitions {
    source: DefinitionOrigin,
    host: HostAccess,
    trust: Option<TrustStore>,
    pins: Option<AgentApprovals>,
    compiled: RefCell<CompiledDefinitions>,
    /// Results for files that were checked after a session was opened.
    checked: RefCell<BTreeMap<Digest, CheckedFiles>>,
}

/// The files that were read, and the checksums or the error they gave.
type CheckedFiles = (RecordingReader, Result<CurrentChecksums, String>);

/// The checksums of the current files.
#[derive(Debug, Clone, Copy)]
struct CurrentChecksums {
    now: Digest,
    /// The checksum if a person passed the file explicitly, which makes it trusted.
    if_trusted: Option<Digest>,
}

/// How many results are cached.
const CHECKED_FILES_MAX: usize = 64;

/// The source of the definition for a new session.
enum DefinitionOrigin {
    /// `jackline.yaml` in the workspace or above it.
    Workspace,
    /// A file that a person passed on the command line. It is trusted.
    File(PathBuf),
    /// A definition that a program created in code.
    Made(ResolvedDefinition),
}

/// Layers that were just parsed.
struct ParsedLayers {
    survey: LayerContents,
    layers: Vec<LayerDefinition>,
    warnings: Vec<Diagnostic>,
}

impl Definitions {
    /// Reads the definition from `flag` or else from the workspace, below the layers of the host.
    /// The state home of the host caches compiled definitions.
    pub fn new(flag: Option<PathBuf>, host: HostAccess) -> Self {
        Self::from_origin(flag.map_or(DefinitionOrigin::Workspace, DefinitionOrigin::File), host)
    }

    /// Uses one definition that a program created in code for every session.
    pub fn made(definition: Definition, host: HostAccess) -> Result<Self, DefinitionError> {
        let is_custom = |policy: &&Policy| matches!(policy.rule, PolicyRule::Custom { .. });
        if definition.policies.iter().filter(is_custom).count() > CUSTOM_POLICIES_MAX {
            return Err(DefinitionError::TooManyPolicies);
        }
        let definition = Arc::new(definition);
        let stored = StoredDefinition::new(Arc::clone(&definition));
        // The program is the only source, so the checksum is that of the stored form.
        let (checksum, digest) = (stored.digest(), stored.digest());
        let files = Vec::new();
        let made = ResolvedDefinition { definition, stored: digest, checksum, files, broken: None };
        let definitions = Self::from_origin(
            DefinitionOrigin::Made(made),
            host.with_layers(LayerFiles::default()),
        );
        definitions.compiled.borrow_mut().remember(checksum, &stored);
        Ok(definitions)
    }

    fn from_origin(source: DefinitionOrigin, host: HostAccess) -> Self {
        Self {
            source,
            trust: host.state.clone().map(TrustStore::of),
            pins: host.state.clone().map(AgentApprovals::of),
            compiled: RefCell::new(CompiledDefinitions::new(host.state.clone())),
            checked: RefCell::default(),
            host,
        }
    }

    /// The agents that a person has approved.
    pub(crate) fn pins(&self, definition: &str, workflow: Option<&str>) -> PinsFact {
        self.pins.as_ref().map_or_else(PinsFact::default, |pins| pins.fact(definition, workflow))
    }

    /// Makes the cache read-only, for commands that only inspect.
    #[must_use]
    pub fn read_only(self) -> Self {
        self.compiled.borrow_mut().make_read_only();
        self
    }

    /// The access to the machine.
    pub fn host(&self) -> &HostAccess {
        &self.host
    }

    /// The off switch of the guard.
    pub(crate) fn switch(&self) -> OffSwitch {
        self.host.off_switch.clone()
    }

    /// The state home, as the caller gave it.
    pub(crate) fn state_directory(&self) -> Option<&Path> {
        self.host.state.as_ref()?.directory()
    }

    /// The state home without symbolic links.
    pub fn state_home(&self) -> Option<PathBuf> {
        self.state_directory().map(real_path)
    }

    /// The definition for a new session in a directory. If the files don't load, the last good
    /// definition stays in force.
    pub fn resolve(&self, directory: &Path) -> Result<ResolvedDefinition, DefinitionError> {
        let repository = match &self.source {
            DefinitionOrigin::Made(made) => return Ok(made.clone()),
            DefinitionOrigin::File(file) => Some(file.clone()),
            DefinitionOrigin::Workspace => find_file(directory),
        };
        let paths = self.layer_paths(repository);
        if paths.is_empty() {
            return Err(DefinitionError::NotFound(directory.to_owned()));
        }
        let place = self.last_good_key(&paths, directory);
        match self.load(&paths, &place) {
            Ok((survey, definition, checksum)) => {
                ResolvedDefinition::new(&definition, checksum, survey.files(), None)
            }
            Err(error) => self.resolve_last_good(&paths, &place, error),
        }
    }

    /// The current layers of a workspace, or of `file` in it. A file counts as trusted only if a
    /// person has trusted it, and not because it was passed explicitly.
    pub fn effective(
        &self,
        file: Option<&Path>,
        directory: &Path,
    ) -> Result<EffectiveDefinition, DefinitionError> {
        let paths = self.layer_paths(file.map(ToOwned::to_owned).or_else(|| find_file(directory)));
        if paths.is_empty() {
            return Err(DefinitionError::NotFound(directory.to_owned()));
        }
        let parsed = self.parse(self.survey(&paths)?, &mut RecordingReader::default())?;
        let trusted = self.is_granted(&parsed.survey);
        let checksum = parsed.survey.checksum(trusted).unwrap_or(Digest::ZERO);
        let layers = parsed.survey.layers.iter().filter_map(|source| {
            source.checksum().map(|checksum| (source.layer, source.file.clone(), checksum))
        });
        Ok(EffectiveDefinition {
            layers: layers.collect(),
            trusted,
            checksum,
            combined: combine(parsed.layers, trusted),
            warnings: parsed.warnings,
        })
    }

    /// The checksum that stays in force while the files of a workspace, or `file` in it, don't
    /// load.
    pub fn fallback_checksum(&self, file: Option<&Path>, directory: &Path) -> Option<Digest> {
        let paths = self.layer_paths(file.map(ToOwned::to_owned).or_else(|| find_file(directory)));
        self.usable_last_good(&self.last_good_key(&paths, directory)).map(|good| good.checksum)
    }

    /// The current state of the files of a session's definition.
    pub(crate) fn current_fact(
        &self,
        files: &[String],
        directory: Option<&Path>,
        checksum: Digest,
    ) -> DefinitionFact {
        let (Some(first), false) =
            (files.first(), matches!(self.source, DefinitionOrigin::Made(_)))
        else {
            // A session without a definition file can't lose it.
            return DefinitionFact::Same;
        };
        let first = Path::new(first);
        let is_first =
            |file: &Option<PathBuf>| file.as_deref().is_some_and(|f| real_path(f) == first);
        let repository = match &self.source {
            DefinitionOrigin::File(file) => Some(file.clone()),
            _ if is_first(&self.host.layers.user) || is_first(&self.host.layers.managed) => {
                directory.and_then(find_file)
            }
            _ => Some(first.to_owned()),
        };
        if !repository.as_deref().unwrap_or(first).try_exists().unwrap_or(true) {
            return DefinitionFact::Missing;
        }
        match self.checksum_now(&self.layer_paths(repository), checksum) {
            // Another program may have opened the session with the same file, passed explicitly.
            Ok(files) if files.now == checksum || files.if_trusted == Some(checksum) => {
                DefinitionFact::Same
            }
            Ok(files) => DefinitionFact::Changed { checksum: files.now },
            Err(reason) => DefinitionFact::Broken { reason },
        }
    }

    /// The checksums of the files if they load, else the error. Files that were parsed before are
    /// not parsed again.
    fn checksum_now(
        &self,
        paths: &LayerFilePaths,
        pinned: Digest,
    ) -> Result<CurrentChecksums, String> {
        let survey = self.survey(paths).map_err(|error| error.brief())?;
        if let Some(now) = survey.checksum(self.is_trusted(&survey))
            && (now == pinned || self.compiled.borrow().has_sources(&now))
        {
            return Ok(CurrentChecksums { now, if_trusted: survey.checksum(true) });
        }
        let key = survey.key();
        if let Some((reading, outcome)) = self.checked.borrow().get(&key)
            && reading.is_current()
        {
            return outcome.clone();
        }
        let mut reading = RecordingReader::default();
        let outcome = self
            .compile(survey, &mut reading)
            .map(|(survey, _, now)| CurrentChecksums { now, if_trusted: survey.checksum(true) })
            .map_err(|error| error.brief());
        let mut checked = self.checked.borrow_mut();
        if checked.len() >= CHECKED_FILES_MAX {
            checked.clear();
        }
        checked.insert(key, (reading, outcome.clone()));
        outcome
    }

    fn load(
        &self,
        paths: &LayerFilePaths,
        place: &Digest,
    ) -> Result<(LayerContents, StoredDefinition, Digest), DefinitionError> {
        let survey = self.survey(paths)?;
        let known = survey.checksum(self.is_trusted(&survey)).and_then(|checksum| {
            let definition = self.compiled.borrow_mut().find_by_sources(&checksum)?;
            Some((definition, checksum))
        });
        let (survey, definition, checksum) = match known {
            Some((definition, checksum)) => (survey, definition, checksum),
            None => self.compile(survey, &mut RecordingReader::default())?,
        };
        let granted = self.is_granted(&survey);
        let good = LastGoodDefinition {
            checksum,
            at: clock::now().wall,
            trusted: survey.repository().filter(|_| granted).and_then(survey::LayerFile::checksum),
            files: survey.files(),
        };
        self.compiled.borrow().store_last_good(place, &good);
        Ok((survey, definition, checksum))
    }

    /// The last good definition for this key, used because the current files fail with `error`.
    fn resolve_last_good(
        &self,
        paths: &LayerFilePaths,
        place: &Digest,
        error: DefinitionError,
    ) -> Result<ResolvedDefinition, DefinitionError> {
        let Some(good) = self.usable_last_good(place) else { return Err(error) };
        let Some(definition) = self.compiled.borrow_mut().find_by_sources(&good.checksum) else {
            return Err(error);
        };
        let mut files = paths.all();
        files.extend(good.files.into_iter().filter(|file| !paths.all().contains(file)));
        let broken = Some(error.brief());
        ResolvedDefinition::new(&definition, good.checksum, files, broken)
    }

    /// The last good definition, unless it depends on trust that a person has withdrawn.
    fn usable_last_good(&self, place: &Digest) -> Option<LastGoodDefinition> {
        let good = self.compiled.borrow().last_good(place)?;
        let is_still_trusted = |checksum: Digest| {
            let file = good.files.first();
            self.trust
                .as_ref()
                .zip(file)
                .is_some_and(|(trust, file)| trust.is_granted(file, &checksum))
        };
        let is_cached = self.compiled.borrow().has_sources(&good.checksum);
        let usable = good.trusted.is_none_or(is_still_trusted) && is_cached;
        usable.then_some(good)
    }

    fn compile(
        &self,
        survey: LayerContents,
        reading: &mut RecordingReader,
    ) -> Result<(LayerContents, StoredDefinition, Digest), DefinitionError> {
        let ParsedLayers { survey, layers, .. } = self.parse(survey, reading)?;
        let trusted = self.is_trusted(&survey);
        let combined = combine(layers, trusted);
        if !combined.problems.is_empty() {
            return Err(DefinitionError::Contradictory(combined.problems));
        }
        // Parsing determined which files are extended, so there is a checksum.
        let checksum = survey.checksum(trusted).unwrap_or(Digest::ZERO);
        let definition = self.compiled.borrow_mut().store(checksum, combined.definition);
        Ok((survey, definition, checksum))
    }

    fn parse(
        &self,
        mut survey: LayerContents,
        reading: &mut RecordingReader,
    ) -> Result<ParsedLayers, DefinitionError> {
        let (mut layers, mut warnings) = (Vec::new(), Vec::new());
        for source in &mut survey.layers {
            let loaded = load_with(&source.bytes, &source.file, reading)
                .map_err(DefinitionError::Invalid)?;
            let extended: ExtendedFiles = loaded
                .extended
                .into_iter()
                .map(|(path, bytes)| (real_path(&path), bytes))
                .collect();
            let paths = extended.iter().map(|(path, _)| path.clone()).collect();
            self.compiled.borrow_mut().store_extended(source.key, paths);
            source.extended = Some(extended);
            warnings.extend(loaded.warnings);
            layers.push(LayerDefinition {
                layer: source.layer,
                file: source.file.display().to_string(),
                definition: loaded.definition,
                modes: loaded.modes,
            });
        }
        Ok(ParsedLayers { survey, layers, warnings })
    }

    fn layer_paths(&self, repository: Option<PathBuf>) -> LayerFilePaths {
        LayerFilePaths::new(
            self.host.layers.managed.as_deref(),
            self.host.layers.user.as_deref(),
            repository,
        )
    }

    fn survey(&self, paths: &LayerFilePaths) -> Result<LayerContents, DefinitionError> {
        paths.read_layers(|key| self.compiled.borrow().extended(key))
    }

    /// Whether the repository's file may loosen rules and run commands.
    fn is_trusted(&self, survey: &LayerContents) -> bool {
        let named =
            matches!(self.source, DefinitionOrigin::File(_)) && survey.repository().is_some();
        named || self.is_granted(survey)
    }

    /// Whether a person has trusted the current contents of the repository's file.
    fn is_granted(&self, survey: &LayerContents) -> bool {
        let repository = survey.repository();
        let checksum = repository.and_then(survey::LayerFile::checksum);
        match (&self.trust, repository, checksum) {
            (Some(trust), Some(source), Some(checksum)) => {
                trust.is_granted(&source.path, &checksum)
            }
            _ => false,
        }
    }

    /// The key of the last good definition. A file that a person passes has another key than the
    /// same file found in the workspace, because it is trusted.
    fn last_good_key(&self, paths: &LayerFilePaths, directory: &Path) -> Digest {
        let file = paths.repository().map(real_path).unwrap_or_default();
        let mut bytes = file.as_os_str().as_encoded_bytes().to_vec();
        bytes.push(0);
        bytes.extend_from_slice(real_path(directory).as_os_str().as_encoded_bytes());
        bytes.push(u8::from(matches!(self.source, DefinitionOrigin::File(_))));
        Digest::of(&bytes)
    }

    /// The definition that a session runs under. The copy beside the journal is read only if the
    /// compiled form is missing.
    pub(crate) fn pinned_definition(
        &self,
        digest: &Digest,
        log: &dyn SessionLog,
    ) -> Result<Arc<Definition>, StoreError> {
        if let Some(cached) = self.compiled.borrow_mut().definition(digest) {
            return Ok(cached);
        }
        let definition = log.definitions().load(digest)?;
        let stored = StoredDefinition::with_digest(*digest, Arc::clone(&definition));
        self.compiled.borrow_mut().store_compiled(&stored);
        Ok(definition)
    }
}

impl ResolvedDefinition {
    fn new(
        stored: &StoredDefinition,
        checksum: Digest,
        files: Vec<PathBuf>,
        broken: Option<String>,
    ) -> Result<Self, DefinitionError> {
        let digest = stored.digest();
        // Compiled and decoded definitions are always loaded.
        let definition = stored.definition().cloned().ok_or(DefinitionError::BuiltInCode)?;
        Ok(Self { definition, stored: digest, checksum, files, broken })
    }
}

/// Loads a single file with its checksum, and ignores other layers.
pub fn load_file(file: &Path) -> Result<(LoadedDefinition, Digest), DefinitionError> {
    let source = survey::read_file(file)
        .map_err(|source| DefinitionError::Unreadable { path: file.to_owned(), source })?;
    let loaded = load_source(&source, file)?;
    let checksum = survey::checksum(&source, &loaded.extended);
    Ok((loaded, checksum))
}

/// Loads a single file as if it had these contents.
pub fn load_source(source: &[u8], file: &Path) -> Result<LoadedDefinition, DefinitionError> {
    load_with(source, file, &mut RecordingReader::default()).map_err(DefinitionError::Invalid)
}

/// Finds `jackline.yaml` in a directory or its nearest parent.
pub fn find_file(directory: &Path) -> Option<PathBuf> {
    directory.ancestors().map(|above| above.join(FILE_NAME)).find(|file| file.is_file())
}

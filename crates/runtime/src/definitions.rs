//! Definitions by checksum: read once, compiled once, pinned for a session until
//! a person reloads it.
//!
//! The definition of a workspace is made of layers: the managed one, the
//! person's, the repository's. Where they no longer load, the last one that
//! did stays in force.

mod compiled;
mod reload;
mod survey;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jackline_definition::{
    Combined, Diagnostic, Diagnostics, FILE_NAME, Layer, Layered, Loaded, combine, load_with,
};
use jackline_engine::bounds::CUSTOM_POLICIES_MAX;
use jackline_engine::definition::{Policy, PolicyRule, StoredDefinition};
use jackline_engine::facts::{DefinitionFact, PinsFact};
use jackline_engine::{Definition, Digest};
use jackline_journal::{Log, StoreError};

use compiled::{CompiledDefinitions, LastGood};
use jackline_host::HostAccess;
use jackline_host::Pins;
use jackline_host::Trust;
use jackline_host::clock;
use jackline_host::environment::LayerFiles;
use jackline_host::off::Switch;
pub(crate) use reload::Reloaded;
use survey::{Extended, Found, Reading, Survey, real};

/// Why there is no definition.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// No file was found.
    #[error("no `{FILE_NAME}` in `{}` or above it; write one, or name one with -d", .0.display())]
    NotFound(PathBuf),
    /// The file can't be read.
    #[error("can't read the definition `{}`: {source}", .path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the file system said.
        source: std::io::Error,
    },
    /// The file is wrong.
    #[error("{0}")]
    Invalid(Diagnostics),
    /// Each file is right, and together they are not.
    #[error("the layers of the definition can't be obeyed together: {}", .0.join("; "))]
    Contradictory(Vec<String>),
    /// A policy that is never asked looks like a guard and is none.
    #[error("`{0}` is registered, and the definition does not name it")]
    NeverAsked(String),
    /// Nobody can tell which definition is meant.
    #[error("the workspace `{}` is not there any more", .0.display())]
    NoWorkspace(PathBuf),
    /// Naming a file is what makes it a person's own word, so it has to be named again.
    #[error(
        "the session runs under `{file}`, which is not found from its workspace; name the \
         definition that you mean: `jackline reload -d {file}`",
        file = .0.display()
    )]
    Named(PathBuf),
    /// There are no files to look at.
    #[error("the definition was made by a program, and only that can make another")]
    Made,
    /// State is bounded, and so is what custom policies can remember.
    #[error("a definition may have {CUSTOM_POLICIES_MAX} custom policies")]
    TooManyPolicies,
}

impl DefinitionError {
    /// What is wrong in one line: the first problem, and how many more.
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

/// A definition and where it came from.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// What the engine runs on.
    pub definition: Arc<Definition>,
    /// The digest of its stored form, by which journals name it.
    pub stored: Digest,
    /// The sha256 of what it was made of.
    pub checksum: Digest,
    /// Its files without symbolic links, the repository's first; none if it
    /// was made in Rust.
    pub files: Vec<PathBuf>,
    /// Why the files don't load, where this is the last one that did.
    pub broken: Option<String>,
}

/// The definition of a workspace as its layers make it.
#[derive(Debug, Clone)]
pub struct Effective {
    /// The layers with their checksums, from the highest down.
    pub layers: Vec<(Layer, PathBuf, Digest)>,
    /// Whether the repository's file is trusted.
    pub trusted: bool,
    /// The checksum of the whole.
    pub checksum: Digest,
    /// What is in force and what is ignored.
    pub combined: Combined,
    /// What is not wrong and yet worth knowing.
    pub warnings: Vec<Diagnostic>,
}

impl Effective {
    /// The repository's file, without symbolic links, and what can be trusted of it.
    pub fn repository(&self) -> Option<(PathBuf, Digest)> {
        let found = self.layers.iter().find(|(layer, ..)| *layer == Layer::Repository);
        found.map(|(_, file, checksum)| (real(file), *checksum))
    }
}

/// Finds and keeps definitions.
pub struct Definitions {
    source: Source,
    host: HostAccess,
    trust: Option<Trust>,
    pins: Option<Pins>,
    compiled: RefCell<CompiledDefinitions>,
    /// What became of files that were looked at after a session was opened.
    looked: RefCell<BTreeMap<Digest, Looked>>,
}

/// What became of files: what they extend, and their checksum or what is
/// wrong with them.
type Looked = (Reading, Result<Digest, String>);

/// How many states of files are remembered.
const LOOKED_MAX: usize = 64;

/// Where the definition of a new session comes from.
enum Source {
    /// `jackline.yaml` in the workspace or above it.
    Workspace,
    /// One file that a person named: their own word.
    File(PathBuf),
    /// One that was made in Rust.
    Made(Resolved),
}

/// A definition that was parsed just now.
struct Parsed {
    survey: Survey,
    layers: Vec<Layered>,
    warnings: Vec<Diagnostic>,
}

impl Definitions {
    /// Definitions from `flag`, or else from the workspace, below the layers of the host; compiled
    /// ones are kept in its state home.
    pub fn new(flag: Option<PathBuf>, host: HostAccess) -> Self {
        Self::of(flag.map_or(Source::Workspace, Source::File), host)
    }

    /// One definition that was made in Rust, for every session.
    pub fn made(definition: Definition, host: HostAccess) -> Result<Self, DefinitionError> {
        let is_custom = |policy: &&Policy| matches!(policy.rule, PolicyRule::Custom { .. });
        if definition.policies.iter().filter(is_custom).count() > CUSTOM_POLICIES_MAX {
            return Err(DefinitionError::TooManyPolicies);
        }
        let definition = Arc::new(definition);
        let stored = StoredDefinition::new(Arc::clone(&definition));
        // A program is its own source.
        let (checksum, digest) = (stored.digest(), stored.digest());
        let files = Vec::new();
        let made = Resolved { definition, stored: digest, checksum, files, broken: None };
        let definitions = Self::of(Source::Made(made), host.with_layers(LayerFiles::default()));
        definitions.compiled.borrow_mut().know(checksum, &stored);
        Ok(definitions)
    }

    fn of(source: Source, host: HostAccess) -> Self {
        Self {
            source,
            trust: host.state.clone().map(Trust::of),
            pins: host.state.clone().map(Pins::of),
            compiled: RefCell::new(CompiledDefinitions::new(host.state.clone())),
            looked: RefCell::default(),
            host,
        }
    }

    /// The agents that a person has approved.
    pub(crate) fn pins(&self, definition: &str, workflow: Option<&str>) -> PinsFact {
        self.pins.as_ref().map_or_else(PinsFact::default, |pins| pins.fact(definition, workflow))
    }

    /// Remembers nothing beyond the process, for those who only look.
    #[must_use]
    pub fn only_looking(self) -> Self {
        self.compiled.borrow_mut().only_look();
        self
    }

    /// The machine that they are for.
    pub fn host(&self) -> &HostAccess {
        &self.host
    }

    /// What switches the guard off for these.
    pub(crate) fn switch(&self) -> Switch {
        self.host.switch.clone()
    }

    /// Where the guard keeps its state, as it was given.
    pub(crate) fn given_home(&self) -> Option<&Path> {
        self.host.state.as_ref()?.directory()
    }

    /// Where the guard keeps its state.
    pub fn state_home(&self) -> Option<PathBuf> {
        self.given_home().map(real)
    }

    /// The definition for a new session in a directory. Where the files don't
    /// load, the last one that did stays in force.
    pub fn resolve(&self, directory: &Path) -> Result<Resolved, DefinitionError> {
        let repository = match &self.source {
            Source::Made(made) => return Ok(made.clone()),
            Source::File(file) => Some(file.clone()),
            Source::Workspace => find_file(directory),
        };
        let found = self.found(repository);
        if found.is_empty() {
            return Err(DefinitionError::NotFound(directory.to_owned()));
        }
        let place = self.place(&found, directory);
        match self.load(&found, &place) {
            Ok((survey, definition, checksum)) => {
                Resolved::new(&definition, checksum, survey.files(), None)
            }
            Err(error) => self.last_good(&found, &place, error),
        }
    }

    /// The layers of a workspace, or of `file` in it, as they are now. A file
    /// is trusted here where a person has said so, and not for being named.
    pub fn effective(
        &self,
        file: Option<&Path>,
        directory: &Path,
    ) -> Result<Effective, DefinitionError> {
        let found = self.found(file.map(ToOwned::to_owned).or_else(|| find_file(directory)));
        if found.is_empty() {
            return Err(DefinitionError::NotFound(directory.to_owned()));
        }
        let parsed = self.parse(self.survey(&found)?, &mut Reading::default())?;
        let trusted = self.is_granted(&parsed.survey);
        let checksum = parsed.survey.checksum(trusted).unwrap_or(Digest::ZERO);
        let layers = parsed.survey.layers.iter().filter_map(|source| {
            source.checksum().map(|checksum| (source.layer, source.file.clone(), checksum))
        });
        Ok(Effective {
            layers: layers.collect(),
            trusted,
            checksum,
            combined: combine(parsed.layers, trusted),
            warnings: parsed.warnings,
        })
    }

    /// The checksum that stays in force in a workspace while its files, or
    /// `file` in it, don't load.
    pub fn in_force_instead(&self, file: Option<&Path>, directory: &Path) -> Option<Digest> {
        let found = self.found(file.map(ToOwned::to_owned).or_else(|| find_file(directory)));
        self.usable(&self.place(&found, directory)).map(|good| good.checksum)
    }

    /// What became of the files of a session's definition.
    pub(crate) fn look(
        &self,
        files: &[String],
        directory: Option<&Path>,
        checksum: Digest,
    ) -> DefinitionFact {
        let (Some(first), false) = (files.first(), matches!(self.source, Source::Made(_))) else {
            // A session without a file can't lose it.
            return DefinitionFact::Same;
        };
        let first = Path::new(first);
        let is_first = |file: &Option<PathBuf>| file.as_deref().is_some_and(|f| real(f) == first);
        let repository = match &self.source {
            Source::File(file) => Some(file.clone()),
            _ if is_first(&self.host.layers.user) || is_first(&self.host.layers.managed) => {
                directory.and_then(find_file)
            }
            _ => Some(first.to_owned()),
        };
        if !repository.as_deref().unwrap_or(first).try_exists().unwrap_or(true) {
            return DefinitionFact::Missing;
        }
        match self.checksum_now(&self.found(repository), checksum) {
            Ok(now) if now == checksum => DefinitionFact::Same,
            Ok(checksum) => DefinitionFact::Changed { checksum },
            Err(reason) => DefinitionFact::Broken { reason },
        }
    }

    /// The checksum of files that load, or what is wrong with them. Nothing is
    /// parsed that was parsed before.
    fn checksum_now(&self, found: &Found, pinned: Digest) -> Result<Digest, String> {
        let survey = self.survey(found).map_err(|error| error.brief())?;
        if let Some(now) = survey.checksum(self.trusted(&survey))
            && (now == pinned || self.compiled.borrow().has_sources(&now))
        {
            return Ok(now);
        }
        let key = survey.key();
        if let Some((reading, outcome)) = self.looked.borrow().get(&key)
            && reading.is_current()
        {
            return outcome.clone();
        }
        let mut reading = Reading::default();
        let outcome = self
            .compile(survey, &mut reading)
            .map(|(_, _, checksum)| checksum)
            .map_err(|error| error.brief());
        let mut looked = self.looked.borrow_mut();
        if looked.len() >= LOOKED_MAX {
            looked.clear();
        }
        looked.insert(key, (reading, outcome.clone()));
        outcome
    }

    fn load(
        &self,
        found: &Found,
        place: &Digest,
    ) -> Result<(Survey, StoredDefinition, Digest), DefinitionError> {
        let survey = self.survey(found)?;
        let known = survey.checksum(self.trusted(&survey)).and_then(|checksum| {
            let definition = self.compiled.borrow_mut().of_sources(&checksum)?;
            Some((definition, checksum))
        });
        let (survey, definition, checksum) = match known {
            Some((definition, checksum)) => (survey, definition, checksum),
            None => self.compile(survey, &mut Reading::default())?,
        };
        let granted = self.is_granted(&survey);
        let good = LastGood {
            checksum,
            at: clock::now().wall,
            trusted: survey.repository().filter(|_| granted).and_then(survey::Source::checksum),
            files: survey.files(),
        };
        self.compiled.borrow().keep_last_good(place, &good);
        Ok((survey, definition, checksum))
    }

    /// The definition that last loaded at a place, for the reason that what is
    /// there now does not.
    fn last_good(
        &self,
        found: &Found,
        place: &Digest,
        error: DefinitionError,
    ) -> Result<Resolved, DefinitionError> {
        let Some(good) = self.usable(place) else { return Err(error) };
        let Some(definition) = self.compiled.borrow_mut().of_sources(&good.checksum) else {
            return Err(error);
        };
        let mut files = found.all();
        files.extend(good.files.into_iter().filter(|file| !found.all().contains(file)));
        let broken = Some(error.brief());
        Resolved::new(&definition, good.checksum, files, broken)
    }

    /// The last good definition, unless it rests on trust that was taken back.
    fn usable(&self, place: &Digest) -> Option<LastGood> {
        let good = self.compiled.borrow().last_good(place)?;
        let holds = |checksum: Digest| {
            let file = good.files.first();
            self.trust.as_ref().zip(file).is_some_and(|(trust, file)| trust.holds(file, &checksum))
        };
        let is_known = self.compiled.borrow().has_sources(&good.checksum);
        let usable = good.trusted.is_none_or(holds) && is_known;
        usable.then_some(good)
    }

    fn compile(
        &self,
        survey: Survey,
        reading: &mut Reading,
    ) -> Result<(Survey, StoredDefinition, Digest), DefinitionError> {
        let Parsed { survey, layers, .. } = self.parse(survey, reading)?;
        let trusted = self.trusted(&survey);
        let combined = combine(layers, trusted);
        if !combined.problems.is_empty() {
            return Err(DefinitionError::Contradictory(combined.problems));
        }
        // What was parsed says what it extends, so there is a checksum.
        let checksum = survey.checksum(trusted).unwrap_or(Digest::ZERO);
        let definition = self.compiled.borrow_mut().keep(checksum, combined.definition);
        Ok((survey, definition, checksum))
    }

    fn parse(&self, mut survey: Survey, reading: &mut Reading) -> Result<Parsed, DefinitionError> {
        let (mut layers, mut warnings) = (Vec::new(), Vec::new());
        for source in &mut survey.layers {
            let loaded = load_with(&source.bytes, &source.file, reading)
                .map_err(DefinitionError::Invalid)?;
            let extended: Extended =
                loaded.extended.into_iter().map(|(path, bytes)| (real(&path), bytes)).collect();
            let paths = extended.iter().map(|(path, _)| path.clone()).collect();
            self.compiled.borrow_mut().keep_extended(source.key, paths);
            source.extended = Some(extended);
            warnings.extend(loaded.warnings);
            layers.push(Layered {
                layer: source.layer,
                file: source.file.display().to_string(),
                definition: loaded.definition,
                modes: loaded.modes,
            });
        }
        Ok(Parsed { survey, layers, warnings })
    }

    fn found(&self, repository: Option<PathBuf>) -> Found {
        Found::new(
            self.host.layers.managed.as_deref(),
            self.host.layers.user.as_deref(),
            repository,
        )
    }

    fn survey(&self, found: &Found) -> Result<Survey, DefinitionError> {
        found.survey(|key| self.compiled.borrow().extended(key))
    }

    /// Whether the repository's file may loosen things and run commands.
    fn trusted(&self, survey: &Survey) -> bool {
        let named = matches!(self.source, Source::File(_)) && survey.repository().is_some();
        named || self.is_granted(survey)
    }

    /// Whether a person has trusted the repository's file as it is.
    fn is_granted(&self, survey: &Survey) -> bool {
        let repository = survey.repository();
        let checksum = repository.and_then(survey::Source::checksum);
        match (&self.trust, repository, checksum) {
            (Some(trust), Some(source), Some(checksum)) => trust.holds(&source.path, &checksum),
            _ => false,
        }
    }

    /// Where a definition is in force. One that a person names is another than
    /// the same file where it is merely found: it is trusted.
    fn place(&self, found: &Found, directory: &Path) -> Digest {
        let file = found.repository().map(real).unwrap_or_default();
        let mut bytes = file.as_os_str().as_encoded_bytes().to_vec();
        bytes.push(0);
        bytes.extend_from_slice(real(directory).as_os_str().as_encoded_bytes());
        bytes.push(u8::from(matches!(self.source, Source::File(_))));
        Digest::of(&bytes)
    }

    /// The definition that a session runs under. What the store keeps with the journal is read
    /// only where the compiled form is gone.
    pub(crate) fn pinned(
        &self,
        digest: &Digest,
        log: &dyn Log,
    ) -> Result<Arc<Definition>, StoreError> {
        if let Some(known) = self.compiled.borrow_mut().definition(digest) {
            return Ok(known);
        }
        let definition = log.definitions().load(digest)?;
        let stored = StoredDefinition::with_digest(*digest, Arc::clone(&definition));
        self.compiled.borrow_mut().keep_compiled(&stored);
        Ok(definition)
    }
}

impl Resolved {
    fn new(
        stored: &StoredDefinition,
        checksum: Digest,
        files: Vec<PathBuf>,
        broken: Option<String>,
    ) -> Result<Self, DefinitionError> {
        let digest = stored.digest();
        // What was compiled or decoded is loaded.
        let definition = stored.definition().cloned().ok_or(DefinitionError::Made)?;
        Ok(Self { definition, stored: digest, checksum, files, broken })
    }
}

/// One file by itself and its checksum, whatever other layers there are.
pub fn load_file(file: &Path) -> Result<(Loaded, Digest), DefinitionError> {
    let source = std::fs::read(file)
        .map_err(|source| DefinitionError::Unreadable { path: file.to_owned(), source })?;
    let loaded = load_source(&source, file)?;
    let checksum = survey::checksum(&source, &loaded.extended);
    Ok((loaded, checksum))
}

/// One file by itself, as if it held these contents.
pub fn load_source(source: &[u8], file: &Path) -> Result<Loaded, DefinitionError> {
    load_with(source, file, &mut Reading::default()).map_err(DefinitionError::Invalid)
}

/// `jackline.yaml` here or in a parent.
pub fn find_file(directory: &Path) -> Option<PathBuf> {
    directory.ancestors().map(|above| above.join(FILE_NAME)).find(|file| file.is_file())
}

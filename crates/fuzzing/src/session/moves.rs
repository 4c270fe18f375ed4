//! What agents, clients and people do, five bytes a move.
//!
//! Letters and digits mean something in every place, so that a sequence can be
//! written by hand, one move a line: `t012` and a line feed proposes a call.

use arbitrary::Arbitrary;
use jackline_engine::digest::Digest128;
use jackline_engine::event::{
    AdvisorAnswered, AttemptEnded, AttemptResult, AttemptStage, AttemptStarted, Called,
    ChangeReason, CompactionFinished, Control, IterationEnded, ModelChanged, OutputProposed,
    PlanProposed, PromptSource, ReportedStage, Seen, Stage, Tests, UsageReported,
};
use jackline_engine::id::{AttemptId, RequestId};
use jackline_engine::{
    Action, ActorId, Arguments, CallId, Event, EventKind, Payload, PromptSubmitted, SessionEnded,
    SessionId, SessionStarted, Status, StopProposed, ToolFinished, ToolName, ToolProposed, json,
};
use serde_json::{Value, json};

use super::world::World;

/// The letters of the events, in the order of the wire; `r` repeats the move before.
pub(super) const KINDS: &[u8] = b"sptfloucixagevmkz";
const REPEAT: u8 = b'r';

/// How often a repeated move can be repeated.
const REPEATS_MAX: u8 = 80;

const TOOLS: [&str; 10] =
    ["lint", "test", "build", "deploy", "edit", "read", "bash", "delete", "think", "unheard_of"];

/// One move.
#[derive(Debug, Clone, Copy, Default, Arbitrary)]
pub(super) struct Move {
    /// What happens: one of [`KINDS`].
    pub(super) kind: u8,
    /// Who acts.
    who: u8,
    /// On which call, attempt or request.
    what: u8,
    /// With which tool, status or action.
    how: u8,
    /// What the world is like meanwhile.
    pub(super) world: u8,
}

impl Move {
    /// A plain one of the main agent.
    pub(super) fn of(kind: u8) -> Self {
        Self { kind, ..Self::default() }
    }

    /// Adds the move, or repeats the one before, each time on something else.
    pub(super) fn spread(self, moves: &mut Vec<Self>) {
        match moves.last() {
            Some(last) if self.kind == REPEAT => {
                let last = *last;
                for number in 1..=self.what % REPEATS_MAX {
                    let step = if self.how.is_multiple_of(2) { number } else { 0 };
                    moves.push(Self {
                        what: last.what.wrapping_add(step),
                        who: last.who.wrapping_add(step & self.who),
                        ..last
                    });
                }
            }
            _ => moves.push(self),
        }
    }

    /// The event that it is.
    pub(super) fn event(self, world: &World) -> Event {
        Event {
            session: SessionId::parse("s").unwrap(),
            id: None,
            at: (self.world % 32 == 31).then(|| world.wall()),
            actor: if digit(self.who).is_multiple_of(4) {
                ActorId::main()
            } else {
                ActorId::parse(self.name('a', self.who)).unwrap()
            },
            kind: self.kind(world),
            meta: (self.world % 64 == 63).then(|| json!({ "note": [self.what, null] })),
        }
    }

    fn kind(self, world: &World) -> EventKind {
        let at = KINDS.iter().position(|kind| *kind == self.kind);
        let letter = KINDS.get(at.unwrap_or(usize::from(self.kind) % KINDS.len()));
        match letter.copied().unwrap_or_default() {
            b's' => EventKind::SessionStarted(SessionStarted {
                client: self.word(),
                deadline: self.flag().then(|| world.wall().plus_ms(u64::from(self.what) * 5_000)),
                role: self.word(),
                ..SessionStarted::default()
            }),
            b'p' => EventKind::PromptSubmitted(PromptSubmitted {
                source: pick(PromptSource::ALL, self.how),
                text: self.payload(),
            }),
            b't' => EventKind::ToolProposed(ToolProposed {
                call: self.call(),
                tool: self.tool(),
                args: self.arguments(),
                cwd: self.word(),
            }),
            b'f' => self.finished(),
            b'l' => EventKind::PlanProposed(PlanProposed {
                plan: self.flag().then(|| self.value()),
                plan_text: (!self.flag()).then(|| self.text()),
            }),
            b'o' => EventKind::OutputProposed(OutputProposed {
                name: self.word(),
                text: self.payload(),
                truncated: self.flag(),
            }),
            b'u' => self.usage(),
            b'c' => EventKind::CompactionFinished(CompactionFinished {
                freed: self.flag().then(|| self.count()),
                summary: self.payload(),
            }),
            b'i' => EventKind::IterationEnded(IterationEnded {
                phase: self.word(),
                task: self.word(),
                tests: self.flag().then(|| Tests { failed: self.count(), passed: 1 }),
                build: self.word(),
                files_changed: self.flag().then(|| self.count()),
                error: self.payload(),
            }),
            b'x' => EventKind::StopProposed(StopProposed {
                reason: self.word(),
                output: self.payload(),
                background: u64::from(digit(self.how) == 9),
            }),
            b'a' => EventKind::AttemptStarted(AttemptStarted { attempt: self.attempt() }),
            b'g' => EventKind::AttemptStage(AttemptStage {
                attempt: self.attempt(),
                stage: ReportedStage::Known(Stage::Validated),
            }),
            b'e' => EventKind::AttemptEnded(AttemptEnded {
                attempt: self.attempt(),
                result: pick(AttemptResult::ALL, self.how),
            }),
            b'v' => EventKind::AdvisorAnswered(AdvisorAnswered {
                model: self.word(),
                instruction: (digit(self.how) < 8).then(|| self.advice()),
                error: self.payload(),
            }),
            b'm' => EventKind::ModelChanged(ModelChanged {
                from: self.word(),
                to: self.name('m', self.what),
                reason: ChangeReason::parse(pick_of(
                    &["blocked", "overload", "return", ""],
                    self.how,
                )),
            }),
            b'k' => EventKind::Control(Control {
                action: pick(Action::ALL, self.how),
                by: self.word(),
                why: self.flag().then(|| "\u{10ffff}".repeat(usize::from(self.what) * 4)),
                call: self.call(),
                ask: self.flag().then(|| u64::from(self.what)),
                seconds: self.flag().then(|| self.count()),
                constraint: self.word(),
            }),
            _ => EventKind::SessionEnded(SessionEnded::default()),
        }
    }

    fn finished(self) -> EventKind {
        let call = self.call();
        let args = match self.arguments() {
            Arguments::Parsed(value) => json::digest(&value),
            Arguments::Text(text) => Digest128::of(text.head().as_bytes()),
        };
        EventKind::ToolFinished(ToolFinished {
            of: call.is_none().then(|| Called { tool: self.tool(), args }),
            call,
            status: pick(Status::ALL, b'0' + self.who.wrapping_sub(b'0') / 4),
            result: self.payload(),
            exit_code: self.flag().then(|| i64::from(self.how) - 128),
            seen: if self.flag() {
                vec![Seen { path: "report.md".into(), from: 1, to: self.count(), of: None }]
            } else {
                Vec::new()
            },
            background: self.what % 32 == 31,
        })
    }

    fn usage(self) -> EventKind {
        EventKind::UsageReported(UsageReported {
            request: self.flag().then(|| RequestId::parse(self.name('r', self.what)).unwrap()),
            model: self.word(),
            input: self.count(),
            cache_read: u64::from(self.how),
            output: self.count() / 3,
            window: self.flag().then_some(200_000),
            cost_micros: self.flag().then(|| self.count()),
            unknown: self.what % 32 == 31,
            ..UsageReported::default()
        })
    }

    /// Clients without call ids leave them out.
    fn call(self) -> Option<CallId> {
        (self.what % 16 != 15).then(|| CallId::parse(self.name('c', self.what)).unwrap())
    }

    fn tool(self) -> ToolName {
        ToolName::parse(TOOLS.get(usize::from(digit(self.how))).copied().unwrap_or("edit")).unwrap()
    }

    fn attempt(self) -> AttemptId {
        AttemptId::parse(self.name('t', self.what % 8)).unwrap()
    }

    /// A name, now and then as long as it may be.
    fn name(self, kind: char, number: u8) -> String {
        let name = format!("{kind}{number}");
        if self.world & 0x40 == 0 { name } else { format!("{name:x<128}") }
    }

    /// Arguments, of which a few are always the same.
    fn arguments(self) -> Arguments {
        if self.world % 16 == 13 {
            return Arguments::Text(self.text());
        }
        Arguments::Parsed(json!({ "path": if self.flag() { "report.md" } else { "src/a.rs" } }))
    }

    fn value(self) -> Value {
        json!({ "steps": [self.what, "s", null], "n": u64::from(self.how) << 56 })
    }

    fn text(self) -> Payload {
        let texts = ["{\"path\":1}", "{\"a\"", "[]", "\u{0}\u{1b}[0m\n", ""];
        Payload::Inline(pick_of(&texts, self.what).to_owned())
    }

    /// What an advisor says, now and then more than there is room for.
    fn advice(self) -> Payload {
        if self.flag() {
            Payload::Inline("<'&é".repeat(usize::from(self.what) * 9))
        } else {
            self.text()
        }
    }

    fn payload(self) -> Option<Payload> {
        self.flag().then(|| self.text())
    }

    fn word(self) -> Option<String> {
        (self.world & 4 != 0)
            .then(|| pick_of(&["x", "", "..", "/abs", "a/../../b"], self.what).to_owned())
    }

    fn flag(self) -> bool {
        self.world & 1 != 0
    }

    /// A number of any size.
    fn count(self) -> u64 {
        match self.what {
            255 => u64::MAX,
            what if what >= 128 => 1 << (what % 64),
            what => u64::from(what),
        }
    }
}

/// A number from a digit, or from any other byte.
fn digit(byte: u8) -> u8 {
    byte.wrapping_sub(b'0') % 10
}

fn pick<T: Copy>(words: &[(&str, T)], byte: u8) -> T {
    pick_of(words, byte).1
}

#[expect(clippy::indexing_slicing, reason = "a remainder is within the list, and no list is empty")]
fn pick_of<T: Copy>(list: &[T], byte: u8) -> T {
    list[usize::from(byte.wrapping_sub(b'0')) % list.len()]
}

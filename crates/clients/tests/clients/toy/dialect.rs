//! The hook format of the toy client: the payload is `{"at": "call", "session": …, "tool": …,
//! "args": {…}}` and the answer `{"answer": "no", "why": …}`. It can't block a stop and can't ask
//! its user.

use jackline_clients::dialect::{
    AnswerTexts, ClientTools, Dialect, HookCall, HookMoment, HookPayload, HookReply, HookReport,
    PayloadError,
};
use jackline_clients::hook_environment::HookEnvironment;
use jackline_clients::payload::PayloadFields;
use jackline_engine::{
    ActorId, Arguments, CallId, CallStatus, Decision, Event, EventId, EventKind, Payload,
    SessionId, SessionStarted, StopProposed, ToolFinished, ToolName, ToolProposed, Verdict,
};
use jackline_runtime::WAITS_FOR_PERSON_TEXT;
use jackline_runtime::surfaces::{CapabilitySupport, SurfaceCapability, SurfaceProfile};
use serde_json::{Map, Value, json};

/// The fields that no event uses.
const IGNORED: [&str; 1] = ["at"];

/// The translation panics for a tool of this name.
const CRASHES: &str = "crash";

/// The translation never ends for a tool of this name.
const HANGS: &str = "hang";

/// What the client can't do. A client of the product has its row in `jackline_runtime::surfaces`.
static TOY_HOOK: SurfaceProfile = SurfaceProfile {
    name: "hook toy",
    title: "the toy client",
    limits: &[
        (SurfaceCapability::ReplaceArguments, CapabilitySupport::Missing("it has its own")),
        (SurfaceCapability::PageResult, CapabilitySupport::Missing("it shows every output")),
        (SurfaceCapability::RefuseStop, CapabilitySupport::Missing("it asks no hook")),
    ],
};

pub(super) struct ToyDialect;

impl Dialect for ToyDialect {
    fn surface(&self) -> &'static SurfaceProfile {
        &TOY_HOOK
    }

    fn tools(&self) -> ClientTools {
        ClientTools { names: &["toy"], prefixes: &[] }
    }

    fn read_environment(&self) -> HookEnvironment {
        HookEnvironment::of_process(None, false)
    }

    fn parse_payload(
        &self,
        input: &[u8],
        _: &HookEnvironment,
    ) -> Result<HookPayload, PayloadError> {
        let mut fields = PayloadFields::parse(input)?;
        let (hook, moment) = match fields.take_text("at").as_deref() {
            Some("start") => ("start", HookMoment::Other),
            Some("call") => ("call", HookMoment::BeforeCall),
            Some("done") => ("done", HookMoment::Other),
            Some("stop") => ("stop", HookMoment::Stop),
            Some(_) => ("", HookMoment::Unrecognised),
            None => return Err(PayloadError::Missing("at")),
        };
        let session =
            fields.take_text("session").and_then(|session| SessionId::parse(session).ok());
        let call = HookCall { hook, moment, session, stop_blocked: false };
        Ok(HookPayload { call, fields })
    }

    fn translate_payload(
        &self,
        payload: HookPayload,
        at: &HookEnvironment,
    ) -> Result<HookReport, PayloadError> {
        let HookPayload { call, mut fields } = payload;
        let session = call.session.ok_or(PayloadError::Missing("session"))?;
        let id = fields.take_text("id");
        let call_id = id.as_ref().and_then(|id| CallId::parse(id).ok());
        // If our hooks are installed twice, the client calls us twice. The second call gets the
        // answer of the first.
        let event_id = id.filter(|_| call.moment == HookMoment::BeforeCall);
        let kind: EventKind = match call.moment {
            HookMoment::BeforeCall => {
                let tool = fields.take_text("tool").ok_or(PayloadError::Missing("tool"))?;
                match tool.as_str() {
                    CRASHES => panic!("the toy has a bug"),
                    HANGS => loop {
                        std::thread::park();
                    },
                    _ => {}
                }
                let args = fields.take_object("args").ok_or(PayloadError::Missing("args"))?;
                ToolProposed {
                    call: call_id,
                    tool: ToolName::parse(tool).map_err(|_| PayloadError::Missing("tool"))?,
                    args: Arguments::Parsed(args),
                    ..ToolProposed::default()
                }
                .into()
            }
            HookMoment::Stop => StopProposed::default().into(),
            _ if call.hook == "done" => ToolFinished {
                call: call_id,
                status: if fields.flag("failed") { CallStatus::Error } else { CallStatus::Ok },
                result: fields.take_text("result").map(Payload::Inline),
                ..ToolFinished::default()
            }
            .into(),
            _ => SessionStarted {
                workspace: at.workspace().to_str().map(ToOwned::to_owned),
                client: Some(super::NAME.to_owned()),
                ..SessionStarted::default()
            }
            .into(),
        };
        let meta = fields.into_meta(call.hook, None, &IGNORED);
        let mut report = HookReport::new(session.clone(), ActorId::main());
        let event = Event::new(session, kind).with_meta(Some(meta));
        report.events.push(Event { id: event_id.and_then(|id| EventId::parse(id).ok()), ..event });
        Ok(report)
    }

    fn render_verdict(&self, call: &HookCall, verdict: &Verdict, texts: AnswerTexts) -> HookReply {
        let mut map = Map::new();
        let texts_for_agent = texts.agent.into_iter().chain(verdict.context.clone());
        let mut why = texts_for_agent.collect::<Vec<String>>().join("\n\n");
        if call.moment == HookMoment::BeforeCall && !verdict.allows_run() {
            // The toy can't ask its user, so a question is a denial for now.
            if verdict.decision == Decision::Ask {
                why = format!("{why}\n-> {WAITS_FOR_PERSON_TEXT}");
            }
            refuse(&mut map, &why);
        }
        if !texts.person.is_empty() {
            map.insert("person".to_owned(), json!(texts.person));
        }
        HookReply::from_map(map)
    }

    fn render_block(&self, _: &HookCall, reason: &str) -> HookReply {
        let mut map = Map::new();
        refuse(&mut map, reason);
        HookReply::from_map(map)
    }

    fn render_fault(&self, call: Option<&HookCall>, text: &str) -> HookReply {
        match call {
            Some(call) if call.moment == HookMoment::BeforeCall => self.render_block(call, text),
            Some(_) => HookReply::empty(),
            None => HookReply::refusal(text),
        }
    }
}

fn refuse(map: &mut Map<String, Value>, why: &str) {
    map.insert("answer".to_owned(), json!("no"));
    map.insert("why".to_owned(), json!(why));
}

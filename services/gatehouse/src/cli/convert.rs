//! Generated messages as JSON, times and words.

use std::{sync::LazyLock, time::Duration};

use gatehouse_proto::gateway::v1::{ApiKeyScope, CallOutcome, EngineKind, PermissionMode, ServerState, Session};
use jiff::Timestamp;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, SerializeOptions};
use serde_json::Value;

use super::{
    failure::{Code, Failure},
    snippet::Engine,
};

/// A point in time in a message.
pub(crate) type Time = prost_types::Timestamp;

static DESCRIPTORS: LazyLock<Option<DescriptorPool>> =
    LazyLock::new(|| DescriptorPool::decode(gatehouse_proto::DESCRIPTORS).ok());

/// A message in the JSON of proto3, by its full name or that in `gatehouse.gateway.v1`.
///
/// Fields with default values are there too, so that a script finds the same keys always; messages and `optional`
/// fields that are not set are left out. 64-bit numbers are text, as the specification of that JSON has it.
pub(crate) fn json(name: &str, message: &impl Message) -> Result<Value, Failure> {
    let defect = |what: &str| Failure::new(Code::Internal, format!("{name} cannot be shown as JSON: {what}"));
    let pool = DESCRIPTORS.as_ref().ok_or_else(|| defect("the descriptors are damaged"))?;
    let full_name = if name.contains('.') { name.to_owned() } else { format!("gatehouse.gateway.v1.{name}") };
    let descriptor = pool.get_message_by_name(&full_name).ok_or_else(|| defect("it has no descriptor"))?;
    let bytes = message.encode_to_vec();
    let dynamic = DynamicMessage::decode(descriptor, bytes.as_slice()).map_err(|error| defect(&error.to_string()))?;
    let options = SerializeOptions::new().skip_default_fields(false);
    let value = dynamic.serialize_with_options(serde_json::value::Serializer, &options);
    let mut value = value.map_err(|error| defect(&error.to_string()))?;
    without_nulls(&mut value);
    Ok(value)
}

/// Takes out what is not set: only `google.protobuf.Value`, which no message here uses, has a `null` that counts.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|_, value| !value.is_null());
            object.values_mut().for_each(without_nulls);
        }
        Value::Array(array) => array.iter_mut().for_each(without_nulls),
        _ => {}
    }
}

/// Messages under one key: `{"servers": […]}`.
pub(crate) fn json_list<M: Message>(key: &str, name: &str, messages: &[M]) -> Result<Value, Failure> {
    let values = messages.iter().map(|message| json(name, message)).collect::<Result<Vec<_>, _>>()?;
    Ok(Value::Object([(key.to_owned(), Value::Array(values))].into_iter().collect()))
}

/// A point in time; none when it is not set or not one.
pub(crate) fn instant(at: Option<&prost_types::Timestamp>) -> Option<Timestamp> {
    at.and_then(|at| Timestamp::new(at.seconds, at.nanos).ok())
}

/// A point in time for a request.
pub(crate) fn timestamp(at: Timestamp) -> prost_types::Timestamp {
    prost_types::Timestamp { seconds: at.as_second(), nanos: at.subsec_nanosecond() }
}

/// How long; none when it is not set or negative.
pub(crate) fn span(duration: Option<&prost_types::Duration>) -> Option<Duration> {
    duration.and_then(|duration| Duration::try_from(*duration).ok())
}

/// A duration for a request, where one was given.
pub(crate) fn duration(duration: Option<Duration>) -> Result<Option<prost_types::Duration>, Failure> {
    duration.map(|duration| duration.try_into().map_err(|_| Failure::usage("the time is too long"))).transpose()
}

/// A state in a word.
pub(crate) fn state_word(state: ServerState) -> &'static str {
    match state {
        ServerState::Unspecified | ServerState::Unknown => "not asked yet",
        ServerState::Healthy => "healthy",
        ServerState::Failing => "failing",
    }
}

/// A permission mode as on the command line.
pub(crate) fn mode_word(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::ReadOnly => "read-only",
        PermissionMode::Unspecified | PermissionMode::Ask => "ask",
        PermissionMode::Auto => "auto",
    }
}

/// A scope as on the command line.
pub(crate) fn scope_word(scope: ApiKeyScope) -> &'static str {
    match scope {
        ApiKeyScope::Unspecified => "",
        ApiKeyScope::Admin => "admin",
        ApiKeyScope::Sessions => "sessions",
    }
}

/// An outcome as on the command line.
pub(crate) fn outcome_word(outcome: CallOutcome) -> &'static str {
    match outcome {
        CallOutcome::Unspecified => "",
        CallOutcome::Running => "running",
        CallOutcome::Ok => "ok",
        CallOutcome::ToolError => "tool-error",
        CallOutcome::Denied => "denied",
        CallOutcome::TimedOut => "timed-out",
        CallOutcome::Cancelled => "cancelled",
        CallOutcome::Interrupted => "interrupted",
        CallOutcome::Unknown => "unknown",
        CallOutcome::Background => "background",
        CallOutcome::NotSent => "not-sent",
    }
}

/// The kind of engine for a request.
pub(crate) fn engine_kind(engine: Engine) -> EngineKind {
    match engine {
        Engine::ClaudeCode => EngineKind::ClaudeCode,
        Engine::Codex => EngineKind::Codex,
        Engine::Other => EngineKind::Other,
    }
}

/// The engine of a session.
pub(crate) fn engine_of(session: &Session) -> Engine {
    match session.engine() {
        EngineKind::ClaudeCode => Engine::ClaudeCode,
        EngineKind::Codex => Engine::Codex,
        EngineKind::Unspecified | EngineKind::Other => Engine::Other,
    }
}

#[cfg(test)]
mod tests {
    use gatehouse_proto::gateway::v1 as pb;

    use super::*;

    #[test]
    fn json_has_every_field_in_lower_camel_case_and_times_in_rfc_3339() {
        let call = pb::Call {
            id: "c".to_owned(),
            outcome: CallOutcome::ToolError.into(),
            started_at: Some(prost_types::Timestamp { seconds: 1_796_000_000, nanos: 5_000_000 }),
            duration: Some(prost_types::Duration { seconds: 1, nanos: 500_000_000 }),
            result_bytes: 12,
            ..pb::Call::default()
        };
        insta::assert_snapshot!(format!("{:#}", json("Call", &call).unwrap()), @r#"
        {
          "id": "c",
          "sessionId": "",
          "actor": "",
          "runId": "",
          "server": "",
          "tool": "",
          "outcome": "CALL_OUTCOME_TOOL_ERROR",
          "readOnly": false,
          "startedAt": "2026-11-30T00:53:20.005Z",
          "duration": "1.500s",
          "retries": 0,
          "argumentsBytes": "0",
          "resultBytes": "12",
          "error": "",
          "traceId": "",
          "argumentsJson": "",
          "argumentsSha256": "",
          "structuredResultJson": "",
          "hints": {},
          "policy": "",
          "permissionMode": "",
          "decision": "",
          "decidedBy": "",
          "interactionId": "",
          "files": [],
          "notes": []
        }
        "#);
        let report = json("TestServerResponse", &pb::TestServerResponse::default()).unwrap();
        insta::assert_snapshot!(format!("{report:#}"), @r#"
        {
          "ok": false,
          "steps": [],
          "protocolVersion": "",
          "serverName": "",
          "serverVersion": "",
          "capabilitiesJson": "",
          "tls": ""
        }
        "#);
    }

    #[test]
    fn every_outcome_has_a_word_of_its_own() {
        let words: Vec<&str> = (0..=10).map(|number| outcome_word(CallOutcome::try_from(number).unwrap())).collect();
        let distinct: std::collections::BTreeSet<&&str> = words.iter().collect();
        assert_eq!(distinct.len(), words.len());
    }
}

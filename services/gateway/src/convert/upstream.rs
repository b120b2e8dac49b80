//! Connection tests, offered tools, calls.

use gatehouse_proto::gateway::v1;
use serde::de::IgnoredAny;

use super::{duration, stdio};
use crate::{
    error::Error,
    raw::RawObject,
    registry::{
        check::Fields,
        header::Headers,
        server, text,
        upstream::{CallEvent, CallRequest, Offered, TestReport, TestStep, TestTarget, ToolsVersion},
    },
};

/// What a connection test goes to: `Ok` with the name of a registered server, or a checked URL.
pub fn test_target(request: v1::TestServerRequest) -> Result<Result<String, TestTarget>, Error> {
    let mut fields = Fields::new();
    let given = [!request.server.is_empty(), !request.url.is_empty(), request.stdio.is_some()];
    if given.iter().filter(|given| **given).count() != 1 {
        return Err(Error::field("server", "or `url` or `stdio` must be set, and only one of them"));
    }
    if let Some(command) = request.stdio {
        let (stdio, env) = stdio::command(&mut fields, command);
        return fields.finish(Err(TestTarget::Program { stdio, env }));
    }
    if !request.server.is_empty() {
        let name = fields.take("server", text::lookup(&request.server));
        if !request.headers.is_empty() {
            fields.wrong("headers", "goes with `url` only; a registered server is tested with its own");
        }
        return fields.finish(Ok(name));
    }
    let url = fields.take("url", server::url(&request.url));
    let headers = Headers::checked(&mut fields, "headers", request.headers);
    fields.finish(Err(TestTarget::Url { url, headers }))
}

/// A checked call. `most` bounds the arguments in bytes.
pub fn call_request(request: v1::CallToolRequest, most: usize) -> Result<CallRequest, Error> {
    let mut fields = Fields::new();
    let given = request.arguments_json;
    let arguments = if given.is_empty() { "{}".to_owned() } else { given };
    if arguments.len() > most {
        fields.wrong("arguments_json", format!("takes at most {most} bytes"));
    } else if serde_json::from_str::<IgnoredAny>(&arguments).is_err() {
        fields.wrong("arguments_json", "is not JSON");
    } else if RawObject::parse(&arguments).is_none() {
        fields.wrong("arguments_json", "takes a JSON object");
    }
    let call = CallRequest {
        session: fields.take("session", text::lookup(&request.session)),
        actor: fields.take("actor", text::actor(&request.actor)),
        tool: fields.take("tool", text::tool_name(&request.tool)),
        arguments,
    };
    fields.finish(call)
}

impl From<TestReport> for v1::TestServerResponse {
    fn from(report: TestReport) -> Self {
        let count = |number: Option<u32>| number.map(|number| i32::try_from(number).unwrap_or(i32::MAX));
        Self {
            ok: report.ok(),
            steps: report.steps.into_iter().map(v1::TestStep::from).collect(),
            protocol_version: report.protocol_version,
            server_name: report.server_name,
            server_version: report.server_version,
            capabilities_json: report.capabilities,
            tools: count(report.tools),
            resources: count(report.resources),
            prompts: count(report.prompts),
            tls: report.tls,
        }
    }
}

impl From<TestStep> for v1::TestStep {
    fn from(step: TestStep) -> Self {
        Self {
            name: step.name.to_owned(),
            ok: step.failure.is_none(),
            took: Some(duration(step.took)),
            message: step.message,
            reason: step.failure.unwrap_or_default().to_owned(),
        }
    }
}

impl From<Offered> for v1::ListOfferedToolsResponse {
    fn from(offered: Offered) -> Self {
        let tool = |tool: crate::registry::upstream::OfferedTool| v1::OfferedTool {
            name: tool.name,
            server: tool.server,
            definition_json: tool.definition,
        };
        let missing = |(server, message)| v1::UnavailableServer { server, message };
        Self {
            tools: offered.tools.into_iter().map(tool).collect(),
            unavailable: offered.unavailable.into_iter().map(missing).collect(),
        }
    }
}

impl From<ToolsVersion> for v1::GetToolsVersionResponse {
    fn from(version: ToolsVersion) -> Self {
        Self { version: version.version, tool_count: i32::try_from(version.tool_count).unwrap_or(i32::MAX) }
    }
}

impl From<CallEvent> for v1::CallToolResponse {
    fn from(event: CallEvent) -> Self {
        use v1::call_tool_response::Event;
        let event = match event {
            CallEvent::Progress { progress, total, message } => {
                Event::Progress(v1::Progress { progress, total, message })
            }
            CallEvent::Result { call_id, content, is_error } => {
                Event::Result(v1::CallResult { call_id: call_id.to_string(), content_json: content, is_error })
            }
        };
        Self { event: Some(event) }
    }
}

//! Pure: content blocks (MCP 2025-11-25, schema `ContentBlock`).

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{Known, text_block};
use crate::raw::{self, RawObject};

/// The block as it was sent when an engine can take it; else as a text block that says what it was.
pub(super) fn for_engine(block: &RawValue, known: Known) -> Cow<'_, str> {
    let Some(members) = RawObject::parse(block.get()) else { return Cow::Owned(as_text(block)) };
    let is_text = |name| members.get(name).is_some_and(|raw| raw::first_byte(raw) == b'"');
    let kind = members.string("type").unwrap_or_default();
    let good = match kind.as_ref() {
        "text" => is_text("text"),
        "image" => is_text("data") && is_text("mimeType"),
        "audio" if known.audio => is_text("data") && is_text("mimeType"),
        "resource_link" if known.resource_link => is_text("uri") && is_text("name"),
        "resource" => members.object("resource").is_some_and(|resource| {
            let text = |name| resource.get(name).is_some_and(|raw| raw::first_byte(raw) == b'"');
            text("uri") && (text("text") || text("blob"))
        }),
        _ => false,
    };
    match kind.as_ref() {
        _ if good && optional_members_are_well_formed(&members) => Cow::Borrowed(block.get()),
        _ if good => Cow::Owned(without_ill_formed(&members)),
        "resource_link" if is_text("uri") => Cow::Owned(text_block(&link_in_words(&members))),
        _ => Cow::Owned(as_text(block)),
    }
}

/// The text of a text block.
pub(super) fn text_of(block: &str) -> Option<String> {
    let members = RawObject::parse(block)?;
    if members.string("type")? != "text" {
        return None;
    }
    members.string("text").map(Cow::into_owned)
}

fn optional_members_are_well_formed(members: &RawObject<'_>) -> bool {
    ["_meta", "annotations"].iter().all(|name| members.get(name).is_none_or(|raw| raw::first_byte(raw) == b'{'))
}

fn without_ill_formed(members: &RawObject<'_>) -> String {
    let kept = members
        .0
        .iter()
        .filter(|(key, value)| !matches!(key.as_ref(), "_meta" | "annotations") || raw::first_byte(value) == b'{');
    raw::join(kept.map(|(key, value)| (key.as_ref(), value.get())))
}

fn link_in_words(link: &RawObject<'_>) -> String {
    let part = |name| link.string(name).unwrap_or_default();
    let text = format!("Resource link: {} {}", part("name"), part("uri"));
    match link.string("mimeType") {
        Some(kind) => format!("{text} ({kind})"),
        None => text,
    }
}

fn as_text(block: &RawValue) -> String {
    text_block(block.get())
}

//! Pure: content blocks (MCP 2025-11-25, schema `ContentBlock`).

use std::borrow::Cow;

use gatehouse_mcp::scan::Item;

use super::{Known, text_block};
use crate::raw::{self, RawObject};

/// The block as it was sent when an engine can take it; else as a text block that says what it was.
pub(super) fn for_engine<'a>(item: &Item<'a>, known: Known) -> Cow<'a, str> {
    let block = item.text;
    let Some(members) = item.members.clone().map(RawObject) else { return Cow::Owned(as_text(block)) };
    let kind = members.string("type").unwrap_or_default();
    let good = match kind.as_ref() {
        "text" => members.has_string("text"),
        "image" => members.has_string("data") && members.has_string("mimeType"),
        "audio" if known.audio => members.has_string("data") && members.has_string("mimeType"),
        "resource_link" if known.resource_link => members.has_string("uri") && members.has_string("name"),
        "resource" => members.object("resource").is_some_and(|resource| {
            resource.has_string("uri") && (resource.has_string("text") || resource.has_string("blob"))
        }),
        _ => false,
    };
    match kind.as_ref() {
        _ if good && optional_members_are_well_formed(&members) => Cow::Borrowed(block),
        _ if good => Cow::Owned(without_ill_formed(&members)),
        "resource_link" if members.has_string("uri") => Cow::Owned(text_block(&link_in_words(&members))),
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
    raw::join(kept.map(|(key, value)| (key.as_ref(), *value)))
}

fn link_in_words(link: &RawObject<'_>) -> String {
    let part = |name| link.string(name).unwrap_or_default();
    let text = format!("Resource link: {} {}", part("name"), part("uri"));
    match link.string("mimeType") {
        Some(kind) => format!("{text} ({kind})"),
        None => text,
    }
}

fn as_text(block: &str) -> String {
    text_block(block)
}

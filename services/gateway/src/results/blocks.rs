//! Pure: content blocks (MCP 2025-11-25, schema `ContentBlock`) and what becomes of each.

use std::borrow::Cow;

use bytes::Bytes;
use gatehouse_mcp::scan::{self, Item};
use serde_json::Value;
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use super::{
    Context, base64,
    surrogates::mended,
    words::{self, Held, Link},
};
use crate::raw::{self, RawObject};

/// What becomes of a block.
pub(super) enum Shape<'a> {
    /// A text block as it was sent, and its text as the JSON string that was sent.
    Text { block: Cow<'a, str>, quoted: &'a str },
    /// Text in place of the block.
    Words(Cow<'a, str>),
    /// A block that an engine gets as it is.
    Whole(Cow<'a, str>),
    /// Content for a file.
    File { held: Held, uri: Option<String>, media_type: String, content: Bytes },
}

/// What becomes of a block; something broken is noted.
pub(super) fn shape<'a>(item: &Item<'a>, body: &Bytes, cx: &Context<'_>, notes: &mut Vec<String>) -> Shape<'a> {
    let Some(members) = item.members.clone().map(RawObject) else { return Shape::Words(item.text.into()) };
    let kind = text_member(&members, "type").unwrap_or_default();
    match kind.as_ref() {
        "text" if members.has_string("text") => {
            Shape::Text { quoted: members.get("text").unwrap_or_default(), block: well_formed(item.text, &members) }
        }
        "image" | "audio" if members.has_string("data") && members.has_string("mimeType") => {
            let held = if kind == "image" { Held::Image } else { Held::Audio };
            media(item.text, &members, held, cx, notes)
        }
        "resource_link" if members.has_string("uri") => Shape::Words(link(&members, cx).into()),
        "resource_link" => {
            notes.push("a resource link without a URI".to_owned());
            Shape::Words(link(&members, cx).into())
        }
        "resource" => match members.object("resource") {
            Some(resource) if resource.has_string("text") || resource.has_string("blob") => {
                file(&resource, body, cx, notes)
            }
            _ => Shape::Words(item.text.into()),
        },
        _ => Shape::Words(item.text.into()),
    }
}

/// The text that a member spells; half characters in it are replaced.
fn text_member<'a>(members: &RawObject<'a>, name: &str) -> Option<Cow<'a, str>> {
    members.get(name).filter(|_| members.has_string(name)).map(unquoted)
}

/// The text that a JSON string spells; half characters in it are replaced.
pub(super) fn unquoted(quoted: &str) -> Cow<'_, str> {
    if let Ok(text) = scan::unquoted(quoted) {
        return text;
    }
    scan::unquoted(&mended(quoted)).map_or(Cow::Borrowed(""), |text| Cow::Owned(text.into_owned()))
}

/// The same block with another value for a member.
pub(super) fn with_text(block: &str, member: &str, text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    raw::push_string(&mut quoted, text);
    let members = RawObject::parse(block).unwrap_or_default();
    raw::join(members.0.iter().map(|(key, value)| (key.as_ref(), if key == member { quoted.as_str() } else { *value })))
}

/// Whether annotations are as the specification has them (2025-11-25, `Annotations`): official clients refuse a whole result for
/// one that is not.
fn are_annotations(value: &str) -> bool {
    let Ok(Value::Object(members)) = serde_json::from_str::<Value>(value) else { return false };
    let is_role = |role: &Value| matches!(role.as_str(), Some("user" | "assistant"));
    members.iter().all(|(name, value)| match name.as_str() {
        "audience" => value.as_array().is_some_and(|roles| roles.iter().all(is_role)),
        "priority" => value.as_f64().is_some_and(|priority| (0.0..=1.0).contains(&priority)),
        "lastModified" => value.as_str().is_some_and(|text| OffsetDateTime::parse(text, &Rfc3339).is_ok()),
        _ => true,
    })
}

/// The block without optional members that are not as they must be, and without half characters.
fn well_formed<'a>(block: &'a str, members: &RawObject<'a>) -> Cow<'a, str> {
    let good = |(key, value): &&(Cow<'_, str>, &str)| match key.as_ref() {
        "_meta" => raw::first_byte(value) == b'{',
        "annotations" => are_annotations(value),
        _ => true,
    };
    if members.0.iter().all(|member| good(&member)) {
        let by_number = memchr::memmem::find(block.as_bytes(), br"\u").is_some();
        return if by_number { mended(block) } else { Cow::Borrowed(block) };
    }
    let kept = members.0.iter().filter(good);
    Cow::Owned(mended(&raw::join(kept.map(|(key, value)| (key.as_ref(), *value)))).into_owned())
}

fn media<'a>(
    block: &'a str,
    members: &RawObject<'a>,
    held: Held,
    cx: &Context<'_>,
    notes: &mut Vec<String>,
) -> Shape<'a> {
    let data = text_member(members, "data").unwrap_or_default();
    let media_type = text_member(members, "mimeType").unwrap_or_default();
    let most = if held == Held::Audio && !cx.known.audio { 0 } else { cx.limits.media_bytes };
    if base64::strict_len(&data).is_some_and(|length| (1..=most).contains(&length)) {
        return Shape::Whole(well_formed(block, members));
    }
    match base64::decoded(&data) {
        Some(bytes) if bytes.len() > most => {
            Shape::File { held, uri: None, media_type: media_type.into_owned(), content: bytes.into() }
        }
        // Engines and models read base64 to the letter.
        Some(bytes) if !bytes.is_empty() => {
            Shape::Whole(with_text(&well_formed(block, members), "data", &base64::encoded(&bytes)).into())
        }
        _ => {
            let kind = if held == Held::Image { "an image" } else { "audio" };
            notes.push(format!("{kind} with data that is not valid base64"));
            Shape::Words(words::undecodable(cx.locale, &held, &media_type).into())
        }
    }
}

fn file<'a>(resource: &RawObject<'a>, body: &Bytes, cx: &Context<'_>, notes: &mut Vec<String>) -> Shape<'a> {
    let uri = text_member(resource, "uri").map(Cow::into_owned);
    let held = Held::Resource(uri.clone().unwrap_or_default());
    let media_type = text_member(resource, "mimeType");
    if let Some(text) = text_member(resource, "text") {
        let media_type = media_type.map_or_else(|| "text/plain".to_owned(), Cow::into_owned);
        return Shape::File { held, uri, media_type, content: shared(body, text) };
    }
    let media_type = media_type.map_or_else(|| "application/octet-stream".to_owned(), Cow::into_owned);
    let Some(content) = base64::decoded(&text_member(resource, "blob").unwrap_or_default()) else {
        notes.push("a resource with a blob that is not valid base64".to_owned());
        return Shape::Words(words::undecodable(cx.locale, &held, &media_type).into());
    };
    Shape::File { held, uri, media_type, content: content.into() }
}

/// A text as bytes: the server's own where it is a part of what the server sent.
pub(super) fn shared(body: &Bytes, text: Cow<'_, str>) -> Bytes {
    match text {
        Cow::Owned(text) => text.into(),
        Cow::Borrowed(text) if is_within(body, text) => body.slice_ref(text.as_bytes()),
        Cow::Borrowed(text) => Bytes::copy_from_slice(text.as_bytes()),
    }
}

/// Whether a text is a part of these very bytes.
pub(super) fn is_within(body: &Bytes, text: &str) -> bool {
    let own = body.as_ptr_range();
    let piece = text.as_bytes().as_ptr_range();
    piece.start >= own.start && piece.end <= own.end
}

fn link(members: &RawObject<'_>, cx: &Context<'_>) -> String {
    let part = |name| text_member(members, name);
    let (media_type, description) = (part("mimeType"), part("description"));
    let name = part("title").filter(|title| !title.is_empty()).or_else(|| part("name")).unwrap_or_default();
    let link = Link {
        name: &name,
        uri: &part("uri").unwrap_or_default(),
        media_type: media_type.as_deref(),
        size: members.get("size").and_then(|size| size.parse().ok()),
        description: description.as_deref(),
    };
    words::link(cx.locale, &link)
}

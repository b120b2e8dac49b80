//! Pure: what Gatehouse itself says within a result, in the session's language.

use std::fmt::Write as _;

use gatehouse_types::{Locale, shown::line as shown};

use crate::files::{Kind, Place, Saved};

/// Longest name, type or reason of somebody else's within our words, in characters.
const PART_CHARS: usize = 200;
/// Longest account of what went wrong with a file, in characters.
const PROBLEM_CHARS: usize = 500;
/// Longest URI within our words, in characters.
const URI_CHARS: usize = 1_000;

/// An error that came without a word.
pub(super) const fn silent_error(locale: Locale) -> &'static str {
    locale.pick("the tool failed and said nothing about it.", "工具执行失败，且没有给出任何说明。")
}

/// What a file that was saved holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Held {
    /// The whole text of the result: how many characters of how many are shown.
    Text {
        shown: usize,
        whole: usize,
    },
    Image,
    Audio,
    /// An embedded resource with its URI.
    Resource(String),
    /// The blocks from some place on: how many.
    Rest(usize),
}

impl Held {
    pub(super) const fn kind(&self) -> Kind {
        match self {
            Self::Text { .. } | Self::Rest(_) => Kind::Text,
            Self::Image => Kind::Image,
            Self::Audio => Kind::Audio,
            Self::Resource(_) => Kind::Resource,
        }
    }
}

/// A size for people: decimal units, one digit after the point.
pub(super) fn size(bytes: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", bytes / unit, bytes % unit * 10 / unit);
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} KB", tenths(1_000)),
        1_000_000..1_000_000_000 => format!("{} MB", tenths(1_000_000)),
        _ => format!("{} GB", tenths(1_000_000_000)),
    }
}

/// What became of content that is not shown (or of text that is shown in part).
pub(super) fn saved(locale: Locale, held: &Held, bytes: u64, media_type: &str, saved: Option<&Saved>) -> String {
    let kind = shown(saved.map_or(media_type, |saved| &saved.media_type), PART_CHARS);
    let size = size(saved.map_or(bytes, |saved| saved.size));
    let what = what(locale, held, &kind, &size);
    let Some(saved) = saved else {
        return format!("[{what}{}]", locale.pick(" It could not be saved.", "未能保存。"));
    };
    let path = shown(&saved.path, URI_CHARS);
    let place = match (saved.at, locale) {
        (Place::Workspace, Locale::En) => format!(" Saved in the workspace as {path}"),
        (Place::Workspace, Locale::Zh) => format!("已保存到工作区：{path}"),
        (Place::Platform, Locale::En) => format!(
            " Saved by Gatehouse as {path}, not in this workspace: it cannot be opened from here, but the user can get it."
        ),
        (Place::Platform, Locale::Zh) => {
            format!("已由 Gatehouse 保存为 {path}，不在此工作区中：无法从这里打开，但用户可以取得。")
        }
        (Place::Nowhere, _) => String::new(),
    };
    let problem = saved.problem.as_ref().map(|problem| shown(problem, PROBLEM_CHARS)).unwrap_or_default();
    // A path at the end is not followed by a full stop, which would look like a part of it.
    let between = match (saved.at, locale, problem.is_empty()) {
        (_, _, true) | (Place::Platform | Place::Nowhere, Locale::Zh, false) => "",
        (Place::Workspace, Locale::En, false) => ". ",
        (_, Locale::En, false) => " ",
        (Place::Workspace, Locale::Zh, false) => "。",
    };
    format!("[{what}{place}{between}{problem}]")
}

fn what(locale: Locale, held: &Held, kind: &str, size: &str) -> String {
    match (held, locale) {
        (Held::Text { shown, whole }, Locale::En) => {
            format!(
                "The text is cut here: the first {shown} of its {whole} characters are shown. Whole text: {kind}, {size}."
            )
        }
        (Held::Text { shown, whole }, Locale::Zh) => {
            format!("文本在此截断：共 {whole} 个字符，仅显示前 {shown} 个。完整文本：{kind}，{size}。")
        }
        (Held::Image, Locale::En) => format!("An image that is not shown: {kind}, {size}."),
        (Held::Image, Locale::Zh) => format!("未显示的图片：{kind}，{size}。"),
        (Held::Audio, Locale::En) => format!("Audio that is not played: {kind}, {size}."),
        (Held::Audio, Locale::Zh) => format!("未播放的音频：{kind}，{size}。"),
        (Held::Resource(uri), Locale::En) => format!("Resource {}: {kind}, {size}.", shown(uri, URI_CHARS)),
        (Held::Resource(uri), Locale::Zh) => format!("资源 {}：{kind}，{size}。", shown(uri, URI_CHARS)),
        (Held::Rest(count), Locale::En) => {
            format!("The result has {count} more parts, which are not shown. All of them, as JSON: {kind}, {size}.")
        }
        (Held::Rest(count), Locale::Zh) => {
            format!("结果还有 {count} 个部分未显示。其全部内容（JSON）：{kind}，{size}。")
        }
    }
}

/// Content whose base64 is broken.
pub(super) fn undecodable(locale: Locale, held: &Held, kind: &str) -> String {
    let kind = shown(kind, PART_CHARS);
    let uri = if let Held::Resource(uri) = held { shown(uri, URI_CHARS) } else { String::new() };
    match (held, locale) {
        (Held::Image, Locale::En) => {
            format!("[An image ({kind}) that the tool sent cannot be shown: its data is not valid base64.]")
        }
        (Held::Image, Locale::Zh) => format!("[工具发送的图片（{kind}）无法显示：其数据不是有效的 base64。]"),
        (Held::Audio, Locale::En) => {
            format!("[Audio ({kind}) that the tool sent cannot be used: its data is not valid base64.]")
        }
        (Held::Audio, Locale::Zh) => format!("[工具发送的音频（{kind}）无法使用：其数据不是有效的 base64。]"),
        (_, Locale::En) => format!("[Resource {uri} ({kind}) cannot be read: its data is not valid base64.]"),
        (_, Locale::Zh) => format!("[资源 {uri}（{kind}）无法读取：其数据不是有效的 base64。]"),
    }
}

/// A resource link: what the model needs to refer to it, or to ask for it.
pub(super) struct Link<'a> {
    pub(super) name: &'a str,
    pub(super) uri: &'a str,
    pub(super) media_type: Option<&'a str>,
    pub(super) size: Option<u64>,
    pub(super) description: Option<&'a str>,
}

/// A resource link in words. The URI stays whole: a part of it is of no use.
pub(super) fn link(locale: Locale, link: &Link<'_>) -> String {
    let uri = match link.uri {
        "" => {
            locale.pick("(the tool gave no address; it cannot be opened)", "（工具没有给出地址，无法打开）").to_owned()
        }
        uri => shown(uri, usize::MAX),
    };
    let mut text = format!("{} {} {uri}", locale.pick("Resource link:", "资源链接："), shown(link.name, PART_CHARS));
    let facts: Vec<String> =
        link.media_type.map(|kind| shown(kind, PART_CHARS)).into_iter().chain(link.size.map(size)).collect();
    if !facts.is_empty() {
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "{}{}{}",
            locale.pick(" (", "（"),
            facts.join(locale.pick(", ", "，")),
            locale.pick(")", "）")
        );
    }
    if let Some(description) = link.description.filter(|description| !description.is_empty()) {
        let _ = write!(text, "{}{}", locale.pick(": ", "："), shown(description, URI_CHARS));
    }
    text
}

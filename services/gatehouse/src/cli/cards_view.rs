//! Pure: cards for people. Everything on a card may come from a server that wants to be let through.

use std::fmt::Write as _;

use gatehouse_proto::interaction::v1::{
    ApprovalAnswer, ApprovalCard, Decision, Interaction, InteractionState, interaction,
};

use super::{
    convert,
    output::Out,
    safe,
    server_view::time,
    session_view::actor,
    table::{Cell, Fields, Style, Table, fit},
    when,
};

/// Widest arguments in a table.
const ARGUMENTS_WIDTH: usize = 40;

/// Cards, a row each.
pub(crate) fn table(cards: &[Interaction], out: &Out) -> String {
    let mut table = Table::new(&["CARD", "SESSION", "SERVER", "TOOL", "STATE", "AGE", "EXPIRES", "ARGUMENTS"]);
    for card in cards {
        let is_open = card.state() == InteractionState::Open;
        table.row([
            card.id.as_str().into(),
            Cell::new(&card.session_id, Style::Dim),
            card.server.as_str().into(),
            card.tool.as_str().into(),
            state(card),
            age(card, out).into(),
            if is_open { left(card, out) } else { String::new() }.into(),
            short(approval(card)).into(),
        ]);
    }
    table.render(out.colour)
}

/// A change of a card, on a line.
pub(crate) fn line(card: &Interaction, out: &Out) -> String {
    let at = card.closed_at.as_ref().or(card.created_at.as_ref());
    let mut table = Table::default();
    table.row([
        time(at, out).into(),
        state(card),
        card.id.as_str().into(),
        Cell::new(&card.session_id, Style::Dim),
        card.server.as_str().into(),
        card.tool.as_str().into(),
        short(approval(card)).into(),
    ]);
    table.render(out.colour)
}

/// One card: what somebody must know before they decide.
pub(crate) fn one(card: &Interaction, out: &Out) -> String {
    let shown = approval(card).cloned().unwrap_or_default();
    let is_open = card.state() == InteractionState::Open;
    let expires = time(card.expires_at.as_ref(), out);
    let mut text = Fields::default()
        .with("Card", card.id.as_str())
        .with("State", state(card))
        .with("Server", card.server.as_str())
        .with("Tool", card.tool.as_str())
        .with("Title", if shown.title == card.tool { "" } else { shown.title.as_str() })
        .with("It", effect(&shown))
        .with("Besides", besides(&shown))
        .with("Policy", policy(&shown))
        .with("Session", card.session_id.as_str())
        .with("Actor", actor(&card.actor))
        .with("Run", card.run_id.as_str())
        .with("Call", card.call_id.as_str())
        .with("Made", time(card.created_at.as_ref(), out))
        .with("Expires", if is_open { format!("{expires} ({})", left(card, out)) } else { String::new() })
        .with("Closed", time(card.closed_at.as_ref(), out))
        .render("", out.colour);
    if let Some(answer) = &card.approval_answer {
        text.push_str(&answered(answer, out));
    }
    let size = u64::try_from(shown.arguments_bytes).map(when::size).unwrap_or_default();
    let heading = Cell::new(&format!("Arguments ({size}):"), Style::Dim).paint(out.colour);
    // Writing to a String does not fail.
    let _ = writeln!(text, "{heading}");
    let arguments = safe::json(&shown.arguments_json);
    for line in pretty(&arguments).lines() {
        let _ = writeln!(text, "  {}", safe::line(line));
    }
    let is_whole = serde_json::from_str::<serde::de::IgnoredAny>(&arguments).is_ok();
    if !is_whole && !arguments.is_empty() {
        let cut = format!("This is only the beginning of the arguments: the whole has {size}.");
        let _ = writeln!(text, "{}", Cell::new(&cut, Style::Bad).paint(out.colour));
    }
    text
}

/// Why an answer did not count.
pub(crate) fn too_late(card: &Interaction, out: &Out) -> String {
    let why = match (card.state(), &card.approval_answer) {
        (InteractionState::Answered, Some(answer)) => {
            return format!("The card was answered before; your answer changed nothing.\n{}", answered(answer, out));
        }
        (InteractionState::TimedOut, _) => "its time was over",
        (InteractionState::Cancelled, _) => "the call was cancelled",
        (InteractionState::SessionDeleted, _) => "the session was deleted",
        (InteractionState::Interrupted, _) => "the gateway that waited for it ended",
        (InteractionState::Superseded, _) => {
            "what it showed is no longer what would be carried out; a fresh card takes its place where one is needed"
        }
        _ => "it was closed before",
    };
    format!("The card is closed: {why}. Your answer changed nothing.\n")
}

/// A decision as on the command line.
pub(crate) fn decision_word(decision: Decision) -> &'static str {
    match decision {
        Decision::Unspecified => "",
        Decision::Approve => "approve",
        Decision::ApproveForSession => "approve-for-session",
        Decision::Deny => "deny",
    }
}

/// What is asked, when this version knows it.
pub(crate) fn approval(card: &Interaction) -> Option<&ApprovalCard> {
    match &card.card {
        Some(interaction::Card::Approval(shown)) => Some(shown),
        None => None,
    }
}

fn answered(answer: &ApprovalAnswer, out: &Out) -> String {
    Fields::default()
        .with("Answer", decision_word(answer.decision()))
        .with("Reason", answer.reason.as_str())
        .with("Answered by", answer.answered_by.as_str())
        .with("Answered", time(answer.answered_at.as_ref(), out))
        .render("", out.colour)
}

fn state(card: &Interaction) -> Cell {
    let (word, style) = match card.state() {
        InteractionState::Unspecified => ("", Style::Plain),
        InteractionState::Open => ("open", Style::Warn),
        InteractionState::Answered => ("answered", Style::Good),
        InteractionState::TimedOut => ("timed-out", Style::Dim),
        InteractionState::Cancelled => ("cancelled", Style::Dim),
        InteractionState::SessionDeleted => ("session-deleted", Style::Dim),
        InteractionState::Interrupted => ("interrupted", Style::Dim),
        InteractionState::Superseded => ("superseded", Style::Dim),
    };
    match &card.approval_answer {
        Some(answer) if card.state() == InteractionState::Answered => {
            let style = if answer.decision() == Decision::Deny { Style::Bad } else { style };
            Cell::new(&format!("{word}: {}", decision_word(answer.decision())), style)
        }
        _ => Cell::new(word, style),
    }
}

fn effect(shown: &ApprovalCard) -> Cell {
    match (shown.destructive, shown.read_only) {
        (true, _) => Cell::new("may destroy something", Style::Bad),
        (false, true) => Cell::new("only reads", Style::Good),
        (false, false) => Cell::new("may change something", Style::Warn),
    }
}

fn besides(shown: &ApprovalCard) -> String {
    let twice = if shown.idempotent { "twice does no more than once" } else { "twice may do more than once" };
    format!("{}{twice}", if shown.open_world { "reaches beyond its server; " } else { "" })
}

fn policy(shown: &ApprovalCard) -> String {
    match (shown.policy.as_str(), shown.may_remember) {
        ("confirm", _) => "confirm: asked each time".to_owned(),
        (other, true) => format!("{other}: can be approved for the rest of the session"),
        (other, false) => other.to_owned(),
    }
}

fn age(card: &Interaction, out: &Out) -> String {
    let made = convert::instant(card.created_at.as_ref());
    let age = made.and_then(|made| std::time::Duration::try_from(out.now.duration_since(made)).ok());
    age.map(short_time).unwrap_or_default()
}

fn left(card: &Interaction, out: &Out) -> String {
    let expires = convert::instant(card.expires_at.as_ref());
    let left = expires.and_then(|expires| std::time::Duration::try_from(expires.duration_since(out.now)).ok());
    left.map_or_else(|| "now".to_owned(), |left| format!("in {}", short_time(left)))
}

/// To the second: a person does not answer faster.
fn short_time(duration: std::time::Duration) -> String {
    match duration.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        _ => when::took(duration),
    }
}

fn short(shown: Option<&ApprovalCard>) -> String {
    let arguments = shown.map(|shown| safe::line(&shown.arguments_json)).unwrap_or_default();
    let cut = fit(&arguments, ARGUMENTS_WIDTH);
    if cut.len() < arguments.len() { format!("{}…", fit(cut, ARGUMENTS_WIDTH - 1)) } else { arguments }
}

/// JSON, or the beginning of it, a member a line. Nothing but the blanks between values changes: whoever decides must see every
/// digit as it was sent.
fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    let mut characters = json.chars().peekable();
    let new_line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth.min(40)));
    };
    while let Some(character) = characters.next() {
        if in_string {
            out.push(character);
            in_string = escaped || character != '"';
            escaped = !escaped && character == '\\';
            continue;
        }
        match character {
            '"' => {
                in_string = true;
                out.push(character);
            }
            '{' | '[' => {
                out.push(character);
                while characters.next_if(char::is_ascii_whitespace).is_some() {}
                if let Some(closing) = characters.next_if(|next| matches!(next, '}' | ']')) {
                    out.push(closing);
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(character);
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            blank if blank.is_ascii_whitespace() => {}
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn arguments_are_laid_out_with_every_digit_and_a_cut_text_too() {
        let text = r#"{"a":1.00000000000000000001e3,"b":[{"c":"x, {\"y\": [1]}"},[ ],{}],"a":2}"#;
        insta::assert_snapshot!(pretty(text), @r#"
        {
          "a": 1.00000000000000000001e3,
          "b": [
            {
              "c": "x, {\"y\": [1]}"
            },
            [],
            {}
          ],
          "a": 2
        }
        "#);
        insta::assert_snapshot!(pretty(r#"{"a":["b","c"#), @r#"
        {
          "a": [
            "b",
            "c
        "#);
    }

    proptest! {
        #[test]
        fn laying_out_keeps_the_value(text in any::<String>(), number in any::<i64>()) {
            let value = serde_json::json!({ (text.clone()): [text, number, {}, [], null], "x": { "y": [[]] } });
            let laid_out = pretty(&value.to_string());
            prop_assert_eq!(serde_json::from_str::<serde_json::Value>(&laid_out).unwrap(), value);
        }

        #[test]
        fn any_text_is_laid_out_without_losing_more_than_blanks(text in any::<String>()) {
            let visible = |text: &str| text.chars().filter(|c| !c.is_ascii_whitespace()).collect::<String>();
            prop_assert_eq!(visible(&pretty(&text)), visible(&text));
        }
    }
}

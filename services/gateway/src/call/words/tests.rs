use super::*;
use crate::call::card::Closed;

const READING: Hints = Hints { read_only: true, destructive: false, idempotent: false, open_world: true };
const WRITING: Hints = Hints { read_only: false, ..READING };

#[test]
fn a_lost_call_says_whether_it_may_have_been_carried_out() {
    let lost = RequestError::Lost("reset by 10.0.0.7:8080".to_owned());
    let (outcome, words) = failed("orders", &lost, WRITING, Duration::from_secs(1));
    assert_eq!(outcome, Outcome::Unknown);
    assert!(words.en.contains("may or may not have been carried out") && !words.en.contains("10.0.0.7"));
    assert!(words.zh.contains("可能已执行，也可能没有") && !words.zh.contains("10.0.0.7"));
    assert!(failed("orders", &lost, READING, Duration::from_secs(1)).1.en.contains("can be repeated"));
}

#[test]
fn what_a_server_says_is_bounded_and_cannot_hide_anything() {
    let message = format!("\u{202e}evil\u{0}{}", "x".repeat(5_000));
    let error = RequestError::Rpc { code: -32_000, message, data: None, http_status: 200 };
    let (_, words) = failed("s", &error, WRITING, Duration::from_secs(1));
    for text in [words.en, words.zh] {
        assert!(text.chars().count() < 2_200);
        assert!(!text.contains(['\u{202e}', '\u{0}']));
    }
}

#[test]
fn the_model_is_told_in_its_sessions_language_and_the_audit_in_english() {
    let refused = gatehouse_outbound::Error::ConnectionRefused;
    let why = cause(&gatehouse_mcp::client::OpenError::Request(RequestError::NotSent(refused)));
    let (outcome, words) = not_opened("s", &why);
    for (locale, expected) in [
        (Locale::En, "Error: the server `s` cannot be used now: the connection was refused. Nothing was carried out."),
        (Locale::Zh, "错误：服务器 `s` 现在无法使用：连接被拒绝。什么都没有执行。"),
    ] {
        let told = told(outcome, &words, locale);
        assert!(told.output.is_error && told.outcome == Outcome::NotSent);
        assert!(String::from_utf8(told.output.pieces.concat()).unwrap().contains(expected));
        assert!(told.error.starts_with("the server `s` cannot be used now"));
    }
}

#[test]
fn no_language_is_forgotten_and_none_is_the_other() {
    let zh = |text: &str| text.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
    let mut all: Vec<Words> = vec![
        DATABASE,
        SESSION_ENDED,
        KEEPS_CHANGING,
        BUSY,
        STILL,
        ANSWER_LOST,
        no_card(),
        denied(""),
        denied("too dear"),
        waiting("s__t", gatehouse_types::InteractionId::new()),
    ];
    all.extend([Refusal::NoSuchTool("t".into()), Refusal::ArgumentsNotAnObject].iter().map(refused));
    all.push(refused(&Refusal::ArgumentsTooLarge { size: 2, most: 1 }));
    all.extend([Stop::Cancelled, Stop::SessionEnded, Stop::Draining].map(|stop| stopped(stop).1));
    all.extend([NotAResult::NotAnObject, NotAResult::Content].map(|wrong| not_a_result("s", &wrong).1));
    all.extend(Closed::ALL.map(|closed| card_closed(closed, 600).1));
    let errors = [
        RequestError::Lost("x".into()),
        RequestError::SessionGone,
        RequestError::TimedOut,
        RequestError::Cancelled,
        RequestError::Rpc { code: -32_602, message: "x".into(), data: None, http_status: 200 },
        RequestError::Unauthorized { www_authenticate: None },
        RequestError::Http { status: 503, retry_after: None },
        RequestError::Http { status: 429, retry_after: None },
        RequestError::NotMcp("x".into()),
        RequestError::TooLarge { most: 1 },
        RequestError::NotSent(gatehouse_outbound::Error::ConnectionRefused),
    ];
    all.extend(errors.iter().map(|error| failed("s", error, WRITING, Duration::from_secs(1)).1));
    for words in all {
        assert!(!zh(&words.en) && !words.en.is_empty(), "{}", words.en);
        assert!(zh(&words.zh), "{}", words.zh);
    }
}

#[test]
fn a_reason_reaches_the_model_bounded_and_cleaned() {
    let words = denied(&format!(" wrong\u{202e} order {}", "x".repeat(5_000)));
    assert!(words.en.contains("wrong\u{fffd} order") && words.en.chars().count() < 2_200);
}

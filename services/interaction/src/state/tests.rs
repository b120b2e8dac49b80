use time::Duration;

use super::*;

const NOW: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;
const LATER: OffsetDateTime = OffsetDateTime::UNIX_EPOCH.saturating_add(Duration::SECOND);
const ENDS: [End; 5] = [End::TimedOut, End::Cancelled, End::SessionDeleted, End::Interrupted, End::Superseded];

fn reply(decision: Decision) -> Reply {
    Reply { decision, reason: "because".to_owned(), by: "ada".to_owned() }
}

fn answer() -> Answer {
    Answer { decision: Decision::Deny, reason: "no".to_owned(), by: "bob".to_owned(), at: NOW }
}

/// Every state that a card can be in and that is not open.
fn closed_states() -> Vec<State> {
    let mut states: Vec<State> = ENDS.map(|end| State::Ended { end, at: NOW, answer: None }).to_vec();
    states.push(State::Answered(answer()));
    states.push(State::Ended { end: End::Superseded, at: NOW, answer: Some(answer()) });
    states
}

#[test]
fn an_open_card_takes_every_decision_that_it_allows() {
    for decision in Decision::ALL {
        for may_remember in [false, true] {
            let answered = State::Open.answered(reply(decision), may_remember, LATER, NOW);
            if decision == Decision::ApproveForSession && !may_remember {
                assert_eq!(answered, Answering::MayNotRemember);
                continue;
            }
            let Answering::Counts(state) = answered else { panic!("{answered:?}") };
            let answer = state.answer().unwrap();
            assert_eq!((answer.decision, answer.reason.as_str(), answer.by.as_str()), (decision, "because", "ada"));
            assert_eq!((state.word(), state.closed_at(), answer.at), (Word::Answered, Some(NOW), NOW));
        }
    }
}

#[test]
fn from_the_moment_a_card_expires_an_answer_times_it_out_whatever_it_says() {
    for decision in Decision::ALL {
        for may_remember in [false, true] {
            for now in [NOW, LATER] {
                let late = State::Open.answered(reply(decision), may_remember, NOW, now);
                let state = State::Ended { end: End::TimedOut, at: now, answer: None };
                assert_eq!(late, Answering::Late(state));
            }
        }
    }
}

#[test]
fn a_closed_card_takes_no_answer_and_comes_back_as_it_is() {
    for state in closed_states() {
        for decision in Decision::ALL {
            for (may_remember, expires_at) in [(false, NOW), (false, LATER), (true, NOW), (true, LATER)] {
                let answered = state.clone().answered(reply(decision), may_remember, expires_at, NOW);
                assert_eq!(answered, Answering::Closed(state.clone()));
            }
        }
    }
}

#[test]
fn any_word_closes_an_open_card() {
    for end in ENDS {
        let state = State::Open.closed(end, LATER).unwrap();
        assert_eq!((state.word(), state.closed_at(), state.answer()), (Word::Ended(end), Some(LATER), None));
        assert!(!state.is_open());
    }
}

#[test]
fn any_word_of_the_gateway_closes_an_answered_card_and_its_answer_is_kept() {
    for end in ENDS {
        let state = State::Answered(answer()).closed(end, LATER).unwrap();
        assert_eq!((state.answer(), state.closed_at()), (Some(&answer()), Some(LATER)));
        assert_eq!(state.word(), Word::Ended(end));
    }
}

#[test]
fn a_card_that_was_closed_by_a_word_stays_as_it_is() {
    for state in closed_states().into_iter().filter(|state| state.word() != Word::Answered) {
        for end in ENDS {
            assert_eq!(state.clone().closed(end, LATER), Err(state.clone()));
        }
    }
}

#[test]
fn words_come_back_as_what_they_stand_for() {
    for word in Word::ALL {
        assert_eq!(Word::parse(word.as_str()), Some(word));
    }
    for decision in Decision::ALL {
        assert_eq!(Decision::parse(decision.as_str()), Some(decision));
    }
    assert_eq!((Word::parse("Open"), Decision::parse("")), (None, None));
    for state in closed_states() {
        assert!(Word::ALL.contains(&state.word()));
    }
}

//! Paged lists: to the end, in bounds, whatever the server pretends.

use std::time::Duration;

use gatehouse_mcp::{List, ListError, ListLimits, RequestError};
use gatehouse_testkit::mcp_server::{Act, FakeServer, Reply, Request};
use serde_json::json;

use crate::common::open;

async fn listed(
    limits: ListLimits,
    page: impl Fn(&Request, Option<&str>) -> Reply + Send + Sync + 'static,
) -> Result<List, ListError> {
    let server = FakeServer::start(move |request| {
        let params = request.json()["params"].clone();
        (request.rpc() == "tools/list").then(|| page(request, params["cursor"].as_str()))
    });
    let server = server.await.unwrap();
    let connection = open(&server).await;
    connection.list_all("tools/list", "tools", limits).await
}

#[tokio::test]
async fn all_pages_are_read_in_order_and_items_keep_their_spelling() {
    let list = listed(ListLimits::default(), |request, cursor| {
        let (tools, next) = match cursor {
            None => (r#"{"name":"a","x":1.0}, {"name":"b" }"#, r#","nextCursor":"p\u00e9 2\n""#),
            Some("p\u{e9} 2\n") => ("", r#","nextCursor":"3""#),
            Some("3") => (r#"{"name":"c","n":1e3}"#, r#","nextCursor":null"#),
            Some(other) => panic!("{other:?}"),
        };
        let id = request.id();
        Reply::json(200, format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{tools}]{next}}}}}"#))
    });
    let list = list.await.unwrap();
    let items: Vec<_> = list.iter().collect();
    assert_eq!(items, [r#"{"name":"a","x":1.0}"#, r#"{"name":"b" }"#, r#"{"name":"c","n":1e3}"#]);
    assert_eq!((list.len(), list.is_empty()), (3, false));
}

#[tokio::test]
async fn a_list_of_ten_megabytes_is_read_and_one_beyond_the_bounds_is_not() {
    let big = |request: &Request, _: Option<&str>| {
        let text = "x".repeat(10_000);
        let tools: Vec<_> = (0..1_000).map(|n| json!({"name": format!("t{n}"), "description": text})).collect();
        Reply::result(request, &json!({"tools": tools}))
    };
    assert_eq!(listed(ListLimits::default(), big).await.unwrap().len(), 1_000);
    let few = ListLimits { items: 999, ..ListLimits::default() };
    assert!(matches!(listed(few, big).await, Err(ListError::TooLong { what: "items", most: 999 })));
    let small = ListLimits { bytes: 1 << 20, ..ListLimits::default() };
    assert!(matches!(listed(small, big).await, Err(ListError::TooLong { what: "bytes", .. })));
}

#[tokio::test]
async fn a_list_that_never_ends_or_goes_round_in_circles_is_given_up() {
    let endless = |request: &Request, cursor: Option<&str>| {
        let next = cursor.map_or(0, |cursor| cursor.parse::<u32>().unwrap()) + 1;
        Reply::result(request, &json!({"tools": [], "nextCursor": next.to_string()}))
    };
    let limits = ListLimits { pages: 20, ..ListLimits::default() };
    assert!(matches!(listed(limits, endless).await, Err(ListError::TooLong { what: "pages", most: 20 })));
    let circle =
        |request: &Request, _: Option<&str>| Reply::result(request, &json!({"tools": [], "nextCursor": "again"}));
    assert!(matches!(listed(limits, circle).await, Err(ListError::CursorLoop)));
}

#[tokio::test]
async fn a_page_that_is_no_list_and_a_page_that_never_comes_are_told_apart() {
    for result in [json!({}), json!({"tools": {}}), json!([]), json!({"tools": null})] {
        let list = listed(ListLimits::default(), move |request, _| Reply::result(request, &result)).await;
        assert!(matches!(list, Err(ListError::NoArray { .. })), "{list:?}");
    }
    let hurried = ListLimits { timeout: Duration::from_millis(200), ..ListLimits::default() };
    let list = listed(hurried, |_, _| Reply::raw(vec![Act::Hang])).await;
    assert!(matches!(list, Err(ListError::Request(RequestError::TimedOut))), "{list:?}");
}

//! Paged lists, read to the end.

use std::{collections::HashSet, ops::Range, time::Duration};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, timeout_at};

use crate::{
    client::{Answer, Connection, RequestError, RequestOptions},
    encode::{Params, Piece},
    object::{self, Members},
};

/// Bounds of a list.
#[derive(Debug, Clone, Copy)]
pub struct ListLimits {
    /// Most pages that are fetched.
    pub pages: usize,
    /// Most items in all.
    pub items: usize,
    /// Most bytes in all.
    pub bytes: usize,
    /// Time for all pages together.
    pub timeout: Duration,
}

impl Default for ListLimits {
    fn default() -> Self {
        Self { pages: 200, items: 10_000, bytes: 32 << 20, timeout: Duration::from_mins(1) }
    }
}

/// A list that was read to its end. Items are the bytes that the server wrote.
#[derive(Debug, Clone, Default)]
pub struct List {
    pages: Vec<Bytes>,
    items: Vec<(usize, Range<usize>)>,
}

/// A list that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// A page could not be had.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The list is larger than allowed, or never ends.
    #[error("the list has more than {most} {what}")]
    TooLong {
        /// `pages`, `items` or `bytes`.
        what: &'static str,
        /// The bound.
        most: usize,
    },
    /// The server gave a cursor that it had given before.
    #[error("the server goes round in circles: it repeats a cursor")]
    CursorLoop,
    /// A page is not what the method answers with.
    #[error("a page of the list has no array {field:?}")]
    NoArray {
        /// The member that should hold the items.
        field: String,
    },
}

impl List {
    /// The items in the server's order, each as JSON text.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.items.iter().map(|(page, range)| {
            let bytes = self.pages.get(*page).and_then(|page| page.get(range.clone())).unwrap_or_default();
            // An item is a JSON value out of a message that was UTF-8.
            std::str::from_utf8(bytes).unwrap_or("null")
        })
    }

    /// How many items there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Adds the items of one page; gives the cursor of the next.
    pub(crate) fn add(&mut self, page: &Answer, field: &str) -> Result<Option<String>, ListError> {
        let no_array = || ListError::NoArray { field: field.to_owned() };
        let members: Members<'_> = page.parse().map_err(|_| no_array())?;
        let items: Items<'_> =
            members.get(field).and_then(|items| serde_json::from_str(items.get()).ok()).ok_or_else(no_array)?;
        let whole = page.result_str();
        for item in items.0 {
            // Both are slices of the page: the distance of their beginnings is the item's place in it.
            let start = item.get().as_ptr().addr() - whole.as_ptr().addr();
            self.items.push((self.pages.len(), start..start + item.get().len()));
        }
        let cursor = members.get("nextCursor").and_then(object::text).map(std::borrow::Cow::into_owned);
        self.pages.push(page.result_bytes());
        Ok(cursor)
    }
}

#[derive(Deserialize)]
struct Items<'a>(#[serde(borrow)] Vec<&'a RawValue>);

impl Connection {
    /// Reads a paged list (`tools/list` with `tools`, `resources/list` with `resources`, …) to its end.
    pub async fn list_all(&self, method: &str, field: &str, limits: ListLimits) -> Result<List, ListError> {
        let deadline = Instant::now() + limits.timeout;
        let reading = timeout_at(deadline, self.list_pages(method, field, limits));
        reading.await.unwrap_or(Err(ListError::Request(RequestError::TimedOut)))
    }

    async fn list_pages(&self, method: &str, field: &str, limits: ListLimits) -> Result<List, ListError> {
        let mut list = List::default();
        let mut seen = HashSet::new();
        let mut bytes = 0;
        let mut cursor: Option<String> = None;
        loop {
            let members = cursor.as_deref().map(|cursor| [("cursor", Piece::Text(cursor))]);
            let params = Params::new(members.as_ref().map_or(&[], |members| members.as_slice()));
            let options = RequestOptions { timeout: Some(limits.timeout), ..RequestOptions::default() };
            let page = self.request(method, &params, options).await?;
            bytes += page.result_bytes().len();
            let next = list.add(&page, field)?;
            if bytes > limits.bytes {
                return Err(ListError::TooLong { what: "bytes", most: limits.bytes });
            }
            if list.len() > limits.items {
                return Err(ListError::TooLong { what: "items", most: limits.items });
            }
            let Some(next) = next else { return Ok(list) };
            if list.pages.len() >= limits.pages {
                return Err(ListError::TooLong { what: "pages", most: limits.pages });
            }
            if !seen.insert(next.clone()) {
                return Err(ListError::CursorLoop);
            }
            cursor = Some(next);
        }
    }
}

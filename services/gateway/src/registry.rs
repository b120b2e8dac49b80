//! The registry's nouns and their rules. The files marked pure decide; `store` remembers; `grpc` asks.

pub mod call;
pub mod check;
pub mod digest;
pub mod grant;
pub mod header;
pub mod key;
pub mod news;
pub mod page;
pub mod profile;
pub mod risk;
pub mod server;
pub mod session;
pub mod setting;
pub mod state;
pub mod stdio;
pub mod text;
pub mod tool;
pub mod upstream;
pub mod workspace;

pub use state::State;

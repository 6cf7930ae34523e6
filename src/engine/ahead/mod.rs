//! Running ahead: the calls of a loop's next iterations are submitted before the user makes them.
//!
//! Between two items of a reader, the calls on a thread are noted ([`note`]). Calls that were the
//! same in two iterations make up the [`plan`] for the next ones: it is submitted early, behind all
//! other work, for items that the reader has looked up already ([`item`]). If the user then makes
//! a call that was made early, it gets those values; otherwise it runs as usual. Calls that can run
//! early are pure, and draws of random numbers are numbered, so a prediction can be useless, but
//! never wrong. [`Loop`] ties this together.

mod course;
mod item;
mod note;
mod plan;
mod reasons;

pub use course::{Loop, Taken, is_active, take};
pub use reasons::{Reason, Why, stats};

//! Why a request failed: what it means, and whether to try again.

use std::cell::Cell;
use std::error::Error as _;
use std::time::Duration;

use async_trait::async_trait;
use http::header::RETRY_AFTER;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};

use crate::abi::FailureKind;

/// The failure of one attempt.
#[derive(Debug)]
pub struct Fault {
    pub kind: FailureKind,
    /// Whether another attempt may succeed.
    pub transient: bool,
    /// The status of the server's answer, or 0.
    pub status: u16,
    pub text: String,
    /// How long the server wants us to wait.
    pub wait: Option<Duration>,
}

impl Fault {
    pub fn new(kind: FailureKind, text: impl Into<String>) -> Fault {
        Fault { kind, transient: false, status: 0, text: text.into(), wait: None }
    }

    /// Something that may go better next time.
    pub fn transient(text: impl Into<String>) -> Fault {
        Fault { transient: true, ..Fault::new(FailureKind::Unavailable, text) }
    }
}

/// What was seen of the last request of a task.
#[derive(Clone, Copy, Default)]
pub struct Noted {
    status: u16,
    wait: Option<Duration>,
    transport: Option<HttpErrorKind>,
    /// Whether the request was for a credential, to the service that a cloud's machines have.
    for_credential: bool,
}

tokio::task_local! {
    static NOTED: Cell<Noted>;
}

/// Runs an attempt, whose requests are noted.
pub async fn noted<T>(attempt: impl Future<Output = T>) -> (T, Noted) {
    NOTED.scope(Cell::default(), async { (attempt.await, NOTED.with(Cell::get)) }).await
}

/// Connects as `object_store` does, and notes answers: its errors have them only as text.
#[derive(Debug, Default)]
pub struct Connector(ReqwestConnector);

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Watched(self.0.connect(options)?)))
    }
}

#[derive(Debug)]
struct Watched(HttpClient);

/// Where the machines of clouds get their credentials.
const METADATA_HOSTS: &[&str] =
    &["169.254.169.254", "169.254.170.2", "169.254.170.23", "metadata.google.internal", "metadata"];

#[async_trait]
impl HttpService for Watched {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let host = request.uri().host().unwrap_or_default();
        let for_credential = METADATA_HOSTS.contains(&host);
        let result = self.0.execute(request).await;
        let (status, wait, transport) = match &result {
            Ok(response) => (response.status().as_u16(), retry_after(response.headers()), None),
            Err(error) => (0, None, Some(error.kind())),
        };
        // Requests that are not part of an attempt are nobody's concern.
        let _ = NOTED.try_with(|noted| {
            noted.set(Noted { status, wait, transport, for_credential });
        });
        result
    }
}

/// The number of seconds after which the server wants to be asked again. (Dates are ignored.)
pub fn retry_after(headers: &http::HeaderMap) -> Option<Duration> {
    let seconds: u32 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(u64::from(seconds)))
}

/// Whether a status says that the same request may succeed later.
pub fn is_transient(status: u16) -> bool {
    status >= 500 && status != 501 || matches!(status, 408 | 425 | 429)
}

/// The meaning of an error of `object_store`.
pub fn of_cloud(error: &object_store::Error, noted: Noted) -> Fault {
    let text = full_text(error);
    let said = answer(&text);
    let fault = |kind| Fault { status: noted.status, wait: noted.wait, ..Fault::new(kind, &*said) };
    if noted.for_credential {
        return fault(FailureKind::NoCredentials);
    }
    match error {
        object_store::Error::UnknownConfigurationKey { key, .. } => {
            return Fault::new(FailureKind::Configuration, format!("there is no option {key:?}"));
        }
        object_store::Error::InvalidPath { .. } => return fault(FailureKind::Configuration),
        _ => {}
    }
    if let Some(transport) = noted.transport {
        let kind = match transport {
            HttpErrorKind::Connect => FailureKind::Unreachable,
            _ => FailureKind::Unavailable,
        };
        return Fault { transient: true, ..fault(kind) };
    }
    if text.contains("redirect without LOCATION") {
        let said = "the bucket is in another region";
        return Fault { status: noted.status, ..Fault::new(FailureKind::Configuration, said) };
    }
    of_status(noted, &text, said)
}

fn of_status(noted: Noted, text: &str, said: String) -> Fault {
    let has = |codes: &[&str]| codes.iter().any(|code| text.contains(code));
    let kind = match noted.status {
        400 | 401 | 403 if has(EXPIRED) => FailureKind::Expired,
        404 if has(NO_BUCKET) => FailureKind::NoBucket,
        404 => FailureKind::NotFound,
        401 | 403 => FailureKind::Denied,
        304 | 412 | 416 => FailureKind::Changed,
        status if is_transient(status) => FailureKind::Unavailable,
        // The answer was fine, but its body was not: a connection was lost, or it was too short.
        200..300 => FailureKind::Unavailable,
        _ => FailureKind::Other,
    };
    let transient = kind == FailureKind::Unavailable;
    Fault { transient, status: noted.status, wait: noted.wait, ..Fault::new(kind, said) }
}

/// The fault of an answer of a web server.
pub fn of_web(status: u16, wait: Option<Duration>, body: &str) -> Fault {
    of_status(Noted { status, wait, ..Noted::default() }, body, summary(body))
}

/// The fault of a request to a web server that was not answered.
pub fn of_transport(error: &reqwest::Error) -> Fault {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = inner.to_string();
        source = inner.source();
    }
    let kind = match error.is_connect() {
        true => FailureKind::Unreachable,
        false => FailureKind::Unavailable,
    };
    Fault { transient: true, ..Fault::new(kind, text) }
}

const EXPIRED: &[&str] = &["ExpiredToken", "TokenRefreshRequired", "RequestExpired", "has expired"];
const NO_BUCKET: &[&str] =
    &["NoSuchBucket", "ContainerNotFound", "The specified bucket does not exist"];

/// An error with what caused it, where that isn't part of its text.
fn full_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let more = inner.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = inner.source();
    }
    text
}

/// What the server said, of the text of an error.
fn answer(text: &str) -> String {
    let marks = ["non-2xx status code: ", "error response: ", "HTTP error: "];
    let begin = marks.iter().find_map(|mark| text.find(mark).map(|at| at + mark.len()));
    let said = &text[begin.unwrap_or(0)..];
    // The status, such as "503 Service Unavailable", is told apart.
    match begin.is_some() && said.starts_with(|first: char| first.is_ascii_digit()) {
        true => summary(said.split_once(": ").map_or("", |(_, body)| body)),
        false => summary(said),
    }
}

/// An answer in a line: the code and the message of an XML document, or the beginning.
fn summary(body: &str) -> String {
    let element = |name: &str| {
        let rest = &body[body.find(&format!("<{name}>"))? + name.len() + 2..];
        Some(rest[..rest.find(&format!("</{name}>"))?].trim())
    };
    let said = match (element("Code"), element("Message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(one), None) | (None, Some(one)) => one.to_owned(),
        (None, None) if body.trim_start().starts_with('<') => {
            element("title").unwrap_or_default().to_owned()
        }
        (None, None) => body.to_owned(),
    };
    let line = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.trim_end_matches('.');
    match line.char_indices().nth(300) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

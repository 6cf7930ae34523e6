//! Files of web servers. URLs are used as they are, with their queries: they may be signed.

use futures_util::StreamExt;
use http::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, HeaderValue,
    IF_MATCH, RANGE,
};
use http::{Method, StatusCode};
use reqwest::{Client, Response};

use crate::abi::FailureKind;
use crate::failure::{Fault, of_transport, of_web, retry_after};
use crate::store::{
    CONNECT_TIMEOUT, Facts, IDLE_CONNECTIONS, Place, READ_TIMEOUT, Sink, Wanted, seconds,
};

pub struct Web {
    client: Client,
    /// What keys are appended to: the scheme and the host.
    base: String,
}

impl Web {
    pub fn new(place: &Place) -> Result<Web, Fault> {
        let mut builder = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(READ_TIMEOUT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS)
            .user_agent(concat!("penstock/", env!("CARGO_PKG_VERSION")));
        let mut headers = HeaderMap::new();
        for (name, value) in &place.options {
            let wrong = || {
                // Without the value, which may be a secret.
                let text = format!("the value of `{name}` can't be used");
                Fault::new(FailureKind::Configuration, text)
            };
            let time = || seconds(value).ok_or_else(wrong);
            builder = match &**name {
                "timeout" => builder.timeout(time()?),
                "read_timeout" => builder.read_timeout(time()?),
                "connect_timeout" => builder.connect_timeout(time()?),
                "user_agent" => builder.user_agent(value),
                "allow_invalid_certificates" => {
                    builder.tls_danger_accept_invalid_certs(value == "true")
                }
                "allow_http" => builder,
                "bearer_token" => {
                    let secret = HeaderValue::from_str(&format!("Bearer {value}"));
                    headers.insert(AUTHORIZATION, secret.map_err(|_| wrong())?);
                    builder
                }
                _ => match name.strip_prefix("header.") {
                    Some(header) => {
                        let header = HeaderName::from_bytes(header.as_bytes());
                        let content = HeaderValue::from_str(value);
                        headers.insert(header.map_err(|_| wrong())?, content.map_err(|_| wrong())?);
                        builder
                    }
                    None => {
                        let text = format!("`{}` URLs have no option {name:?}", place.scheme);
                        return Err(Fault::new(FailureKind::Configuration, text));
                    }
                },
            };
        }
        let client = builder.default_headers(headers).build();
        let client =
            client.map_err(|error| Fault::new(FailureKind::Configuration, error.to_string()))?;
        Ok(Web { client, base: place.url.clone() })
    }

    async fn ask(
        &self,
        method: Method,
        key: &str,
        etag: Option<&str>,
        range: Option<(u64, u64)>,
    ) -> Result<Response, Fault> {
        let url = format!("{}/{key}", self.base);
        let parsed = reqwest::Url::parse(&url)
            .map_err(|error| Fault::new(FailureKind::Configuration, error.to_string()))?;
        let mut request = self.client.request(method, parsed);
        if let Some((start, end)) = range {
            request = request.header(RANGE, format!("bytes={start}-{}", end.saturating_sub(1)));
        }
        // Weak tags never match.
        if let Some(etag) = etag.filter(|etag| !etag.starts_with("W/")) {
            request = request.header(IF_MATCH, etag);
        }
        let answer = request.send().await.map_err(|error| of_transport(&error))?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let (status, wait) = (answer.status().as_u16(), retry_after(answer.headers()));
        let body = answer.text().await.unwrap_or_default();
        Err(of_web(status, wait, &body))
    }

    pub async fn head(&self, key: &str) -> Result<Facts, Fault> {
        let refused = match self.ask(Method::HEAD, key, None, None).await {
            Ok(answer) => match length(&answer) {
                Some(size) => return Ok(Facts { size, etag: etag(&answer) }),
                None => None,
            },
            // A signature may be for GET alone.
            Err(fault) if matches!(fault.status, 400 | 403 | 405 | 501) => Some(fault),
            Err(fault) => return Err(fault),
        };
        match self.ask(Method::GET, key, None, Some((0, 1))).await {
            Ok(answer) => {
                let size = match answer.status() {
                    StatusCode::PARTIAL_CONTENT => total(&answer),
                    _ => length(&answer),
                };
                let unknown = || {
                    let text = "the server does not say how long the file is";
                    Fault::new(FailureKind::Unsupported, text)
                };
                Ok(Facts { size: size.ok_or_else(unknown)?, etag: etag(&answer) })
            }
            // An empty file has no first byte.
            Err(fault) if fault.status == 416 && refused.is_none() => {
                Ok(Facts { size: 0, etag: None })
            }
            Err(fault) => Err(fault),
        }
    }

    pub async fn get(&self, wanted: &Wanted, sink: &mut dyn Sink) -> Result<(), Fault> {
        let answer =
            self.ask(Method::GET, &wanted.key, wanted.etag.as_deref(), wanted.range).await?;
        let found = etag(&answer);
        if let (Some(wanted), Some(found)) = (&wanted.etag, &found)
            && wanted != found
        {
            let text = format!("its ETag was {wanted}, and is {found}");
            return Err(Fault::new(FailureKind::Changed, text));
        }
        // A server may send the whole file, whatever it was asked for.
        let partial = answer.status() == StatusCode::PARTIAL_CONTENT;
        let size = if partial { total(&answer) } else { length(&answer) };
        let is_known = size.is_some();
        let expected = size.unwrap_or(u64::MAX);
        sink.begin(Facts { size: expected, etag: found.clone() });
        let (mut skip, mut left) = match wanted.range {
            Some((start, end)) if !partial => (start, end - start),
            Some((start, end)) => (0, end - start),
            None => (0, u64::MAX),
        };
        let mut body = answer.bytes_stream();
        while let Some(piece) = body.next().await {
            let mut piece = piece.map_err(|error| of_transport(&error))?;
            let before = skip.min(piece.len() as u64);
            skip -= before;
            piece = piece.split_off(before as usize);
            piece.truncate(left.min(piece.len() as u64) as usize);
            left -= piece.len() as u64;
            if !piece.is_empty() {
                sink.put(piece)?;
            }
            if left == 0 {
                break;
            }
        }
        if !is_known && wanted.range.is_none() {
            // Only now its length is known.
            sink.begin(Facts { size: sink.len(), etag: found });
        }
        Ok(())
    }
}

fn length(answer: &Response) -> Option<u64> {
    answer.headers().get(CONTENT_LENGTH)?.to_str().ok()?.trim().parse().ok()
}

/// The size of the whole file, of an answer with a part of it.
fn total(answer: &Response) -> Option<u64> {
    let range = answer.headers().get(CONTENT_RANGE)?.to_str().ok()?;
    range.rsplit_once('/')?.1.trim().parse().ok()
}

fn etag(answer: &Response) -> Option<String> {
    Some(answer.headers().get(ETAG)?.to_str().ok()?.to_owned())
}

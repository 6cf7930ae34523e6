//! A store: where objects are, and how they are asked for.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use crate::abi::FailureKind;
use crate::cloud::Cloud;
use crate::failure::Fault;
use crate::patience::{GivenUp, Patience};
use crate::web::Web;

/// A minute of errors is a delay; this is when it is more than that.
const RETRY_TIMEOUT: Duration = Duration::from_secs(180);
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long an answer may pause. The whole of it may take longer.
pub const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// As many connections as the core has threads are kept.
pub const IDLE_CONNECTIONS: usize = 256;

/// The bucket, container or server, and options.
#[derive(Debug)]
pub struct Place {
    pub scheme: String,
    /// Up to the key, such as `s3://bucket`.
    pub url: String,
    pub options: Vec<(String, String)>,
}

pub struct Store {
    place: Place,
    patience: Patience,
    /// The client of the process with this id: connections can't be shared with a forked child.
    client: Mutex<(u32, Client)>,
}

#[derive(Clone)]
pub enum Client {
    Cloud(Arc<Cloud>),
    Web(Arc<Web>),
}

/// What is known of an object.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    pub size: u64,
    pub etag: Option<String>,
}

/// An object, or one part of it.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub key: String,
    pub etag: Option<String>,
    /// The first byte and the end.
    pub range: Option<(u64, u64)>,
}

/// An entry of a listing; a folder has no size.
#[derive(Debug)]
pub struct Entry {
    pub name: String,
    pub size: Option<u64>,
    pub etag: Option<String>,
}

/// Takes the pieces of a body as they arrive.
pub trait Sink: Send {
    /// The size of the whole object and its ETag, before the first piece.
    fn begin(&mut self, facts: Facts);
    fn put(&mut self, piece: Bytes) -> Result<(), Fault>;
    /// How much has arrived.
    fn len(&self) -> u64;
    fn clear(&mut self);
}

impl Client {
    fn new(place: &Place) -> Result<Client, Fault> {
        Ok(match &*place.scheme {
            "http" | "https" => Client::Web(Arc::new(Web::new(place)?)),
            _ => Client::Cloud(Arc::new(Cloud::new(place)?)),
        })
    }

    async fn head(&self, key: &str) -> Result<Facts, Fault> {
        match self {
            Client::Cloud(cloud) => cloud.head(key).await,
            Client::Web(web) => web.head(key).await,
        }
    }

    async fn get(&self, wanted: &Wanted, sink: &mut dyn Sink) -> Result<(), Fault> {
        match self {
            Client::Cloud(cloud) => cloud.get(wanted, sink).await,
            Client::Web(web) => web.get(wanted, sink).await,
        }
    }
}

impl Store {
    pub fn open(mut place: Place) -> Result<Store, Fault> {
        let mut retry_timeout = RETRY_TIMEOUT;
        let mut retries = u32::MAX - 1;
        let mut wrong = None;
        place.options.retain(|(key, value)| {
            let parsed = match &**key {
                "retry_timeout" => seconds(value).map(|time| retry_timeout = time).is_some(),
                "max_retries" => value.parse().map(|count| retries = count).is_ok(),
                _ => return true,
            };
            if !parsed {
                wrong = Some(format!("`{key}` can't be {value:?}"));
            }
            false
        });
        if let Some(text) = wrong {
            return Err(Fault::new(FailureKind::Configuration, text));
        }
        let client = Client::new(&place)?;
        let patience = Patience::new(retry_timeout, retries);
        Ok(Store { place, patience, client: Mutex::new((std::process::id(), client)) })
    }

    fn client(&self) -> Result<Client, GivenUp> {
        let mut current = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        let here = std::process::id();
        if current.0 != here {
            let made = Client::new(&self.place).map_err(|fault| GivenUp {
                fault,
                attempts: 0,
                spent: Duration::ZERO,
            })?;
            // The parent's connections must not be closed from here.
            std::mem::forget(std::mem::replace(&mut *current, (here, made)));
        }
        Ok(current.1.clone())
    }

    pub async fn head(&self, key: &str) -> Result<Facts, GivenUp> {
        let client = self.client()?;
        let mut tries = self.patience.begin();
        loop {
            match client.head(key).await {
                Ok(facts) => {
                    tries.done();
                    return Ok(facts);
                }
                Err(fault) => tries.again(fault).await?,
            }
        }
    }

    /// Gets an object, or a part of it. What has arrived before a connection was lost is kept, if
    /// the server tells versions apart.
    pub async fn get(&self, wanted: Wanted, sink: &mut dyn Sink) -> Result<(), GivenUp> {
        let client = self.client()?;
        let mut tries = self.patience.begin();
        let mut seen = Facts::default();
        loop {
            let mut rest = wanted.clone();
            if sink.len() > 0 {
                match &seen.etag {
                    Some(etag) => {
                        let (start, end) = wanted.range.unwrap_or((0, seen.size));
                        rest.range = Some((start + sink.len(), end));
                        rest.etag = Some(etag.clone());
                    }
                    None => sink.clear(),
                }
            }
            let got = client.get(&rest, &mut Noting { sink: &mut *sink, seen: &mut seen }).await;
            let (start, end) = wanted.range.unwrap_or((0, seen.size));
            let fault = match got {
                Ok(()) if sink.len() == end - start => {
                    tries.done();
                    return Ok(());
                }
                Ok(()) => Fault::transient(format!(
                    "the answer ended after {} of {} bytes",
                    sink.len(),
                    end - start
                )),
                Err(fault) => fault,
            };
            tries.again(fault).await?;
        }
    }

    pub async fn list(&self, prefix: &str, recursive: bool) -> Result<Vec<Entry>, GivenUp> {
        let Client::Cloud(cloud) = self.client()? else {
            let text = "a web server has no list of its files";
            let fault = Fault::new(FailureKind::Unsupported, text);
            return Err(GivenUp { fault, attempts: 0, spent: Duration::ZERO });
        };
        let mut found = Vec::new();
        let mut token = None;
        let mut tries = self.patience.begin();
        loop {
            match cloud.page(prefix, recursive, token.clone(), &mut found).await {
                Ok(next) => {
                    std::mem::replace(&mut tries, self.patience.begin()).done();
                    token = next;
                    if token.is_none() {
                        return Ok(found);
                    }
                }
                Err(fault) => tries.again(fault).await?,
            }
        }
    }
}

/// Remembers what the first answer said of the object.
struct Noting<'a> {
    sink: &'a mut dyn Sink,
    seen: &'a mut Facts,
}

impl Sink for Noting<'_> {
    fn begin(&mut self, facts: Facts) {
        *self.seen = facts.clone();
        self.sink.begin(facts);
    }

    fn put(&mut self, piece: Bytes) -> Result<(), Fault> {
        self.sink.put(piece)
    }

    fn len(&self) -> u64 {
        self.sink.len()
    }

    fn clear(&mut self) {
        self.sink.clear();
    }
}

/// A time such as "30", "1.5", "30s" or "500ms".
pub fn seconds(text: &str) -> Option<Duration> {
    let text = text.trim();
    let (number, unit) = match text.find(|c: char| !c.is_ascii_digit() && c != '.') {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let scale = match unit.trim() {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number.parse::<f64>().ok()? * scale).ok()
}

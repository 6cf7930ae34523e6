//! Buckets of S3, Google Cloud Storage and Azure.

use std::borrow::Cow;
use std::str::FromStr;
use std::sync::Arc;

use futures_util::StreamExt;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::list::{PaginatedListOptions, PaginatedListStore};
use object_store::path::Path;
use object_store::{
    ClientConfigKey, ClientOptions, GetOptions, GetRange, ObjectStore, ObjectStoreExt, RetryConfig,
};

use crate::abi::FailureKind;
use crate::failure::{Connector, Fault, noted, of_cloud};
use crate::store::{
    CONNECT_TIMEOUT, Entry, Facts, IDLE_CONNECTIONS, Place, READ_TIMEOUT, Sink, Wanted,
};

pub struct Cloud {
    store: Arc<dyn ObjectStore>,
    lister: Arc<dyn PaginatedListStore>,
}

/// Precedes the names of options that come from the environment.
const ENVIRONMENT: &str = "env:";

/// A builder with the options, by the names of `object_store`; later ones win.
macro_rules! configured {
    ($builder:ty, $key:ty, $place:expr) => {{
        let client = ClientOptions::new()
            .with_timeout_disabled()
            .with_read_timeout(READ_TIMEOUT)
            .with_connect_timeout(CONNECT_TIMEOUT)
            .with_pool_max_idle_per_host(IDLE_CONNECTIONS);
        // We try again ourselves: it has to be counted, and to cover bodies.
        let retry = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        let mut builder = <$builder>::new()
            .with_url($place.url.clone())
            .with_client_options(client)
            .with_retry(retry)
            .with_http_connector(Connector::default());
        for (name, value) in &$place.options {
            // The environment has names that mean something to other programs only.
            if let Some(name) = name.strip_prefix(ENVIRONMENT) {
                let name = if name == "IDENTITY_ENDPOINT" { "MSI_ENDPOINT" } else { name };
                if let Ok(key) = <$key>::from_str(&name.to_ascii_lowercase()) {
                    builder = builder.with_config(key, value);
                }
                continue;
            }
            let key = <$key>::from_str(&name.to_ascii_lowercase()).map_err(|_| {
                let text = format!("`{}` URLs have no option {name:?}", $place.scheme);
                Fault::new(FailureKind::Configuration, text)
            })?;
            builder = builder.with_config(key, value);
        }
        builder
    }};
}

impl Cloud {
    pub fn new(place: &Place) -> Result<Cloud, Fault> {
        let wrong = |error: object_store::Error| {
            let text = error.to_string();
            Fault::new(FailureKind::Configuration, text.trim_end_matches('.'))
        };
        let is_plain = |endpoint: Option<String>| {
            endpoint.is_some_and(|endpoint| endpoint.starts_with("http://"))
        };
        match &*place.scheme {
            "s3" | "s3a" => {
                let mut builder = configured!(AmazonS3Builder, AmazonS3ConfigKey, place);
                // Whoever names an endpoint without TLS means it.
                let keys = [AmazonS3ConfigKey::Endpoint, AmazonS3ConfigKey::S3Endpoint];
                if keys.iter().any(|key| is_plain(builder.get_config_value(key))) {
                    builder = builder.with_allow_http(true);
                }
                Ok(Cloud::of(builder.build().map_err(wrong)?))
            }
            "gs" => {
                let mut builder = configured!(GoogleCloudStorageBuilder, GoogleConfigKey, place);
                if is_plain(builder.get_config_value(&GoogleConfigKey::BaseUrl)) {
                    let key = GoogleConfigKey::Client(ClientConfigKey::AllowHttp);
                    builder = builder.with_config(key, "true");
                }
                Ok(Cloud::of(builder.build().map_err(wrong)?))
            }
            _ => {
                let mut builder = configured!(MicrosoftAzureBuilder, AzureConfigKey, place);
                if is_plain(builder.get_config_value(&AzureConfigKey::Endpoint)) {
                    builder = builder.with_allow_http(true);
                }
                Ok(Cloud::of(builder.build().map_err(wrong)?))
            }
        }
    }

    fn of<T: ObjectStore + PaginatedListStore>(store: T) -> Cloud {
        let store = Arc::new(store);
        Cloud { store: store.clone(), lister: store }
    }

    pub async fn head(&self, key: &str) -> Result<Facts, Fault> {
        let path = path(key)?;
        let (found, seen) = noted(self.store.head(&path)).await;
        let error = match found {
            Ok(found) => return Ok(Facts { size: found.size, etag: found.e_tag }),
            Err(error) => of_cloud(&error, seen),
        };
        if error.transient || !matches!(error.status, 400..500) {
            return Err(error);
        }
        // An answer to HEAD has no body that would say what is wrong.
        let first = GetOptions { range: Some(GetRange::Bounded(0..1)), ..GetOptions::default() };
        match noted(self.store.get_opts(&path, first)).await {
            (Err(told), seen) => {
                let told = of_cloud(&told, seen);
                Err(if told.status == error.status { told } else { error })
            }
            (Ok(_), _) => Err(error),
        }
    }

    pub async fn get(&self, wanted: &Wanted, sink: &mut dyn Sink) -> Result<(), Fault> {
        let path = path(&wanted.key)?;
        let (result, seen) = noted(async {
            let options = GetOptions {
                if_match: wanted.etag.clone(),
                range: wanted.range.map(|(start, end)| GetRange::Bounded(start..end)),
                ..GetOptions::default()
            };
            let answer = self.store.get_opts(&path, options).await?;
            sink.begin(Facts { size: answer.meta.size, etag: answer.meta.e_tag.clone() });
            let mut body = answer.into_stream();
            while let Some(piece) = body.next().await {
                if let Err(fault) = sink.put(piece?) {
                    return Ok(Err(fault));
                }
            }
            Ok(Ok(()))
        })
        .await;
        result.unwrap_or_else(|error: object_store::Error| Err(of_cloud(&error, seen)))
    }

    /// Adds a page of a listing, and returns the token of the next one.
    pub async fn page(
        &self,
        prefix: &str,
        recursive: bool,
        token: Option<String>,
        found: &mut Vec<Entry>,
    ) -> Result<Option<String>, Fault> {
        let options = PaginatedListOptions {
            delimiter: (!recursive).then_some(Cow::Borrowed("/")),
            page_token: token,
            ..PaginatedListOptions::default()
        };
        let whole = (!prefix.is_empty()).then_some(prefix);
        let (page, seen) = noted(self.lister.list_paginated(whole, options)).await;
        let page = page.map_err(|error| of_cloud(&error, seen))?;
        // A folder may have an object of its own name, which is no file.
        let below = |path: &Path| {
            let name = path.as_ref().strip_prefix(prefix)?;
            (!name.is_empty()).then(|| name.to_owned())
        };
        for object in page.result.objects {
            if let Some(name) = below(&object.location) {
                found.push(Entry { name, size: Some(object.size), etag: object.e_tag });
            }
        }
        for folder in &page.result.common_prefixes {
            if let Some(name) = below(folder) {
                found.push(Entry { name, size: None, etag: None });
            }
        }
        Ok(page.page_token)
    }
}

/// Keys are meant literally, as command line tools of the clouds take them.
fn path(key: &str) -> Result<Path, Fault> {
    Path::parse(key).map_err(|error| Fault::new(FailureKind::Configuration, error.to_string()))
}

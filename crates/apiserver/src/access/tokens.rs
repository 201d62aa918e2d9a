//! Bearer tokens: given out once, kept only as SHA-256 hashes. They are random and long, so a plain hash is
//! enough; all are compared, each in constant time.
//!
//! A token is valid until it is revoked or, if it was made with a time, until then; one that was made for an object
//! (a service account's) only as long as there is that object.

use std::sync::{PoisonError, RwLock};

use bytes::Bytes;
use jiff::Timestamp;
use modelplane_store::{Store, Write};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::AccessError;
use crate::identity::Identity;
use crate::object::encode::Glance;

/// Where the record is; no API group has such a name.
const RECORD: &str = "internal/access-tokens";
const TOKEN_BYTES: usize = 32;
/// Tokens that run out, kept at a time: the record is written whole.
const MAX_EXPIRING: usize = 1000;

/// The tokens of one server.
pub(crate) struct Tokens {
    store: Store,
    known: RwLock<Vec<Token>>,
    /// Held while the record is written, so that none is lost.
    writing: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Token {
    sha256: String,
    user: String,
    groups: Vec<String>,
    /// In seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bound: Option<Bound>,
}

/// The object a token stands and falls with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bound {
    /// The store key.
    pub(crate) key: String,
    pub(crate) uid: String,
}

impl Token {
    fn has_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now.as_second())
    }
}

impl Tokens {
    /// Reads the tokens of a store.
    pub(crate) fn open(store: &Store) -> Result<Tokens, AccessError> {
        let entry = store.get(RECORD).map_err(|_| AccessError::Record)?;
        let known = match entry {
            None => Vec::new(),
            Some(entry) => serde_json::from_slice(&entry.value).map_err(|_| AccessError::Record)?,
        };
        let writing = tokio::sync::Mutex::default();
        Ok(Tokens { store: store.clone(), known: RwLock::new(known), writing })
    }

    /// Makes a token for someone and returns it, for the only time.
    pub(crate) async fn issue(&self, identity: &Identity) -> Result<String, AccessError> {
        self.make(identity, None, None).await
    }

    /// Makes a token that is valid until a time, and as long as there is an object.
    pub(crate) async fn issue_bound(
        &self,
        identity: &Identity,
        until: Timestamp,
        bound: Bound,
    ) -> Result<String, AccessError> {
        self.make(identity, Some(until.as_second()), Some(bound)).await
    }

    async fn make(
        &self,
        identity: &Identity,
        expires: Option<i64>,
        bound: Option<Bound>,
    ) -> Result<String, AccessError> {
        let mut bytes = [0; TOKEN_BYTES];
        let provider = rustls::crypto::ring::default_provider();
        provider.secure_random.fill(&mut bytes).map_err(|_| AccessError::Randomness)?;
        let token = hexadecimal(&bytes);
        let sha256 = hash(&token);
        let (user, groups) = (identity.user.clone(), identity.groups.clone());
        let added = Token { sha256, user, groups, expires, bound };
        let now = Timestamp::now();
        self.change(|known| {
            known.retain(|token| !token.has_expired(now));
            let expiring = known.iter().filter(|token| token.expires.is_some()).count();
            if expires.is_some() && expiring >= MAX_EXPIRING {
                return Err(AccessError::TooManyTokens { limit: MAX_EXPIRING });
            }
            known.push(added);
            Ok(())
        })
        .await?;
        Ok(token)
    }

    /// Takes back all tokens of a user.
    pub(crate) async fn revoke(&self, user: &str) -> Result<(), AccessError> {
        self.change(|known| {
            known.retain(|token| token.user != user);
            Ok(())
        })
        .await
    }

    /// Whose token this is.
    pub(crate) fn identity(&self, token: &str) -> Option<Identity> {
        let wanted = hash(token);
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut found = None;
        for token in known.iter() {
            if equal(token.sha256.as_bytes(), wanted.as_bytes()) {
                found = Some(token);
            }
        }
        let found = found.filter(|token| !token.has_expired(Timestamp::now()))?;
        let stands = found.bound.as_ref().is_none_or(|bound| self.stands(bound));
        stands.then(|| Identity::new(&found.user, &found.groups))
    }

    fn stands(&self, bound: &Bound) -> bool {
        let entry = self.store.get(&bound.key).ok().flatten();
        entry.is_some_and(|entry| Glance::of(&entry.value).uid.as_deref() == Some(bound.uid.as_str()))
    }

    async fn change(
        &self,
        change: impl FnOnce(&mut Vec<Token>) -> Result<(), AccessError>,
    ) -> Result<(), AccessError> {
        let _writing = self.writing.lock().await;
        let mut changed = self.known.read().unwrap_or_else(PoisonError::into_inner).clone();
        change(&mut changed)?;
        let value = Bytes::from(serde_json::to_vec(&changed).map_err(|_| AccessError::Record)?);
        let entry = self.store.get(RECORD).map_err(|_| AccessError::Record)?;
        let key = RECORD.to_owned();
        self.store
            .write(match entry {
                None => Write::Create { key, value },
                Some(entry) => Write::Update { key, value, expected: entry.modified },
            })
            .await?;
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = changed;
        Ok(())
    }
}

fn hash(token: &str) -> String {
    hexadecimal(&Sha256::digest(token.as_bytes()))
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Compares without stopping at the first difference.
fn equal(one: &[u8], other: &[u8]) -> bool {
    let difference = one.iter().zip(other).fold(0, |difference, (a, b)| difference | (a ^ b));
    one.len() == other.len() && std::hint::black_box(difference) == 0
}

//! Bearer tokens: given out once, kept only as SHA-256 hashes. They are random and long, so a plain hash is
//! enough; all are compared, each in constant time.

use std::sync::{PoisonError, RwLock};

use bytes::Bytes;
use modelplane_store::{Store, Write};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::AccessError;
use crate::identity::Identity;

/// Where the record is; no API group has such a name.
const RECORD: &str = "internal/access-tokens";
const TOKEN_BYTES: usize = 32;

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
        let mut bytes = [0; TOKEN_BYTES];
        let provider = rustls::crypto::ring::default_provider();
        provider.secure_random.fill(&mut bytes).map_err(|_| AccessError::Randomness)?;
        let token = hexadecimal(&bytes);
        let sha256 = hash(&token);
        let added = Token { sha256, user: identity.user.clone(), groups: identity.groups.clone() };
        self.change(|known| known.push(added)).await?;
        Ok(token)
    }

    /// Takes back all tokens of a user.
    pub(crate) async fn revoke(&self, user: &str) -> Result<(), AccessError> {
        self.change(|known| known.retain(|token| token.user != user)).await
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
        found.map(|token| Identity::new(&token.user, &token.groups))
    }

    async fn change(&self, change: impl FnOnce(&mut Vec<Token>)) -> Result<(), AccessError> {
        let _writing = self.writing.lock().await;
        let mut changed = self.known.read().unwrap_or_else(PoisonError::into_inner).clone();
        change(&mut changed);
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

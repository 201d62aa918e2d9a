//! `RunFunctionRequest` on the wire, read lazily.

use std::collections::BTreeMap;

use modelplane_core::contract::{Observed, Ready, Resource};
use modelplane_core::document::{Document, Field, Malformed, Reader, map_entry};

/// The parts of a `RunFunctionRequest` this function uses, borrowed from its bytes.
#[derive(Debug, Default)]
pub struct Request<'a> {
    /// `meta.tag`: echoed in the response.
    pub tag: &'a str,
    /// `meta.capabilities`: what Crossplane says it honours.
    pub capabilities: Capabilities,
    /// `input` of the pipeline step, if it has one.
    pub input: Option<Document<'a>>,
    /// `context`, if the request has one, as the bytes of its Struct.
    pub context: Option<&'a [u8]>,
    /// Observed and desired state and required resources.
    pub observed: Observed<'a>,
}

/// What Crossplane says it honours (`apiextensions.fn.proto.v1.Capability`).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities(u64);

/// A capability an answer may build upon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// `CAPABILITY_REQUIRED_RESOURCES`: what `requirements.resources` names is fetched.
    RequiredResources = 2,
    /// `CAPABILITY_CONDITIONS`: `conditions` become the composite's.
    Conditions = 4,
}

/// A request cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The bytes are not a `RunFunctionRequest`.
    #[error("the request is not a RunFunctionRequest: {0}")]
    Malformed(#[from] Malformed),
    /// A protobuf string holds something else than UTF-8.
    #[error("the request's {0} is not valid UTF-8")]
    NotText(&'static str),
}

impl<'a> Request<'a> {
    /// Reads the outline of a request; documents inside stay unread.
    ///
    /// # Errors
    ///
    /// If the bytes are not a protobuf message of this shape.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, RequestError> {
        let mut request = Self::default();
        let mut reader = Reader::new(bytes);
        while let Some((number, field)) = reader.next_field()? {
            let Field::Bytes(bytes) = field else { continue };
            match number {
                1 => request.read_meta(bytes)?,
                2 => {
                    let state = State::parse(bytes)?;
                    request.observed.composite = state.composite.unwrap_or_default();
                    request.observed.resources = state.resources;
                }
                3 => {
                    let state = State::parse(bytes)?;
                    request.observed.desired_composite = state.composite;
                    request.observed.desired = state.resources;
                }
                4 => request.input = Some(Document::from_struct(bytes)),
                5 => request.context = Some(bytes),
                // Extra resources are the older name of required resources.
                6 | 8 => {
                    let (key, value) = map_entry(bytes)?;
                    request.observed.required.insert(text(key, "requirement key")?, resources(value)?);
                }
                _ => {}
            }
        }
        Ok(request)
    }

    fn read_meta(&mut self, meta: &'a [u8]) -> Result<(), RequestError> {
        let mut reader = Reader::new(meta);
        while let Some((number, field)) = reader.next_field()? {
            match (number, field) {
                (1, Field::Bytes(bytes)) => self.tag = text(bytes, "meta.tag")?,
                (2, Field::Varint(capability)) => self.capabilities.insert(capability),
                (2, Field::Bytes(packed)) => self.capabilities.insert_packed(packed),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Capabilities {
    /// `CAPABILITY_CAPABILITIES`: without it, Crossplane says nothing about the others (before v2.2).
    const ADVERTISED: u64 = 1;

    /// Whether Crossplane says that it does not honour this. One that says nothing is taken to.
    pub fn lack(self, capability: Capability) -> bool {
        self.has(Self::ADVERTISED) && !self.has(capability as u64)
    }

    fn has(self, capability: u64) -> bool {
        self.0 & (1 << capability) != 0
    }

    /// A packed list of varints; values that take more than one byte are none this function knows.
    fn insert_packed(&mut self, packed: &[u8]) {
        for varint in packed.split_inclusive(|byte| *byte < 0x80) {
            if let [capability] = *varint {
                self.insert(u64::from(capability));
            }
        }
    }

    fn insert(&mut self, capability: u64) {
        if capability < 64 {
            self.0 |= 1 << capability;
        }
    }
}

#[derive(Default)]
struct State<'a> {
    composite: Option<Resource<'a>>,
    resources: BTreeMap<&'a str, Resource<'a>>,
}

impl<'a> State<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, RequestError> {
        let mut state = Self::default();
        let mut reader = Reader::new(bytes);
        while let Some((number, field)) = reader.next_field()? {
            match (number, field) {
                (1, Field::Bytes(bytes)) => state.composite = Some(resource(bytes)?),
                (2, Field::Bytes(bytes)) => {
                    let (key, value) = map_entry(bytes)?;
                    state.resources.insert(text(key, "resource key")?, resource(value)?);
                }
                _ => {}
            }
        }
        Ok(state)
    }
}

fn resources(bytes: &[u8]) -> Result<Vec<Resource<'_>>, RequestError> {
    let mut items = Vec::new();
    let mut reader = Reader::new(bytes);
    while let Some((number, field)) = reader.next_field()? {
        if let (1, Field::Bytes(bytes)) = (number, field) {
            items.push(resource(bytes)?);
        }
    }
    Ok(items)
}

fn resource(bytes: &[u8]) -> Result<Resource<'_>, RequestError> {
    let mut resource = Resource::default();
    let mut reader = Reader::new(bytes);
    while let Some((number, field)) = reader.next_field()? {
        match (number, field) {
            (1, Field::Bytes(bytes)) => resource.document = Document::from_struct(bytes),
            (2, Field::Bytes(bytes)) => {
                let (key, value) = map_entry(bytes)?;
                resource.connection_details.push((text(key, "connection detail key")?, value));
            }
            (3, Field::Varint(1)) => resource.ready = Ready::True,
            (3, Field::Varint(2)) => resource.ready = Ready::False,
            _ => {}
        }
    }
    Ok(resource)
}

fn text<'a>(bytes: &'a [u8], what: &'static str) -> Result<&'a str, RequestError> {
    std::str::from_utf8(bytes).map_err(|_| RequestError::NotText(what))
}

//! The passages of a calibration, in an order of their own.

use sha2::{Digest, Sha256};

use crate::token::TokenId;

/// A passage as token ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passage {
    /// The place of its document in the list it comes with.
    pub document: u32,
    /// Where it starts in the document, in bytes.
    pub offset: u64,
    /// Its ids, all inside the vocabulary.
    pub ids: Box<[TokenId]>,
}

/// Passages and the names of their documents.
#[derive(Clone, Debug)]
pub struct Corpus {
    documents: Vec<String>,
    passages: Vec<Passage>,
    digest: [u8; 32],
}

impl Corpus {
    /// Sorts passages by content, so that neither the order of the input nor that of the names
    /// says which keys a passage meets. Documents of one name are one document.
    #[must_use]
    pub fn new(names: &[String], passages: Vec<Passage>) -> Self {
        let mut documents = names.to_vec();
        documents.sort();
        documents.dedup();
        let place = |name: &String| documents.binary_search(name).unwrap_or_default();
        // As many documents as names at most, whose places are u32.
        let places: Vec<u32> =
            names.iter().map(|name| u32::try_from(place(name)).unwrap_or(u32::MAX)).collect();
        let mut keyed: Vec<([u8; 32], Passage)> = passages
            .into_iter()
            .map(|passage| {
                let document = places[passage.document as usize];
                (content(&passage.ids), Passage { document, ..passage })
            })
            .collect();
        let order =
            |(content, passage): &([u8; 32], Passage)| (*content, passage.document, passage.offset);
        keyed.sort_by_key(order);
        let mut hash = Sha256::new();
        for (content, passage) in &keyed {
            hash.update(content);
            hash.update(documents[passage.document as usize].as_bytes());
            hash.update(passage.offset.to_le_bytes());
        }
        let passages = keyed.into_iter().map(|(_, passage)| passage).collect();
        Self { documents, passages, digest: hash.finalize().into() }
    }

    /// The names, sorted; passages refer to them by place.
    #[must_use]
    pub fn documents(&self) -> &[String] {
        &self.documents
    }

    /// The passages, sorted by a hash of their ids.
    #[must_use]
    pub fn passages(&self) -> &[Passage] {
        &self.passages
    }

    /// Stands for every passage, name and offset.
    #[must_use]
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }
}

fn content(ids: &[TokenId]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for id in ids {
        hash.update(id.to_le_bytes());
    }
    hash.finalize().into()
}

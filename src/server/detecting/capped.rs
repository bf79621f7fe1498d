//! Lists of a request that stop being read at a bound, before they fill the memory.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

/// At most `MOST` items.
#[derive(Debug)]
pub(in crate::server) struct Capped<T, const MOST: usize>(pub(in crate::server) Vec<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for Capped<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(CappedVisitor(PhantomData))
    }
}

struct CappedVisitor<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for CappedVisitor<T, MOST> {
    type Value = Capped<T, MOST>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {MOST} items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            if items.len() == MOST {
                return Err(A::Error::invalid_length(MOST + 1, &self));
            }
            items.push(item);
        }
        Ok(Capped(items))
    }
}

//! Generation in a build without the engine: there is none, and no value of these types.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use serde_json::Value;

use super::endpoint::Endpoint;
use crate::detect::entropy::EntropyInput;
use crate::document::Detector;
use crate::server::error::ApiError;
use crate::server::state::State;

/// A mark that new texts may get: there is none.
#[derive(Debug)]
pub enum GenerationProfile {}

/// A model that texts are generated with: there is none.
#[derive(Debug)]
pub enum Generator {}

impl Generator {
    /// Whether work is taken.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        match *self {}
    }

    /// Takes no more requests.
    pub fn close(&self) {
        match *self {}
    }

    /// Takes no more requests and drops those that were taken.
    pub fn abort(&self) {
        match *self {}
    }

    /// Waits until the model's thread has ended.
    pub fn join(&self) {
        match *self {}
    }

    pub(in crate::server) fn models(&self) -> Vec<Value> {
        match *self {}
    }

    pub(in crate::server) fn find_model(&self, _name: &str) -> Option<Value> {
        match *self {}
    }

    pub(in crate::server) fn uncertainty(
        &self,
        _detector: &Detector,
        _text: &str,
        _prompt: Option<&str>,
        _most: usize,
    ) -> Result<EntropyInput, ApiError> {
        match *self {}
    }

    pub(in crate::server) async fn answer(
        self: Arc<Self>,
        _endpoint: Endpoint,
        _request: Request,
        _state: &State,
    ) -> Result<Response, ApiError> {
        match *self {}
    }
}

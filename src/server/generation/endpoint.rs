//! The two routes that generate, which differ in the form of prompt and reply only.

/// A route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// `/v1/completions`.
    Completions,
    /// `/v1/chat/completions`.
    Chat,
}

impl Endpoint {
    /// Its path.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::Completions => "/v1/completions",
            Self::Chat => "/v1/chat/completions",
        }
    }

    pub(super) fn other(self) -> Self {
        match self {
            Self::Completions => Self::Chat,
            Self::Chat => Self::Completions,
        }
    }

    /// What the ids of its replies begin with.
    pub(super) fn id_prefix(self) -> &'static str {
        match self {
            Self::Completions => "cmpl-",
            Self::Chat => "chatcmpl-",
        }
    }

    /// The `object` of a whole reply.
    pub(super) fn object(self) -> &'static str {
        match self {
            Self::Completions => "text_completion",
            Self::Chat => "chat.completion",
        }
    }

    /// The `object` of a chunk of a stream.
    pub(super) fn chunk_object(self) -> &'static str {
        match self {
            Self::Completions => "text_completion",
            Self::Chat => "chat.completion.chunk",
        }
    }
}

//! `GET /v1/profiles`: the profiles that texts can be held against.

use axum::extract::State as Extract;
use axum::routing::get;
use axum::{Extension, Json};
use serde::Serialize;

use crate::profile::Profile;
use crate::server::access::{Caller, Role};
use crate::server::error::ApiError;
use crate::server::profiles::{Served, Standing};
use crate::server::router::{Need, Route};
use crate::server::state::State;

pub(super) fn route() -> Route {
    Route { path: "/v1/profiles", need: Need::Role(Role::Public), methods: get(profiles) }
}

#[derive(Serialize)]
struct List {
    object: &'static str,
    data: Vec<Item>,
}

#[derive(Serialize)]
struct Item {
    name: String,
    standing: Standing,
    #[serde(flatten)]
    mark: Option<Mark>,
}

/// What reviewers see of a profile. The key itself is never part of one.
#[derive(Serialize)]
struct Mark {
    profile: Profile,
    key_id: String,
    key_fingerprint: String,
    tokenizer: String,
}

async fn profiles(
    Extract(state): Extract<State>,
    Extension(caller): Extension<Caller>,
) -> Result<Json<List>, ApiError> {
    let item = |served: &Served| {
        let profile = served.detector.profile();
        Item {
            name: served.name.clone(),
            standing: served.standing,
            mark: (caller.role > Role::Public).then(|| Mark {
                profile: profile.clone(),
                key_id: profile.key().id.clone(),
                key_fingerprint: profile.key().fingerprint.to_string(),
                tokenizer: profile.tokenizer().fingerprint.clone(),
            }),
        }
    };
    let data = state.ready()?.profiles.all().iter().map(item).collect();
    Ok(Json(List { object: "list", data }))
}

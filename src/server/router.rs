//! The registry of routes: every path, who may use it, and its handler.

use axum::Router;
use axum::extract::{Request, State as Extract};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::MethodRouter;
use tower_http::catch_panic::CatchPanicLayer;

use super::access::{Role, TOO_MANY_FAILURES};
use super::error::{ApiError, ErrorType};
use super::layers;
use super::listen::Peer;
use super::routes;
use super::state::State;

/// Who may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Everybody, without a key: nothing on it depends on a text or a key.
    Nothing,
    /// A key of at least this role.
    Role(Role),
}

/// One path.
pub(super) struct Route {
    pub(super) path: &'static str,
    pub(super) need: Need,
    pub(super) methods: MethodRouter<State>,
}

/// Every path of the service, as the router writes it: `{name}` is one segment, `{*name}` the rest.
#[must_use]
pub fn paths() -> Vec<&'static str> {
    routes::all().into_iter().map(|route| route.path).collect()
}

/// The service as a tower service.
pub fn router(state: State) -> Router {
    let mut router = Router::new();
    for route in routes::all() {
        let Route { path, need, methods } = route;
        // The router adds the Allow header.
        let methods = methods.fallback(method_not_allowed);
        let methods = match need {
            Need::Nothing => methods,
            Need::Role(role) => {
                let admit = from_fn_with_state((state.clone(), role), admit);
                methods.layer(admit)
            }
        };
        router = router.route(path, methods);
    }
    let router = router
        .fallback(not_found)
        .layer(CatchPanicLayer::custom(layers::panicked))
        .layer(from_fn_with_state(state.clone(), layers::around));
    // Without origins there is no trace of CORS. With them it stands outermost: it answers
    // preflights, which carry no key, and marks errors too, which a page could not read otherwise.
    let router = match state.access().origins() {
        [] => router,
        origins => router.layer(layers::cors(origins)),
    };
    router.with_state(state)
}

/// Lets a caller with the role pass, before anything of the body is read.
async fn admit(
    Extract((state, role)): Extract<(State, Role)>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0.ip());
    match state.access().caller(request.headers(), peer) {
        Err(error) => {
            if error.status() == StatusCode::UNAUTHORIZED || error.code() == TOO_MANY_FAILURES {
                state.metrics().authentication_failed();
            }
            error.into_response()
        }
        Ok(caller) if caller.role < role => ApiError::forbidden(
            "role",
            format!("this needs a key of the role {role}; this one is {}", caller.role),
        )
        .into_response(),
        Ok(caller) => {
            request.extensions_mut().insert(caller.clone());
            let mut response = next.run(request).await;
            // For the line of the access log.
            response.extensions_mut().insert(caller);
            response
        }
    }
}

async fn not_found(request: Request) -> ApiError {
    let path: String = request.uri().path().chars().take(100).collect();
    ApiError::not_found(
        "unknown_path",
        format!("there is no {path:?} here; /openapi.json lists all"),
    )
}

async fn method_not_allowed(request: Request) -> ApiError {
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        ErrorType::InvalidRequest,
        "method_not_allowed",
        format!("{} is not a method of this path; the Allow header lists them", request.method()),
    )
}

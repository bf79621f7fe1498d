//! `wm serve`: flags over environment over file to a running service.

mod access;
mod profiles;
mod settings;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::{self, available_parallelism};

use anyhow::{Context, Result};
use greenmark::server::{Listener, Ready, State, router, serve};
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::args::ServeArgs;
use crate::commands::engine;
use crate::exit::Exit;
use crate::output::note;
use settings::Settings;

/// Threads that answer, at least: one may judge a short text while the other goes on. Longer texts
/// are judged by a pool of their own.
const ANSWERING: usize = 2;

/// Files other than connections: models, logs, keys, what the runtime needs.
const OTHER_FILES: u64 = 256;

pub(super) fn run(args: &ServeArgs) -> Result<Exit> {
    // A panic's own message may quote the text that it tripped over.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map_or_else(String::new, |place| format!(" at {place}"));
        note!("internal error: a panic{place}; please report it");
    }));
    // What is wrong with files and flags is said before anything listens.
    let settings = Settings::resolve(args)?;
    let limits = settings.setup.limits.clone();
    allow_connections(limits.connections);
    let state = State::new(settings.setup)?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(available_parallelism().map_or(1, usize::from).max(ANSWERING))
        .enable_all()
        .build()
        .context("cannot start the threads of the service")?;
    runtime.block_on(async {
        let listener = Listener::bind(SocketAddr::new(settings.host, settings.port))?;
        note!("listening on http://{}", listener.address());
        let (failed, failure) = oneshot::channel();
        let loading = state.clone();
        // Loading takes seconds, a download minutes; the service says meanwhile that it starts.
        thread::Builder::new()
            .name("loader".to_owned())
            .spawn(move || {
                match load(settings.profiles, settings.model) {
                    Ok(ready) => {
                        loading.set_ready(ready);
                        note!("ready");
                    }
                    // The receiver is gone when the service ends first.
                    Err(error) => drop(failed.send(error)),
                }
            })
            .context("cannot start the thread that loads")?;
        let mut failure = std::pin::pin!(failure);
        let mut error = None;
        let end = async {
            tokio::select! {
                () = told_to_end() => {}
                Ok(found) = &mut failure => error = Some(found),
            }
        };
        serve(listener, router(state.clone()), &limits, end).await;
        // Every client has its reply or was told; what is left in the engine has no reader.
        if let Ok(Ready { generator: Some(generator), .. }) = state.ready() {
            generator.abort();
            generator.join();
        }
        match error {
            Some(error) => Err(error),
            None => Ok(Exit::Success),
        }
    })
}

/// Loads what takes long.
fn load(profiles: Vec<profiles::Source>, model: Option<engine::ServedModel>) -> Result<Ready> {
    let profiles = profiles::load(profiles)?;
    let generator = match model {
        Some(model) => Some(Arc::new(model.load(&profiles)?)),
        None => None,
    };
    Ok(Ready { profiles, generator })
}

/// Raises the number of files that this process may open: each connection is one.
fn allow_connections(connections: usize) {
    let wanted = u64::try_from(connections).unwrap_or(u64::MAX).saturating_add(OTHER_FILES);
    match rlimit::increase_nofile_limit(wanted) {
        Ok(allowed) if allowed >= wanted => {}
        Ok(allowed) => note!(
            "the system allows {allowed} open files, fewer than {connections} connections need; \
             raise it (ulimit -n, LimitNOFILE=) or lower `connections`"
        ),
        Err(error) => note!("cannot ask how many files may be open: {error}"),
    }
}

/// Comes when the service is to end: at Ctrl-C, and at the signal by which service managers end a
/// program. A second one ends it at once, whatever still runs.
async fn told_to_end() {
    signalled().await;
    note!("ending: no new connections; what runs is finished");
    tokio::spawn(async {
        signalled().await;
        note!("ended at once; what ran is lost");
        std::process::exit(1);
    });
}

async fn signalled() {
    let interrupt = async {
        // Without a handler the signal ends the program at once, which is what it is for.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    let terminate = async {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminate = std::future::pending::<()>();
    tokio::select! {
        () = interrupt => {}
        () = terminate => {}
    }
}

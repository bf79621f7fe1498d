//! Generation over a socket with a tiny checkpoint: what each field does, what the policy holds,
//! and that a reply is what the command line writes.

use std::io::{Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client;
use crate::service::Service;
use crate::support::{KEY, User, tiny_model, tiny_tokenizer};

pub(crate) const PATH: &str = "/v1/completions";

/// A service with the tiny checkpoint and further lines of configuration.
pub(crate) fn service(configuration: &str) -> Service {
    let user = User::new();
    let key = user.key("key", KEY);
    let (model, tokenizer) = (tiny_model("llama"), tiny_tokenizer());
    start(user, &model, &tokenizer, &key, configuration)
}

pub(crate) fn start(
    user: User,
    model: &str,
    tokenizer: &str,
    key: &str,
    configuration: &str,
) -> Service {
    let file = user.file(
        "serve.toml",
        format!(
            "[model]\nspec = \"{model}\"\ntokenizer = \"{tokenizer}\"\n{configuration}\n\
             [[profiles]]\nname = \"main\"\nkey_file = \"{key}\"\ntokenizer = \"{tokenizer}\"\n"
        ),
    );
    Service::start(user, &["--config", &file])
}

/// The same checkpoint with a context that takes seconds to fill.
pub(crate) fn long_service(configuration: &str) -> Service {
    let user = User::new();
    let key = user.key("key", KEY);
    let folder = user.path("long");
    std::fs::create_dir(&folder).unwrap();
    let source = tiny_model("llama");
    std::fs::copy(format!("{source}/model.safetensors"), folder.join("model.safetensors")).unwrap();
    let text = std::fs::read_to_string(format!("{source}/config.json")).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["max_position_embeddings"] = 100_000.into();
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    let model = folder.display().to_string();
    start(user, &model, &tiny_tokenizer(), &key, configuration)
}

/// A request with a fixed seed and length, and further fields.
pub(crate) fn body(more: &Value) -> Value {
    let mut body = json!({
        "prompt": "the rain", "seed": 5, "max_tokens": 30, "min_tokens": 30,
    });
    for (name, value) in more.as_object().unwrap() {
        body[name] = value.clone();
    }
    body
}

pub(crate) fn complete(service: &Service, more: &Value) -> Value {
    let reply = service.post(PATH, &body(more));
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

pub(crate) fn text(service: &Service, more: &Value) -> String {
    complete(service, more)["choices"][0]["text"].as_str().unwrap().to_owned()
}

pub(crate) fn refused(service: &Service, more: &Value, status: u16, param: &str) -> String {
    let reply = service.post(PATH, &body(more));
    let (code, message) = reply.error(status);
    assert_eq!(reply.json()["error"]["param"], param, "{message}");
    code
}

/// The text that `wm generate` writes.
pub(crate) fn generated(service: &Service, more: &[&str]) -> String {
    let (model, tokenizer) = (tiny_model("llama"), tiny_tokenizer());
    let key = service.user.path("key").display().to_string();
    let args = [
        "generate",
        "the rain",
        "--json",
        "--seed",
        "5",
        "--max-tokens",
        "30",
        "--min-tokens",
        "30",
        "--model",
        &model,
        "--tokenizer",
        &tokenizer,
        "--key-file",
        &key,
    ];
    let run = service.user.run(&[&args[..], more].concat());
    run.json()["samples"][0]["text"].as_str().unwrap().to_owned()
}

/// The data of a stream.
fn events(text: &str) -> Vec<String> {
    let data = text.split("\n\n").filter_map(|event| event.strip_prefix("data: "));
    data.map(str::to_owned).collect()
}

#[test]
fn s33_a_reply_is_what_the_command_line_writes_whatever_else_runs() {
    let service = service("");
    let fresh = generated(&service, &[]);
    let other = text(&service, &json!({"prompt": "in Spain"}));
    assert_ne!(other, fresh);
    assert_eq!(text(&service, &json!({})), fresh);
    thread::scope(|scope| {
        let runs: Vec<_> = (0..6)
            .map(|index| {
                let service = &service;
                scope.spawn(move || {
                    let prompt = if index % 2 == 0 { "the rain" } else { "in Spain" };
                    text(service, &json!({"prompt": prompt}))
                })
            })
            .collect();
        for (index, run) in runs.into_iter().enumerate() {
            assert_eq!(run.join().unwrap(), if index % 2 == 0 { &*fresh } else { &*other });
        }
    });
    // Left midway, then again.
    let bytes = client::request(
        "POST",
        PATH,
        &[("Content-Type", "application/json")],
        body(&json!({"stream": true})).to_string().as_bytes(),
    );
    let mut stream = client::connect(service.address);
    stream.write_all(&bytes).unwrap();
    stream.read_exact(&mut [0; 16]).unwrap();
    drop(stream);
    assert_eq!(text(&service, &json!({})), fresh);
}

#[test]
fn h15_every_field_has_an_effect() {
    let service = service("");
    let plain = text(&service, &json!({}));
    assert_eq!(text(&service, &json!({"seed": 5})), plain);
    assert_ne!(text(&service, &json!({"seed": 6})), plain);
    assert_ne!(text(&service, &json!({"seed": -6})), plain);

    let three = complete(&service, &json!({"n": 3}));
    let choices = three["choices"].as_array().unwrap();
    assert_eq!(choices.len(), 3);
    assert_eq!(choices[0]["text"], *plain);
    assert!(choices[1]["text"] != choices[2]["text"] && choices[1]["text"] != *plain);
    assert_eq!(
        three["usage"],
        json!({"prompt_tokens": 5, "completion_tokens": 90, "total_tokens": 95})
    );

    let middle: String = plain.chars().skip(8).take(2).collect();
    for stop in [json!(middle), json!([middle])] {
        let stopped = complete(&service, &json!({"stop": stop}));
        assert_eq!(stopped["choices"][0]["text"], plain[..plain.find(&middle).unwrap()]);
        assert_eq!(stopped["choices"][0]["finish_reason"], "stop");
    }

    let with = |more: Value| complete(&service, &more)["choices"][0]["logprobs"].clone();
    assert_eq!(with(json!({})), Value::Null);
    let zero = with(json!({"logprobs": 0}));
    assert_eq!(
        (zero["tokens"].as_array().unwrap().len(), &zero["top_logprobs"]),
        (30, &Value::Null)
    );
    let two = with(json!({"logprobs": 2}));
    for (place, top) in two["top_logprobs"].as_array().unwrap().iter().enumerate() {
        let top = top.as_object().unwrap();
        assert!((2..=3).contains(&top.len()));
        // The token drawn is among them with the same number, and nothing is more likely than 1.
        let token = two["tokens"][place].as_str().unwrap();
        assert_eq!(top[token], two["token_logprobs"][place]);
        assert!(top.values().all(|value| value.as_f64().unwrap() <= 0.0));
    }
    // The numbers are the model's: a mark changes which tokens are drawn, not how likely they are.
    let bare = with(json!({"logprobs": 5, "watermark": false}));
    let marked = with(json!({"logprobs": 5}));
    let first = |value: &Value| {
        let mut top: Vec<f64> = value["top_logprobs"][0]
            .as_object()
            .unwrap()
            .values()
            .map(|value| value.as_f64().unwrap())
            .collect();
        top.sort_by(|a, b| b.total_cmp(a));
        top.truncate(5);
        top
    };
    assert_eq!(first(&bare), first(&marked));

    let echoed = text(&service, &json!({"echo": true}));
    assert_eq!(echoed, format!("the rain{plain}"));
    assert_eq!(
        refused(&service, &json!({"echo": true, "logprobs": 1}), 400, "logprobs"),
        "invalid_value"
    );

    let one = complete(
        &service,
        &json!({"max_completion_tokens": 1, "max_tokens": null, "min_tokens": 1}),
    );
    assert_eq!(one["usage"]["completion_tokens"], 1);
    assert_eq!(one["choices"][0]["finish_reason"], "length");
    refused(&service, &json!({"max_completion_tokens": 1}), 400, "max_completion_tokens");

    let ids = json!([119, 107, 104, 35, 117]);
    let several = complete(&service, &json!({"prompt": [ids, ids], "n": 2}));
    assert_eq!(several["choices"].as_array().unwrap().len(), 4);
    assert_eq!(several["choices"][0]["text"], several["choices"][2]["text"]);
    let texts = complete(&service, &json!({"prompt": ["the rain", "in Spain"]}));
    assert_eq!(texts["choices"][0]["text"], *plain);
    assert_eq!(texts["choices"][1]["index"], 1);

    // Samplers, each with a value that has to change this text.
    for more in [
        json!({"temperature": 0}),
        json!({"temperature": 3}),
        json!({"top_k": 2}),
        json!({"top_p": 0.1}),
        json!({"min_p": 0.9}),
        json!({"typical_p": 0.1}),
        json!({"epsilon_cutoff": 0.1}),
        json!({"eta_cutoff": 0.3}),
        json!({"top_n_sigma": 0.1}),
        json!({"repetition_penalty": 9}),
        json!({"presence_penalty": 9}),
        json!({"frequency_penalty": 9}),
        json!({"no_repeat_ngram_size": 1}),
        json!({"xtc": {"probability": 1, "threshold": 0.01}}),
        json!({"mirostat": {"mode": 2, "tau": 0.1}}),
        json!({"logit_bias": {"40": 100}}),
        json!({"bad_words": (3..100).map(|id| [id]).collect::<Vec<_>>()}),
        json!({"allowed_tokens": [40, 41]}),
    ] {
        assert_ne!(text(&service, &more), plain, "{more}");
    }
    assert_eq!(text(&service, &json!({"logit_bias": {"40": 100}})), "%".repeat(30));
    assert_eq!(generated(&service, &["--top-k", "2"]), text(&service, &json!({"top_k": 2})));
    assert_eq!(
        generated(&service, &["--order", "llama.cpp", "--temperature", "2", "--top-p", "0.5"]),
        text(&service, &json!({"order": "llama.cpp", "temperature": 2, "top_p": 0.5})),
    );
}

#[test]
fn h15_what_has_no_effect_is_refused_by_name() {
    let service = service("");
    for (name, value) in [
        ("suffix", json!("x")),
        ("tools", json!([{"type": "function"}])),
        ("response_format", json!({"type": "json_object"})),
        ("store", json!(true)),
        ("service_tier", json!("flex")),
    ] {
        assert_eq!(refused(&service, &json!({name: value}), 400, name), "unsupported_field");
    }
    refused(&service, &json!({"best_of": 3}), 400, "best_of");
    refused(&service, &json!({"messages": []}), 400, "messages");
    refused(&service, &json!({"stream_options": {}}), 400, "stream_options");
    refused(&service, &json!({"n": 9}), 400, "n");
    refused(&service, &json!({"n": 0}), 400, "n");
    refused(&service, &json!({"logprobs": 21}), 400, "logprobs");
    refused(&service, &json!({"logprobs": true}), 400, "logprobs");
    refused(&service, &json!({"seed": 1.5}), 400, "seed");
    refused(&service, &json!({"stop": ""}), 400, "stop");
    refused(&service, &json!({"top_p": 2}), 400, "top_p");
    assert_eq!(refused(&service, &json!({"model": "gpt"}), 404, "model"), "model_not_found");
    // What asks for nothing is no fault.
    complete(&service, &json!({"suffix": null, "tools": [], "best_of": 1, "store": false}));
}

#[test]
fn h15_a_stream_is_the_whole_reply_in_pieces() {
    let service = service("");
    let middle: String = text(&service, &json!({})).chars().skip(20).take(2).collect();
    for more in
        [json!({}), json!({"n": 2}), json!({"logprobs": 1}), json!({"stop": middle, "logprobs": 0})]
    {
        let whole = complete(&service, &more);
        let mut request = body(&more);
        request["stream"] = true.into();
        request["stream_options"] = json!({"include_usage": true});
        let reply = service.post(PATH, &request);
        assert_eq!(reply.header("content-type"), Some("text/event-stream"));
        assert_eq!(reply.header("greenmark-profile"), Some("main"));
        let mut events = events(reply.text());
        assert_eq!(events.pop().unwrap(), "[DONE]");
        let chunks: Vec<Value> = events.iter().map(|e| serde_json::from_str(e).unwrap()).collect();
        let (last, chunks) = chunks.split_last().unwrap();
        assert_eq!((&last["usage"], &last["greenmark"]), (&whole["usage"], &whole["greenmark"]));
        for (index, choice) in whole["choices"].as_array().unwrap().iter().enumerate() {
            let own = || chunks.iter().map(|c| &c["choices"][0]).filter(|c| c["index"] == index);
            let text: String = own().map(|c| c["text"].as_str().unwrap()).collect();
            assert_eq!(choice["text"], text, "{more}");
            assert_eq!(own().next_back().unwrap()["finish_reason"], choice["finish_reason"]);
            for list in ["tokens", "token_logprobs", "text_offset"] {
                let parts = own().filter_map(|c| c["logprobs"][list].as_array()).flatten();
                let parts: Vec<Value> = parts.cloned().collect();
                let expected = choice["logprobs"][list].as_array().cloned().unwrap_or_default();
                assert_eq!(parts, expected, "{more} {list}");
            }
        }
    }
}

#[test]
fn s08_s31_prompts_and_bans_at_the_edge() {
    let service = service("");
    let empty = complete(&service, &json!({"prompt": ""}));
    assert_eq!(empty["usage"]["prompt_tokens"], 1);
    assert_eq!(refused(&service, &json!({"prompt": []}), 400, "prompt"), "invalid_value");
    let reply = service.post(PATH, &body(&json!({"allowed_tokens": [2]})));
    let (code, message) = reply.error(400);
    assert_eq!(code, "no_token_allowed");
    assert!(message.contains("no token allowed"), "{message}");
    let reply = service.post(PATH, &body(&json!({"prompt": "Q".repeat(300)})));
    let (code, message) = reply.error(400);
    assert_eq!(code, "context_length_exceeded");
    assert!(message.contains("300") && message.contains("256"), "{message}");
    assert_eq!(
        service.post(PATH, &body(&json!({"prompt": [300]}))).error(400).0,
        "token_out_of_range"
    );
}

#[test]
fn w21_the_other_policies_leave_the_choice_and_say_what_was_done() {
    let on = service("");
    let bare = complete(&on, &json!({"watermark": false}));
    assert_eq!(bare["greenmark"], json!({"watermarked": false}));
    assert_eq!(bare["choices"][0]["text"], generated(&on, &["--no-watermark"]));
    refused(&on, &json!({"watermark": false, "profile": "main"}), 400, "watermark");
    refused(&on, &json!({"profile": "secret"}), 400, "profile");
    let reply = on.post(PATH, &body(&json!({"watermark": false})));
    assert_eq!(reply.header("greenmark-watermarked"), Some("false"));
    assert_eq!(reply.header("greenmark-profile"), None);
    let service = service("[generation]\npolicy = \"opt-in\"");
    assert_eq!(complete(&service, &json!({}))["greenmark"]["watermarked"], false);
    for more in [json!({"watermark": true}), json!({"profile": "main"})] {
        let marked = complete(&service, &more);
        assert_eq!(marked["greenmark"]["profile"], "main");
        assert!(marked["greenmark"]["expected"][0]["scored"].as_u64().unwrap() > 20);
    }
}

#[test]
fn models_are_listed_under_every_name() {
    let service = service("[generation]\naliases = [\"org/alias\"]");
    let list = service.get("/v1/models").json();
    let ids: Vec<&str> =
        list["data"].as_array().unwrap().iter().map(|m| m["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["llama", "org/alias"]);
    assert_eq!(service.get("/v1/models/org/alias").json()["object"], "model");
    assert_eq!(service.get("/v1/models/gpt").error(404).0, "model_not_found");
    assert_eq!(complete(&service, &json!({"model": "org/alias"}))["model"], "llama");
    let detector = Service::tiny(&[]);
    assert_eq!(detector.get("/v1/models").json()["data"], json!([]));
    assert_eq!(detector.post(PATH, &json!({"prompt": "x"})).error(404).0, "no_generation");
}

/// Starts a text that takes long and leaves it to the caller to read or drop.
pub(crate) fn long_text(service: &Service, stream: bool) -> std::net::TcpStream {
    let request =
        json!({"prompt": "Q", "max_tokens": 60000, "min_tokens": 60000, "stream": stream});
    let bytes = client::request(
        "POST",
        PATH,
        &[("Content-Type", "application/json")],
        request.to_string().as_bytes(),
    );
    let mut connection = client::connect(service.address);
    connection.write_all(&bytes).unwrap();
    connection
}

/// Waits until a short text is let in again.
fn until_free(service: &Service) -> Duration {
    let started = Instant::now();
    loop {
        let reply = service.post(PATH, &json!({"prompt": "Q", "max_tokens": 2}));
        if reply.status == 200 {
            return started.elapsed();
        }
        assert_eq!(reply.error(429).0, "queue_full");
        assert!(started.elapsed() < Duration::from_secs(20), "the slot never came free");
        thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) const ONE_PLACE: &str = "[generation]\nmax_batch = 1\nqueue = 0\ncache_tokens = 90000";

#[test]
fn h07_a_client_that_leaves_frees_its_slot() {
    let service = long_service(ONE_PLACE);
    for stream in [true, false] {
        let connection = long_text(&service, stream);
        thread::sleep(Duration::from_millis(300));
        let full = service.post(PATH, &json!({"prompt": "Q", "max_tokens": 2}));
        assert_eq!(full.error(429).0, "queue_full");
        assert!(full.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
        drop(connection);
        until_free(&service);
    }
}

#[test]
fn h07_those_that_left_the_queue_never_start_and_the_next_is_served() {
    let service = long_service("[generation]\nmax_batch = 1\nqueue = 8\ncache_tokens = 90000");
    let running = long_text(&service, true);
    thread::sleep(Duration::from_millis(200));
    let waiting: Vec<_> = (0..8).map(|_| long_text(&service, false)).collect();
    thread::sleep(Duration::from_millis(200));
    assert_eq!(
        service.post(PATH, &json!({"prompt": "Q", "max_tokens": 2})).error(429).0,
        "queue_full"
    );
    drop(waiting);
    drop(running);
    // Eight texts of 60000 tokens would take minutes.
    assert!(until_free(&service) < Duration::from_secs(20));
}

#[test]
fn h06_over_capacity_every_request_ends() {
    let service = long_service("[generation]\nmax_batch = 2\nqueue = 4\ncache_tokens = 90000");
    let request = json!({"prompt": "Q", "max_tokens": 300, "min_tokens": 300});
    let statuses: Vec<u16> = thread::scope(|scope| {
        let runs: Vec<_> = (0..30)
            .map(|_| {
                scope.spawn(|| {
                    let reply = service.post(PATH, &request);
                    assert!(
                        reply.status == 200 || reply.header("retry-after").is_some(),
                        "{}",
                        reply.text()
                    );
                    reply.status
                })
            })
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).collect()
    });
    assert!(statuses.iter().all(|status| [200, 429].contains(status)), "{statuses:?}");
    assert!(statuses.iter().filter(|status| **status == 200).count() >= 6, "{statuses:?}");
    assert_eq!(service.post(PATH, &request).status, 200);
}

//! What the policy `enforce` holds against requests, over a socket with a tiny checkpoint.

use serde_json::json;

use crate::client;
use crate::generation::{PATH, body, complete, refused, service};
use crate::support::{KEY, User, tiny_model, tiny_tokenizer};

#[test]
fn w21_an_enforced_mark_cannot_be_talked_away() {
    let service = service("[generation]\npolicy = \"enforce\"");
    let marked = complete(&service, &json!({}));
    assert_eq!(marked["greenmark"]["watermarked"], true);
    assert_eq!(marked["greenmark"]["key_fingerprint"].as_str().unwrap().len(), 16);
    assert_eq!(
        refused(&service, &json!({"watermark": false}), 403, "watermark"),
        "watermark_enforced"
    );
    for name in [
        "delta",
        "gamma",
        "key",
        "scheme",
        "context_width",
        "hash_key",
        "extra_body",
        "no_watermark",
        "repeats",
        "seed_tag",
    ] {
        assert_eq!(refused(&service, &json!({name: 0}), 400, name), "unknown_field", "{name}");
    }
    for (more, param) in [
        (json!({"temperature": 0.1}), "temperature"),
        (json!({"top_k": 1}), "top_k"),
        (json!({"top_p": 0.01}), "top_p"),
        (json!({"min_p": 1}), "min_p"),
        (json!({"typical_p": 0.01}), "typical_p"),
        (json!({"epsilon_cutoff": 0.9}), "epsilon_cutoff"),
        (json!({"eta_cutoff": 0.9}), "eta_cutoff"),
        (json!({"top_n_sigma": 0.01}), "top_n_sigma"),
        (json!({"mirostat": {"mode": 2, "tau": 0.01}}), "mirostat"),
        (json!({"repetition_penalty": 0.01}), "repetition_penalty"),
        (json!({"presence_penalty": -2}), "presence_penalty"),
        (json!({"frequency_penalty": -2}), "frequency_penalty"),
        (json!({"logit_bias": {"40": 100}}), "logit_bias.40"),
        (json!({"logit_bias": {"40": "-inf"}}), "logit_bias.40"),
        (json!({"bad_words": [[40]]}), "bad_words"),
        (json!({"allowed_tokens": [40]}), "allowed_tokens"),
        (json!({"penalty_last_n": 64, "presence_penalty": 2}), "penalty_last_n"),
        (json!({"no_repeat_ngram_size": 1}), "no_repeat_ngram_size"),
        (json!({"dry": {"multiplier": 1e30}}), "dry"),
        (json!({"xtc": {"probability": 1, "threshold": 0}}), "xtc"),
        (json!({"order": "llama.cpp"}), "order"),
        (json!({"repetition_penalty": 2}), "repetition_penalty"),
        (json!({"logprobs": 5}), "logprobs"),
        (json!({"logprobs": 0}), "logprobs"),
    ] {
        assert_eq!(refused(&service, &more, 403, param), "watermark_enforced", "{more}");
    }
    // Headers decide nothing, and what is within the bounds works.
    let headers = [
        ("Content-Type", "application/json"),
        ("greenmark-watermarked", "false"),
        ("X-Watermark", "false"),
    ];
    let bytes = body(&json!({})).to_string();
    let reply = client::send(service.address, "POST", PATH, &headers, bytes.as_bytes());
    assert_eq!(reply.header("greenmark-watermarked"), Some("true"));
    assert_eq!(reply.json()["choices"], marked["choices"]);
    complete(
        &service,
        &json!({"temperature": 0, "watermark": true, "top_p": 0.95, "top_k": 40,
        "logit_bias": {"40": 1}, "frequency_penalty": 1, "min_p": 0.05,
        "repetition_penalty": 1.1, "min_tokens_to_keep": 5}),
    );
    // A value that switches an option off asks for nothing.
    complete(
        &service,
        &json!({"typical_p": 1, "epsilon_cutoff": 0, "no_repeat_ngram_size": 0, "bad_words": [],
        "dry": {"multiplier": 0}, "xtc": {"probability": 0}, "mirostat": {"mode": 0}}),
    );
    let chat = json!({"messages": [{"role": "user", "content": "x"}], "logprobs": true});
    let reply = service.post("/v1/chat/completions", &chat);
    assert_eq!(reply.error(403).0, "watermark_enforced");
}

#[test]
fn w21_an_operator_may_allow_more() {
    let service = service(
        "[generation]\npolicy = \"enforce\"\n[generation.enforce]\nmin_top_k = 1\n\
         max_logprobs = 2\nallow = [\"xtc\", \"penalty_last_n\"]",
    );
    let allowed = json!({"top_k": 1, "xtc": {"probability": 1}, "penalty_last_n": 64});
    complete(&service, &allowed);
    complete(&service, &json!({"logprobs": 2}));
    assert_eq!(refused(&service, &json!({"logprobs": 3}), 403, "logprobs"), "watermark_enforced");
    let typical = json!({"typical_p": 0.5});
    assert_eq!(refused(&service, &typical, 403, "typical_p"), "watermark_enforced");
}

/// A service that is told to start with this profile and policy, as far as it gets.
fn started_with(user: &User, profile: &str, policy: &str) -> (i32, String) {
    let (model, tokenizer) = (tiny_model("llama"), tiny_tokenizer());
    let profile = user.file("profile.json", profile);
    let key = user.key("key", KEY);
    let config = user.file(
        "serve.toml",
        format!(
            "[model]\nspec = \"{model}\"\ntokenizer = \"{tokenizer}\"\n{policy}\n[[profiles]]\n\
             name = \"main\"\nprofile = \"{profile}\"\nkey_file = \"{key}\"\n\
             tokenizer = \"{tokenizer}\"\n"
        ),
    );
    let run = user.run(&["serve", "--port", "0", "--offline", "--config", &config]);
    (run.code, run.stderr)
}

#[test]
fn w20_a_profile_that_marks_nothing_stops_the_start_with_the_reason() {
    let user = User::new();
    let (key, tokenizer) = (user.key("key", KEY), tiny_tokenizer());
    let shown = user.run(&["profile", "show", "--key-file", &key, "--tokenizer", &tokenizer]);
    let with = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut profile = shown.json();
        change(&mut profile);
        profile.to_string()
    };
    let enforce = "[generation]\npolicy = \"enforce\"";
    let unmarked = with(&|profile| profile["scheme"]["delta"] = 0.0.into());
    let (code, said) = started_with(&user, &unmarked, enforce);
    assert_ne!(code, 0, "{said}");
    assert!(said.contains("delta 0 marks nothing"), "{said}");

    let pieces = with(&|profile| profile["context"]["prompt"] = "none".into());
    let (code, said) = started_with(&user, &pieces, enforce);
    assert_ne!(code, 0, "{said}");
    assert!(said.contains("without the prompt's tail"), "{said}");

    // Under every policy.
    let once = with(&|profile| {
        profile["context"]["width"] = 0.into();
        profile["context"]["repeats"] = "skip".into();
    });
    let (code, said) = started_with(&user, &once, "");
    assert_ne!(code, 0, "{said}");
    assert!(said.contains("with width 0 every context is the same"), "{said}");
}

#[test]
fn w30_a_request_chooses_no_key_and_no_hash() {
    for policy in ["enforce", "default-on", "opt-in"] {
        let service = service(&format!("[generation]\npolicy = \"{policy}\""));
        for name in ["key", "key_id", "key_file", "hash_key", "hash", "seeding_scheme", "salt"] {
            let more = json!({name: "15485863"});
            assert_eq!(refused(&service, &more, 400, name), "unknown_field", "{policy} {name}");
        }
        let marked = complete(&service, &json!({"watermark": true}));
        assert_eq!(marked["greenmark"]["profile"], "main");
    }
}

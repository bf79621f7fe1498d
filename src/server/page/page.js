// The page: what is asked, what runs, what is shown.

import * as api from "/page/api.js";
import { byId, el, button, show } from "/page/dom.js";
import { counted } from "/page/numbers.js";
import { overview } from "/page/overview.js";
import { renderResult } from "/page/report.js";
import { problem } from "/page/words.js";

/** The choice of every profile; no profile may have this name. */
const ALL = "all";

/** Texts above this many bytes are not coloured: the list of tokens is a hundred times as long. */
const LISTED_BYTES = 500_000;

/** A pasted text of more characters is kept beside the text field: a browser takes minutes to lay it
 *  out in there. */
const LONG_PASTE = 200_000;

/** Room for what surrounds a file in a request. */
const ENVELOPE = 4_096;

const NAME_OF_PASTED = "Pasted text";

/** `waiting` holds the files and long texts that are to be checked. */
const state = { info: null, waiting: [], running: null };

// Access.

const isPublic = () => state.info?.caller.role === "public";

async function connect() {
  const said = byId("access-state");
  try {
    state.info = await api.service();
    await fillProfiles();
    said.textContent = standing();
    // A service without keys has nothing to ask for.
    show(byId("access"), api.hasKey() || isPublic());
    show(byId("access-fields"), true);
    report(null);
  } catch (error) {
    state.info = null;
    show(byId("access"), true);
    if (error.status === 503) {
      said.textContent = "The service is loading its tokenizer; this page waits for it.";
      setTimeout(connect, 2_000);
      return;
    }
    const wanted = error.status === 401;
    show(byId("access-fields"), wanted);
    const unknown = "The service does not know this key. Check it for missing characters.";
    said.textContent = wanted
      ? api.hasKey() ? unknown : "This service wants an API key. Its operator gives them."
      : problem(error).join(". ");
    if (!wanted) said.append(" ", button("Try again", connect, { class: "small" }));
  }
  show(byId("forget"), api.hasKey());
  arrange();
}

function standing() {
  const { name, role } = state.info.caller;
  if (!api.hasKey()) return "Without a key you see the verdict only.";
  const may = { public: "see verdicts", reviewer: "see full reports", operator: "do everything" };
  return `The key “${name}” may ${may[role] ?? "use this service"}.`;
}

async function fillProfiles() {
  const known = await api.profiles();
  const list = byId("profile");
  const chosen = list.value;
  const options = known.map(({ name, standing: kind }) =>
    el("option", { value: name }, kind === "retired" ? `${name} (retired)` : name),
  );
  if (known.length > 1) {
    options.push(el("option", { value: ALL }, `All ${known.length}; each is paid for`));
  }
  list.replaceChildren(...options);
  if (options.some((option) => option.value === chosen)) list.value = chosen;
  // After a change of key the first profile alone would miss every text of the time before.
  else if (known.some(({ standing: kind }) => kind === "retired")) list.value = ALL;
}

/** Shows what the role and the service allow. */
function arrange() {
  const limited = state.info === null || isPublic();
  show(byId("options"), !isPublic());
  show(byId("drop"), !isPublic());
  show(byId("public-note"), isPublic());
  show(byId("entropy-choice"), state.info?.engine === true && !limited);
  byId("check").disabled = state.info === null || state.running !== null;
  if (state.info) byId("version").textContent = `greenmark ${state.info.version}`;
}

byId("access").addEventListener("submit", (event) => {
  event.preventDefault();
  api.useKey(byId("key").value, byId("keep").checked);
  byId("key").value = "";
  connect();
});

byId("forget").addEventListener("click", () => {
  api.useKey("", false);
  byId("result").replaceChildren();
  connect();
});

// Files and long texts.

function addFiles(files) {
  for (const file of files) {
    const work = (asked, signal) => askFile(file, asked, signal);
    state.waiting.push({ name: file.name, size: file.size, work });
  }
  listWaiting();
}

function listWaiting() {
  const list = byId("chosen");
  const items = state.waiting.map((one, index) => {
    const remove = () => {
      state.waiting.splice(index, 1);
      listWaiting();
      byId("text").focus();
    };
    const name = el("bdi", {}, one.name);
    return el("li", {}, el("span", {}, name, ` (${size(one.size)})`),
      button("Remove", remove, { class: "small", "aria-label": `Remove ${one.name}` }));
  });
  list.replaceChildren(...items);
  show(list, items.length > 0);
}

byId("text").addEventListener("paste", (event) => {
  const text = event.clipboardData.getData("text/plain");
  if (text.length <= LONG_PASTE) return;
  event.preventDefault();
  const work = (asked, signal) => askText(text, asked, signal);
  state.waiting.push({ name: NAME_OF_PASTED, size: bytesOf(text), work });
  listWaiting();
  byId("status").textContent = "The pasted text is long and is kept below the text field.";
});

function size(bytes) {
  if (bytes < 1_000) return counted(bytes, "byte");
  return bytes < 1e6 ? `${Math.round(bytes / 1e3)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}

byId("files").addEventListener("change", (event) => {
  addFiles(event.target.files);
  // The list below is what counts; a file can be chosen again after it was removed.
  event.target.value = "";
});

const ask = byId("ask");
for (const kind of ["dragenter", "dragover"]) {
  window.addEventListener(kind, (event) => {
    event.preventDefault();
    ask.classList.toggle("over", ask.contains(event.target) && !isPublic());
  });
}
window.addEventListener("dragleave", (event) => {
  if (event.relatedTarget === null) ask.classList.remove("over");
});
// A file that misses the form must not replace the page.
window.addEventListener("drop", (event) => {
  if (event.target === byId("text") && event.dataTransfer.files.length === 0) return;
  event.preventDefault();
  ask.classList.remove("over");
  if (ask.contains(event.target) && !isPublic()) addFiles(event.dataTransfer.files);
});

// Asking.

/** What is asked for, as fields of a request, and whether windows are among it. */
function question() {
  const chosen = byId("profile").value;
  const fields = chosen === ALL ? { profiles: ALL } : { profile: chosen };
  if (isPublic()) return { fields: { ...fields, detail: "verdict" }, windows: false };
  const windows = byId("windows").checked;
  if (windows) fields.windows = true;
  if (byId("sentences").checked) fields.sentences = true;
  if (byId("normalize").checked) fields.normalize = ["newlines", "zero-width", "confusables", "nfc"];
  if (byId("entropy").checked && !byId("entropy-choice").hidden) fields.entropy = true;
  return { fields, windows };
}

/** The length that the service counts: bytes of UTF-8. */
const bytesOf = (text) => new TextEncoder().encode(text).length;

/** Whether the service refuses to list the tokens of so long a text. */
const tooLongToList = (error) => error.param === "detail";

function tooLarge(bytes) {
  const most = state.info.detect.max_body;
  if (bytes <= most) return;
  const message = `it has ${size(bytes)}; this service takes at most ${size(most)} at once`;
  throw new api.Problem(413, { message, code: "body_too_large" });
}

async function askText(text, asked, signal) {
  // Half of a character, which JSON cannot carry, becomes a replacement character.
  const whole = text.toWellFormed?.() ?? text;
  const read = (detail) => {
    const fields = { ...asked.fields, detail, text: whole };
    tooLarge(bytesOf(JSON.stringify(fields)));
    return api.detect(fields, signal);
  };
  const listed = bytesOf(whole) <= LISTED_BYTES;
  let bytes;
  try {
    bytes = await read(asked.fields.detail ?? (listed ? "tokens" : "report"));
  } catch (error) {
    if (!listed || !tooLongToList(error)) throw error;
    bytes = await read("report");
  }
  const found = { name: NAME_OF_PASTED, text: whole, bytes };
  const reply = api.parse(bytes);
  return entries(found, reply.object === "greenmark.profiles" ? { result: reply } : { report: reply }, asked);
}

async function askFile(file, asked, signal) {
  tooLarge(file.size + ENVELOPE);
  const read = async (detail) => {
    const bytes = await api.detectFile(file, { ...asked.fields, detail }, signal);
    return { bytes, reply: api.parse(bytes).data[0] };
  };
  let { bytes, reply } = await read(file.size <= LISTED_BYTES ? "tokens" : "report");
  // A small file may hold a long text.
  if (reply.error && tooLongToList(reply.error)) ({ bytes, reply } = await read("report"));
  if (reply.error) throw new api.Problem(422, reply.error);
  return entries({ name: file.name, text: reply.text, notes: reply.notes, bytes }, reply, asked);
}

/** One entry for each profile; the one that decides says so. */
function entries(found, { report, result }, asked) {
  if (report) return [{ ...found, asked, report, profile: null }];
  return result.results.map((one) => ({
    ...found, asked, report: one.report, profile: one.profile,
    decides: one.profile === result.profile,
  }));
}

async function run(event) {
  event.preventDefault();
  if (state.running || state.info === null) return;
  const text = byId("text").value;
  const jobs = [...state.waiting];
  if (text.trim() !== "") {
    const work = (asked, signal) => askText(text, asked, signal);
    jobs.unshift({ name: NAME_OF_PASTED, work });
  }
  if (jobs.length === 0) {
    report(new api.Problem(400, { message: "Paste a text or choose a file first." }));
    byId("text").focus();
    return;
  }
  const asked = question();
  start(jobs.length);
  const found = [];
  let cancelled = false;
  for (const [index, job] of jobs.entries()) {
    progress(index, jobs);
    try {
      found.push(...(await job.work(asked, state.running.signal)));
    } catch (error) {
      if (error.name === "AbortError") {
        cancelled = true;
        break;
      }
      found.push({ name: job.name, asked, error });
    }
  }
  const failed = found.length === 1 && found[0].error;
  finish(cancelled ? "Cancelled." : failed ? "Not checked." : "Done.");
  present(found, jobs.length);
}

function start(number) {
  state.running = new AbortController();
  report(null);
  byId("result").replaceChildren();
  const bar = byId("progress");
  bar.max = number;
  bar.removeAttribute("value");
  show(bar, true);
  show(byId("cancel"), true);
  byId("cancel").focus();
  ask.setAttribute("aria-busy", "true");
  arrange();
}

function progress(index, jobs) {
  if (jobs.length > 1) byId("progress").value = index;
  byId("status").textContent =
    jobs.length > 1 ? `Checking ${index + 1} of ${jobs.length}: ${jobs[index].name}` : "Checking …";
}

function finish(words) {
  state.running = null;
  show(byId("progress"), false);
  show(byId("cancel"), false);
  ask.removeAttribute("aria-busy");
  byId("status").textContent = words;
  arrange();
}

byId("cancel").addEventListener("click", () => state.running?.abort());
ask.addEventListener("submit", run);

// Showing.

function present(found, number) {
  const place = byId("result");
  if (found.length === 0) {
    byId("check").focus();
    return;
  }
  if (found.length === 1 && found[0].error) {
    byId("check").focus();
    report(found[0].error);
    return;
  }
  if (found.length === 1) {
    focusOn(renderResult(place, found[0], found[0].asked, page));
    return;
  }
  const opened = el("div", { class: "opened" });
  const open = (item) => {
    report(null);
    focusOn(renderResult(opened, item, item.asked, page));
  };
  const list = overview(found, number, open);
  place.replaceChildren(list, opened);
  const deciding = number === 1 ? found.find((item) => item.decides) : null;
  if (deciding) renderResult(opened, deciding, deciding.asked, page);
  focusOn(list.querySelector("h2"));
}

function focusOn(heading) {
  heading.focus({ preventScroll: true });
  heading.scrollIntoView({ block: "start" });
}

/** The HTML report of a result. */
async function page(item) {
  const { detail: _, ...fields } = item.asked.fields;
  const name = [...item.name].slice(0, 200).join("");
  try {
    const bytes = await api.detect({ ...fields, text: item.text, format: "html", name });
    byId("status").textContent = "The HTML report is downloaded.";
    return bytes;
  } catch (error) {
    report(error);
    return null;
  }
}

/** Says what went wrong and the way out; nothing to say takes the last one away. */
function report(error) {
  const place = byId("problem");
  if (!error) {
    place.replaceChildren();
    return;
  }
  const [title, words] = problem(error);
  place.replaceChildren(
    el(
      "section",
      { class: "problem" },
      el("h2", {}, title),
      el("p", {}, words),
      error.request && el("p", {}, el("small", {}, "Request ", el("code", {}, error.request))),
    ),
  );
  place.scrollIntoView({ block: "nearest" });
}

window.addEventListener("error", (event) => report(event.error ?? new Error(event.message)));
window.addEventListener("unhandledrejection", (event) => report(event.reason));

connect();

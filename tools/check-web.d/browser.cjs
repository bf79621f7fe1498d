// Drives the page in headless Chromium and asserts what a reader sees.
//
// usage: node browser.cjs ADDRESS PICTURES open|keys [PUBLIC REVIEWER]
// ONLY=case,case in the environment runs these cases alone.

"use strict";
const assert = require("node:assert/strict");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const { chromium } = require("playwright-core");
const {
  accessible, address, check, fits, heading, open, paste, picture, pictures, ready, result, seen,
} = require("./harness.cjs");

const [mode, publicFile, reviewerFile] = process.argv.slice(4);
const lines = (file) => fs.readFileSync(file, "utf8").trim().split("\n").map((line) => JSON.parse(line));
const MARKED = lines("data/marked/smollm2.jsonl").map(({ text }) => text.trim());
const HUMAN = lines("data/human/passages.jsonl").map(({ text }) => text);
const HOSTILE =
  '<img src=x onerror="document.title=\'broken\'"><script>document.title="broken"</script> ' +
  "left \u202e right\u202c and \u200b\u200b\u200bzero, \u0007 bell, a pair of \u{1f600} and ﬁ. ";

const FLAGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
  "--disable-background-networking", "--disable-component-update", "--disable-sync",
];

const CASES = {
  async start(browser) {
    const page = await open(browser);
    await ready(page);
    assert.equal(await page.title(), "Check a text for a watermark");
    assert.equal(await page.isVisible("#access"), false);
    await accessible(page, "the empty page");
    await picture(page, "start");
    await page.click("#check");
    await page.waitForSelector("#problem .problem");
    assert.match(await page.innerText("#problem"), /Paste a text or choose a file first/);
    assert.deepEqual(await page.context().cookies(), []);
  },

  async marked(browser) {
    const page = await open(browser);
    await ready(page);
    const mixed = `${HUMAN[0]}\n\n${MARKED[0]}\n\n${MARKED[2]}\n\n${HUMAN[1]}`;
    await page.fill("#text", mixed);
    await check(page);
    assert.match(await heading(page), /Watermark found/);
    const said = await result(page);
    assert.match(said, /evidence as strong as this appears in about 1 in /);
    assert.match(said, /This does not say who wrote the text/);
    assert.match(said, /passage 1 starts/);
    assert.match(said, /repeats? what was scored before/);
    const shown = await page.evaluate(() => {
      const box = document.getElementById("shown-text").cloneNode(true);
      for (const node of box.querySelectorAll(".n, .edge")) node.remove();
      return box.textContent;
    });
    assert.equal(shown, mixed, "the text is shown as it is");
    assert.ok((await page.locator("#shown-text .g").count()) > 100);
    assert.equal(await page.locator("#result #sentences-title").count(), 1);
    await accessible(page, "a marked text");
    await picture(page, "marked");
    // The picture of docs/serve.md.
    const { y } = await page.locator("#result").boundingBox();
    const top = y + (await page.evaluate(() => window.scrollY));
    const clip = { x: 80, y: top - 20, width: 940, height: 1_750 };
    await page.screenshot({ path: path.join(pictures, "page.png"), fullPage: true, clip });
    await page.click("summary");
    assert.ok((await page.locator("details table tbody tr").count()) > 200);
    await accessible(page, "the list of tokens");
    const [json] = await Promise.all([page.waitForEvent("download"), page.click("text=Download the JSON")]);
    const report = JSON.parse(fs.readFileSync(await json.path(), "utf8"));
    assert.equal(report.verdict, "watermarked");
    assert.equal(json.suggestedFilename(), "Pasted_text.report.json");
    const [html] = await Promise.all([page.waitForEvent("download"), page.click("text=Download the HTML report")]);
    const document = fs.readFileSync(await html.path(), "utf8");
    assert.match(document, /<title>watermarked: Pasted text<\/title>/);
  },

  async human(browser) {
    const page = await open(browser);
    await ready(page);
    await page.fill("#text", HUMAN[5]);
    await check(page);
    assert.match(await heading(page), /No watermark found/);
    const said = await result(page);
    assert.match(said, /not evidence that a person wrote the text/);
    assert.doesNotMatch(said, /human[- ]written/i);
    await accessible(page, "a human text");
    await picture(page, "human");
  },

  async short(browser) {
    const page = await open(browser);
    await ready(page);
    await page.fill("#text", "The boat came in.");
    await check(page);
    assert.match(await heading(page), /Too little text/);
    // Windows are looked for, so that 2^-16 is the first to reach alpha.
    assert.match(await result(page), /4 tokens could be tested\. A conclusion takes at least 16, even if all of them are green/);
    await accessible(page, "a short text");
    await picture(page, "short");
  },

  async files(browser) {
    const page = await open(browser);
    await ready(page);
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), "page-"));
    const file = (name, text) => {
      fs.writeFileSync(path.join(folder, name), text);
      return path.join(folder, name);
    };
    // One file, dropped.
    const dropped = await page.evaluateHandle((text) => {
      const data = new DataTransfer();
      data.items.add(new File([text], "letter.md", { type: "text/markdown" }));
      return data;
    }, `# Letter\n\n${MARKED[1]}\n\n${MARKED[3]}\n`);
    await page.dispatchEvent("#drop", "dragover", { dataTransfer: dropped });
    await picture(page, "dragging", false);
    await page.dispatchEvent("#drop", "drop", { dataTransfer: dropped });
    assert.match(await page.innerText("#chosen"), /letter\.md/);
    await check(page);
    assert.match(await heading(page), /Watermark found/);
    assert.match(await result(page), /letter\.md/);
    // Several, chosen.
    await page.setInputFiles("#files", [
      file("human.txt", HUMAN[7]), file("short.txt", "Too short."), file("broken.docx", "no docx"),
      file("<b>name.txt", MARKED[4] + MARKED[5]),
      file("page.html", `<html><title>T</title><p>${MARKED[8]}</p><p>${MARKED[9]}</p><math><mi>x</mi></math></html>`),
    ]);
    await check(page);
    const title = await page.innerText("#list-title");
    assert.equal(title, "6 results: 3 with a watermark, 1 without one found, 1 with too little text, 1 not checked");
    assert.match(await result(page), /<b>name\.txt/);
    await accessible(page, "a list of files");
    await picture(page, "files");
    await page.click('button[aria-label="Open human.txt"]');
    await page.waitForSelector("#verdict-words");
    assert.match(await heading(page), /No watermark found/);
    await page.click('button[aria-label="Remove letter.md"]');
    assert.equal(await page.locator("#chosen li").count(), 5);
    await page.click('button[aria-label="Open page.html"]');
    await page.waitForSelector("#verdict-words");
    assert.match(await result(page), /How the text was taken out of the file/);
    await accessible(page, "a web page as a file");
    await picture(page, "file");
    fs.rmSync(folder, { recursive: true });
  },

  async profiles(browser) {
    const page = await open(browser);
    await ready(page);
    await page.selectOption("#profile", "other");
    await page.fill("#text", MARKED[0] + MARKED[2]);
    await check(page);
    assert.match(await heading(page), /No watermark found/);
    await page.selectOption("#profile", "all");
    await page.check("#normalize");
    await check(page);
    assert.match(await page.innerText("#list-title"), /Watermark found \(2 watermarks tried\)/);
    assert.match(await heading(page), /Watermark found/);
    assert.match(await result(page), /The corrected p pays for \d+ tests: one for each sentence with a scored token, under every watermark/);
    await accessible(page, "several profiles");
    await picture(page, "profiles");
    // The HTML report pays for both as the page does.
    const [request] = await Promise.all([
      page.waitForRequest("**/v1/detect"), page.click("text=Download the HTML report"),
    ]);
    const { format, profile, profiles } = request.postDataJSON();
    assert.deepEqual({ format, profile, profiles }, { format: "html", profile: undefined, profiles: "all" });
    assert.equal((await request.response()).status(), 200);
    await page.click('button[aria-label="Open Pasted text, other"]');
    await page.waitForFunction(() => /No watermark/.test(document.querySelector(".verdict h2").textContent));
    assert.doesNotMatch(await result(page), /Download the HTML report/);
    // A short text counts what both pay.
    await page.fill("#text", "The boat came in.");
    await check(page);
    assert.match(await result(page), /A conclusion takes at least 18, /);
  },

  // A detection service runs no model; what one would add to a report is put into the reply here.
  async entropy(browser) {
    const page = await open(browser);
    await page.route("**/v1/service", async (route) => {
      const reply = await route.fetch();
      await route.fulfill({ response: reply, json: { ...(await reply.json()), engine: true } });
    });
    await page.route("**/v1/detect", async (route) => {
      const { entropy, ...fields } = route.request().postDataJSON();
      assert.equal(entropy, true);
      const reply = await route.fetch({ postData: fields });
      const report = await reply.json();
      report.entropy = {
        source: { kind: "model", name: "smollm2" }, sampling: { status: "assumed" }, unaligned: 0,
        mean_entropy: 2.5,
        tests: [{
          rule: "likelihood_ratio", decides: true, scored: 80, low_entropy: 7, unaligned: 0,
          statistic: 90, mean: 60, variance: 20, z: 6.7, p_value: 1e-11, log10_p: -11,
        }],
        sentence: "if this text is marked, it would be found in 99.9% of cases",
      };
      for (const detail of report.token_details) Object.assign(detail, { entropy: 1.25, weight: 0.5 });
      await route.fulfill({ response: reply, json: report });
    });
    await page.reload();
    await ready(page);
    await page.check("#entropy");
    await page.fill("#text", MARKED[0] + MARKED[2]);
    await check(page);
    const said = await result(page);
    assert.match(said, /How much could be marked/);
    assert.match(said, /If this text is marked, it would be found in 99\.9% of cases\./);
    assert.match(said, /likelihood ratio\s+80\s+7\s+6\.70/);
    await page.click("summary");
    assert.match(await page.innerText("details table"), /1\.250\s+0\.500/);
    await accessible(page, "the entropy view");
  },

  async hostile(browser) {
    const page = await open(browser);
    await ready(page);
    await page.fill("#text", HOSTILE + MARKED[6]);
    await check(page);
    assert.notEqual(await page.title(), "broken");
    assert.equal(await page.locator("#result img, #result script").count(), 0);
    const said = await result(page);
    assert.match(said, /<img src=x onerror/);
    assert.match(said, /U\+202E/);
    assert.match(said, /U\+200B/);
    assert.match(said, /U\+0007/);
    assert.doesNotMatch(await page.textContent("#result"), /[\u202e\u200b\u0007]/u);
    await accessible(page, "a hostile text");
    await picture(page, "hostile");
  },

  async long(browser) {
    const page = await open(browser);
    await ready(page);
    const text = Array.from({ length: 4 }, () => HUMAN.join("\n\n")).join("\n\n") + MARKED.join("\n\n");
    assert.ok(text.length > 1_000_000);
    await paste(page, text);
    assert.match(await page.innerText("#chosen"), /Pasted text \(1\.\d MB\)/);
    await check(page);
    assert.match(await heading(page), /Watermark found/);
    assert.match(await result(page), /too long to colour every token/);
    assert.match(await result(page), /Characters 1 to 20,000 of 1,/);
    assert.ok((await page.locator("#shown-text *").count()) < 3_000);
    await page.click('a[href="#passage1"]');
    await page.waitForSelector("#passage1");
    assert.ok(await page.isVisible("#passage1"));
    // Of medium length: coloured, in parts.
    const medium = HUMAN.slice(0, 60).join("\n\n");
    await page.click('button[aria-label="Remove Pasted text"]');
    await page.fill("#text", medium);
    await check(page);
    assert.match(await result(page), /Tokens 1 to 5,000 of /);
    await page.click("text=Later");
    assert.match(await result(page), /Tokens 5,001 to 10,000 of /);
    await picture(page, "long", false);
  },

  // Three bytes a character: the service counts those, a string does not.
  async wide(browser) {
    const page = await open(browser);
    await ready(page);
    const details = [];
    page.on("request", (request) => {
      if (request.url().endsWith("/v1/detect")) details.push(request.postDataJSON().detail);
    });
    await paste(page, "\u6c34".repeat(340_000));
    await check(page);
    assert.match(await result(page), /too long to colour every token/);
    // A service that lists less than the page expects is asked again.
    await page.click('button[aria-label="Remove Pasted text"]');
    await page.route("**/v1/detect", async (route) => {
      if (route.request().postDataJSON().detail !== "tokens") return route.continue();
      const error = { message: "too long to list", code: "invalid_field", param: "detail" };
      return route.fulfill({ status: 400, json: { error } });
    });
    await page.fill("#text", HUMAN[5]);
    await check(page);
    assert.match(await heading(page), /No watermark found/);
    assert.deepEqual(details, ["report", "tokens", "report"]);
    seen.console = seen.console.filter((line) => !/status of 400/.test(line));
  },

  async cancel(browser) {
    const page = await open(browser);
    await ready(page);
    await page.route("**/v1/detect", () => {});
    await page.fill("#text", HUMAN[0]);
    await page.click("#check");
    await page.waitForSelector("#cancel:not([hidden])");
    assert.equal(await page.evaluate(() => document.activeElement.id), "cancel");
    await picture(page, "running", false);
    await page.click("#cancel");
    await page.waitForSelector("#cancel", { state: "hidden" });
    assert.equal(await page.innerText("#status"), "Cancelled.");
    await page.unroute("**/v1/detect");
    await page.route("**/v1/detect", (route) => route.abort());
    await page.click("#check");
    await page.waitForSelector("#problem .problem");
    assert.match(await page.innerText("#problem"), /The service does not answer/);
    await page.unroute("**/v1/detect");
    await page.fill("#text", "");
    await paste(page, "a b ".repeat(2_600_000));
    await page.click("#check");
    await page.waitForFunction(() => /too large/.test(document.getElementById("problem").textContent));
    assert.match(await page.innerText("#problem"), /takes at most 10\.0 MB/);
    assert.equal(await page.innerText("#status"), "Not checked.");
    assert.ok((await page.locator("#problem .problem").boundingBox()).y < 900, "the problem is in view");
    await picture(page, "problem", false);
    // The console holds the aborted request, which is ours.
    seen.console = seen.console.filter((line) => !/net::ERR_FAILED/.test(line));
  },

  async keyboard(browser) {
    const page = await open(browser);
    await ready(page);
    const reached = [];
    const press = async (key) => {
      await page.keyboard.press(key);
      return page.evaluate(() => document.activeElement.id || document.activeElement.className);
    };
    for (let turn = 0; turn < 12; turn += 1) {
      const id = await press("Tab");
      reached.push(id);
      if (id === "text") await page.keyboard.insertText(MARKED[0] + MARKED[2]);
      if (id === "check") break;
    }
    assert.deepEqual(reached, ["skip", "text", "files", "profile", "windows", "sentences", "normalize", "check"]);
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.activeElement?.id === "verdict-words");
    assert.match(await heading(page), /Watermark found/);
    await press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Download the HTML report");
  },

  async dark(browser) {
    const page = await open(browser, { colorScheme: "dark" });
    await ready(page);
    await page.fill("#text", `${HUMAN[0]}\n\n${MARKED[0]}\n\n${MARKED[2]}`);
    await check(page);
    await accessible(page, "the dark page");
    await picture(page, "dark");
  },

  async narrow(browser) {
    const page = await open(browser, { viewport: { width: 390, height: 844 }, hasTouch: true });
    await ready(page);
    await fits(page, "the empty page");
    await page.fill("#text", `${HUMAN[0]}\n\n${MARKED[0]}\n\n${MARKED[2]}\n\n${"x".repeat(400)}`);
    await check(page);
    await fits(page, "a result");
    await accessible(page, "the narrow page");
    await picture(page, "narrow");
  },

  async print(browser) {
    const page = await open(browser);
    await ready(page);
    await page.fill("#text", MARKED[0] + MARKED[2]);
    await check(page);
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.isVisible("#ask"), false);
    assert.equal(await page.isVisible("#verdict-words"), true);
    await picture(page, "print");
  },

  async docs(browser) {
    const page = await open(browser);
    await page.goto(`${address}/docs`);
    await page.waitForSelector("#shapes");
    assert.match(await page.innerText("#content"), /POST \/v1\/detect/);
    await accessible(page, "the docs page");
    await fits(page, "the docs page");
    await picture(page, "docs", false);
    await page.setViewportSize({ width: 390, height: 844 });
    await fits(page, "the narrow docs page");
    await page.emulateMedia({ colorScheme: "dark" });
    await accessible(page, "the dark docs page");
  },
};

const WITH_KEYS = {
  async keys(browser) {
    const page = await open(browser);
    await page.waitForSelector("#access-fields:not([hidden])");
    assert.match(await page.innerText("#access"), /wants an API key/);
    assert.equal(await page.isDisabled("#check"), true);
    await accessible(page, "the page before a key");
    await picture(page, "key-wanted", false);
    await page.fill("#key", "gmk_wrong");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => /does not know this key/.test(document.getElementById("access-state").textContent));
    // A public key sees the verdict only.
    await page.fill("#key", fs.readFileSync(publicFile, "utf8").trim());
    await page.keyboard.press("Enter");
    await ready(page);
    assert.match(await page.innerText("#access-state"), /may see verdicts/);
    assert.equal(await page.isVisible("#options"), false);
    assert.match(await page.innerText("#public-note"), /the verdict only/);
    await page.fill("#text", MARKED[0] + MARKED[2]);
    await check(page);
    assert.match(await heading(page), /Watermark found/);
    assert.equal(await page.locator("#result .cards").count(), 0);
    await accessible(page, "a verdict alone");
    await picture(page, "public");
    // A reviewer's key sees everything, and is forgotten with the page.
    await page.fill("#key", fs.readFileSync(reviewerFile, "utf8").trim());
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => /full reports/.test(document.getElementById("access-state").textContent));
    await check(page);
    assert.equal(await page.locator("#result .cards").count(), 1);
    assert.equal(await page.evaluate(() => sessionStorage.length + localStorage.length), 0);
    assert.equal(page.url(), `${address}/`);
    await page.reload();
    await page.waitForFunction(() => /wants an API key/.test(document.getElementById("access-state").textContent));
    // Kept for the tab when that is asked for.
    await page.fill("#key", fs.readFileSync(reviewerFile, "utf8").trim());
    await page.check("#keep");
    await page.click("text=Use this key");
    await ready(page);
    await page.reload();
    await ready(page);
    await page.click("#forget");
    await page.waitForFunction(() => /wants an API key/.test(document.getElementById("access-state").textContent));
    assert.equal(await page.evaluate(() => sessionStorage.length), 0);
  },
};

async function main() {
  const data = fs.mkdtempSync(path.join(os.tmpdir(), "chromium-"));
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS, headless: true,
    env: { ...process.env, HOME: data },
  });
  const only = process.env.ONLY?.split(",");
  try {
    for (const [name, run] of Object.entries(mode === "keys" ? WITH_KEYS : CASES)) {
      if (only && !only.includes(name)) continue;
      const started = Date.now();
      try {
        await run(browser);
      } catch (error) {
        error.message = `${name}: ${error.message}`;
        throw error;
      } finally {
        for (const context of browser.contexts()) await context.close();
      }
      console.log(`${name}: passed in ${((Date.now() - started) / 1000).toFixed(1)} s`);
    }
    assert.deepEqual(seen.foreign, [], "requests to anywhere else");
    assert.deepEqual(seen.console, [], "messages of the browser's console");
  } finally {
    await browser.close();
    fs.rmSync(data, { recursive: true, force: true });
  }
}

main().catch((error) => {
  // What was seen may be a whole text.
  const [, ...places] = error.stack.split(/\n(?= {4}at )/u);
  console.error(error.message.slice(0, 2_000), places.slice(0, 3).join("\n"));
  process.exit(1);
});

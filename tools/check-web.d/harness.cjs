// What every case of browser.cjs uses: pages that are watched, and what a reader does with them.

"use strict";
const assert = require("node:assert/strict");
const fs = require("node:fs");
const path = require("node:path");
const axe = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const [address, pictures] = process.argv.slice(2);

/** Everything that a page loaded or complained of, over the whole run. */
const seen = { foreign: [], console: [] };

async function open(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1100, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  page.on("request", (request) => {
    const own = request.url().startsWith(`${address}/`) || /^(data|blob):/.test(request.url());
    if (!own) seen.foreign.push(request.url());
  });
  page.on("pageerror", (error) => seen.console.push(`error: ${error.message}`));
  page.on("console", (message) => {
    // Chromium itself reports replies of 4xx so; the page's own words are asserted instead.
    const status = /^Failed to load resource: the server responded with a status of 4/.test(message.text());
    if (["error", "warning"].includes(message.type()) && !status) seen.console.push(message.text());
  });
  await page.goto(address);
  return page;
}

const ready = (page) => page.waitForFunction(() => !document.getElementById("check").disabled);

async function check(page) {
  await page.click("#check");
  await page.waitForFunction(() => document.activeElement?.tagName === "H2");
}

const heading = (page) => page.textContent("#result .verdict h2");
const result = (page) => page.innerText("#result");

/** Pastes as a reader would; `fill` types, which takes a browser minutes for a long text. */
const paste = (page, text) =>
  page.evaluate((text) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", text);
    const event = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
    document.getElementById("text").dispatchEvent(event);
  }, text);

async function accessible(page, where) {
  await page.evaluate(axe);
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 120)).join(" | ")}`);
  });
  assert.deepEqual(found, [], `accessibility of ${where}`);
}

const picture = (page, name, fullPage = true) =>
  page.screenshot({ path: path.join(pictures, `${name}.png`), fullPage });

/** Nothing is wider than the window. */
async function fits(page, where) {
  const [inner, width] = await page.evaluate(() => [
    document.documentElement.clientWidth, document.documentElement.scrollWidth,
  ]);
  assert.ok(width <= inner, `${where}: ${width} px of content in ${inner} px`);
}

module.exports = { accessible, address, check, fits, heading, open, paste, picture, pictures, ready, result, seen };

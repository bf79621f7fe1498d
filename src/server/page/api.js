// The service's interface as this page uses it. The key stays in memory, or in the storage of
// this tab when the reader asks for that; it travels in one header and nowhere else.

/** The name under which the tab keeps a key. */
const STORED = "greenmark.key";

let key = sessionStorage.getItem(STORED) ?? "";

/** Whether a key is in use. */
export const hasKey = () => key !== "";

/** Uses a key from now on; an empty one forgets it. */
export function useKey(given, kept) {
  key = given.trim();
  if (kept && key !== "") sessionStorage.setItem(STORED, key);
  else sessionStorage.removeItem(STORED);
}

/** A reply that is no answer, or none at all. */
export class Problem extends Error {
  constructor(status, { message, code, param } = {}, after = null, request = null) {
    super(message);
    this.status = status;
    this.code = code;
    this.param = param;
    this.after = after;
    this.request = request;
  }
}

async function send(path, options) {
  // A key holds letters and digits; anything else cannot travel in a header.
  if (!/^[\x21-\x7e]*$/u.test(key)) {
    throw new Problem(401, { message: "the key holds characters that no key has", code: "invalid_key" });
  }
  const headers = { ...options.headers, ...(key === "" ? {} : { Authorization: `Bearer ${key}` }) };
  let reply;
  let bytes;
  try {
    reply = await fetch(path, { credentials: "omit", cache: "no-store", ...options, headers });
    bytes = await reply.arrayBuffer();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, { message: "the service did not answer" });
  }
  if (reply.ok) return bytes;
  let found = {};
  try {
    found = parse(bytes).error ?? {};
  } catch {
    // A proxy in between may answer in another form.
    found = { message: `the reply is ${reply.status} ${reply.statusText}` };
  }
  const after = reply.headers.get("Retry-After");
  throw new Problem(reply.status, found, after, reply.headers.get("X-Request-Id"));
}

/** A JSON reply's value. */
export const parse = (bytes) => JSON.parse(new TextDecoder().decode(bytes));

/** What the service is and who asks. */
export const service = async () => parse(await send("/v1/service", {}));

/** The profiles. */
export const profiles = async () => parse(await send("/v1/profiles", {})).data;

/** The exact bytes of the answer to a text. */
export const detect = (fields, signal) =>
  send("/v1/detect", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(fields),
    signal,
  });

/** The exact bytes of the answer to a file. */
export function detectFile(file, fields, signal) {
  const body = new FormData();
  body.append("options", new Blob([JSON.stringify(fields)], { type: "application/json" }));
  body.append("file", file, file.name);
  return send("/v1/detect/file", { method: "POST", body, signal });
}

// The description of the interface, drawn from /openapi.json.

import { byId, el, prose, table, words } from "/page/dom.js";

const document_ = await read();
if (document_) draw(document_);

async function read() {
  try {
    const reply = await fetch("/openapi.json", { credentials: "omit" });
    if (!reply.ok) throw new Error(`the service answered ${reply.status}`);
    return await reply.json();
  } catch (error) {
    byId("waiting").textContent = `The description could not be loaded: ${error.message}. Load this page again.`;
    return null;
  }
}

/** What a reference stands for. */
function resolve(schema) {
  let found = schema;
  while (found?.$ref) {
    found = found.$ref
      .slice(2)
      .split("/")
      .reduce((value, name) => value[name], document_);
  }
  return found ?? {};
}

function draw({ info, tags, paths, components }) {
  const routes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const parts = tags.map(({ name }) => {
    const own = routes.filter(({ operation }) => operation.tags.includes(name));
    return el("section", { "aria-labelledby": `tag-${name}` },
      el("h2", { id: `tag-${name}` }, name), own.map(route));
  });
  const shapes = Object.entries(components.schemas).map(([name, schema]) => shape(name, schema));
  byId("content").replaceChildren(
    el("p", {}, prose(info.description)),
    el("nav", { "aria-label": "Routes" }, el("ul", {}, routes.map(({ path, method, operation }) =>
      el("li", {}, el("a", { href: `#${operation.operationId}` }, `${method.toUpperCase()} ${path}`),
        `: ${operation.summary}`)))),
    ...parts,
    el("section", { "aria-labelledby": "shapes" }, el("h2", { id: "shapes" }, "Shapes"), shapes),
  );
  // The place in the address was not there yet when the page came.
  if (location.hash.length > 1) byId(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
}

function route({ path, method, operation }) {
  const role = operation["x-role"];
  return el("article", { class: "route", "aria-labelledby": operation.operationId },
    el("h3", { id: operation.operationId }, el("span", { class: "method" }, method.toUpperCase()), ` ${path}`),
    el("p", {}, el("b", {}, operation.summary), ". ", prose(operation.description ?? "")),
    el("p", { class: "aside" }, role ? `Needs a key of the role ${role}.` : "Open to everybody."),
    operation.parameters && [el("h4", {}, "Parameters"), el("ul", {}, operation.parameters.map((one) =>
      el("li", {}, el("code", {}, one.name), `: ${one.description}`)))],
    operation.requestBody && request(operation),
    el("h4", {}, "Replies"),
    el("ul", {}, Object.entries(operation.responses).map(([status, response]) => answer(status, response))),
  );
}

function request({ operationId, requestBody }) {
  return Object.entries(requestBody.content).map(([kind, { schema, examples }]) => [
    el("h4", {}, "Body ", el("code", {}, kind)),
    schema.$ref ? el("p", {}, type(schema)) : fields(`Fields of ${operationId}`, schema),
    Object.entries(examples ?? {}).map(([name, { value }]) =>
      el("details", {}, el("summary", {}, `Example: ${name}`),
        el("pre", { tabindex: "0" }, typeof value === "string" ? value : JSON.stringify(value, null, 2)))),
  ]);
}

function answer(status, response) {
  const found = resolve(response);
  const kinds = Object.entries(found.content ?? {}).map(([kind, { schema }]) => [
    " ", el("code", {}, kind), schema?.$ref || schema?.oneOf ? [" ", type(schema)] : null,
  ]);
  return el("li", {}, el("b", {}, status === "default" ? "Other" : status), ": ", prose(found.description), kinds);
}

function shape(name, schema) {
  return el("article", { class: "route", "aria-labelledby": `shape-${name}` },
    el("h3", { id: `shape-${name}` }, name),
    schema.description && el("p", {}, prose(schema.description)),
    fields(`Fields of ${name}`, schema));
}

function fields(caption, schema) {
  if (!schema.properties) return el("p", {}, type({ ...schema, description: undefined }));
  const rows = Object.entries(schema.properties).map(([name, property]) => ({
    cells: [
      [el("code", {}, name), schema.required?.includes(name) ? el("small", {}, " required") : null],
      words(type(property)),
      words(meaning(property)),
    ],
  }));
  const list = table(caption, ["Field", "Type", "Meaning"], rows);
  list.classList.add("fields");
  return [
    list,
    schema.additionalProperties === false && el("p", { class: "aside" }, "Nothing else is allowed."),
  ];
}

function meaning(property) {
  const { description, default: given, minimum, maximum } = resolve(property);
  const bounds = [
    minimum !== undefined && `at least ${minimum}`,
    maximum !== undefined && maximum !== 4294967295 && `at most ${maximum}`,
  ].filter(Boolean);
  return [
    prose(description ?? ""),
    bounds.length > 0 ? ` Range: ${bounds.join(", ")}.` : null,
    given !== undefined ? ` Default: ${JSON.stringify(given)}.` : null,
  ];
}

/** A type in words, with links to named shapes. */
function type(schema) {
  if (schema.$ref) {
    const path = schema.$ref.slice(2).split("/");
    if (path.length === 3) return el("a", { href: `#shape-${path[2]}` }, path[2]);
    return type(resolve(schema));
  }
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices && !schema.properties) {
    return choices.map((choice, index) => [index > 0 ? " or " : null, type(choice)]);
  }
  if (schema.const !== undefined) return el("code", {}, JSON.stringify(schema.const));
  if (schema.enum) {
    return schema.enum.map((value, index) => [index > 0 ? ", " : null, el("code", {}, JSON.stringify(value))]);
  }
  if (schema.type === "array") return ["list of ", schema.items ? type(schema.items) : "values"];
  if (schema.type === "object" && schema.properties) {
    return ["object of ", Object.keys(schema.properties).map((name, index) =>
      [index > 0 ? ", " : null, el("code", {}, name)])];
  }
  if (Array.isArray(schema.type)) return schema.type.join(" or ");
  return schema.type ?? "any value";
}

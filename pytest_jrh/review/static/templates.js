// The dialog of the agent templates: draft on the left; difference and default beside it.

import { $, complain, get, later, element, post } from "./page.js";

let template = null;
let asked = 0;
let chosen = 0;
let names = [];

export async function openTemplates() {
  $("templates").showModal();
  try {
    names = (await get("/templates")).templates;
    drawList();
    await choose(template?.key ?? names[0].key);
  } catch (error) {
    complain(error);
  }
}

function drawList() {
  const several = new Set(names.map((one) => one.suite)).size > 1;
  $("template-list").replaceChildren(
    ...names.map((one) => {
      const button = element(
        "button",
        { type: "button", onclick: () => leave() && choose(one.key).catch(complain) },
        element("b", {}, one.stage),
        element("span", { className: "quiet" }, ` ${one.test}${several ? ` · ${one.suite}` : ""}`),
        ...(one.overridden ? [element("span", { className: "tag edited" }, "override")] : []),
      );
      if (one.key === template?.key) button.setAttribute("aria-current", "true");
      return element("li", {}, button);
    }),
  );
}

const unsaved = () => template !== null && $("template-text").value !== template.text;
const leave = () => !unsaved() || confirm("Leave this template without saving it?");

async function choose(key) {
  const ours = ++chosen;
  // What somebody types before the template is there would be replaced by it.
  $("template-text").readOnly = true;
  try {
    const shown = await get(`/templates/${key}`);
    if (ours === chosen) draw(shown);
  } finally {
    if (ours === chosen) $("template-text").readOnly = false;
  }
}

function draw(shown) {
  template = shown;
  names = names.map((one) => (one.key === shown.key ? { ...one, overridden: shown.overridden } : one));
  drawList();
  $("template-file").textContent = shown.file;
  $("template-state").textContent = shown.overridden ? "override" : "default";
  $("template-state").className = shown.overridden ? "tag edited" : "tag plain";
  $("template-text").value = shown.text;
  // As the browser keeps it, line ends included, so that "unsaved" means that somebody typed.
  template.text = $("template-text").value;
  $("panel-default").replaceChildren(element("p", { className: "quiet" }, shown.origin), element("pre", {}, shown.default));
  $("template-variables").replaceChildren(
    ...shown.variables.map((name) =>
      element(
        "button",
        { type: "button", className: shown.required.includes(name) ? "required" : "", title: variableTitle(name), onclick: () => insert(name) },
        name,
      ),
    ),
  );
  $("template-revert").disabled = !shown.overridden;
  check();
}

const variableTitle = (name) => `${template.required.includes(name) ? "required; " : ""}puts {{ ${name} }} where the cursor is`;

function insert(name) {
  const area = $("template-text");
  // RAND's files write one brace, ours two; a draft keeps to its own way.
  const single = !/\{\{|\{%/.test(area.value) && /\{\w+\}/.test(area.value);
  area.setRangeText(single ? `{${name}}` : `{{ ${name} }}`, area.selectionStart, area.selectionEnd, "end");
  area.focus();
  typed();
}

async function check() {
  const ours = ++asked;
  let shown;
  try {
    shown = await post(`/templates/${template.key}/check`, { text: $("template-text").value });
  } catch (error) {
    return complain(error);
  }
  // A slow answer to an older draft must not replace a newer one's.
  if (ours !== asked) return;
  problems(shown.problems);
  $("panel-difference").replaceChildren(...difference(shown.difference));
  if (!shown.problems.length) $("template-save").disabled = !unsaved();
}

function difference(lines) {
  if (!lines.length) return [element("p", { className: "quiet" }, "The draft is the default.")];
  const kinds = { "+": "new", "-": "gone", "@": "place" };
  return [
    element(
      "pre",
      { className: "lines" },
      ...lines.map((line) => element({ "+": "ins", "-": "del" }[line[0]] ?? "span", { className: kinds[line[0]] ?? "" }, `${line}\n`)),
    ),
  ];
}

function problems(found) {
  $("template-problems").replaceChildren(
    ...found.map((one) =>
      element("li", {}, element("b", {}, one.line ? `line ${one.line}: ` : ""), one.message, ...(one.hint ? [element("br"), element("span", { className: "quiet" }, one.hint)] : [])),
    ),
  );
  $("template-text").setAttribute("aria-invalid", String(found.length > 0));
  $("template-save").disabled = found.length > 0;
}

const typed = (() => {
  const soon = later(check, 250);
  return () => {
    $("template-save").disabled = true;
    $("template-says").textContent = unsaved() ? "not saved" : "";
    soon();
  };
})();
$("template-text").addEventListener("input", typed);

async function done(work, said) {
  try {
    draw(await work());
    $("template-says").textContent = said;
  } catch (error) {
    if (error.problems?.length) problems(error.problems);
    else complain(error);
  }
}

$("template-save").addEventListener("click", () =>
  done(() => post(`/templates/${template.key}`, { text: $("template-text").value }), "Saved: used from the next run on."),
);
$("template-revert").addEventListener("click", () => {
  if (confirm("Delete the override and go back to the default?")) done(() => post(`/templates/${template.key}/revert`), "Reverted.");
});

// Esc and the close button alike ask before a draft is lost.
$("templates").addEventListener("cancel", (event) => {
  if (!leave()) event.preventDefault();
});
$("templates").querySelector("header form").addEventListener("submit", (event) => {
  if (!leave()) event.preventDefault();
});
$("templates").addEventListener("close", () => {
  template = null;
  $("template-says").textContent = "";
});

const tabs = ["difference", "default"];
function choosePanel(name, focus) {
  for (const one of tabs) {
    const tab = $(`tab-${one}`);
    tab.setAttribute("aria-selected", String(one === name));
    tab.tabIndex = one === name ? 0 : -1;
    $(`panel-${one}`).hidden = one !== name;
    if (focus && one === name) tab.focus();
  }
}
for (const name of tabs) {
  $(`tab-${name}`).addEventListener("click", () => choosePanel(name, false));
  $(`tab-${name}`).addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) choosePanel(tabs[(tabs.indexOf(name) + step + tabs.length) % tabs.length], true);
  });
}

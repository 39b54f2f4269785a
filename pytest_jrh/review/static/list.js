// The list on the left: rows, filters, search, and which of them is open.

import { $, complain, get, later, element } from "./page.js";

const rows = new Map();
const items = new Map();
let order = [];
let shown = [];
let found = null;
let current = null;

export const row = (key) => rows.get(key);
export const currentKey = () => current;
export const firstKey = () => shown[0] ?? null;

// Takes in new and changed rows; everything else of the list stays as it is.
export function take(fresh, whole) {
  if (whole) {
    for (const item of items.values()) item.remove();
    rows.clear();
    items.clear();
  }
  for (const one of fresh) {
    rows.set(one.key, one);
    draw(one);
  }
  order = [...rows.values()].sort((a, b) => a.position - b.position).map((one) => one.key);
  if (fresh.length) {
    const suites = new Set([...rows.values()].map((one) => one.suite));
    options($("by-suite"), suites);
    $("suites").hidden = suites.size < 2;
    options($("by-test"), new Set([...rows.values()].map((one) => one.test)));
    options($("by-rubric"), new Set([...rows.values()].map((one) => one.rubric)));
  }
  if (found) search();
  filter();
}

export function open(key) {
  const before = items.get(current);
  before?.firstChild.removeAttribute("aria-current");
  current = key;
  for (const item of items.values()) item.firstChild.tabIndex = -1;
  const link = items.get(key)?.firstChild;
  if (link) {
    link.setAttribute("aria-current", "true");
    link.tabIndex = 0;
    items.get(key).scrollIntoView({ block: "nearest" });
  } else if (shown.length) items.get(shown[0]).firstChild.tabIndex = 0;
}

// The case `step` places further among those shown; with `undecided`, the next of those, around the end.
export function neighbour(step, undecided = false) {
  const place = order.indexOf(current);
  const ahead = step > 0 ? order.slice(place + 1) : order.slice(0, Math.max(place, 0)).reverse();
  const candidates = undecided ? [...ahead, ...order.slice(0, Math.max(place, 0))] : ahead;
  const visible = new Set(shown);
  return candidates.find((key) => visible.has(key) && !(undecided && isSettled(rows.get(key)))) ?? null;
}

// Nothing can be decided about a case that the verifier rejected.
const isSettled = (one) => one.action || one.rejected;

function draw(one) {
  let item = items.get(one.key);
  if (!item) {
    item = element("li", {}, element("a", { href: `#${one.key}`, tabIndex: -1 }));
    items.set(one.key, item);
  }
  const status = one.rejected ? "by-verifier" : (one.action ?? (one.void ? "void" : "undecided"));
  const spoken = one.rejected ? "rejected by the verifier" : status;
  const edits = one.edits ? `${one.edits} edit${one.edits > 1 ? "s" : ""}` : "unchanged";
  const target = one.target === null ? "" : ` → ${one.target}`;
  const epoch = one.epoch === 1 ? "" : ` e${one.epoch}`;
  item.firstChild.replaceChildren(
    element("span", { className: `mark ${status}`, title: spoken }),
    element("span", { className: "hidden" }, `${spoken}: `),
    element("span", { className: "name" }, element("bdi", {}, one.run), `${epoch}${target}`),
    element("span", { className: "sub" }, element("bdi", {}, one.rubric), ` · ${one.test === "agent_positives" ? "positive" : edits}`),
    element("span", { className: "hint", dir: "auto" }, one.hint || `${one.turns} turns`),
  );
  item.dataset.status = status;
}

function options(select, values) {
  const there = new Set([...select.options].map((option) => option.value));
  for (const value of [...values].sort()) if (!there.has(value)) select.append(element("option", { value }, value));
}

function fits(one) {
  const decision = $("by-decision").value;
  const special = { undecided: !isSettled(one), void: one.void, "by-verifier": one.rejected };
  const wanted = special[decision] ?? one.action === decision;
  return (
    (!decision || wanted) &&
    (!$("by-suite").value || one.suite === $("by-suite").value) &&
    (!$("by-test").value || one.test === $("by-test").value) &&
    (!$("by-rubric").value || one.rubric === $("by-rubric").value) &&
    (!found || found.has(one.key))
  );
}

export function filter() {
  shown = order.filter((key) => fits(rows.get(key)));
  const visible = new Set(shown);
  let last = null;
  for (const key of order) {
    const item = items.get(key);
    item.hidden = !visible.has(key);
    // Moved only where it does not stand right already, so that focus and scrolling stay.
    const place = last ? last.nextSibling : $("rows").firstChild;
    if (item !== place) $("rows").insertBefore(item, place);
    last = item;
  }
  const filtered = shown.length !== order.length;
  $("matches").textContent = filtered ? `${shown.length} of ${order.length} cases` : "";
  if (!shown.includes(current) && shown.length) items.get(shown[0]).firstChild.tabIndex = 0;
}

const search = later(async () => {
  const text = $("search").value.trim();
  try {
    found = text ? new Set((await get(`/search?q=${encodeURIComponent(text)}`)).keys) : null;
  } catch (error) {
    complain(error);
  }
  filter();
}, 150);

for (const id of ["by-decision", "by-suite", "by-test", "by-rubric"]) $(id).addEventListener("change", filter);
$("search").addEventListener("input", search);
$("filters").addEventListener("submit", (event) => event.preventDefault());
$("rows").addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const links = [...$("rows").querySelectorAll("li:not([hidden]) > a")];
  links[links.indexOf(document.activeElement) + step]?.focus();
});

// The case on the right: loading, decisions, edits, differences.

import * as list from "./list.js";
import { $, complain, foldIfNarrow, get, isOn, jump, element, pane, place, post, putCase, remember, remembered, say } from "./page.js";

let loaded = null;
let loading = null;
let mode = remembered("mode", "inline");
// The case that was decided just before the one that is open.
let last = null;
let decided = null;

export const isEditing = () => place.querySelector(".editor") !== null;

// Whether somebody has typed what is not saved yet.
const typed = (area) => area.value !== area.defaultValue.replaceAll("\r\n", "\n");
const isDirty = () => [...place.querySelectorAll(".editor textarea")].some(typed);
export const mayLeave = () => !isDirty() || confirm("Leave the text that you are editing without saving it?");
addEventListener("beforeunload", (event) => {
  if (isDirty()) event.preventDefault();
});

// What another browser decided meanwhile must not take the text away that is being typed; it is shown afterwards.
const CHANGED = "this case was changed while you edit it";
let missed = false;
export function refresh(key) {
  missed = isEditing();
  if (missed) say(CHANGED);
  else show(key, { keep: true });
}

// Shows a case; `keep` is for one that changed while it was open: reading goes on where it was.
export async function show(key, { keep = false, focus = false } = {}) {
  loading?.abort();
  loading = new AbortController();
  if (!keep) {
    last = decided;
    decided = null;
  }
  let text;
  // While the first one is on its way, that there is none yet is no longer true.
  place.querySelector(".empty")?.remove();
  try {
    text = await get(`/cases/${key}`, "text", loading.signal);
  } catch (error) {
    if (error.name !== "AbortError") complain(error);
    return;
  }
  // Somebody began to type while the answer was on its way.
  if (keep && isEditing()) {
    missed = true;
    say(CHANGED);
    return;
  }
  const open = keep ? new Set([...place.querySelectorAll("details.fold[open]")].map(firstIndex)) : new Set();
  const scrolled = pane.scrollTop;
  putCase(text);
  loaded = key;
  prepare();
  for (const fold of place.querySelectorAll("details.fold")) if (open.has(firstIndex(fold))) fold.open = true;
  if (keep) pane.scrollTop = scrolled;
  else {
    pane.scrollTop = 0;
    if (!$("note").matches(":focus")) $("note").value = list.row(key)?.note ?? "";
    first();
  }
  if (focus) $("case-title").focus({ preventScroll: true });
  buttons();
}

const firstIndex = (fold) => fold.querySelector("[data-index]").dataset.index;

function prepare() {
  showMode();
  foldIfNarrow(".rubric, .facts details");
  pinned.disconnect();
  pinned.observe(place.querySelector(".pinned"));
  underPinned();
}

// What is jumped to must not end up under the part that stays in place.
const underPinned = () => {
  pane.style.scrollPaddingTop = `${(place.querySelector(".pinned")?.offsetHeight ?? 0) + 10}px`;
};
const pinned = new ResizeObserver(underPinned);

// The first changed turn comes into sight; where it is already, the plan above it stays in sight too.
export function first() {
  const index = place.querySelector("article")?.dataset.first;
  if (!index || !pane.offsetHeight) return;
  const turn = $(`turn-${index}`);
  if (turn.getBoundingClientRect().bottom > pane.getBoundingClientRect().bottom - 80) jump(index, { focus: false });
}

export function jumpEdit(step) {
  const turns = [...place.querySelectorAll(".turn.changed")];
  if (!turns.length) return;
  const at = turns.indexOf(document.activeElement.closest?.(".turn.changed"));
  const next = at < 0 ? (step > 0 ? 0 : turns.length - 1) : (at + step + turns.length) % turns.length;
  jump(turns[next].dataset.index);
}

export function cycleMode() {
  const modes = ["inline", "beside", "result"];
  setMode(modes[(modes.indexOf(mode) + 1) % modes.length]);
}

function showMode() {
  place.dataset.mode = mode;
  for (const radio of place.querySelectorAll("input[name=mode]")) radio.checked = radio.value === mode;
}

function setMode(value) {
  mode = value;
  remember("mode", value);
  showMode();
  say({ inline: "differences inline", beside: "original beside edited", result: "edited text alone" }[value]);
}

const digest = () => place.querySelector("article").dataset.digest;

// The state of the buttons follows the row, which also other browsers change.
export function buttons() {
  const one = loaded && list.row(loaded);
  $("decide").hidden = !one;
  if (!one) return;
  for (const part of document.querySelectorAll("#decide .note, #decide .check, #decide .verbs")) part.hidden = one.rejected;
  $("accept").setAttribute("aria-pressed", String(one.action === "accepted" || one.action === "edited"));
  $("reject").setAttribute("aria-pressed", String(one.action === "rejected"));
  $("undo").disabled = !one.action && !last;
  $("previous").disabled = !list.neighbour(-1);
  $("next").disabled = !list.neighbour(1);
}

async function changed(work, spoken) {
  try {
    await work();
    say(spoken);
    return true;
  } catch (error) {
    complain(error);
    return false;
  }
}

export async function decide(action) {
  if (!loaded) return;
  const before = last;
  if (action === "withdrawn" && before && !list.row(loaded).action) return takeBack(before);
  if (list.row(loaded).rejected) return say("the verifier rejected this case: nothing can be decided about it");
  if (isDirty()) return complain(new Error("Save or cancel the text that you are editing first."));
  const key = loaded;
  const done = await changed(
    () => post(`/cases/${key}/decision`, { digest: digest(), action, note: $("note").value }),
    action === "withdrawn" ? "taken back" : action,
  );
  if (!done || loaded !== key) return;
  if (action === "withdrawn") $("note").value = "";
  else if (isOn("advance")) {
    const next = list.neighbour(1, true);
    if (next) {
      location.hash = next;
      decided = key;
    }
  }
}

// Right after a decision, on the next case: back to the one before.
async function takeBack(key) {
  if (isDirty()) return complain(new Error("Save or cancel the text that you are editing first."));
  const body = { digest: list.row(key).digest, action: "withdrawn" };
  if (await changed(() => post(`/cases/${key}/decision`, body), "taken back")) location.hash = key;
}

export async function edit(index = place.querySelector("article")?.dataset.first) {
  if (!loaded) return;
  const editable = [...place.querySelectorAll("[data-edit]")];
  // Of a call that was left out there is nothing to edit: then another changed turn.
  const button = place.querySelector(`[data-edit="${index}"]`) ?? place.querySelector(".turn.changed [data-edit]") ?? editable.at(-1);
  if (!button) return;
  const key = loaded;
  const id = button.closest(".turn").id;
  const address = `/cases/${key}/turns/${button.dataset.edit}`;
  let text;
  try {
    text = await get(address);
  } catch (error) {
    return complain(error);
  }
  // Asked for anew: the case may have been drawn again meanwhile, or another one opened.
  const turn = $(id);
  if (loaded !== key || !turn) return;
  const there = turn.querySelector(".editor textarea");
  if (there) return there.focus();
  const fold = turn.closest("details.fold");
  if (fold) fold.open = true;
  turn.querySelector(".said").prepend(editor(turn, address, text));
  const area = turn.querySelector(".editor textarea");
  area.focus({ preventScroll: true });
  area.setSelectionRange(0, 0);
  turn.scrollIntoView({ block: "nearest" });
}

// Where people type: words, or with `isData` what is set in letters of one width.
function field(label, text, isData = false) {
  const area = element("textarea", { defaultValue: text, spellcheck: !isData, ariaLabel: label, dir: "auto", className: isData ? "data" : "" });
  const lines = isData ? text.split("\n").length : 0;
  area.rows = Math.min(24, Math.max(isData || !text ? 2 : 4, lines + 1, Math.ceil(text.length / 80) + 1));
  return area;
}

const captioned = (area) => element("label", {}, element("span", { className: "caption" }, area.ariaLabel), area);

function editor(turn, address, text) {
  const index = turn.dataset.index;
  const area = field(`New text of turn ${index}`, text.content);
  const calls = (text.calls ?? []).map((call, number) => {
    const name = text.calls.length > 1 ? `call ${number + 1}, ${call.name}` : call.name;
    const args = field(`Arguments of ${name}, as JSON`, call.arguments, true);
    return { call: number, args, result: call.result === null ? null : field(`Result of ${name}`, call.result, true) };
  });
  const fields = [area, ...calls.flatMap(({ args, result }) => [args, result])].filter(Boolean);
  const close = () => {
    box.remove();
    turn.classList.remove("editing");
    turn.focus({ preventScroll: true });
    if (missed) refresh(loaded);
  };
  const save = async (content) => {
    const spoken = content === null ? `turn ${index} is as made` : `turn ${index} edited`;
    const key = loaded;
    const edited = calls.filter(({ args, result }) => typed(args) || (result && typed(result)));
    const body = { digest: digest(), content };
    // All calls of the turn, since what was saved of them before is replaced.
    if (content !== null && (edited.length || text.calls_changed)) {
      body.calls = calls.map(({ call, args, result }) => ({ call, arguments: args.value, result: result && result.value }));
    }
    if (await changed(() => post(address, body), spoken)) {
      close();
      await show(key, { keep: true });
      jump(index);
    }
  };
  const saveTyped = () => (fields.some(typed) ? save(area.value) : close());
  const box = element(
    "div",
    { className: "editor" },
    ...(calls.length ? fields.map(captioned) : [area]),
    element(
      "p",
      { className: "verbs" },
      ...(text.content === text.made && !text.calls_changed ? [] : [element("button", { type: "button", onclick: () => save(null) }, "As made")]),
      element("button", { type: "button", onclick: close }, "Cancel"),
      element("button", { type: "button", className: "primary", onclick: saveTyped }, calls.length ? "Save this turn" : "Save this text"),
    ),
  );
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) saveTyped();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  turn.classList.add("editing");
  return box;
}

place.addEventListener("click", (event) => {
  const target = event.target.closest("[data-edit], [data-jump]");
  if (!target) return;
  if (target.dataset.edit) edit(target.dataset.edit);
  else {
    event.preventDefault();
    jump(target.dataset.jump);
  }
});

place.addEventListener("change", async (event) => {
  if (event.target.name === "mode") setMode(event.target.value);
  if (event.target.id !== "label") return;
  const key = loaded;
  const expected = Number(event.target.value);
  await changed(() => post(`/cases/${key}/label`, { digest: digest(), expected }), `expected label ${expected}`);
  await show(key, { keep: true });
  $("label").focus({ preventScroll: true });
});

$("note").addEventListener("change", () => {
  const one = list.row(loaded);
  if (!one?.action || one.note === $("note").value) return;
  const action = one.action === "rejected" ? "rejected" : "accepted";
  changed(() => post(`/cases/${loaded}/decision`, { digest: digest(), action, note: $("note").value }), "note kept");
});

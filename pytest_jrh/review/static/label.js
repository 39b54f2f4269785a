// Blind labelling: who labels, which case is open, keys and labels.

import {
  $, banner, complain, finished, finishing, foldIfNarrow, get, jump, keys, listen, element, pane, place, post,
  putCase, remember, remembered, say, switches,
} from "./page.js";

const fixed = document.body.dataset.reviewer;
let session = null;
let progress = null;
let me = null;
let rows = [];
// The case that is shown, the one that is asked for, and whether a label is on its way: until all are settled, keys are about nothing.
let current = null;
let wanted = null;
let sending = false;
let loading = null;
let asked = 0;
// Who labels on, once the reviewer has finished.
let others = [];
// The case that was labelled just before the next one was opened.
let last = null;

const DONE = "The run goes on, or has ended: your labels are on the disk. Start it again to go on labelling.";
listen(heard, () => progress?.finalized && DONE);

// Whom the session still waits for, once the reviewer has finished.
function waiting() {
  return others.length ? `You are done. The session goes on when ${others.join(", ")} have finished, too.` : "";
}

async function heard(news) {
  const anew = session !== news.session;
  session = news.session;
  progress = news.progress;
  banner(progress.finalized ? DONE : waiting());
  if (progress.finalized) finished("Finished");
  if (anew) {
    me = null;
    await enter(fixed || remembered("reviewer", ""));
  } else if (me) await load();
  showWaiting();
}

// Under which name; asked once.
async function enter(name) {
  $("enter-problem").textContent = "";
  if (name) {
    try {
      const answer = await post("/reviewers", { name });
      me = { key: answer.reviewer, name: answer.name };
      if (!fixed) remember("reviewer", me.name);
      $("who").textContent = me.name;
      $("who").hidden = false;
      $("who").disabled = Boolean(fixed);
      $("enter").close();
      current = wanted = null;
      others = [];
      return await load();
    } catch (error) {
      if (!error.status) return complain(error);
      $("enter-problem").textContent = error.message;
      $("name").value = name;
    }
  }
  if (!$("enter").open) $("enter").showModal();
}
$("enter-form").addEventListener("submit", (event) => {
  event.preventDefault();
  enter($("name").value);
});
$("enter").addEventListener("cancel", (event) => me || event.preventDefault());
$("who").addEventListener("click", () => {
  $("name").value = me.name;
  $("enter-problem").textContent = "";
  $("enter").showModal();
  $("name").select();
});

const mine = (key = "") => `/reviewers/${me.key}/cases${key && `/${key}`}`;
const row = (key) => rows.find((one) => one.key === key);

async function load() {
  const turn = ++asked;
  try {
    const answer = await get(mine());
    // What was asked for before a label, or before another answer, is out of date.
    if (turn !== asked) return;
    rows = answer.cases;
  } catch (error) {
    return complain(error);
  }
  draw();
  if (!row(wanted) && rows.length) await open((unlabelled() ?? rows[0]).key);
  buttons();
}

const settled = () => current === wanted && !sending;

// Sends what the reviewer says of the open case; true once it is kept.
async function send(what, body) {
  if (!settled()) return false;
  sending = true;
  try {
    const after = await post(`${mine(current)}/${what}`, body);
    asked++;
    Object.assign(row(current), after);
    return true;
  } catch (error) {
    complain(error);
    return false;
  } finally {
    sending = false;
  }
}

const left = () => rows.filter((one) => one.open).length;

// The next case without a label after the one that is open, around the end; one that nobody else has open, if there is one.
function unlabelled() {
  const at = rows.findIndex((one) => one.key === current);
  const open = [...rows.slice(at + 1), ...rows.slice(0, Math.max(at, 0))].filter((one) => one.open);
  return open.find((one) => !one.busy) ?? open[0];
}

function draw() {
  $("legend").hidden = !rows.length;
  const there = new Map([...$("rows").children].map((item) => [item.dataset.key, item]));
  $("rows").replaceChildren(
    ...rows.map((one) => {
      const item = there.get(one.key) ?? element("li", {}, element("button", { type: "button" }));
      item.dataset.key = one.key;
      const button = item.firstChild;
      button.textContent = one.number;
      button.ariaLabel = `Case ${one.number}, ${one.open ? "to label" : "labelled"}`;
      button.className = one.open ? "" : "done";
      if (one.key === current) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
      return item;
    }),
  );
  const total = rows.length, done = total - left();
  $("bar").max = total || 1;
  $("bar").value = done;
  $("counts").textContent = rows.length ? `${done} labelled · ${left()} to go` : "waiting for the cases";
  document.title = `${done}/${total} · Blind labelling`;
}

function showWaiting() {
  if (current || !$("wait-text")) return;
  const now = progress;
  if (!now.drawn) {
    $("wait-text").textContent = `The sample is drawn when all cases are made: ${now.ended} of ${now.total}.`;
  } else if (me && !rows.length) {
    $("wait-title").textContent = "Nothing to label";
    $("wait-text").textContent = now.sample
      ? "Others have labelled all cases that are not for everybody."
      : "This session made no case.";
  }
}

// Shows a case.
async function open(key) {
  loading?.abort();
  loading = new AbortController();
  wanted = key;
  last = null;
  let text;
  try {
    text = await get(mine(key), "text", loading.signal);
  } catch (error) {
    if (error.name === "AbortError") return;
    wanted = current;
    return complain(error);
  }
  putCase(text);
  current = key;
  pane.scrollTop = 0;
  const answers = place.querySelector("template.answers");
  $("levels").replaceChildren($("levels").firstElementChild, answers.content.cloneNode(true));
  $("note").value = $("note").defaultValue = answers.dataset.note;
  choose(answers.dataset.label);
  foldIfNarrow(".facts details, .scale");
  draw();
  buttons();
  $("case-title").focus({ preventScroll: true });
  document.querySelector("#rows [aria-current]")?.scrollIntoView({ block: "nearest" });
}

const chosen = () => $("levels").querySelector("input:checked")?.value ?? "";
const answer = () => place.querySelector("template.answers")?.dataset.label ?? "";
const isChanged = () => chosen() !== answer() || $("note").value.trim() !== $("note").defaultValue;

function choose(value) {
  const input = [...$("levels").querySelectorAll("input")].find((one) => one.value === value);
  if (input) input.checked = true;
  buttons();
  return Boolean(input);
}

function buttons() {
  const one = row(current);
  $("answer").hidden = !one;
  if (!one) return;
  const meaning = $("levels").querySelector("input:checked")?.dataset.meaning ?? "";
  $("meaning").textContent = meaning;
  $("meaning").hidden = !meaning;
  const at = rows.indexOf(one);
  $("previous").disabled = at === 0;
  $("next").disabled = at === rows.length - 1;
  $("undo").disabled = one.open && !chosen() && !last;
  const goesOn = !one.open && !isChanged();
  const isLast = goesOn && !unlabelled();
  $("confirm").firstChild.textContent = isLast ? "Finish " : goesOn ? "Next " : one.open ? "Confirm " : "Change ";
  $("confirm").disabled = isLast ? progress.finalized : !goesOn && !chosen();
}
$("levels").addEventListener("change", buttons);
$("note").addEventListener("input", buttons);

async function confirmLabel() {
  const one = row(current);
  if (!one || !settled()) return;
  if (!one.open && !isChanged()) return goOn();
  if (!chosen()) return say("choose a label first");
  const key = current;
  const label = chosen() === "none" ? null : Number(chosen());
  if (!(await send("label", { label, note: $("note").value }))) return;
  say("labelled");
  draw();
  if (unlabelled()) {
    await goOn();
    last = key;
    buttons();
  } else {
    await open(current);
    await goOn();
  }
}

async function goOn() {
  const following = unlabelled();
  if (following) {
    await open(following.key);
  } else if (!progress.finalized) finish();
}

async function undo() {
  // Right after a label, on the next case: back to the one before.
  if (last && row(current)?.open && !chosen()) await open(last);
  const one = row(current);
  if (!one) return;
  if (!one.open) {
    if (!(await send("withdraw"))) return;
    await open(current);
  }
  for (const input of $("levels").querySelectorAll("input")) input.checked = false;
  say("taken back");
  buttons();
}

function go(step) {
  const next = rows[rows.findIndex((one) => one.key === current) + step];
  if (next) open(next.key);
  else say(step > 0 ? "this is the last case" : "this is the first case");
}

const finish = finishing(
  () => {
    const number = left();
    const rest = number ? `${number} of your cases are without a label. ` : "Every case of yours is labelled. ";
    $("finish-all").hidden = !others.length;
    if (others.length) return `${others.join(", ")} still label. The session goes on when everybody has finished.`;
    const late = number ? "What you label after that does not count as blind: to label the rest another day, close this page instead." : "";
    return `${rest}The session then goes on, and its report shows your labels beside what the cases were made for. ${late}`;
  },
  async (choice) => {
    if (choice === "all") progress = await post("/finalize");
    else {
      const left = await post(`/reviewers/${me.key}/finish`);
      others = left.others;
      progress = left.progress;
      banner(waiting());
    }
  },
);

const binary = (value) => $("levels").querySelectorAll("kbd")[0]?.textContent === "s" && choose(value);
const actions = {
  j: () => go(1),
  k: () => go(-1),
  n: goOn,
  s: () => binary("0"),
  v: () => binary("1"),
  c: () => choose("none"),
  l: () => ($("levels").querySelector("input:checked") ?? $("levels").querySelector("input"))?.focus(),
  t: () => $("note").focus(),
  u: undo,
  f: () => me && finish(),
};

function action(key) {
  const work = "0123456789".includes(key) ? () => choose(key) : actions[key];
  return me && work && (() => settled() && work());
}

keys(action, (event) => {
  const isNote = event.target.id === "note";
  const isEnter = event.key === "Enter" && !event.target.matches("button, a, summary");
  if (isNote && (isEnter || event.key === "Escape")) $("case-title")?.focus({ preventScroll: true });
  else if (isEnter) confirmLabel();
  else return isNote;
  event.preventDefault();
  return true;
});
switches("shortcuts");

for (const [id, action] of Object.entries({ next: actions.j, previous: actions.k, undo })) {
  $(id).addEventListener("click", action);
}
$("form").addEventListener("submit", (event) => {
  event.preventDefault();
  confirmLabel();
});
$("rows").addEventListener("click", (event) => {
  const item = event.target.closest("li");
  if (item) open(item.dataset.key);
});
place.addEventListener("click", (event) => {
  const link = event.target.closest("[data-jump]");
  if (!link) return;
  event.preventDefault();
  jump(link.dataset.jump, { block: "center" });
});

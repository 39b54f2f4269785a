// The page of decisions: news of the session, which case is open, keys, the end.

import * as current from "./case.js";
import * as list from "./list.js";
import { $, banner, finished, finishing, keys, listen, post, say, switches } from "./page.js";
import { openTemplates } from "./templates.js";

let session = null;
let progress = null;

const DONE = "The run has ended: its verdicts are where pytest was started, your decisions count from now on.";
listen(heard, () => progress?.finalized && DONE);

function heard(news) {
  const anew = session !== null && session !== news.session;
  session = news.session;
  banner("");
  list.take(news.rows, news.all || anew);
  showProgress(news.progress);
  const key = list.currentKey();
  if (!key) start();
  else {
    if (news.all) list.open(key);
    if (news.rows.some((one) => one.key === key)) current.refresh(key);
  }
  current.buttons();
}

function start() {
  const key = location.hash.slice(1);
  const first = list.row(key) ? key : list.firstKey();
  if (!first) return;
  if (location.hash.slice(1) === first) route();
  else history.replaceState(null, "", `#${first}`);
  list.open(first);
  current.show(first);
}

function route() {
  const key = location.hash.slice(1);
  if (!list.row(key)) return;
  if (!current.mayLeave()) return history.replaceState(null, "", `#${list.currentKey()}`);
  document.body.dataset.view = "case";
  list.open(key);
  current.show(key, { focus: true });
}
addEventListener("hashchange", route);

function showProgress(now) {
  const before = progress;
  progress = now;
  const total = Math.max(now.total - now.missed, now.made);
  $("bar").max = total || 1;
  $("bar").value = now.decided;
  const open = now.total - now.missed - now.made;
  const parts = [`${now.decided} of ${total} decided`];
  if (open > 0) parts.push(`${open} still to be made`);
  if (now.missed) parts.push(`${now.missed} without a case`);
  $("counts").textContent = now.total || now.made ? parts.join(" · ") : "waiting for the first case";
  document.title = `${now.decided}/${total} · Review`;
  if (now.finalized) {
    banner("Finalized: the tests go on with these decisions. What you decide now counts from the next run on.");
    finished("Finalized");
  }
  if (before && before.made < now.made && open === 0) say("every case is made");
}

function go(step) {
  const key = list.neighbour(step);
  if (key) location.hash = key;
  else say(step > 0 ? "this is the last case" : "this is the first case");
}

function decided(action) {
  return () => current.decide(action);
}

const actions = {
  j: () => go(1),
  k: () => go(-1),
  n: () => current.jumpEdit(1),
  p: () => current.jumpEdit(-1),
  a: decided("accepted"),
  r: decided("rejected"),
  u: decided("withdrawn"),
  e: () => current.edit(),
  d: current.cycleMode,
  l: () => $("label")?.focus(),
  "/": () => {
    document.body.dataset.view = "list";
    $("search").focus();
  },
};

keys(
  (key) => actions[key],
  (event) => {
    const isLeft = event.key === "Escape" && event.target.matches("#search, #note, select");
    if (isLeft) event.target.blur();
    return isLeft;
  },
);
switches("advance", "shortcuts");

for (const [id, key] of Object.entries({ accept: "a", reject: "r", undo: "u", edit: "e", next: "j", previous: "k" })) {
  $(id).addEventListener("click", actions[key]);
}
$("to-list").addEventListener("click", () => (document.body.dataset.view = "list"));
$("rows").addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (!link || link.hash !== location.hash || document.body.dataset.view === "case") return;
  document.body.dataset.view = "case";
  current.first();
});
$("open-templates").addEventListener("click", () => openTemplates());
finishing(() => {
  const left = progress.made - progress.decided;
  const unmade = progress.total - progress.missed - progress.made;
  const parts = [];
  if (unmade > 0) parts.push(`${unmade} case(s) are still to be made and will not be reviewed.`);
  parts.push(left ? `${left} case(s) are undecided and will be used as they were made.` : "Every case is decided.");
  parts.push("The tests then go on with these cases.");
  return parts.join(" ");
}, async () => showProgress(await post("/finalize")));

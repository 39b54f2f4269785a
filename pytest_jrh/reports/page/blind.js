// ---- Blind labelling: the same page with nothing on it but rubric and transcript

const TITLE = "Blind labelling";
const ENDED = "Finished: the run goes on, and its report shows your labels beside what the cases were made for.";
root.classList.add("blind");
let progress = null;
// Who labels: {reviewer, name}, and who labels on once he or she has finished.
let me = null;
let others = [];
// Labels given here, the last one at the end: `u` takes back.
const given = [];
const seenPrompts = new Set();

const isOpen = (row) => !row.value;
FILTERS.push(["open", "to label", isOpen]);
for (const name of Object.keys(PICKS)) PICKS[name] = () => [];
look.row = (row) => make("a", { href: `#case=${row.key}`, tabindex: "-1" },
  make("span", { class: "sign" }, String(row.number)),
  make("span", { class: "what", dir: "auto" }, rubricOf(row).id),
  make("span", { class: "where" }, row.word ? make("span", { class: "tag" }, row.word) : null));

const mine = (path) => `/reviewers/${me.reviewer}/${path}`;
source.body = (row) => tried(() => ask(mine(`cases/${row.key}`)));

listen(async (news) => {
  progress = news.progress;
  if (me) await tried(load);
  else await enter(session.served.reviewer || localStorage.getItem("jrh-reviewer") || "");
  showEnd();
}, () => progress?.finalized && ENDED);

function showEnd() {
  if (progress.finalized) showFinished(ENDED);
  else if (others.length) banner(`You are done. The session goes on when ${others.join(", ")} have finished, too.`);
}

// ---- Under which name; asked once

const name = make("input", { id: "name", required: "", maxlength: "60", autocomplete: "off", "aria-label": "Name", "aria-describedby": "name-problem" });
const nameProblem = make("p", { id: "name-problem", class: "problem", role: "alert" });
const nameForm = make("form", { class: "steps" }, name, make("button", { class: "primary" }, "Begin"));
const entrance = dialog("enter", "Who labels?", make("p", {}, "Your name is kept with each label, so that agreement can be counted."), nameForm, nameProblem);
nameForm.addEventListener("submit", (event) => {
  event.preventDefault();
  enter(name.value);
});
entrance.addEventListener("cancel", (event) => me || event.preventDefault());

const enter = (typed) => tried(async () => {
  if (!typed) throw new Refused("");
  me = await ask("/reviewers", { name: typed });
  if (!session.served.reviewer) localStorage.setItem("jrh-reviewer", me.name);
  $("who").textContent = me.name;
  $("who").disabled = Boolean(session.served.reviewer);
  entrance.close();
  others = [];
  if (view.row) back();
  await load();
}, (error) => {
  nameProblem.textContent = error.message;
  name.value = typed;
  if (!entrance.open) entrance.showModal();
});

async function load() {
  const asking = me;
  const { rows, rubrics } = await ask(mine("cases"));
  // Another person may have taken over meanwhile.
  if (me !== asking) return;
  Object.assign(session.rubrics, rubrics);
  const before = new Set(source.rows.map((row) => row.key));
  if (rows.length !== source.rows.length || !rows.every((row) => before.has(row.key))) clear();
  put(rows.map((row) => ({ ...row, title: `Case ${row.number}`, kind: "", run: "", suite: "", test: "", tags: [], judges: [] })).filter(isNews));
  const done = rows.filter((row) => !isOpen(row)).length;
  const waiting = progress.ended < progress.total ? `The sample is drawn when all cases are made: ${progress.ended} of ${progress.total}.` : "";
  showProgress(TITLE, done, rows.length, waiting || (rows.length ? "" : "There is nothing for you to label."));
  if (!view.row && rows.length) await open(nextOpen(null) ?? source.rows[0]);
}

// ---- One case

onCase.push((row, body) => {
  $("about").replaceChildren(`Case ${row.number}`);
  if (!body) return $("voices").replaceChildren();
  $("title").textContent = body.question;
  const prompts = body.turns.filter((turn) => turn.role === "system").map((turn) => JSON.stringify(turn.parts));
  if (prompts.some((prompt) => !seenPrompts.has(prompt))) unfold();
  for (const prompt of prompts) seenPrompts.add(prompt);
  const answers = [...body.labels, ["none", "c", "cannot tell"]].map(([value, key, word]) =>
    make("button", { type: "button", "data-do": "answer", value, "data-key": key, "aria-keyshortcuts": key || null, "aria-pressed": String(String(value) === row.value) },
      make("span", { dir: "auto" }, word), key ? make("kbd", {}, key) : null));
  $("voices").replaceChildren(drawRubric(row, body), make("section", { id: "answers", "aria-label": "Your label" }, answers, noteField(row),
    make("p", { class: "muted" }, row.is_blind ? null : "What you label now does not count as blind. ", button("undo", "Take back", "u"))));
});

// Tells the server of a label, or that it is taken back; the case as it is then, or null where that was refused.
const told = (row, what, data) => tried(async () => {
  const after = { ...row, ...(await ask(mine(`cases/${row.key}/${what}`), data)) };
  put([after]);
  return after;
});
const label = (row, value, note) => told(row, "label", { label: value === "none" ? null : Number(value), note });

let isSending = false;
async function answer(value) {
  const row = view.row;
  if (!row || isSending) return;
  isSending = true;
  const labelling = me;
  const after = await label(row, value, $("note").value);
  isSending = false;
  if (!after) return;
  given.push(row.key);
  await tried(load);
  if (me !== labelling) return;
  toast(`${capital(after.word)}. `, make("kbd", {}, "u"), " takes it back");
  const next = nextOpen(row);
  await open(next ?? rowsByKey.get(row.key));
  if (!next) actions.finish();
}

// The next case without a label; one that nobody else has open, if there is one.
const nextOpen = (row) => following(row, source.rows, (other) => isOpen(other) && !other.busy) ?? following(row, source.rows, isOpen);

// Takes back the label of the open case; without one, the one given last.
async function undo() {
  if (isOpen(view.row) && given.length) await open(rowsByKey.get(given.pop()));
  const row = view.row;
  if (isOpen(row) || !(await told(row, "withdraw", {}))) return;
  await tried(load);
  await open(rowsByKey.get(row.key));
  toast("Taken back.");
}

$("voices").addEventListener("change", (event) => {
  if (event.target.id === "note" && !isOpen(view.row)) label(view.row, view.row.value, event.target.value);
});

Object.assign(actions, {
  answer: (target) => answer(target.value),
  undo,
  who: () => entrance.showModal(),
  finish: () => {
    const left = source.rows.filter(isOpen).length;
    const text = left ? `${left} of your cases have no label. Cases come rubric by rubric: what is labelled then stands for its rubrics alone. To label the rest another day, close this page instead.` : "All your cases are labelled.";
    const wait = others.length ? `${others.join(", ")} still label. ` : "";
    askForEnd("Finish labelling?", `${wait}${text} The report then shows your labels beside what the cases were made for: no later label of yours is blind.`, others.length > 0);
  },
});
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || document.querySelector("dialog[open]") || event.target.closest("input, textarea, select")) return;
  const chosen = [...document.querySelectorAll("#answers [data-key]")].find((one) => one.dataset.key === event.key);
  if (!chosen) return;
  event.preventDefault();
  answer(chosen.value);
});
$("actions").prepend(make("button", { type: "button", id: "who", "data-do": "who", "aria-label": "Label under another name" }));
onEnd(async (choice) => {
  ({ others, progress } = await ask(choice === "all" ? "/finish" : mine("finish"), {}));
  showEnd();
});

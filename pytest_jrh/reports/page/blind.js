// ---- Blind labelling: the same page with nothing on it but the rubric and what is judged, and where
// people disagree, their votes

const isBlind = session.served.is_blind;
const ENDED = "Finished: your labels are kept. What was started in the terminal goes on.";
root.classList.add("blind");
let progress = null;
// Who labels: {reviewer, name}, and who labels on once he or she has finished.
let me = null;
let others = [];
const seenPrompts = new Set();

const isOpen = (row) => !row.value;
FILTERS.push(["open", "to label", isOpen]);
for (const name of Object.keys(PICKS)) PICKS[name] = () => [];
look.row = (row) => make("a", { href: `#case=${row.key}`, tabindex: "-1" },
  make("span", { class: "sign" }, String(row.number)),
  make("span", { class: "what", dir: "auto" }, rubricOf(row).id),
  make("span", { class: "where" }, row.word ? make("span", { class: "tag" }, row.word) : null));

const mine = (path) => `/reviewers/${me.reviewer}/${path}`;
source.body = (row) => ask(mine(`cases/${row.key}`));

listen(async (news) => {
  progress = news.progress;
  if (me) await load();
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
const submit = (event) => {
  event.preventDefault();
  enter(name.value);
};
const entrance = dialog("enter", "Who labels?", make("p", {}, "Your name is kept with each label, so that agreement can be counted."),
  make("form", { class: "steps", submit }, name, make("button", { class: "primary" }, "Begin")), nameProblem);
entrance.addEventListener("cancel", (event) => me || event.preventDefault());

async function enter(typed) {
  const refused = ({ error }) => {
    nameProblem.textContent = error;
    name.value = typed;
    if (!entrance.open) entrance.showModal();
  };
  if (!typed) return refused({ error: "" });
  const entered = await ask("/reviewers", { name: typed }, refused);
  if (!entered) return;
  me = entered;
  if (!session.served.reviewer) localStorage.setItem("jrh-reviewer", me.name);
  $("who").textContent = me.name;
  $("who").disabled = Boolean(session.served.reviewer);
  entrance.close();
  others = [];
  if (view.row) back();
  await load();
}

async function load() {
  const asking = me;
  const answer = await ask(mine("cases"));
  // Another person may have taken over meanwhile.
  if (!answer || me !== asking) return;
  const { rows, rubrics } = answer;
  Object.assign(session.rubrics, rubrics);
  if (rows.length !== source.rows.length || !rows.every((row) => rowsByKey.has(row.key))) clear();
  put(rows.map((row) => ({ ...row, title: `Case ${row.number}`, kind: "", run: "", suite: "", test: "", tags: [], judges: [] })).filter(isNews));
  const waiting = progress.ended < progress.total ? `The sample is drawn when all cases are made: ${progress.ended} of ${progress.total}.` : "";
  showProgress(isBlind ? "Blind labelling" : "Disagreements", rows.filter((row) => !isOpen(row)).length, rows.length, waiting || (rows.length ? "" : "There is nothing for you to label."));
  if (!view.row && rows.length) await open(nextOpen(null) ?? source.rows[0]);
}

// ---- One case

look.opened = (row) => {
  $("about").replaceChildren(`Case ${row.number}`);
  if (!body) return $("voices").replaceChildren();
  $("title").textContent = body.question;
  const prompts = body.turns.filter((turn) => turn.role === "system").map((turn) => JSON.stringify(turn.parts));
  if (prompts.some((prompt) => !seenPrompts.has(prompt))) unfold();
  for (const prompt of prompts) seenPrompts.add(prompt);
  const answers = [...body.labels, [null, "c", "cannot tell"]].map(([label, key, word]) => {
    const value = String(label ?? "none");
    const given = button("answer", [make("span", { dir: "auto" }, word)], () => answer(label), key);
    given.setAttribute("aria-pressed", String(value === row.value));
    given.value = value;
    return given;
  });
  const keepNote = () => isOpen(view.row) || tell(row, "label", { label: labelOf(view.row), note: noteNow() });
  const votes = body.voices.map((vote) => drawVoice(vote, citing(body.turns.length)));
  let remark = row.is_blind ? null : "What you label now does not count as blind. ";
  if (!isBlind) remark = "This settles the case. It counts in no agreement, as you see how others voted. ";
  $("voices").replaceChildren(drawRubric(row), make("section", { class: "votes" }, votes),
    make("section", { id: "answers", "aria-label": "Your label" }, answers, noteField(row, keepNote),
      make("p", { class: "muted" }, remark, button("undo", "Take back", undo, "u"))));
};

// Tells the server of a label, or that it is taken back; the case as it is then, or null where that was refused.
async function tell(row, what, data) {
  const answer = await ask(mine(`cases/${row.key}/${what}`), data, ({ error }) => banner(`Not kept: ${error}`));
  const after = answer && { ...row, ...answer };
  if (after) put([after]);
  return after;
}
const labelOf = (row) => (row.value === "none" ? null : Number(row.value));

let isSending = false;
async function answer(label) {
  const row = view.row;
  if (isSending) return;
  isSending = true;
  const labelling = me;
  const after = await tell(row, "label", { label, note: noteNow() });
  isSending = false;
  if (!after) return;
  await load();
  if (me !== labelling) return;
  say(row, after.word);
  const next = nextOpen(row);
  await open(next ?? rowsByKey.get(row.key));
  if (!next) wantEnd();
}

const nextOpen = (row) => following(row, source.rows, isOpen);

// Takes back the label of the open case; without one, the one given last.
async function undo() {
  if (isOpen(view.row) && done.length) await open(rowsByKey.get(done.pop()));
  const row = view.row;
  if (isOpen(row) || !(await tell(row, "label", { label: null, withdrawn: true }))) return;
  await load();
  await open(rowsByKey.get(row.key));
  toast("Taken back.");
}

function wantEnd() {
  const left = source.rows.filter(isOpen).length;
  const text = left ? `${left} of your cases have no label. Cases come rubric by rubric: what is labelled then stands for its rubrics alone. To label the rest another day, close this page instead.` : "All your cases are labelled.";
  const wait = others.length ? `${others.join(", ")} still label. ` : "";
  const later = isBlind ? " What comes then may show the answers: no later label of yours is blind." : "";
  askForEnd(`${wait}${text}${later}`, others.length > 0);
}
finish = async (choice) => {
  const after = await ask(choice === "all" ? "/finish" : mine("finish"), {});
  if (!after) return;
  others = after.others;
  showEnd();
};
$("actions").prepend(make("button", { type: "button", id: "who", "aria-label": "Label under another name", click: () => entrance.showModal() }));

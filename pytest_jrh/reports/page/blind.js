// ---- Blind labelling: the same page with nothing on it but the question and what is judged, and where
// people disagree, their votes

const isBlind = session.served.is_blind;
const ENDED = "Finished: your labels are kept. What was started in the terminal goes on.";
root.classList.add("blind");
let progress = null;
let questions = [];
let names = [];
// Who labels: {reviewer, name}, and who labels on once he or she has finished.
let me = null;
let others = [];
// The assignment of cases that the rows are of.
let assignment = -1;
let latest = -1;
const seenPrompts = new Set();

const isOpen = (row) => !row.value;
FILTERS.splice(0, FILTERS.length, filterOf("all"), ["open", "to label", isOpen]);
for (const name of Object.keys(PICKS)) PICKS[name] = () => [];
look.row = (row) => make("a", { href: `#case=${row.key}`, tabindex: "-1" },
  make("span", { class: "sign" }, String(row.number)),
  make("span", { class: "what", dir: "auto" }, row.title),
  row.word ? make("span", { class: "where" }, make("span", { class: "tag" }, inWords(row.value, row.word))) : null);

const mine = (path) => `/reviewers/${me.reviewer}/${path}`;
// The last case that was asked for.
let arriving = null;
source.body = (row) => (arriving = ask(mine(`cases/${row.key}`)));

listen((news) => {
  ({ progress, questions, names } = news);
  inTurn(async () => {
    latest = news.assignment;
    if (!me) await enter(session.served.reviewer || localStorage.getItem("jrh-reviewer") || "");
    else if (news.assignment > assignment) await load();
    if (me) showHow();
    showEnd();
  })();
}, () => progress?.finalized && ENDED);

function showHow() {
  const rows = source.rows;
  const waiting = progress.ended < progress.total ? `The sample is drawn when all cases are made: ${progress.ended} of ${progress.total}.` : "";
  if ($("count")) $("count").textContent = `${rows.filter((row) => !isOpen(row)).length} of ${rows.length}`;
  showProgress(isBlind ? "Blind labelling" : "Disagreements", rows.filter((row) => !isOpen(row)).length, rows.length, waiting || (rows.length ? "" : "There is nothing for you to label."));
}

function showEnd() {
  if (progress.finalized) showFinished(ENDED);
  else if (others.length) banner(`You are done. The session goes on when ${others.join(", ")} ${others.length > 1 ? "have" : "has"} finished, too.`);
}

// ---- What is labelled, and under which name: asked once

const name = make("input", { id: "name", required: "", maxlength: "60", autocomplete: "off", "aria-label": "Name", "aria-describedby": "name-problem" });
const nameProblem = make("p", { id: "name-problem", class: "problem", role: "alert" });
const submit = (event) => {
  event.preventDefault();
  if (me?.name === name.value) entrance.close();
  else inTurn(() => enter(name.value))();
};
const begin = make("button", { class: "primary" }, "Begin");
const asked = make("div", { id: "asked" });
const entrance = dialog("enter", isBlind ? "What you label" : "What you settle", asked,
  make("p", {}, "Press an answer, or the key that stands on it: the label is saved at once, and the next case opens. Your name is kept with each label."),
  make("form", { class: "steps", submit }, name, begin), nameProblem);
entrance.addEventListener("cancel", (event) => me || event.preventDefault());

const MOST_QUESTIONS = 5;
function showEntrance(text, problem = "") {
  name.value = text;
  name.hidden = Boolean(session.served.reviewer);
  nameProblem.replaceChildren(...[problem].flat());
  if (entrance.open) return;
  const number = progress.shown;
  const lines = questions.slice(0, MOST_QUESTIONS).map((question) => make("li", { dir: "auto" }, long(question, undefined, 400)));
  if (questions.length > lines.length) lines.push(make("li", { class: "muted" }, `and ${questions.length - lines.length} more`));
  const count = number ? `${grouped(number)} ${number === 1 ? "case" : "cases"}` : "Cases, which are still being made";
  asked.replaceChildren(make("p", {}, `${count}. ${questions.length > 1 ? "What is asked:" : number ? "What is asked of each:" : ""}`), make("ul", {}, lines));
  entrance.showModal();
  (name.hidden ? begin : name).focus();
}

// A name without what people write now so, now so.
const bare = (name) => name.replace(/\s/g, "").toLowerCase();
// Lets somebody in; one whose name is nearly that of a person with labels is asked for the right one.
async function enter(typed, isOther = false) {
  if (!typed) return showEntrance("");
  const known = names.includes(typed) ? null : names.find((other) => bare(other) === bare(typed));
  if (known && !isOther && !session.served.reviewer) {
    const choose = (text, name, isOther) => button("same", text, inTurn(() => enter(name, isOther)));
    return showEntrance(typed, [`“${known}” is a name here. Is that you? `, choose(`Yes, I am ${known}`, known), choose("No, somebody else", typed, true)]);
  }
  const entered = await ask("/reviewers", { name: typed }, ({ error }) => showEntrance(typed, error));
  if (!entered) return;
  const isFirst = !entrance.open;
  me = entered;
  if (!session.served.reviewer) localStorage.setItem("jrh-reviewer", me.name);
  $("who").textContent = me.name;
  $("who").disabled = Boolean(session.served.reviewer);
  entrance.close();
  others = [];
  if (view.row) back();
  await load();
  if (isFirst && source.rows.length && source.rows.every(isOpen)) showEntrance(me.name);
}

async function load() {
  assignment = latest;
  const answer = await ask(mine("cases"));
  if (!answer) return;
  const { rows } = answer;
  if (rows.length !== source.rows.length || !rows.every((row) => rowsByKey.has(row.key))) clear();
  put(rows.map(asRow).filter(isNews));
  showHow();
  if (!view.row && rows.length) await open(nextOpen(null) ?? source.rows[0]);
}
const asRow = (row) => ({ ...row, kind: "", run: "", suite: "", test: "", tags: [], judges: [] });

// ---- One case

const ASKS = [["|pair", "Which answer is better by this?"], ["ordinal", "Which level fits?"], ["binary", "Does it keep to this?"], ["", "Which answer fits?"]];
// Of a rubric that is kept to or broken, and has no answers of its own.
const [KEPT, BROKEN] = session.served.words.length ? session.served.words : ["yes, it keeps to it", "no, it breaks it"];
const OWN_WORDS = { "0 satisfied": KEPT, "1 violated": BROKEN };
const inWords = (value, word) => OWN_WORDS[`${value} ${word}`] ?? word.replace(/^n\/a(?=$|:)/, "does not apply");
const offered = () => [...body.labels.map(([label, key, word]) => [label, key, inWords(label, word)]), [null, "c", "cannot tell"]];
const ofVote = (word) => offered()[body.labels.findIndex(([, , other]) => other === word)]?.[2] ?? word;

look.opened = (row) => {
  $("about").replaceChildren(`Case ${row.number}`);
  if (!body) return $("voices").replaceChildren();
  $("title").replaceChildren(long(body.question, undefined, LONGEST));
  const isLengthy = body.question.length > LENGTHY;
  $("title").classList.toggle("lengthy", isLengthy);
  $("title").tabIndex = isLengthy ? 0 : -1;
  const prompts = body.turns.filter((turn) => turn.role === "system").map((turn) => JSON.stringify(turn.parts));
  if (prompts.some((prompt) => !seenPrompts.has(prompt))) openFolds();
  for (const prompt of prompts) seenPrompts.add(prompt);
  const answers = offered().map(([label, key, word]) => {
    const value = String(label ?? "none");
    const given = button("answer", [make("span", { dir: "auto" }, word)], inTurn(() => answer(label, word)), key);
    given.setAttribute("aria-pressed", String(value === row.value));
    given.value = value;
    return given;
  });
  const keepNote = (event) => {
    const note = event.target.value;
    inTurn(() => isOpen(rowsByKey.get(row.key)) || tell(rowsByKey.get(row.key), { note }))();
  };
  const votes = body.voices.map((vote) => drawVoice({ ...vote, word: ofVote(vote.word) }, citing(body.turns.length)));
  let remark = row.is_blind ? null : "What you label now does not count as blind. ";
  if (!isBlind) remark = "This settles the case. It counts in no agreement, as you see how others voted. ";
  $("voices").replaceChildren(make("section", { class: "votes" }, votes),
    make("section", { id: "answers", "aria-label": "Your label" }, make("h3", { id: "asks" }, ASKS.find(([scale]) => body.scale.startsWith(scale))[1]), answers, make("p", { id: "count" })),
    make("section", { id: "remarks" }, noteField(row, keepNote), make("p", { class: "muted" }, remark, button("undo", "Take back", inTurn(undo), "u"))));
  showHow();
};
const LENGTHY = 300;

// Tells the server of a label, or that it is taken back; the case as it is then, or null where that was refused.
async function tell(row, data) {
  const answer = await ask(mine(`cases/${row.key}/label`), { label: row.value === "none" ? null : Number(row.value), ...data }, ({ error }) => banner(`Not kept: ${error}`));
  if (!answer) return null;
  // Where others have given labels meanwhile, it is another one than that which this label has made.
  if (answer.assignment <= assignment + 1) assignment = answer.assignment;
  const { assignment: _, ...after } = answer;
  drafts.delete(row.key);
  put([asRow(after)]);
  showHow();
  return after;
}
async function answer(label, word) {
  await arriving;
  const row = view.row;
  if (document.querySelector("dialog[open]")) return;
  if (!offered().some(([other, , same]) => other === label && same === word)) return toast(`“${word}” is no answer to this case.`);
  const after = await tell(row, { label, note: noteNow() });
  if (!after) return;
  say(row, inWords(after.value, after.word));
  // Not where somebody has gone on meanwhile.
  if (view.row?.key !== row.key) return;
  const next = nextOpen(row);
  await open(next ?? rowsByKey.get(row.key));
  if (!next) wantEnd();
}

const nextOpen = (row) => following(row, source.rows, isOpen);

// Takes back the label of the open case; without one, the one given last. The note stays.
async function undo() {
  if (isOpen(view.row) && done.length) await open(rowsByKey.get(done.pop()));
  const row = view.row;
  if (isOpen(row)) return;
  if (!(await tell(row, { label: null, note: noteNow(), withdrawn: true }))) return;
  await open(rowsByKey.get(row.key));
  toast("Taken back.");
}

function wantEnd() {
  const left = source.rows.filter(isOpen).length;
  const text = left ? `${left} of your cases have no label. Cases come rubric by rubric: what is labelled then stands for its rubrics alone. To label the rest another day, close this page instead.` : "All your cases are labelled.";
  const wait = others.length ? `${others.join(", ")} still ${others.length > 1 ? "label" : "labels"}. ` : "";
  const later = isBlind ? " What comes then may show the answers: no later label of yours is blind." : "";
  askForEnd(`${wait}${text}${later}`, others.length > 0);
}
finish = async (choice) => {
  const after = await ask(choice === "all" ? "/finish" : mine("finish"), {});
  if (!after) return;
  others = after.others;
  await inTurn(load)();
  showEnd();
};
$("actions").prepend(make("button", { type: "button", id: "who", title: "Label under another name", click: () => showEntrance(me?.name ?? "") }));
$("bar").append(button("first", "First without a label", inTurn(() => {
  const row = nextOpen(null);
  return row ? open(row) : toast("All your cases are labelled.");
}), "g"));

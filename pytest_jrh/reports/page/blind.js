// ---- Blind labelling: the same page with nothing on it but the question and what is judged, and where
// people disagree, their votes

// `label FILE` names the file of labels, a session has one of its own.
const { is_blind: isBlind, file } = session.served;
const DONE = isBlind ? "labelled" : "settled";
// Until somebody is let in, nothing stands behind the dialog.
root.classList.add("blind", "waiting");
meter.after($("sub"));
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
FILTERS.splice(0, FILTERS.length, filterOf("all"), ["open", isBlind ? "to label" : "to settle", isOpen]);
for (const name of Object.keys(PICKS)) PICKS[name] = () => [];
// The header stays in sight.
look.top = () => 0;
// A text without the signs of Markdown that are not inside of a word.
const unmarked = (text) => text.replace(/(?<![\p{L}\p{N}])[*_`#>|~]+\s*|[*_`|~]+(?![\p{L}\p{N}*_`])/gu, "");
// Cases with one title may be made of one run, and are told apart by their numbers alone.
let alike = {};
look.row = (row) => make("a", { href: `#case=${row.key}`, tabindex: "-1" },
  make("span", { class: "sign" }, String(row.number)),
  make("span", { class: "what", dir: "auto" }, alike[row.title]?.length > 1 ? `Case ${row.number}` : unmarked(row.title)),
  row.word ? make("span", { class: "where" }, make("span", { class: "tag" }, inWords(row.value, row.word))) : null);

const mine = (path) => `/reviewers/${me.reviewer}/${path}`;
// The last case that was asked for.
let arriving = null;
source.body = (row) => (arriving = ask(mine(`cases/${row.key}`)));

const events = listen((news) => {
  ({ progress, questions, names } = news);
  inTurn(async () => {
    if (progress.finalized) return showDone();
    latest = news.assignment;
    if (!me) await enter(session.served.reviewer || stored());
    else if (news.assignment > assignment) await load();
    if (me) showHow();
    showEnd();
  })();
}, () => me && `${GONE} ${saved()}`);

function showHow() {
  const rows = source.rows, number = rows.filter((row) => !isOpen(row)).length, isAll = rows.length && number === rows.length;
  const waiting = progress.ended < progress.total ? `The cases are being prepared: ${progress.ended} of ${progress.total} are ready. You can begin when all are ready.` : "";
  if ($("count")) $("count").textContent = isAll ? `all ${number} ${DONE}` : `${number} of ${rows.length} ${DONE}`;
  const all = isAll ? `All cases are ${DONE}. You can still change your labels.${others.length ? "" : " Press Finish when you are done."}` : "";
  showProgress(capital(DONE), number, rows.length, waiting || all || (rows.length ? "" : "There is no case for you to label."));
}

function saved() {
  const number = source.rows.filter((row) => !isOpen(row)).length;
  return number ? `Your ${counted(number, "label")} ${number > 1 ? "are" : "is"} saved in ${file || "labels.jsonl"}.` : "You gave no label.";
}

function showEnd() {
  if (others.length) banner(`You are done. ${saved()} Labelling ends when ${others.join(", ")} ${others.length > 1 ? "have" : "has"} finished, too. `, button("endAll", "Finish for everybody", () => finish("all")));
}

// All have finished, and the server may be gone: nothing is asked of it any more, and nothing is left to press.
function showDone() {
  events.close();
  if (!$("desk")) return;
  for (const opened of document.querySelectorAll("dialog[open]")) opened.close();
  close();
  for (const id of ["desk", "actions", "meter"]) $(id).remove();
  banner("");
  document.title = $("headline").textContent = "You are done";
  $("sub").textContent = `${saved()} ${file ? "" : "The session continues in the terminal. "}Close this tab.`;
}

// ---- What is labelled, and under which name: asked once

const name = make("input", { id: "name", required: "", maxlength: "60", autocomplete: "off", "aria-describedby": "name-problem" });
const nameProblem = make("p", { id: "name-problem", class: "problem", role: "alert" });
const submit = (event) => {
  event.preventDefault();
  if (me?.name === name.value) entrance.close();
  else inTurn(() => enter(name.value))();
};
const begin = make("button", { class: "primary" }, "Begin");
const asked = make("div", { id: "asked" });
const nameLabel = make("label", { for: "name" }, "Your name");
const entrance = dialog("enter", isBlind ? "What you label" : "What you settle", asked,
  make("p", {}, "To label a case, press the button that fits", make("span", { class: "by-key" }, ", or the key that this button shows"), ". Your label is saved at once, together with your name, and the next case opens."),
  make("form", { class: "steps", submit }, nameLabel, name, begin), nameProblem);
entrance.addEventListener("cancel", (event) => me || event.preventDefault());

const MOST_QUESTIONS = 5;
function showEntrance(text, problem = "") {
  name.value = text;
  nameLabel.hidden = name.hidden = Boolean(session.served.reviewer);
  nameProblem.replaceChildren(...[problem].flat());
  if (entrance.open) return;
  const number = progress.shown;
  const lines = questions.slice(0, MOST_QUESTIONS).map((question) => make("li", { dir: "auto" }, long(question, undefined, 400)));
  if (questions.length > lines.length) lines.push(make("li", { class: "muted" }, `and ${questions.length - lines.length} more`));
  const count = number ? `This page has ${counted(number, "case")}` : "The cases are being prepared";
  const why = isBlind ? "" : " to which people gave different labels. You see each person's label and note, and your label settles the case";
  asked.replaceChildren(make("p", {}, `${count}${why}. ${questions.length > 1 ? "The rules:" : number ? "The rule for each case:" : ""}`), make("ul", {}, lines));
  entrance.showModal();
  (name.hidden ? begin : name).focus();
}

const stored = () => localStorage.getItem("jrh-reviewer") ?? "";
// A name without what people write now so, now so.
const bare = (name) => name.replace(/\s/g, "").toLowerCase();
// Lets somebody in; one who types a name that somebody with labels has, or nearly so, is asked for the right one.
async function enter(typed, isSure = typed === stored()) {
  if (!typed) return showEntrance("");
  const known = names.includes(typed) ? typed : names.find((other) => bare(other) === bare(typed));
  if (known && !isSure && !session.served.reviewer) {
    const choose = (text, name) => button("same", text, inTurn(() => enter(name, true)));
    const other = known === typed ? "If not, type another name." : choose("No, I am somebody else", typed);
    return showEntrance(typed, [`The name “${known}” is already used here. Are you this person? `, choose(`Yes, I am ${known}`, known), other]);
  }
  const entered = await ask("/reviewers", { name: typed }, ({ error }) => showEntrance(typed, error));
  if (!entered) return;
  // Whoever loads the page again has read it.
  const isFirst = !entrance.open && localStorage.getItem("jrh-begun") !== entered.reviewer;
  me = entered;
  root.classList.remove("waiting");
  localStorage.setItem("jrh-begun", me.reviewer);
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
  alike = Object.groupBy(rows, (row) => row.title);
  put(rows.map(asRow).filter(isNews));
  showHow();
  if (!view.row && rows.length) await open(readAddress().row ?? nextOpen(null) ?? source.rows[0]);
}
const asRow = (row) => ({ ...row, kind: "", run: "", suite: "", test: "", tags: [], slices: [], judges: [] });

// ---- One case

const ASKS = [["|pair", "Which answer is better by this rule?"], ["ordinal", "Which level fits this case?"], ["binary", "Does this case keep to this rule?"], ["", "Which of these fits this case?"]];
// Of a rubric that is kept to or broken, and has no answers of its own.
const [KEPT, BROKEN] = session.served.words?.length ? session.served.words : ["yes, it keeps to it", "no, it breaks it"];
const OWN_WORDS = { "0 satisfied": KEPT, "1 violated": BROKEN };
const inWords = (value, word) => OWN_WORDS[`${value} ${word}`] ?? word.replace(/^n\/a(?=$|:)/, "does not apply");
const offered = () => [...body.labels.map(([label, key, word]) => [label, key, inWords(label, word)]), [null, "c", "cannot tell"]];
const ofVote = (word) => offered()[body.labels.findIndex(([, , other]) => other === word)]?.[2] ?? word;

let lastQuestion = "";
// Keys of cases are others when the page is served again.
look.draft = (row) => [me.name, questions[0], questions.length, row.number, row.title];
look.opened = (row) => {
  $("about").replaceChildren(`Case ${row.number}`);
  if (!body) return $("voices").replaceChildren();
  const isAnother = lastQuestion && lastQuestion !== body.question;
  lastQuestion = body.question;
  $("title").replaceChildren(isAnother ? make("span", { class: "tag warn" }, "a new rule") : "", long(body.question, undefined, LONGEST));
  const isLengthy = $("title").classList.toggle("lengthy", body.question.length > LENGTHY);
  $("title").tabIndex = isLengthy ? 0 : -1;
  const prompts = body.turns.filter((turn) => turn.role === "system").map((turn) => JSON.stringify(turn.parts));
  if (prompts.some((prompt) => !seenPrompts.has(prompt))) openFolds();
  for (const prompt of prompts) seenPrompts.add(prompt);
  const answers = offered().map(([label, key, word]) => {
    const value = String(label ?? "none");
    const given = button("answer", [make("span", { dir: "auto" }, word)], unhurried(() => answer(label, word)), key);
    given.setAttribute("aria-pressed", String(value === row.value));
    given.value = value;
    return given;
  });
  const votes = body.voices.map((vote) => drawVoice({ ...vote, word: ofVote(vote.word) }, citing(body.turns.length)));
  const late = isBlind && !file && !row.is_blind && "You may have seen this case in a report, so a label that you give now is saved, but not compared with the judge's verdict.";
  const note = noteField(row, (now) => !isOpen(now), (now, note) => tell(now, { note })), takeBack = button("undo", "Undo", inTurn(undo), "u");
  takeBack.disabled = isOpen(row) && !done.some(isGiven);
  note.append(takeBack, late || "");
  $("voices").replaceChildren(isBlind ? "" : make("section", { class: "votes", "aria-label": "What people said" }, votes),
    make("section", { id: "answers", "aria-label": "Your label" },
      make("h3", { id: "asks", tabindex: "-1" }, ASKS.find(([scale]) => body.scale.startsWith(scale))[1]), make("p", { id: "count" }),
      body.question.length > SHORT ? make("details", { class: "rule" }, make("summary", {}, make("span", { dir: "auto" }, body.question))) : make("p", { dir: "auto" }, body.question), answers, make("div", { id: "remarks" }, note)));
  barSize.observe($("answers"));
  showHow();
};
const LENGTHY = 300, SHORT = 80;
const barSize = new ResizeObserver(() => root.style.setProperty("--answers", `${$("answers")?.offsetHeight ?? 0}px`));
const isGiven = (key) => rowsByKey.get(key)?.value;

// Tells the server of a label, or that it is taken back; the case as it is then, or null where that was refused.
async function tell(row, data) {
  const answer = await ask(mine(`cases/${row.key}/label`), { label: row.value === "none" ? null : Number(row.value), ...data }, ({ error }) => banner(`Not saved: ${error}`));
  if (!answer) return null;
  // Where others have given labels meanwhile, it is another one than that which this label has made.
  if (answer.assignment <= assignment + 1) assignment = answer.assignment;
  const { assignment: _, ...after } = answer;
  // A label file has no line for a note without a label.
  if (data.withdrawn) keepDraft(row, data.note);
  else forgetDraft(row);
  put([asRow(after)]);
  showHow();
  return after;
}
async function answer(label, word) {
  await arriving;
  const row = view.row;
  if (document.querySelector("dialog[open]")) return;
  if (!offered().some(([other, , same]) => other === label && same === word)) return toast(`This case cannot be labelled “${word}”.`);
  const after = await tell(row, { label, note: noteNow() });
  if (!after) return;
  say(row, `Saved: ${inWords(after.value, after.word)}`);
  // Not where somebody has gone on meanwhile.
  if (view.row?.key !== row.key) return;
  const next = nextOpen(row);
  await reopen(next ?? rowsByKey.get(row.key));
  if (next || wasAsked) return;
  wasAsked = true;
  toast();
  wantEnd(true);
}
// Whoever goes by Tab stays above the answers, where a key that is held down presses nothing.
async function reopen(row) {
  const isInBar = document.activeElement.closest("#answers");
  await open(row);
  if (isInBar) $("asks").focus({ preventScroll: true });
}
// Whether all had a label once, and the end was offered.
let wasAsked = false;

const nextOpen = (row) => following(row, source.rows, isOpen);

// Takes back the label of the open case; without one, the one given last. The note stays.
async function undo() {
  if (isOpen(view.row) && done.some(isGiven)) await open(rowsByKey.get(done.findLast(isGiven)));
  const row = view.row;
  if (isOpen(row)) return;
  if (!(await tell(row, { label: null, note: noteNow(), withdrawn: true }))) return;
  await reopen(rowsByKey.get(row.key));
  toast(`The label of case ${row.number} is taken back.`);
}

// `isLast` where the last case has just got its label.
function wantEnd(isLast = false) {
  const left = source.rows.filter(isOpen).length;
  const some = questions.length > 1 ? " The cases come rule by rule, so you may not have seen the last rules." : "";
  const text = left ? `${grouped(left)} of ${counted(source.rows.length, "case")} ${left > 1 ? "have" : "has"} no label.${some} To continue another day, close this page instead: your labels are saved.` : `All your cases are ${DONE}.`;
  const loose = source.rows.filter((row) => isOpen(row) && draftOf(row)).length;
  const notes = loose ? ` ${counted(loose, "note")} on cases without a label ${loose > 1 ? "stay" : "stays"} in this browser only.` : "";
  const wait = others.length ? `${others.join(", ")} ${others.length > 1 ? "are" : "is"} still labelling. ` : "";
  const later = isBlind && !file ? " When you have finished, a report may show you the judge's verdicts, so labels that you give later are not compared with these verdicts." : "";
  again.hidden = !isLast;
  askForEnd(`${wait}${text}${notes}${later}`, others.length > 0);
}
finish = async (choice) => {
  const after = await ask(choice === "all" ? "/finish" : mine("finish"), {});
  if (!after) return;
  others = after.others;
  if (!others.length) return showDone();
  await inTurn(load)();
  showEnd();
};
const again = make("button", { value: "", click: inTurn(undo) }, "Undo");
ending.querySelector("form").prepend(again);
$("actions").prepend(make("button", { type: "button", id: "who", title: "Label under another name", click: () => showEntrance(me?.name ?? "") }));
$("bar").append(button("first", isBlind ? "First case without a label" : "First case to settle", inTurn(() => {
  const row = nextOpen(null);
  return row ? open(row) : toast(`All your cases are ${DONE}.`);
}), "g"));

// ---- Deciding about cases: accept, reject, edit, on the page that a session serves

let progress = null, fix = "";

const REJECTED = "rejected by the verifier";
const DECISIONS = ["undecided", "accepted", "edited", "rejected", "void", REJECTED];
FILTERS.push(...DECISIONS.map((decision) => [decision, decision, (row) => row.decision === decision]));

source.body = (row) => ask(`/cases/${row.key}`);
source.words = async function* () {
  for (const row of source.rows) {
    const found = texts.has(row.key) ? null : await source.body(row);
    if (found) yield [row.key, [...(found.turns ?? []).map(wordsOfTurn), wordsSaid(found)]];
  }
};
listen((news) => {
  ({ progress, fix } = news);
  if (news.all) clear();
  Object.assign(session.rubrics, news.rubrics);
  take(news.rows);
  showHow();
}, () => progress?.finalized && "The session has ended. The verdicts are in the terminal where pytest was started. Later sessions use your decisions, too.");

function showHow() {
  const unmade = progress.total - progress.ended;
  const parts = [];
  if (unmade > 0) parts.push(`${counted(unmade, "case")} still to be made`);
  const wrong = source.rows.filter((row) => isMistake(row) && row.decision !== "rejected").length;
  if (wrong) parts.push(`The judge is wrong in ${wrong} of ${source.rows.length} cases`);
  if (progress.done < progress.shown) parts.push("Each decision is saved at once");
  else if (progress.shown) parts.push(`All cases are decided. Next: press Finish${wrong ? `, then fix ${fix} or accept the verdicts with --jrh-update-baseline` : ""}`);
  showProgress("Decided", progress.done, progress.shown, parts.join(" · "));
  $("finish").disabled = progress.finalized;
  if (progress.finalized) banner("Finished: the session continues with these decisions. Later decisions count from the next session on.");
}

// New and changed rows; the open case is drawn again where it is another one now.
function take(rows) {
  const changedRows = rows.filter(isNews);
  if (!changedRows.length) return;
  put(changedRows);
  inTurn(async () => {
    if (!view.row) await start();
    else if (isOther(view.row, drawn) && editing) toast("This case was changed while you were editing it.");
    else if (isOther(view.row, drawn)) await reopen();
  })();
}

async function reopen() {
  const scrolled = scrollY;
  await open(view.row);
  scrollTo(0, scrolled);
}

// ---- One case

look.draft = (row) => [row.key, row.digest];

// The row as it was when its case was drawn.
let drawn = null;
look.opened = (row) => {
  editing = null;
  drawn = row;
  const isClosed = row.decision === REJECTED || !body;
  const accept = button("accept", "Label right", unhurried(() => decide("accepted")), "a");
  const reject = button("reject", "Label wrong: drop it", unhurried(() => decide("rejected")), "r");
  accept.setAttribute("aria-pressed", String(["accepted", "edited"].includes(row.action)));
  reject.setAttribute("aria-pressed", String(row.action === "rejected"));
  const verbs = [accept, reject, button("edit", "Edit", inTurn(() => edit(editableTurn())), "e"), button("undo", "Undo", inTurn(undo), "u")];
  $("decide").replaceChildren(...(isClosed ? [] : verbs));
  if (body) $("voices").prepend(isClosed ? make("p", { class: "note" }, body.closed) : drawDecision(row));
};

look.verb = ({ index, state }) => state !== "left out" && body.editable.includes(index)
  ? make("button", { type: "button", class: "link", "aria-label": `Edit turn ${index}`, click: inTurn(() => edit(index)) }, "edit") : null;

function drawDecision(row) {
  const words = new Map(body.labels.map(([score, , word]) => [score, word]));
  const labels = [...words].map(([score, word]) => make("option", { value: score, selected: score === row.label }, word));
  const relabel = inTurn(async () => {
    await tell(row, "label", { expected: Number($("label").value) });
    // Also where it was refused.
    await reopen();
  });
  const saveNote = (now, note) => tell(now, "decision", { action: now.action === "rejected" ? "rejected" : "accepted", note });
  return make("section", { id: "decision", "aria-label": "Your decision" },
    row.decision === "void" ? make("p", { class: "note" }, `An earlier decision (${body.void}) was about another version of this case, so that decision no longer counts.`) : null,
    make("p", {}, make("label", { for: "label" }, "Label "), make("select", { id: "label", change: relabel }, labels),
      row.label === row.made_label ? null : make("span", { class: "muted" }, ` instead of ${words.get(row.made_label)}`)),
    noteField(row, (now) => now.action, saveNote));
}

// Tells the server what was done with a case; the row that this made of it, or null where it was refused.
async function tell(row, what, change, refused) {
  const after = await ask(`/cases/${row.key}/${what}`, { digest: row.digest, ...change }, refused);
  if (after) {
    if ("note" in change) forgetDraft(row);
    put([after]);
  }
  return after;
}

async function decide(action) {
  const row = view.row;
  if (!row || !look.mayLeave()) return;
  const next = following(row, shown, (other) => ["undecided", "void"].includes(other.decision));
  const after = await tell(row, "decision", { action, note: noteNow() });
  if (!after) return;
  say(row, action === "accepted" ? "Saved: the label is right" : "Saved: the label is wrong, so the case is dropped");
  // Not where somebody has gone on meanwhile.
  if (view.row?.key === row.key) await open(next ?? after);
}

// Takes back the decision about the open case; without one, that before it.
async function undo() {
  if (!view.row.action && done.length) await open(rowsByKey.get(done.pop()));
  const row = view.row;
  const after = row.action && look.mayLeave() && (await tell(row, "decision", { action: "withdrawn" }));
  if (after) toast("The decision is taken back.");
  if (after && view.row?.key === row.key) await open(after);
}

// ---- Editing the text of a turn

let editing = null;
const isTyping = () => editing !== null && editing.input.value !== editing.kept;
look.mayLeave = () => {
  if (isTyping()) toast("First save or cancel the text that you are editing.");
  return !isTyping();
};

// That with the focus, else the first that was changed, else the last.
function editableTurn() {
  const focused = Number(document.activeElement.closest(".turn")?.id.slice("turn-".length) || -1);
  if (body.editable.includes(focused)) return focused;
  return body.turns.find((turn) => turn.was && body.editable.includes(turn.index))?.index ?? body.editable.at(-1);
}

async function edit(index) {
  const row = view.row;
  if (index === undefined || !look.mayLeave()) return;
  const turn = await ask(`/cases/${row.key}/turns/${index}`);
  if (!turn || view.row !== row) return;
  if (editing) showTurns();
  toTurn(index);
  openEditor(row, index, turn);
  editing.input.focus({ preventScroll: true });
}

function openEditor(row, index, { text, before }) {
  const { part } = body.turns.find((turn) => turn.index === index);
  const label = part || `What the assistant says in turn [${index}]`;
  const input = make("textarea", { id: "edit-0", "aria-label": label, dir: "auto", autocomplete: "off" });
  input.value = text;
  input.rows = Math.min(20, Math.max(1, text.split("\n").length + text.length / 70));
  // A browser keeps line ends in its own way: what nobody typed into is sent as it was.
  const kept = input.value;
  const typed = () => (input.value === kept ? text : input.value);
  const preview = make("div", { class: "text" }), problem = make("p", { class: "problem", role: "alert", id: "edit-problem" });
  const compare = () => preview.replaceChildren(make("p", { dir: "auto" }, marked(differences(visible(before), visible(typed())))));
  const submit = (event) => {
    event.preventDefault();
    inTurn(save)();
  };
  const keydown = (event) => {
    if (event.key === "Escape") inTurn(cancel)();
    else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) inTurn(save)();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const isByPerson = body.turns.some((other) => other.index === index && other.state === "edited by a person");
  const steps = [make("button", { class: "primary" }, "Save", make("kbd", {}, "Ctrl ↵")), button("cancel", ["Cancel", make("kbd", {}, "Esc")], inTurn(cancel))];
  if (isByPerson) steps.push(button("asMade", "Restore", inTurn(() => send({ content: null }))));
  editing = { row, index, input, kept, typed, problem };
  compare();
  $(`turn-${index}`).querySelector(".said").replaceChildren(make("form", { class: "editor", input: compare, submit, keydown },
    make("label", { for: input.id }, make("span", {}, label), input), make("h3", {}, "Changes to the original"), preview, problem, make("p", { class: "steps" }, steps)));
}

async function save() {
  if (!isTyping()) return cancel();
  await send({ content: editing.typed() });
}

// Sends what was typed; what is refused stands at its field, and nothing that was typed is lost.
async function send(change) {
  const { row, index, input, problem } = editing;
  const after = await tell(row, `turns/${index}`, change, ({ error }) => {
    problem.textContent = `Nothing was saved. ${error}`;
    input.setAttribute("aria-invalid", "true");
    input.setAttribute("aria-describedby", problem.id);
    input.focus();
  });
  if (!after) return;
  editing = null;
  done.push(row.key);
  await open(after);
  toTurn(index);
}

async function cancel() {
  if (!editing) return;
  const { index } = editing;
  editing = null;
  await reopen();
  toTurn(index);
}

addEventListener("beforeunload", (event) => isTyping() && event.preventDefault());

function wantEnd() {
  const left = progress.shown - progress.done, unmade = progress.total - progress.ended;
  const parts = [left ? `${counted(left, "undecided case")} will be used without changes.` : "Every case has a decision."];
  if (unmade > 0) parts.push(`${counted(unmade, "case")} still to be made will not be reviewed.`);
  askForEnd(`${parts.join(" ")} The session then continues.`);
}
finish = () => ask("/finish", {});

// ---- Deciding about cases: accept, reject, edit, on the page that a session serves

let progress = null;
// Cases decided here, the last one at the end: `u` takes back.
const decided = [];

const REJECTED = "rejected by the verifier";
const DECISIONS = ["undecided", "accepted", "edited", "rejected", "void", REJECTED];
FILTERS.push(...DECISIONS.map((decision) => [decision, decision, (row) => row.decision === decision]));

source.body = (row) => tried(() => ask(`/cases/${row.key}`));
listen((news) => {
  progress = news.progress;
  if (news.all) clear();
  Object.assign(session.rubrics, news.rubrics);
  take(news.rows);
  showHow();
}, () => progress?.finalized && "The run has ended: its verdicts are where pytest was started, and what you decided counts from now on.");

function showHow() {
  const unmade = progress.total - progress.ended;
  const parts = [];
  if (unmade > 0) parts.push(`${unmade} still to be made`);
  const wrong = source.rows.filter(isMistake).length;
  if (wrong) parts.push(`The judge is wrong in ${wrong} of ${source.rows.length} cases`);
  showProgress("Decided", progress.done, progress.shown, parts.join(" · ") || "A decision is on the disk as soon as it is taken.");
  if (progress.finalized) showFinished("Finished: the run goes on with these decisions. What you decide now counts from the next run on.");
}

// What is done waits for what was done before: a key that is pressed early is about the case that follows.
let last = Promise.resolve();
const inTurn = (task) => (...values) => (last = last.then(() => task(...values)).catch(reportError));

// New and changed rows; the open case is drawn again where it is another one now.
function take(rows) {
  const changedRows = rows.filter(isNews);
  for (const row of changedRows) texts[row.key] = row.text;
  if (!changedRows.length) return;
  put(changedRows);
  inTurn(async () => {
    if (!view.row) await start();
    else if (isOther(view.row, drawn) && editing) toast("This case was changed while you edit it.");
    else if (isOther(view.row, drawn)) await reopen();
  })();
}

async function reopen() {
  const scrolled = scrollY;
  await open(view.row);
  scrollTo(0, scrolled);
}

// ---- One case

// The row as it was when its case was drawn.
let drawn = null;
onCase.push((row, body) => {
  editing = null;
  drawn = row;
  const isClosed = row.decision === REJECTED || !body;
  const verbs = [button("accept", "Accept", "a"), button("reject", "Reject", "r"), button("edit", "Edit", "e"), button("undo", "Undo", "u")];
  verbs[0].setAttribute("aria-pressed", String(["accepted", "edited"].includes(row.action)));
  verbs[1].setAttribute("aria-pressed", String(row.action === "rejected"));
  $("decide").replaceChildren(...(isClosed ? [] : verbs));
  if (body) $("voices").prepend(isClosed ? make("p", { class: "note" }, body.closed) : drawDecision(row, body));
});

function drawDecision(row, body) {
  const labels = body.labels.map(([score, , word]) => make("option", { value: score, selected: score === row.label ? "" : null }, word));
  const was = row.label === row.made_label ? null : make("span", { class: "muted" }, ` was ${body.labels.find(([score]) => score === row.made_label)?.[2]}`);
  return make("section", { id: "decision", "aria-label": "Your decision" },
    row.decision === "void" ? make("p", { class: "note" }, `An earlier decision (${body.void}) was about another version of this case, so it no longer counts.`) : null,
    make("p", {}, make("label", { for: "label" }, "Label "), make("select", { id: "label" }, labels), was), noteField(row));
}

look.verb = ({ index, state }) => state !== "left out" && body.editable.includes(index)
  ? make("button", { type: "button", class: "link", "data-do": "edit", value: index, "aria-label": `Edit turn ${index}` }, "edit") : null;

// Tells the server what was done with a case; the row that this made of it, or null where it was refused.
const told = (row, what, change) => tried(async () => {
  const after = await ask(`/cases/${row.key}/${what}`, { digest: row.digest, ...change });
  put([after]);
  return after;
});

async function decide(action) {
  const row = view.row;
  if (!row || !progress || !look.mayLeave()) return;
  if (row.decision === REJECTED) return toast("The verifier rejected this case: nothing can be decided about it.");
  const isOpen = (other) => ["undecided", "void"].includes(other.decision);
  const next = action === "withdrawn" ? null : following(row, shown, isOpen);
  const after = await told(row, "decision", { action, note: $("note")?.value ?? "" });
  if (!after) return;
  if (action === "withdrawn") return open(after);
  decided.push(row.key);
  toast(`Label ${action}. `, make("kbd", {}, "u"), " takes it back");
  await open(next ?? after);
}

// Takes back the decision about the open case; without one, that before it.
async function undo() {
  if (!view.row?.action && decided.length) await open(rowsByKey.get(decided.pop()));
  if (view.row?.action) await decide("withdrawn");
}

$("voices").addEventListener("change", (event) => {
  const row = view.row;
  const { id, value } = event.target;
  if (id === "label") {
    // Drawn again also where it was refused.
    inTurn(async () => {
      await told(row, "label", { expected: Number(value) });
      await reopen();
    })();
  } else if (id === "note" && row.action && value !== row.note) {
    told(row, "decision", { action: row.action === "rejected" ? "rejected" : "accepted", note: value });
  }
});

// ---- Editing a turn: its text, each argument of its calls, their results

let editing = null;
const isTyping = () => editing !== null && editing.fields.some((one) => one.input.value !== one.kept);
look.mayLeave = () => {
  if (isTyping()) toast("Save or cancel the text that you are editing first.");
  return !isTyping();
};

async function edit(target) {
  const row = view.row, wanted = target ? Number(target.value) : editableTurn();
  if (wanted === undefined || !look.mayLeave()) return;
  await tried(async () => {
    const turn = await ask(`/cases/${row.key}/turns/${wanted}`);
    if (view.row !== row) return;
    if (editing) showTurns();
    toTurn(wanted);
    openEditor(row, wanted, turn);
    editing.fields[0].input.focus({ preventScroll: true });
  });
}

// That with the focus, else the first that was changed, else the last.
function editableTurn() {
  const focused = Number(document.activeElement.closest(".turn")?.id.slice("turn-".length) || -1);
  const turns = body?.editable ?? [];
  if (turns.includes(focused)) return focused;
  return body?.turns.find((turn) => turn.state && turns.includes(turn.index) && turn.was !== undefined)?.index ?? turns.at(-1);
}

function openEditor(row, index, turn) {
  const fields = [];
  const field = (name, label, text, before, isLine) => {
    const input = make(isLine ? "input" : "textarea", { id: `edit-${fields.length}`, "aria-label": visible(label), dir: "auto", autocomplete: "off" });
    input.value = text;
    // A browser keeps line ends in its own way: what nobody typed into is sent as it was.
    const kept = input.value;
    if (!isLine) input.rows = Math.min(20, Math.max(2, text.split("\n").length + text.length / 70));
    fields.push({ ...name, input, kept, before, value: () => (input.value === kept ? text : input.value) });
    return make("label", { for: input.id }, make("span", {}, visible(name.key ?? label)), input);
  };
  const parts = [field({}, `What the assistant says in [${index}]`, turn.text, turn.before.text, false)];
  turn.calls.forEach((call, number) => {
    const before = turn.before.calls[number] ?? call;
    parts.push(make("p", { class: "call" }, "→ ", make("b", {}, call.name)));
    for (const [name, text] of Object.entries(call.arguments)) {
      const was = Object.hasOwn(before.arguments, name) ? before.arguments[name] : "";
      parts.push(field({ call: number, key: name }, `${name} of ${call.name}`, text, was, !/[\n\r]/.test(text) && text.length < 80));
    }
    if (call.result !== null) parts.push(field({ call: number, isResult: true }, `Result of ${call.name}`, call.result, before.result ?? "", false));
  });
  const preview = make("div", { class: "text" }), problem = make("p", { class: "problem", role: "alert", id: "edit-problem" });
  const isByPerson = body.turns.some((other) => other.index === index && other.state === "edited by a person");
  const form = make("form", { class: "editor" }, parts, make("h3", {}, "Against the original"), preview, problem, make("p", { class: "steps" },
    make("button", { class: "primary" }, "Save", make("kbd", {}, "Ctrl ↵")), button("cancel", "Cancel", "Esc"), isByPerson ? button("asMade", "As made") : null));
  editing = { row, index, fields, problem };
  const compare = () => preview.replaceChildren(...fields.flatMap(({ key, before, value }, place) => {
    if (place && before === value()) return [];
    return [make("p", { dir: "auto" }, key ? `${visible(key)}: ` : null, marked(differences(visible(before), visible(value()))))];
  }));
  form.addEventListener("input", compare);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    actions.save();
  });
  compare();
  $(`turn-${index}`).querySelector(".said").replaceChildren(form);
}

// Sends what was typed; what is refused stands at its field, and nothing that was typed is lost.
async function save() {
  const { fields } = editing;
  if (!isTyping()) return cancel();
  const calls = [];
  for (const { call, key, isResult, value } of fields.slice(1)) {
    calls[call] ??= { call, arguments: {}, result: null };
    if (isResult) calls[call].result = value();
    else calls[call].arguments[key] = value();
  }
  await send({ content: fields[0].value(), calls: calls.filter(Boolean) });
}

async function send(change) {
  const { row, index, fields, problem } = editing;
  await tried(async () => {
    const after = await ask(`/cases/${row.key}/turns/${index}`, { digest: row.digest, ...change });
    editing = null;
    decided.push(row.key);
    put([after]);
    await open(after);
    toTurn(index);
  }, (error) => {
    problem.textContent = `Nothing was saved. ${error.message}`;
    const refused = fields.find((one) => one.key !== undefined && error.message.match(/[\p{L}\p{N}_]+/gu)?.includes(one.key)) ?? fields[0];
    for (const one of fields) one.input.setAttribute("aria-invalid", String(one === refused));
    refused.input.setAttribute("aria-describedby", problem.id);
    refused.input.focus();
  });
}

async function cancel() {
  const { index } = editing;
  editing = null;
  await reopen();
  toTurn(index);
}

$("turns").addEventListener("keydown", (event) => {
  if (!editing) return;
  if (event.key === "Escape") actions.cancel();
  else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) actions.save();
  else return;
  event.preventDefault();
  event.stopPropagation();
});
addEventListener("beforeunload", (event) => isTyping() && event.preventDefault());

Object.assign(actions, {
  accept: inTurn(() => decide("accepted")),
  reject: inTurn(() => decide("rejected")),
  edit: inTurn(edit),
  undo: inTurn(undo),
  cancel: inTurn(() => editing && cancel()),
  save: inTurn(() => editing && save()),
  asMade: inTurn(() => editing && send({ content: null })),
  finish: () => {
    const left = progress.shown - progress.done, unmade = progress.total - progress.ended;
    const parts = [left ? `${left} cases are undecided and will be used as they were made.` : "Every case is decided."];
    if (unmade > 0) parts.push(`${unmade} are still to be made and will not be reviewed.`);
    askForEnd("Finish the review?", `${parts.join(" ")} The run then goes on with these cases.`);
  },
});
Object.assign(keys, { a: "accept", r: "reject", e: "edit" });
onEnd(async () => {
  progress = await ask("/finish", {});
  showHow();
});

// ---- What is served has in common: requests, news of the session, how far it is, and its end

const GONE = "The program behind this page has ended or was started again. Open the address that it shows now, or ask the person who started it.";

// The answer to a request, which brings `data` where it changes something; null, once `refused` has heard why, where there is none.
async function ask(address, data, refused = ({ error }) => toast(error)) {
  const headers = { "content-type": "application/json" };
  const options = data === undefined ? {} : { method: "POST", headers, body: JSON.stringify(data) };
  const response = await fetch(address, options).catch(() => null);
  const isJson = response?.headers.get("content-type")?.startsWith("application/json");
  let answer = { error: GONE };
  if (isJson) answer = await response.json();
  else if (response && response.status !== 403) answer.error = await response.text();
  if (isJson && response.ok) return answer;
  refused(answer);
  return null;
}

// Calls `heard` with every piece of news; while nobody answers it says so, or what `ended` gives.
function listen(heard, ended) {
  const events = new EventSource("/events");
  events.onmessage = (event) => {
    banner("");
    heard(JSON.parse(event.data));
  };
  events.onerror = () => banner(ended() || GONE);
  return events;
}

const isOther = (one, other) => JSON.stringify(one) !== JSON.stringify(other);
const isNews = (row) => isOther(row, rowsByKey.get(row.key));
function clear() {
  source.rows.length = 0;
  index();
}

// The first case behind a row, around the end of the list, that passes the test.
function following(row, list, test) {
  const place = list.findIndex((other) => other.key === row?.key);
  return [...list.slice(place + 1), ...list.slice(0, Math.max(place, 0))].find(test);
}

// What is done waits for what was done before: a key that is pressed early is about the case that follows.
let last = Promise.resolve(), clickedAt = -Infinity;
const inTurn = (task) => () => (last = last.then(task).catch(reportError));

// A button that is made with its case: the second click of a double one is not about the case that the first has opened.
function unhurried(task) {
  const madeAt = performance.now(), press = inTurn(task);
  return ({ detail }) => {
    const waited = performance.now() - Math.max(madeAt, clickedAt);
    if (detail) clickedAt = performance.now();
    if (!detail || waited > 400) press();
  };
}

// Cases decided or labelled here, the last one at the end: `u` takes back.
const done = [];
function say(row, text) {
  done.push(row.key);
  toast(`${text}. `, button("takeBack", "Undo", inTurn(undo), "u"));
}

function banner(text, ...more) {
  $("banner").replaceChildren(text, ...more);
  $("banner").hidden = !text;
}

const meter = make("progress", { id: "meter", value: "0", "aria-labelledby": "headline" });
$("headline").after(meter);
function showProgress(title, number, total, text) {
  document.title = $("headline").textContent = `${title}: ${number} of ${total}`;
  meter.max = total || 1;
  meter.value = number;
  $("sub").textContent = text;
}

// What was typed of a case and is not saved yet: it outlives the page, and goes with what is said of the case next.
const draftName = (row) => JSON.stringify(["jrh-note", ...look.draft(row)]);
const draftOf = (row) => localStorage.getItem(draftName(row));
const keepDraft = (row, note) => localStorage.setItem(draftName(row), note);
const forgetDraft = (row) => localStorage.removeItem(draftName(row));

// Enter leaves a note. What was changed is kept, and where something is said of the case, saved.
function noteField(row, isSaid, save) {
  const keep = (note) => inTurn(async () => {
    const now = rowsByKey.get(row.key);
    if (!isSaid(now)) toast("Note kept. The note will be saved with your answer.");
    else if (await save(now, note)) toast("Note saved.");
  })();
  const keydown = (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    $("title").focus({ preventScroll: true });
  };
  const input = (event) => keepDraft(row, event.target.value);
  const blur = (event) => event.target.value !== rowsByKey.get(row.key)?.note && keep(event.target.value);
  const field = make("input", { id: "note", maxlength: "2000", autocomplete: "off", ...shortcut("n"), input, keydown, blur });
  // Not as an attribute: what is typed next is added at the end.
  field.value = draftOf(row) ?? row.note;
  // Typed before the page was loaded again, and never left.
  if (isSaid(row) && field.value !== row.note) keep(field.value);
  return make("p", {}, make("label", { for: "note" }, "Note "), field, make("kbd", {}, "n"));
}
const noteNow = () => $("note")?.value ?? "";

// Asks before people end it; where others still work, it can be ended for them, too. `choice` is "me" or "all".
let finish = (choice) => choice;
const ending = dialog("end", "Finish?", make("p", { id: "end-text" }), make("form", { method: "dialog", class: "steps" },
  make("button", { value: "", autofocus: "" }, "Not yet"),
  make("button", { value: "all", hidden: "" }, "Finish for everybody"),
  make("button", { value: "me", class: "primary" }, "Finish")));
ending.addEventListener("close", () => ending.returnValue && finish(ending.returnValue));
function askForEnd(text, hasOthers = false) {
  $("end-text").textContent = text;
  ending.querySelector("[value=all]").hidden = !hasOthers;
  ending.returnValue = "";
  ending.showModal();
}

$("word").hidden = true;
// One above the other, and both above what is at the bottom of a narrow screen.
$("overview").after(make("div", { id: "notices" }, $("toast"), make("p", { id: "banner", role: "status", hidden: "" })));
$("actions").append(make("button", { type: "button", id: "finish", click: () => wantEnd() }, "Finish"));
document.head.append(make("link", { rel: "icon", href: "data:," }));
source.rows = [];

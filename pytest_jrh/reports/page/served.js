// ---- What is served has in common: requests, news of the session, how far it is, and its end

const GONE = "The session has ended or was started anew: open the address that pytest printed.";

class Refused extends Error {}

// The answer to a request, which brings `data` where it changes something; throws `Refused`.
async function ask(address, data) {
  const headers = { "content-type": "application/json" };
  const options = data === undefined ? {} : { method: "POST", headers, body: JSON.stringify(data) };
  let response;
  try {
    response = await fetch(address, options);
  } catch {
    throw new Refused(GONE);
  }
  const isJson = response.headers.get("content-type")?.startsWith("application/json");
  if (!isJson) throw new Refused(response.status === 403 ? GONE : await response.text());
  const answer = await response.json();
  if (!response.ok) throw Object.assign(new Refused(answer.error), answer);
  return answer;
}

// Does `work`, and says what went wrong, with `refused` where it is given; its value, or null where it was refused.
async function tried(work, refused = (error) => toast(error.message)) {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    refused(error);
    return null;
  }
}

// Calls `heard` with every piece of news; while nobody answers it says so, or what `ended` gives.
function listen(heard, ended) {
  const events = new EventSource("/events");
  events.onmessage = (event) => {
    banner("");
    heard(JSON.parse(event.data));
  };
  events.onerror = () => banner(ended() || GONE);
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

function banner(text) {
  $("banner").textContent = text;
  $("banner").hidden = !text;
}

function showProgress(title, done, total, text) {
  $("headline").textContent = `${title}: ${done} of ${total}`;
  $("sub").textContent = text;
  $("progress").max = total || 1;
  $("progress").value = done;
  document.title = `${done}/${total} · ${title}`;
}

const noteField = (row) => make("p", {}, make("label", { for: "note" }, "Note "), make("input", { id: "note", value: row.note, maxlength: "2000", autocomplete: "off" }), make("kbd", {}, "n"));
actions.note = () => $("note")?.focus();
keys.n = "note";
keys.u = "undo";

function dialog(id, title, ...children) {
  const opened = make("dialog", { id, "aria-labelledby": `${id}-title` }, make("h2", { id: `${id}-title` }, title), children);
  $("dialogs").append(opened);
  return opened;
}

const ending = dialog("end", "Finish?", make("p", { id: "end-text" }), make("form", { method: "dialog", class: "steps" },
  make("button", { value: "" }, "Go on"),
  make("button", { value: "all", hidden: "" }, "End it for everybody"),
  make("button", { value: "me", class: "primary" }, "Finish")));

// Asks before people end it, with `text`; where others still work, it can be ended for them, too.
function askForEnd(title, text, hasOthers = false) {
  $("end-title").textContent = title;
  $("end-text").textContent = text;
  ending.querySelector("[value=all]").hidden = !hasOthers;
  ending.returnValue = "";
  ending.showModal();
}

function onEnd(finish) {
  ending.addEventListener("close", () => ending.returnValue && tried(() => finish(ending.returnValue)));
}

function showFinished(text) {
  banner(text);
  $("finish").disabled = true;
}

$("word").hidden = true;
$("headline").after(make("progress", { id: "progress", "aria-label": "done" }));
$("sub").after(make("p", { id: "banner", role: "status", hidden: "" }));
$("actions").append(make("button", { type: "button", id: "finish", "data-do": "finish" }, "Finish"));
source.rows = [];

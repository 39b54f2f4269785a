// What both pages share: requests and news, small helpers, keys, switches, the end, and how a case is put in its place.

export const $ = (id) => document.getElementById(id);
export const pane = $("pane");
export const place = $("case");
const GONE = "The session has ended or was started anew: open the address that pytest printed.";

export class Refused extends Error {
  constructor(status, answer) {
    super(answer.error);
    this.status = status;
    this.problems = answer.problems ?? [];
  }
}

export async function get(path, kind = "json", signal = undefined) {
  return answered(await sent(path, { signal }), kind);
}

export async function post(path, body = {}) {
  const headers = { "content-type": "application/json" };
  return answered(await sent(path, { method: "POST", headers, body: JSON.stringify(body) }), "json");
}

async function sent(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, { error: GONE });
  }
}

async function answered(response, kind) {
  if (response.ok) return response[kind]();
  if (response.headers.get("content-type")?.startsWith("application/json")) {
    throw new Refused(response.status, await response.json());
  }
  throw new Refused(response.status, { error: response.status === 403 ? GONE : await response.text() });
}

// Calls `heard` with every piece of news; while nobody answers the banner says so, or what `ended` says.
export function listen(heard, ended) {
  const source = new EventSource("/events");
  source.onmessage = (event) => heard(JSON.parse(event.data));
  source.onerror = () => banner(ended() || GONE);
}

export function banner(text) {
  $("banner").textContent = text;
  $("banner").hidden = !text;
}

// For screen readers: what has just happened.
export function say(text) {
  $("says").textContent = text;
}

let toastTimer;
export function complain(error) {
  const toast = $("toast");
  toast.textContent = error.message;
  toast.hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => (toast.hidden = true), 8000);
}

// An element with properties and children; text is always text.
export function element(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in node) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

export function later(work, delay) {
  let timer;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => work(...values), delay);
  };
}

export function remembered(name, fallback) {
  return localStorage.getItem(`jrh-${name}`) ?? fallback;
}

export function remember(name, value) {
  localStorage.setItem(`jrh-${name}`, value);
}

export const isOn = (name) => remembered(name, "on") === "on";

// Checkboxes that are on until somebody switches them off.
export function switches(...names) {
  for (const name of names) {
    $(name).checked = isOn(name);
    $(name).addEventListener("change", () => remember(name, $(name).checked ? "on" : "off"));
  }
}

const themes = { system: "Colours: as the system", light: "Colours: light", dark: "Colours: dark" };
function theme(value) {
  remember("theme", value);
  if (value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = value;
  $("theme").ariaLabel = $("theme").title = themes[value];
}
theme(remembered("theme", "system"));
$("theme").addEventListener("click", () => {
  const names = Object.keys(themes);
  theme(names[(names.indexOf(remembered("theme", "system")) + 1) % names.length]);
  say($("theme").title);
});

const openHelp = () => $("help").showModal();
$("open-help").addEventListener("click", openHelp);

// Single keys do what `action` gives for them; `special` says whether it has dealt with a key itself, also in fields.
export function keys(action, special) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (document.querySelector("dialog[open]") || special(event)) return;
    const isField = event.target.matches("input:not([type=checkbox]):not([type=radio]), textarea, select");
    if (isField || !isOn("shortcuts")) return;
    const work = event.key === "?" ? openHelp : action(event.key);
    if (!work) return;
    event.preventDefault();
    work();
  });
}

// Asks, with `text`, before people end it; `end` does so, by the value of the button. Gives the way to ask.
export function finishing(text, end) {
  const ask = () => {
    $("finish-text").textContent = text();
    $("finish").showModal();
  };
  $("open-finish").addEventListener("click", ask);
  $("finish").addEventListener("close", async () => {
    const choice = $("finish").returnValue;
    $("finish").returnValue = "";
    if (!choice || choice === "no") return;
    try {
      await end(choice);
    } catch (error) {
      complain(error);
    }
  });
  return ask;
}

export function finished(text) {
  $("open-finish").disabled = true;
  $("open-finish").textContent = text;
}

// Parsed apart, so that nothing in it loads or runs; the server has escaped all that is not its own.
export function putCase(html) {
  place.replaceChildren(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
  cutTexts.disconnect();
  for (const text of place.querySelectorAll(".instructions")) {
    const button = element("button", { type: "button", className: "link cut-off", hidden: true });
    button.addEventListener("click", () => {
      text.classList.toggle("whole-text");
      showCut(text);
    });
    text.after(button);
    cutTexts.observe(text);
  }
}

// What of a rubric is out of sight is never so without a sign.
const cutTexts = new ResizeObserver((entries) => entries.forEach((entry) => showCut(entry.target)));
function showCut(text) {
  const button = text.nextElementSibling;
  const isWhole = text.classList.contains("whole-text");
  const isCut = text.scrollHeight > text.clientHeight + 1;
  button.hidden = !isWhole && !isCut;
  button.textContent = isWhole ? "show less" : "… there is more: show all";
}

// On a narrow page what is folded would take half of it.
export function foldIfNarrow(selector) {
  if (!matchMedia("(max-width: 760px)").matches) return;
  for (const details of place.querySelectorAll(selector)) details.open = false;
}

export function jump(index, { focus = true, block = "start" } = {}) {
  const turn = $(`turn-${index}`);
  if (!turn) return;
  const fold = turn.closest("details.fold");
  if (fold) fold.open = true;
  turn.scrollIntoView({ block });
  if (focus) turn.focus({ preventScroll: true });
}

// What is huge in a transcript comes only when it is opened.
place.addEventListener(
  "toggle",
  async (event) => {
    const details = event.target;
    if (!details.open || !details.dataset.more) return;
    try {
      details.querySelector(".whole").textContent = await get(details.dataset.more, "text");
      delete details.dataset.more;
    } catch (error) {
      complain(error);
    }
  },
  true,
);

// What all parts of the page share. Everything from outside reaches it as text nodes alone.
const $ = (id) => document.getElementById(id);
// What is served has no more than a title at first.
const BLANK = { blocks: { answer: [], doubts: [], details: [] }, rubrics: {}, cases: [] };
const session = { ...BLANK, ...JSON.parse($("session").textContent) };
const root = document.documentElement;
root.classList.toggle("no-letters", !keepKeys());
const isWide = () => matchMedia("(min-width: 1181px)").matches;

// A function is a listener; attributes that are null or false are left out, and so are such children.
function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  // One by one: a call takes only so many arguments.
  for (const child of children.flat(Infinity)) if (child !== null && child !== undefined && child !== false) node.append(child);
  return node;
}

function draw(tag, attributes, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

// As `visible` of core/text.py writes it, for what reaches the page as it was made so that it can be edited.
const RTL = /[\u0590-\u061b\u061d-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
const UNSAFE_IN_RTL = /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b\u2028-\u202e\u2060-\u2069\ufeff\p{Cs}\u{e0000}-\u{e007f}]/gu;
const escaped = (char) => (char < "\u0100" ? "\\x" : "\\u") + char.codePointAt(0).toString(16).padStart(char < "\u0100" ? 2 : 4, "0");
const UNSAFE = new RegExp(`${UNSAFE_IN_RTL.source}|[\\u061c\\u200e\\u200f]`, "gu");
const visible = (text) => text.replaceAll("\r\n", "\n").replace(RTL.test(text) ? UNSAFE_IN_RTL : UNSAFE, escaped);

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
const counted = (number, noun) => `${grouped(number)} ${noun}${number === 1 ? "" : "s"}`;
const grouped = (number) => number.toLocaleString("en");

// The key that presses something; that it does is told to assistive technology while letters are on.
const shortcut = (key) => ({ "data-key": key || null, "aria-keyshortcuts": root.classList.contains("no-letters") ? null : key || null });

// A button, and the key that presses it.
const button = (name, text, click, key) =>
  make("button", { type: "button", "data-do": name, click, ...shortcut(key) }, text, key ? make("kbd", {}, key) : null);

let toastTimer;
function toast(...content) {
  clearTimeout(toastTimer);
  $("toast").replaceChildren(...content);
  toastTimer = setTimeout(() => $("toast").replaceChildren(), 4000);
}

function dialog(id, title, ...children) {
  const opened = make("dialog", { id, "aria-labelledby": `${id}-title` }, make("h2", { id: `${id}-title` }, title), children);
  $("dialogs").append(opened);
  return opened;
}

const LONGEST = 6000;
// All nodes of an element that holds a text, which beyond `most` characters are made when they are asked for.
function long(text, nodes = (part) => [part], most = LONGEST) {
  if (text.length <= most) return nodes(text);
  const click = (event) => event.target.parentElement.replaceChildren(...nodes(text));
  const more = make("button", { type: "button", class: "link more", click }, `show ${grouped(text.length - most)} more characters`);
  return [...nodes(text.slice(0, most)), "… ", more];
}

// One click selects all of it.
const command = (text) => make("code", { class: "command" }, text);

// ---- What differs between two texts: [["same" | "gone" | "new", text], ...]

const WORDS = /\s+|[\p{L}\p{N}_£$€]+(?:[.,'’][\p{L}\p{N}]+)*|./gu;
const MOST_PAIRS = 16_000_000;
const LEAST_ALIKE = 0.3;
const LONGEST_ISLAND = 3;

// Word by word; as two wholes where that would take too long, or the texts have little in common.
function differences(before, after) {
  const old = before.match(WORDS) ?? [], now = after.match(WORDS) ?? [];
  let head = 0, tail = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  while (tail < Math.min(old.length, now.length) - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++;
  const oldEnd = old.length - tail, newEnd = now.length - tail;
  let pieces = [["gone", before], ["new", after]];
  if ((oldEnd - head) * (newEnd - head) <= MOST_PAIRS) {
    const middle = compared(old.slice(head, oldEnd), now.slice(head, newEnd));
    const byWord = [["same", old.slice(0, head).join("")], ...middle, ["same", old.slice(oldEnd).join("")]];
    const shared = byWord.reduce((sum, [kind, text]) => sum + (kind === "same" ? text.length : 0), 0);
    if (shared >= LEAST_ALIKE * Math.min(before.length, after.length)) pieces = byWord;
  }
  return pieces.filter(([, text]) => text);
}

// By the longest run of words that both have in this order; changes with a few letters between them are one.
function compared(old, now) {
  const width = now.length + 1, longest = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      const skipped = Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
      longest[i * width + j] = old[i] === now[j] ? longest[(i + 1) * width + j + 1] + 1 : skipped;
    }
  }
  const pieces = [];
  let i = 0, j = 0, gone = "", fresh = "";
  while (i < old.length || j < now.length) {
    let same = "";
    while (i < old.length && j < now.length && old[i] === now[j]) {
      same += old[i++];
      j++;
    }
    if ((gone || fresh) && same.trim().length <= LONGEST_ISLAND && !same.includes("\n")) {
      gone += same;
      fresh += same;
    } else {
      pieces.push(["gone", gone], ["new", fresh], ["same", same]);
      gone = fresh = "";
    }
    if (j === now.length || (i < old.length && longest[(i + 1) * width + j] >= longest[i * width + j + 1])) gone += old[i++];
    else fresh += now[j++];
  }
  return [...pieces, ["gone", gone], ["new", fresh]];
}

const MARKS = { same: "span", gone: "del", new: "ins" };
const marked = (pieces) => pieces.map(([kind, text]) => make(MARKS[kind], {}, long(text)));

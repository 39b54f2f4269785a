// What all parts of the page share. Everything from outside reaches it as text nodes alone.
const $ = (id) => document.getElementById(id);
const session = JSON.parse($("session").textContent);
const root = document.documentElement;
const isWide = () => matchMedia("(min-width: 1181px)").matches;

// What a button with `data-do` does, and the name of the action of each key. Scripts of a served page add theirs.
const actions = {};
const keys = {};

// `click` is a listener; attributes that are null or false are left out, and so are such children.
function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name === "click") node.addEventListener("click", value);
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
const UNSAFE = /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\p{Cs}\u{e0000}-\u{e007f}]/gu;
const escaped = (char) => (char < "\u0100" ? "\\x" : "\\u") + char.codePointAt(0).toString(16).padStart(char < "\u0100" ? 2 : 4, "0");
const visible = (text) => text.replaceAll("\r\n", "\n").replace(UNSAFE, escaped);

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

const button = (action, text, key) =>
  make("button", { type: "button", "data-do": action, "aria-keyshortcuts": key }, text, key ? make("kbd", {}, key) : null);

let toastTimer;
function toast(...content) {
  clearTimeout(toastTimer);
  $("toast").replaceChildren(...content);
  toastTimer = setTimeout(() => $("toast").replaceChildren(), 3500);
}

const LONGEST = 6000;
// All nodes of an element that holds a text, which beyond `most` characters are made when they are asked for.
function long(text, nodes = (part) => [part], most = LONGEST) {
  if (text.length <= most) return nodes(text);
  const rest = (text.length - most).toLocaleString("en");
  const more = make("button", { type: "button", class: "link more" }, `show ${rest} more characters`);
  more.addEventListener("click", () => {
    const holder = more.parentElement;
    holder.replaceChildren();
    for (const node of nodes(text)) holder.append(node);
  });
  return [...nodes(text.slice(0, most)), "… ", more];
}

// A command with a button that copies it, but for one that stands for another: `pytest ... --lf`.
function command(text) {
  const code = make("code", {}, text);
  if (text.includes(" ... ")) return make("div", { class: "command" }, code);
  const copy = make("button", { type: "button", class: "copy" }, "copy");
  copy.addEventListener("click", () => {
    getSelection().selectAllChildren(code);
    if (document.execCommand("copy")) copy.textContent = "copied";
  });
  return make("div", { class: "command" }, code, copy);
}

// ---- What differs between two texts: [["same" | "gone" | "new", text], ...]

const WORDS = /\s+|[\p{L}\p{N}_£$€]+(?:[.,'’][\p{L}\p{N}]+)*|./gu;
const MOST_PAIRS = 16_000_000;
const LEAST_ALIKE = 0.3;
const LONGEST_ISLAND = 3;

// Word by word; as two wholes where that would take too long, or the texts have little in common.
function differences(before, after) {
  const whole = [["gone", before], ["new", after]].filter(([, text]) => text);
  const old = before.match(WORDS) ?? [], now = after.match(WORDS) ?? [];
  let head = 0, tail = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head++;
  while (tail < Math.min(old.length, now.length) - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++;
  const oldMiddle = old.slice(head, old.length - tail), newMiddle = now.slice(head, now.length - tail);
  if (oldMiddle.length * newMiddle.length > MOST_PAIRS) return whole;
  const end = old.slice(old.length - tail).join("");
  const pieces = joined([["same", old.slice(0, head).join("")], ...compared(oldMiddle, newMiddle), ["same", end]]);
  const shared = pieces.reduce((sum, [kind, text]) => sum + (kind === "same" ? text.length : 0), 0);
  return shared < LEAST_ALIKE * Math.min(before.length, after.length) ? whole : pieces;
}

// By the longest run of pieces that both have in this order.
function compared(old, now) {
  const width = now.length + 1, longest = new Uint16Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      const skipped = Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
      longest[i * width + j] = old[i] === now[j] ? longest[(i + 1) * width + j + 1] + 1 : skipped;
    }
  }
  const pieces = [];
  let i = 0, j = 0;
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      pieces.push(["same", old[i++]]);
      j++;
    } else if (j === now.length || (i < old.length && longest[(i + 1) * width + j] >= longest[i * width + j + 1])) {
      pieces.push(["gone", old[i++]]);
    } else pieces.push(["new", now[j++]]);
  }
  return pieces;
}

// Neighbours of a kind are one, and so are changes with a few letters between them.
function joined(pieces) {
  const runs = [];
  for (const [kind, text] of pieces) {
    if (!text) continue;
    if (runs.length && runs.at(-1)[0] === kind) runs.at(-1)[1] += text;
    else runs.push([kind, text]);
  }
  const result = [];
  let gone = "", fresh = "";
  const flush = () => {
    if (gone) result.push(["gone", gone]);
    if (fresh) result.push(["new", fresh]);
    gone = fresh = "";
  };
  runs.forEach(([kind, text], place) => {
    const isIsland = (gone || fresh) && place < runs.length - 1 && text.trim().length <= LONGEST_ISLAND && !text.includes("\n");
    if (kind === "gone") gone += text;
    else if (kind === "new") fresh += text;
    else if (isIsland) {
      gone += text;
      fresh += text;
    } else {
      flush();
      result.push([kind, text]);
    }
  });
  flush();
  return result;
}

const MARKS = { same: "span", gone: "del", new: "ins" };
const marked = (pieces) => pieces.map(([kind, text]) => make(MARKS[kind], {}, long(text)));

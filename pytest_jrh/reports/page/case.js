// ---- A case: its turns, and what everybody says of it. Reading, editing and blind labelling draw turns alike.

// Bodies lie compressed in data blocks, one for each run; turns that its cases share stand there once, and are named by their places.
async function unpacked(block) {
  const text = $(block)?.textContent.trim();
  if (!text) return null;
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

async function bodyFromDisk(row) {
  const block = await unpacked(row.block);
  if (!block) return null;
  const body = block.cases[row.key];
  return { ...body, turns: body.turns && body.turns.map((place) => block.pool[place]) };
}

// What the search looks through, in lower case: turns, and what everybody says. Texts that cases share are kept once.
const wordsOfTurn = (turn) => [turn.name, ...turn.parts.flatMap(({ title, text }) => [title, text])].join("\n").toLowerCase();
const wordsSaid = (body) => [...body.voices.flatMap(({ who, word, why }) => [who, word, why]), ...(body.facts ?? []).flat()].join("\n").toLowerCase();
async function* wordsFromDisk() {
  for (const name of new Set(source.rows.map((row) => row.block))) {
    const block = await unpacked(name);
    const pool = block?.pool.map(wordsOfTurn);
    for (const [key, body] of Object.entries(block?.cases ?? {})) yield [key, [...(body.turns ?? []).map((place) => pool[place]), wordsSaid(body)]];
  }
}

const LONG_RESULT = 1200;
const MOST_LINES = 12;
const LONG_BESIDE = 260;
const prose = (...children) => make("div", { class: "text", dir: "auto" }, children);
const folded = (summary, ...children) => make("details", {}, make("summary", {}, summary), children);

// Each part with the one that it was before the edit; null for one that was not there, or is no longer.
function pairs(turn) {
  if (!turn.was) return turn.parts.map((part) => [part, part]);
  const before = [...turn.was];
  const take = (test) => {
    const place = before.findIndex(test);
    return place < 0 ? null : before.splice(place, 1)[0];
  };
  const paired = turn.parts.map((part) => {
    const same = take((old) => old.kind === part.kind && old.title === part.title);
    return [same ?? take((old) => old.kind === part.kind && part.kind !== "call"), part];
  });
  return [...paired, ...before.map((old) => [old, null])];
}

// ---- Markdown, which the parser gives as tokens: drawn from these tags alone, with text nodes

const MARK_TAGS = { paragraph: "p", heading: "h3", bullet_list: "ul", ordered_list: "ol", list_item: "li", blockquote: "blockquote", table: "table", thead: "thead", tbody: "tbody", tr: "tr", th: "th", td: "td", em: "em", strong: "strong", s: "s", code_inline: "code", code_block: "pre", fence: "pre", hr: "hr", softbreak: "br", hardbreak: "br", link: "span" };
const IMAGE_DATA = /^data:image\/(png|gif|jpeg|webp);base64,/;
const DEEPEST = 30;
let isRaw = false;

// A table that is wider than its place says so, and the arrow keys move it.
const widths = new ResizeObserver((seen) => seen.forEach(({ target }) => {
  const edges = target.getBoundingClientRect(), cells = [...target.querySelector("tr").children].map((cell) => cell.getBoundingClientRect());
  const inSight = cells.filter((cell) => cell.left > edges.left - 2 && cell.right < edges.right + 2).length;
  target.previousSibling.textContent = target.scrollWidth > target.clientWidth ? `${inSight} of ${counted(cells.length, "column")} fit here: scroll sideways to see the rest` : "";
}));
function scrolling(table) {
  const place = make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Table" }, table);
  widths.observe(place);
  return make("div", {}, make("p", { class: "wide" }), place);
}

function drawMarks(marks, most) {
  const top = make("div", {});
  const within = [top];
  for (const [type, nesting, content, info, attrs] of marks) {
    const tag = Object.hasOwn(MARK_TAGS, type.replace(/_(open|close)$/, "")) ? MARK_TAGS[type.replace(/_(open|close)$/, "")] : null;
    const parent = within.at(-1);
    if (nesting < 0) {
      const { address } = within.pop();
      if (address && address !== parent.textContent) parent.append(make("span", { class: "muted" }, ` (${address})`));
    } else if (type === "image") {
      const isShown = session.served && IMAGE_DATA.test(attrs.src);
      parent.append(isShown ? make("img", { src: attrs.src, alt: content }) : `${content} (${[attrs.src, attrs.title].filter(Boolean).join(" ")})`);
    } else if (tag) {
      const node = make(tag, { value: tag === "li" ? info || null : null, dir: tag === "pre" ? "ltr" : within.length === 1 ? "auto" : null, tabindex: tag === "pre" ? "0" : null }, info && tag === "pre" ? make("b", {}, `${info}\n`) : null, content);
      if (type === "link_open") node.address = [attrs.href, attrs.title && `“${attrs.title}”`].filter(Boolean).join(" ");
      parent.append(tag === "table" ? scrolling(node) : node);
      // What is nested deeper stands beside it.
      if (nesting > 0) within.push(within.length > DEEPEST ? parent : node);
    } else parent.append(content);
  }
  // Blocks beyond `most` characters come when they are asked for.
  const blocks = [...top.childNodes];
  let length = 0;
  const cut = blocks.findIndex((block) => (length += block.textContent.length) > most) + 1;
  if (!cut || cut === blocks.length) return blocks;
  const click = (event) => event.target.replaceWith(...blocks.slice(cut));
  return [...blocks.slice(0, cut), make("button", { type: "button", class: "link more", click }, `show ${counted(blocks.length - cut, "more part")}`)];
}

// A table leaves out the cells beyond its columns: then the text is shown as it is written.
const countWords = (text) => text.match(/[\p{L}\p{N}]+/gu)?.length ?? 0;
const isWhole = (marks, text) => marks.every(([type]) => type !== "table_open")
  || countWords(text) <= countWords(marks.flatMap(([, , content, info, attrs]) => [content, info, attrs.href, attrs.title, attrs.src]).join("\n"));

// How much of a result is shown at first.
function shortResult(text) {
  const lines = text.split("\n", MOST_LINES).join("\n");
  return Math.min(LONG_RESULT, lines.length);
}

function drawPart(old, part, most = LONGEST) {
  const { kind, title } = part ?? old;
  const isSame = old && part && old.text === part.text;
  const marks = isSame && part.marks && !isRaw ? JSON.parse(part.marks) : null;
  if (marks && isWhole(marks, part.text)) return make("div", { class: "text marks" }, drawMarks(marks, most));
  const content = isSame ? long(part.text, undefined, kind === "result" ? shortResult(part.text) : most) : marked(differences(old?.text ?? "", part?.text ?? ""));
  const name = make("b", {}, old && part ? title : marked([[part ? "new" : "gone", title]]));
  if (kind === "call") return make("div", { class: "call" }, make("span", { class: "muted" }, "→ "), name, "(", content, ")");
  if (kind === "reasoning") return folded(title, prose(content));
  if (kind === "image" && part?.address) return make("img", { src: part.address, alt: title, loading: "lazy" });
  return make("div", { class: kind }, title ? make("div", { class: "call" }, name) : null, prose(content));
}

function drawTurn(turn) {
  const isLeftOut = turn.state === "left out";
  const flag = turn.state ? make("span", { class: "flag" }, turn.state) : null;
  const who = make("div", { class: "who" }, make("b", {}, isLeftOut || turn.part ? "" : `[${turn.index}]`), turn.part || turn.role, flag, look.verb(turn));
  const name = turn.name ? make("div", { class: "call" }, make("span", { class: "muted" }, "← "), make("b", {}, turn.name)) : null;
  const parts = isLeftOut ? turn.parts.map((part) => make("del", {}, drawPart(part, part))) : pairs(turn).map(([old, part]) => drawPart(old, part, turn.part === "Context" ? LONG_RESULT : LONGEST));
  const isEmpty = [...turn.parts, ...(turn.was ?? [])].every((part) => !part.text.trim() && part.kind !== "call");
  const why = (turn.why ?? []).map(([title, text]) => make("p", { dir: "auto" }, make("b", {}, `${title}: `), make("span", {}, long(text))));
  return make("div", { class: `turn${turn.role === "user" ? " user" : ""}${turn.state ? " edited" : ""}`, id: isLeftOut ? null : `turn-${turn.index}`, tabindex: "-1" },
    who, make("div", { class: "said" }, name, isEmpty ? make("span", { class: "muted" }, "(empty)") : parts, why.length ? folded("why this edit", why) : null));
}

// Turns that did not change are folded, but for one at each side of a change; so is the system prompt.
function drawTurns(turns) {
  const changed = turns.flatMap((turn, place) => (turn.state ? [place] : []));
  const isShown = (turn, place) => {
    if (turn.state) return true;
    if (turn.role === "system") return false;
    if (!changed.length) return true;
    const isLong = turn.role === "tool" && turn.parts.some((part) => part.text.length > LONG_BESIDE);
    return !isLong && changed.some((other) => Math.abs(other - place) <= 1);
  };
  const drawn = [];
  let hidden = [];
  turns.forEach((turn, place) => {
    if (isShown(turn, place)) drawn.push(drawTurn(turn));
    else hidden.push(turn);
    // Two answers to one request stand side by side.
    if (turn.part === "Answer B") drawn.push(make("div", { class: "pair" }, drawn.splice(-2)));
    const next = turns[place + 1];
    if (hidden.length && (!next || isShown(next, place + 1) || turn.role === "system")) {
      drawn.push(drawFold(hidden));
      hidden = [];
    }
  });
  const isCut = drawn.some((node) => node.matches(".fold") || node.querySelector(".more"));
  const hasMarks = turns.some((turn) => turn.parts.some((part) => part.marks));
  const raw = button("raw", "As written", () => {
    if (!look.mayLeave()) return;
    isRaw = !isRaw;
    showTurns();
  }, "m");
  raw.setAttribute("aria-pressed", String(isRaw));
  raw.title = "Show the texts without formatting, exactly as they were written";
  const whole = button("whole", "Unfold all", unfold, "f");
  whole.title = "Show all texts in full";
  if (isCut || hasMarks) drawn.unshift(make("p", { class: "whole" }, isCut ? whole : null, hasMarks ? raw : null));
  return drawn;
}

const placeOf = (turn) => turn.part || `[${turn.index}] ${turn.name || turn.role}`;

function drawFold(turns) {
  const [first] = turns;
  let text = `[${first.index}]–[${turns.at(-1).index}] ${turns.length} turns, unchanged`, start = "";
  if (first.role === "system") {
    text = placeOf(first);
    start = `: ${first.parts[0]?.text.slice(0, 200) ?? ""}`;
  } else if (first.part || turns.length === 1) text = `${turns.map(placeOf).join(", ")}, unchanged`;
  return make("details", { class: "fold" }, make("summary", {}, make("span", {}, text, make("span", { class: "start" }, start))), turns.map(drawTurn));
}

const openFolds = () => document.querySelectorAll(".fold").forEach((fold) => fold.setAttribute("open", ""));
function unfold() {
  openFolds();
  for (const more of document.querySelectorAll("#turns .more")) more.click();
}

function toTurn(index) {
  const turn = $(`turn-${index}`);
  if (!turn) return;
  turn.closest(".fold")?.setAttribute("open", "");
  turn.scrollIntoView({ block: "center" });
  turn.focus({ preventScroll: true });
}

// A text whose mentions of turns, "[9]" and "turn 9", lead to them.
const citing = (turns) => (text) => {
  const drawn = [];
  let end = 0;
  for (const mention of text.matchAll(/\[(\d{1,4})\]|\bturns? (\d{1,4})\b/gi)) {
    const turn = mention[1] ?? mention[2];
    if (Number(turn) >= turns) continue;
    drawn.push(text.slice(end, mention.index), make("button", { type: "button", class: "cite", click: () => toTurn(turn) }, mention[0]));
    end = mention.index + mention[0].length;
  }
  return [...drawn, text.slice(end)];
};

function drawVoice(voice, cite) {
  const head = make("header", {}, make("h3", { dir: "auto" }, voice.who), make("span", { class: "verdict" }, voice.word), make("span", { class: "by" }, voice.by));
  // A bare number is no reason.
  const why = voice.why && !/^\d+$/.test(voice.why) ? make("p", { dir: "auto" }, long(voice.why, cite)) : null;
  return make("div", { class: `voice${voice.wrong ? " wrong" : ""}` }, head, why);
}

function drawRubric(row) {
  const rubric = { ...rubricOf(row), ...body?.rubric };
  // Of a table no more than a name may be known, or not even that.
  if (!rubric.id && !rubric.text) return null;
  const levels = rubric.levels.map((level) => make("li", { dir: "auto" }, level));
  return make("section", { class: "rubric" }, make("h3", { dir: "auto" }, `Rubric ${rubric.id}`.trim()),
    make("p", { dir: "auto" }, long(rubric.text)),
    levels.length ? make("ul", {}, levels) : null,
    rubric.place ? make("p", { class: "muted" }, make("code", {}, rubric.place)) : null);
}

function drawVoices(row) {
  if (!body) return [drawRubric(row) ?? ""];
  const cite = citing(body.turns?.length ?? 0);
  const facts = (body.facts ?? []).map(([title, text]) => [make("dt", {}, title), make("dd", { dir: "auto" }, long(text, cite))]);
  const commands = [["Is the label wrong? Decide on the review page", isMistake(row) && body.command && `${body.command} --jrh-review`], ["Run this case again", body.command]];
  const ways = commands.filter(([, text]) => text).map(([title, text]) => make("section", {}, make("h3", {}, title), command(text)));
  const voices = body.voices.map((voice) => drawVoice(voice, cite));
  return [make("section", {}, voices), drawRubric(row) ?? "", facts.length ? make("dl", {}, facts) : "", ...ways, make("p", { class: "id" }, make("code", {}, row.node))];
}

// What is known of the open case; null where there is nothing.
let body = null;

function showTurns() {
  let missing = "";
  if (!body) missing = "The details of this case were left out to keep this file small.";
  else if (body.is_cut) missing = "The text was left out to keep this file small. The suite's JSONL file of cases, or the table, has the text.";
  else if (!body.turns) missing = "There is no text for this case.";
  $("turns").replaceChildren(...(missing ? [make("p", { class: "none" }, missing)] : drawTurns(body.turns)));
  markFound();
}

function showCase(row) {
  $("title").textContent = titleOf(row);
  const kind = make("span", { class: `tag ${isMistake(row) || row.kind === "misled" ? "bad" : ""}` }, row.kind);
  const where = [...placesOf(row), row.epoch > 1 ? `epoch ${row.epoch}` : "", row.variant ? row.test : ""];
  $("about").replaceChildren(kind, ...drawTags(row, Object.keys(TAG_KINDS)), where.filter(Boolean).join(" · "));
  showTurns();
  $("voices").replaceChildren(...drawVoices(row));
  look.opened(row);
  markFound();
}

// Marks what is searched for in the open case, and unfolds it; nodes stay as they are.
function markFound() {
  if (!CSS.highlights) return;
  const ranges = [], words = searched().filter((word) => word.length > 1);
  const texts = document.createTreeWalker($("case"), NodeFilter.SHOW_TEXT);
  while (words.length && texts.nextNode()) {
    const { currentNode: node } = texts, text = node.data.toLowerCase();
    for (const word of text.length === node.data.length ? words : []) {
      for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
        ranges.push(new StaticRange({ startContainer: node, startOffset: at, endContainer: node, endOffset: at + word.length }));
        node.parentElement.closest(".fold")?.setAttribute("open", "");
      }
    }
  }
  CSS.highlights.set("found", new Highlight(...ranges));
}

// Opens a case; `focus` is "title", "row" or nothing.
async function open(row, focus = "") {
  if (!look.mayLeave()) return;
  const isFirst = !view.row;
  view.row = row;
  const opened = await source.body(row);
  if (view.row !== row) return;
  body = opened;
  $("case").hidden = false;
  // Below, list and case are two views: the browser's way back leads to the list.
  if (isFirst && !isWide()) history.pushState(null, "", location.hash);
  root.classList.add("open");
  showCase(row);
  showPlace();
  keep();
  bringIntoView(row, focus || root.dataset.ready);
  if (focus) (focus === "title" ? $("title") : link(row)).focus({ preventScroll: true });
}

function bringIntoView(row, isAsked) {
  if (!isWide()) return scrollTo(0, 0);
  if (scrollY > look.top()) scrollTo(0, look.top());
  // What the page opens with leaves the figures in sight.
  if (isAsked) link(row).scrollIntoView({ block: "nearest" });
  $("voices").scrollTop = 0;
}

function close() {
  view.row = body = null;
  root.classList.remove("open");
  $("case").hidden = true;
  showPlace();
}

function back() {
  const row = view.row;
  if (!row || !look.mayLeave()) return;
  close();
  keep();
  link(row).scrollIntoView({ block: "center" });
  link(row).focus({ preventScroll: true });
}

function step(by) {
  const place = shown.indexOf(view.row);
  const row = shown[place < 0 ? 0 : place + by];
  if (row) open(row, document.activeElement?.closest("#list") ? "row" : "");
  else toast(by > 0 ? "This is the last case in the list." : "This is the first case in the list.");
}

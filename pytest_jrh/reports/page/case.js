// ---- A case: its transcript, and what everybody says of it. Reading, editing and blind labelling draw turns alike.

// Bodies of cases lie compressed in data blocks, one for each run, and are unpacked when one of their cases is opened.
const blocks = new Map();
function unpacked(id) {
  if (!blocks.has(id)) blocks.set(id, unpack(id));
  return blocks.get(id);
}

async function unpack(id) {
  const text = $(id)?.textContent.trim();
  if (!text) return null;
  const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

// The turns of a run's cases are stored once, and named by their places.
async function bodyFromDisk(row) {
  const block = await unpacked(row.block);
  const body = block?.cases[row.key];
  return body ? { ...body, turns: body.turns && body.turns.map((place) => block.pool[place]) } : null;
}

const ROLES = ["system", "user", "assistant", "tool"];
const LONG_RESULT = 1200;
const LONG_BESIDE = 260;

// Each part with the one that it was before the edit; null for one that was not there, or is no longer.
function pairs(turn) {
  if (!turn.was) return turn.parts.map((part) => [part, part]);
  const before = [...turn.was];
  const take = (test) => {
    const place = before.findIndex(test);
    return place < 0 ? null : before.splice(place, 1)[0];
  };
  const paired = turn.parts.map((part) => [
    take((old) => old.kind === part.kind && old.title === part.title) ?? take((old) => old.kind === part.kind && part.kind !== "call"),
    part,
  ]);
  return [...paired, ...before.map((old) => [old, null])];
}

function drawPart(old, part) {
  const { kind, title } = part ?? old;
  const text = part ? part.text : old.text;
  const isSame = old && part && old.text === part.text;
  const all = () => marked(differences(old ? old.text : "", part ? part.text : ""));
  const content = isSame ? long(text, undefined, kind === "result" ? LONG_RESULT : LONGEST) : all();
  const name = make("b", {}, old && part ? title : marked([[part ? "new" : "gone", title]]));
  if (kind === "call") return make("div", { class: "call" }, make("span", { class: "muted" }, "→ "), name, "(", content, ")");
  if (kind === "reasoning") return make("details", {}, make("summary", {}, title), make("div", { class: "text", dir: "auto" }, content));
  if (kind === "image" && part?.address) return make("img", { src: part.address, alt: title, loading: "lazy" });
  const head = title ? make("div", { class: "call" }, name) : null;
  return make("div", { class: kind }, head, make("div", { class: "text", dir: "auto" }, content));
}

function drawTurn(turn) {
  const isLeftOut = turn.state === "left out";
  const role = ROLES.includes(turn.role) ? turn.role : "other";
  const flag = turn.state ? make("span", { class: "flag" }, turn.state) : null;
  const who = make("div", { class: "who" }, make("b", {}, isLeftOut ? "" : `[${turn.index}]`), turn.role, flag, look.verb?.(turn));
  const name = turn.name ? make("div", { class: "call" }, make("span", { class: "muted" }, "← "), make("b", {}, turn.name)) : null;
  const parts = isLeftOut ? turn.parts.map((part) => make("del", {}, drawPart(part, part))) : pairs(turn).map(([old, part]) => drawPart(old, part));
  const why = (turn.why ?? []).map(([title, text]) => make("p", { class: "muted", dir: "auto" }, make("b", {}, `${title}: `), make("span", {}, long(text))));
  const reasons = why.length ? make("details", { class: "why" }, make("summary", {}, "why this edit"), why) : null;
  return make("div", { class: `turn ${role}${turn.state ? " edited" : ""}`, id: isLeftOut ? null : `turn-${turn.index}`, tabindex: "-1" },
    who, make("div", { class: "said" }, name, parts, reasons));
}

// Turns that did not change are folded, but for one at each side of a change; so is the system prompt.
function drawTurns(turns, isWhole) {
  const changed = turns.flatMap((turn, place) => (turn.state ? [place] : []));
  const isShown = (turn, place) => {
    if (isWhole || turn.state) return true;
    if (turn.role === "system") return false;
    if (!changed.length) return true;
    const isBeside = changed.some((other) => Math.abs(other - place) <= 1);
    return isBeside && !(turn.role === "tool" && turn.parts.some((part) => part.text.length > LONG_BESIDE));
  };
  const drawn = [];
  let hidden = [];
  const flush = () => {
    if (hidden.length) drawn.push(drawFold(hidden));
    hidden = [];
  };
  turns.forEach((turn, place) => {
    if (isShown(turn, place)) {
      flush();
      drawn.push(drawTurn(turn));
    } else {
      if (hidden.at(-1)?.role === "system") flush();
      hidden.push(turn);
    }
  });
  flush();
  if (drawn.some((node) => folded.has(node))) drawn.push(make("p", { class: "whole" }, button("whole", "Whole transcript", "f")));
  return drawn;
}

// The turns behind each fold.
const folded = new WeakMap();
function drawFold(turns) {
  const [first] = turns;
  const last = turns.at(-1);
  let text = `[${first.index}]–[${last.index}] ${turns.length} turns, unchanged`;
  if (turns.length === 1) text = first.role === "system" ? `[${first.index}] system: ${first.parts[0]?.text.slice(0, 200) ?? ""}` : `[${first.index}] ${first.name || first.role}, unchanged`;
  const fold = make("button", { type: "button", class: "fold", "aria-expanded": "false" }, make("span", {}, text));
  folded.set(fold, turns);
  fold.addEventListener("click", () => unfold(fold)[0].focus({ preventScroll: true }));
  return fold;
}

function unfold(fold) {
  const drawn = folded.get(fold).map(drawTurn);
  fold.replaceWith(...drawn);
  return drawn;
}

function toTurn(index, { focus = true } = {}) {
  for (const fold of document.querySelectorAll(".fold")) if (folded.get(fold).some((turn) => turn.index === index)) unfold(fold);
  const turn = $(`turn-${index}`);
  if (!turn) return;
  turn.scrollIntoView({ block: "center" });
  turn.classList.remove("lit");
  if (!focus) return;
  requestAnimationFrame(() => turn.classList.add("lit"));
  turn.focus({ preventScroll: true });
}

// A text whose mentions of turns, "[9]" and "turn 9", lead to them.
const citing = (turns) => (text) => {
  const drawn = [];
  let end = 0;
  for (const mention of text.matchAll(/\[(\d{1,4})\]|\bturns? (\d{1,4})\b/gi)) {
    const turn = mention[1] ?? mention[2];
    if (Number(turn) >= turns) continue;
    drawn.push(text.slice(end, mention.index), make("a", { href: `#case=${view.row.key}&turn=${turn}`, "data-turn": turn }, mention[0]));
    end = mention.index + mention[0].length;
  }
  return [...drawn, text.slice(end)];
};

function drawVoice(voice, cite) {
  const head = make("header", {}, make("h3", { dir: "auto" }, voice.who), make("span", { class: "verdict" }, voice.word), voice.by ? make("span", { class: "by" }, voice.by) : null);
  // A bare number is no reason.
  const why = voice.why && !/^\d+$/.test(voice.why) ? make("p", { dir: "auto" }, long(voice.why, cite)) : null;
  return make("div", { class: `voice${voice.wrong ? " wrong" : ""}` }, head, why);
}

function drawRubric(row, body) {
  const rubric = { ...rubricOf(row), ...body?.rubric };
  const levels = rubric.levels ?? [];
  // Of a table no more than a name may be known, or not even that.
  if (!rubric.id) return null;
  return make("section", { class: "rubric" }, make("h3", { dir: "auto" }, `Rubric ${rubric.id}`),
    rubric.text ? make("p", { dir: "auto" }, long(rubric.text)) : null,
    levels.length ? make("ul", {}, levels.map((level) => make("li", { dir: "auto" }, level))) : null,
    rubric.place ? make("p", { class: "muted" }, make("code", {}, rubric.place)) : null);
}

function drawPlan(plan, cite) {
  const steps = plan.steps.map((step) => make("li", { dir: "auto" }, make("div", {}, long(`[${step.turn}] ${step.goal}`, cite)), make("div", { class: "muted" }, long(step.rationale))));
  return make("details", {}, make("summary", {}, "The plan of the edit"), make("p", { dir: "auto" }, long(plan.thesis)), make("ol", {}, steps));
}

function drawVoices(row, body) {
  const cite = citing(body?.turns?.length ?? 0);
  const sections = [];
  if (body) sections.push(make("section", {}, body.voices.map((voice) => drawVoice(voice, cite))));
  sections.push(drawRubric(row, body) ?? "");
  if (body) {
    const facts = body.facts.map(([title, text]) => [make("dt", {}, title), make("dd", { dir: "auto" }, long(text, cite))]);
    if (facts.length) sections.push(make("dl", {}, facts));
    if (body.plan) sections.push(drawPlan(body.plan, cite));
    for (const [title, text] of body.commands) sections.push(make("section", {}, make("h3", {}, title), command(text)));
  }
  sections.push(make("p", { class: "id" }, make("code", {}, row.node)));
  return sections;
}

// What a served page does when a case is shown; `body` is null where there is none.
const onCase = [];
let body = null;

function showTurns(isWhole = false) {
  let missing = "";
  if (!body) missing = "The details of this case were left out to keep this file small.";
  else if (body.is_cut) missing = "The transcript was left out to keep this file small; the case's JSONL holds it.";
  else if (!body.turns) missing = "There is no transcript of this case.";
  $("turns").replaceChildren(...(missing ? [make("p", { class: "none" }, missing)] : drawTurns(body.turns, isWhole)));
}

function showCase(row) {
  $("title").textContent = capital(row.title);
  const kind = make("span", { class: `tag ${isMistake(row) || row.kind === "turned" ? "bad" : ""}` }, row.kind);
  const more = drawTags(row, Object.keys(TAG_KINDS));
  const where = [row.run === row.title ? null : row.run, row.epoch > 1 ? `epoch ${row.epoch}` : null, hasSeveral("suite") ? row.suite : null, row.variant ? row.test : null];
  $("about").replaceChildren(kind, ...more, where.filter(Boolean).join(" · "));
  showTurns();
  $("voices").replaceChildren(...drawVoices(row, body));
  for (const follow of onCase) follow(row, body);
}

// Opens a case; `focus` is "title", "row" or nothing.
async function open(row, { focus = "", turn = null } = {}) {
  if (view.row) link(view.row).removeAttribute("aria-current");
  const isFirst = !view.row;
  view.row = row;
  const opened = await source.body(row);
  if (view.row !== row) return;
  body = opened;
  link(row).setAttribute("aria-current", "true");
  reach(row);
  $("case").hidden = false;
  // Below, list and case are two views: the browser's way back leads to the list.
  if (isFirst && !isWide()) history.pushState(null, "", location.hash);
  root.classList.add("open");
  showCase(row);
  showPlace();
  keep();
  bringIntoView(row, focus || root.dataset.ready);
  if (focus === "title") $("title").focus({ preventScroll: true });
  else if (focus === "row") link(row).focus({ preventScroll: true });
  if (turn !== null) toTurn(turn);
}

function bringIntoView(row, isAsked) {
  if (!isWide()) return scrollTo(0, 0);
  const rail = $("rail"), box = link(row).getBoundingClientRect(), sight = rail.getBoundingClientRect();
  const top = sight.top + $("tools").offsetHeight, bottom = Math.min(sight.bottom, innerHeight);
  if (box.top < top + 8) rail.scrollTop -= top + 8 - box.top;
  else if (box.bottom > bottom - 12) rail.scrollTop += box.bottom - bottom + 60;
  if (scrollY > $("desk").offsetTop) scrollTo(0, $("desk").offsetTop);
  // What the page opens with leaves the figures in sight.
  if (isAsked) link(row).scrollIntoView({ block: "nearest" });
  $("voices").scrollTop = 0;
}

function close() {
  if (view.row) link(view.row).removeAttribute("aria-current");
  view.row = body = null;
  root.classList.remove("open");
  $("case").hidden = true;
}

function back() {
  const row = view.row;
  if (!row) return;
  close();
  keep();
  link(row).scrollIntoView({ block: "center" });
  link(row).focus({ preventScroll: true });
}

function step(by) {
  const place = shown.indexOf(view.row);
  const row = shown[place < 0 ? 0 : place + by];
  if (row) open(row, { focus: document.activeElement?.closest("#list") ? "row" : "" });
  else toast(by > 0 ? "This was the last case." : "This is the first case.");
}

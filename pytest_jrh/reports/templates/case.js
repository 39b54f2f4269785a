// ---- one case
const diff = (pieces) => make("div", { class: "diff" }, ...pieces.map(([kind, text]) => make(TAGS[kind], {}, text)));

function long(text, attributes) {
  const block = make("div", attributes, text.slice(0, LONGEST));
  if (text.length <= LONGEST) return [block];
  const rest = (text.length - LONGEST).toLocaleString("en");
  const button = make("button", { type: "button", class: "more", on: () => { block.append(text.slice(LONGEST)); button.remove(); } }, `show ${rest} more characters`);
  return [block, button];
}

const card = (title, ...children) => make("section", { class: "card" }, make("h2", {}, title), ...children);
const prose = (text, missing) => (text ? make("div", { class: "prose" }, ...long(text, {})) : make("p", { class: "muted" }, missing || ""));

function facts(pairs) {
  const list = make("dl", { class: "facts" });
  for (const [name, value] of pairs) if (value !== null && value !== undefined && value !== "") list.append(make("dt", {}, name), make("dd", {}, String(value)));
  return list;
}

function turn(index, part, edited) {
  const block = make("div", { class: `turn ${/^(user|tool|assistant|system)$/.test(part.role) ? part.role : ""}${edited ? " edited" : ""}` });
  part.parts.forEach(([title, text], place) => {
    const mark = edited && place === 0 ? ", edited" : "";
    if (title.startsWith(" reasoning")) {
      block.append(make("details", {}, make("summary", { class: "muted" }, `[${index}] reasoning`), ...long(text, { class: "body" })));
      return;
    }
    block.append(make("h3", {}, `[${index}] ${part.role}${title}${mark}`));
    if (text) block.append(...long(text, { class: title.startsWith(" calls") || part.role === "tool" ? "body call" : "body" }));
  });
  return block;
}

function transcript(row, made, pool) {
  const judged = row.cells.given !== "";
  const edited = new Set(made.edits.map((edit) => edit.turn));
  const fill = (which, marks) => make("div", {}, ...which.map((place, index) => turn(index, pool[place], marks && edited.has(index))));
  const holder = make("div", {}, fill(made.judged, true));
  const choice = make("select", {}, make("option", {}, judged ? "as judged" : "as made"), make("option", {}, "original"));
  choice.setAttribute("aria-label", "which transcript");
  choice.addEventListener("change", () => holder.replaceChildren(choice.selectedIndex ? fill(made.original, false) : fill(made.judged, true)));
  return card("Transcript", edited.size ? make("p", {}, choice) : make("p", { class: "muted" }, judged ? "No turn was edited: the judge saw the run as it was recorded." : "No turn was edited."), holder);
}

function levels(made) {
  return made.levels.length ? make("ul", {}, ...made.levels.map((level) => make("li", {}, `${level.score}: ${level.label}`))) : null;
}

function plan(made) {
  if (!made.plan) return card("Plan", make("p", { class: "muted" }, "There was no plan."));
  const steps = made.plan.steps.map((step) => make("li", {}, make("div", {}, `turn ${step.message_index}: ${step.goal}`), make("div", { class: "muted" }, step.rationale)));
  return card("Plan", prose(made.plan.thesis, "No thesis."), steps.length ? make("ol", { class: "plan" }, ...steps) : make("p", { class: "muted" }, "No edits planned."));
}

function label(row, made) {
  const said = made.verification;
  const votes = made.votes.length ? make("ul", {}, ...made.votes.map((vote) => make("li", { dir: "auto" }, vote))) : make("p", { class: "muted" }, "The verifier was not asked.");
  const asked = said ? facts([["verifier's verdict", said.verdict], ["verifier's score", said.score]]) : votes;
  const right = row.cells.right;
  return card(right === "" ? "What the verifier said" : `Why the label is ${right}: ${made.basis}`, asked, said ? prose(said.rationale, "No rationale.") : null);
}

function edits(made) {
  if (!made.edits.length) return null;
  return card(made.edits.length === 1 ? "The edit" : `The ${made.edits.length} edits`, ...made.edits.flatMap((edit) => [
    make("h3", {}, `turn ${edit.turn} (${edit.role})`), edit.reason ? make("p", { class: "muted" }, edit.reason) : null, diff(edit.pieces)]));
}

function money(result) {
  const dollars = (amount) => `$${amount && amount < 0.001 ? amount.toPrecision(2) : amount.toFixed(4)}`;
  const price = result.unpriced ? `unknown for ${result.unpriced} of the calls` : dollars(result.cost);
  return facts([["calls made", result.calls], ["replayed", result.replayed], ["tokens in", result.input.toLocaleString("en")],
    ["tokens out", result.output.toLocaleString("en")], ["cost", price], ["paid now", result.paid ? dollars(result.paid) : ""]]);
}

function step(row, by) {
  const place = shown.indexOf(row) + by;
  const other = place >= 0 && place < shown.length && shown.includes(row) ? shown[place] : null;
  const label = by < 0 ? "\u2190 previous" : "next \u2192";
  if (!other) return make("span", { class: by > 0 ? "muted" : "muted push" }, label);
  const keys = by < 0 ? "ArrowLeft" : "ArrowRight";
  return make("a", { href: address(other), class: by > 0 ? "" : "push", rel: by > 0 ? "next" : "prev", "aria-keyshortcuts": keys, title: `${keys} key` }, label);
}

function top(row) {
  const all = make("a", { href: `#${String(state()) || "cases"}`, rel: "up", "aria-keyshortcuts": "Escape", title: "Escape key" }, "\u2190 all cases");
  return make("nav", { class: "bar-top", "aria-label": "cases" }, all, step(row, -1), step(row, 1));
}

function verdict(row, made) {
  const pills = ["outcome", "change"].map((name) => pill(row, name));
  const given = row.cells.given, right = row.cells.right;
  const meanings = made && !made.levels.length ? { 0: " (satisfied)", 1: " (violated)" } : {};
  const said = given !== "" ? `The judge gave ${given}${meanings[given] || ""}; the right answer is ${right}${meanings[right] || ""}. ` : "";
  return make("p", { class: "verdict" }, ...pills.filter(Boolean).flatMap((pill) => [pill, " "]), said);
}

function why(row, result) {
  if (result.reasoning || row.cells.given !== "") {
    const other = result.minority;
    return card(`Why the judge gave ${row.cells.given}`, result.said ? make("p", { class: "muted" }, `Of the repeats, ${result.said}.`) : null, prose(result.reasoning, "No reasoning was given."),
      other ? make("p", { class: "muted" }, `Another repeat gave ${other.score}:`) : null, other ? prose(other.reasoning, "No reasoning was given.") : null,
      ...(result.earlier ? [make("h3", {}, `Why the judge of the baseline gave ${result.earlier.given}`), prose(result.earlier.reasoning)] : []));
  }
  return card("Why there is no verdict", prose(result.detail, "The case was made, and not to be judged."));
}

function rubric(row, made, result) {
  return card(`Rubric ${row.cells.rubric}`, result.rubric ? prose(result.rubric) : null, made ? levels(made) : null, result.place ? make("p", { class: "muted" }, result.place) : null);
}

function page(row, bodies) {
  const result = bodies && bodies.results[row.key];
  const made = result && result.made !== null ? bodies.cases[result.made] : null;
  const head = [top(row), make("h1", { tabindex: "-1" }, row.cells.run), make("p", { class: "muted" }, row.node), verdict(row, made)];
  if (!result) return [...head, make("p", { class: "warning" }, "The details of this case were left out to keep this file small.")];
  for (const [title, text] of result.lines) head.push(make("p", {}, make("strong", {}, `${title}: `), text));
  const parts = [rubric(row, made, result), made ? edits(made) : null];
  parts.push(make("div", { class: made ? "two" : "" }, made ? label(row, made) : null, why(row, result)));
  if (made) {
    parts.push(made.judged ? transcript(row, made, bodies.pool) : make("p", { class: "warning" }, "The transcript was left out to keep this file small; the case's JSONL holds it."));
    parts.push(plan(made));
    if (made.summary) parts.push(card("The verifier's summary", prose(made.summary)));
    if (made.notes.length) parts.push(card("Notes", make("ul", {}, ...made.notes.map((note) => make("li", {}, note)))));
  }
  // Verdicts of a table, and of a judge that is code, took no call.
  const cost = result.calls || result.replayed ? card("Cost", money(result)) : null;
  parts.push(make("div", { class: "two" }, cost, result.command ? card("Run it again", copyable(make("code", { class: "command" }, result.command))) : null));
  return [...head, ...parts];
}


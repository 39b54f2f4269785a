"use strict";
// Everything from outside reaches the page as text nodes alone. Bodies of cases lie compressed in data blocks, one
// for each source run, and are unpacked when one of their cases is opened.
(() => {
  const byId = (id) => document.getElementById(id);
  const overview = byId("overview"), view = byId("case"), form = byId("filters");
  const table = document.querySelector("table.cases"), body = table.tBodies[0];
  const rows = Array.from(body.rows);
  const LONGEST = 6000, MOST_PAIRS = 4000000;
  const cellOf = (row, name) => row.querySelector(`td[data-name="${name}"]`)?.textContent ?? "";

  function make(tag, attributes, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name === "class") node.className = value;
      else if (name === "on") node.addEventListener("click", value);
      else node.setAttribute(name, value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  }

  // ---- the table
  const texts = new Map(rows.map((row) => [row, `${row.dataset.node} ${row.textContent}`.toLowerCase()]));
  let shown = rows;

  function filter() {
    const wanted = new FormData(form);
    const words = String(wanted.get("text") || "").toLowerCase().split(/\s+/).filter(Boolean);
    const exact = [...wanted.entries()].filter(([name, value]) => value && name !== "text" && name !== "sort");
    for (const row of rows) {
      const fits = exact.every(([name, value]) => cellOf(row, name).trim() === value.trim());
      row.hidden = !(fits && words.every((word) => texts.get(row).includes(word)));
    }
    count();
  }

  function count() {
    shown = Array.from(body.rows).filter((row) => !row.hidden);
    const all = rows.length.toLocaleString("en");
    byId("shown").textContent = shown.length === rows.length ? `${all} cases` : `${shown.length.toLocaleString("en")} of ${all} cases`;
  }

  function sort(name, descending) {
    const keyed = rows.map((row, place) => ({ row, place, text: cellOf(row, name).trim() }));
    const number = (text) => (text === "" ? NaN : Number(text.replace(/[$,]/g, "")));
    const numeric = keyed.every(({ text }) => text === "" || !Number.isNaN(number(text)));
    keyed.sort((a, b) => {
      if ((a.text === "") !== (b.text === "")) return a.text === "" ? 1 : -1;
      const order = numeric ? number(a.text) - number(b.text) : a.text.localeCompare(b.text, "en", { numeric: true });
      return (descending ? -order : order) || a.place - b.place;
    });
    body.append(...keyed.map(({ row }) => row));
    for (const head of table.tHead.rows[0].cells) {
      if (head.dataset.sort === name) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    count();
  }

  for (const head of table.tHead.rows[0].cells) {
    head.querySelector("button").addEventListener("click", () =>
      sort(head.dataset.sort, head.getAttribute("aria-sort") === "ascending"));
    form.elements.sort.append(make("option", { value: head.dataset.sort }, head.textContent));
  }
  form.elements.sort.addEventListener("change", (event) => sort(event.target.value, false));
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  body.addEventListener("click", (event) => {
    const row = event.target.closest("tr");
    if (row && !event.target.closest("a") && !String(getSelection())) location.hash = `case-${row.dataset.key}`;
  });

  // ---- bodies
  async function unpack(id) {
    const block = byId(id);
    if (!block) return null;
    const bytes = Uint8Array.from(atob(block.textContent.trim()), (char) => char.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  }

  // ---- differences, word by word
  const WORDS = /[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu, LINES = /[^\n]*\n|[^\n]+/g;

  function differences(before, after) {
    for (const pattern of [WORDS, LINES]) {
      const a = before.match(pattern) || [], b = after.match(pattern) || [];
      let head = 0, tail = 0;
      while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
      while (tail < Math.min(a.length, b.length) - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
      const c = a.slice(head, a.length - tail), d = b.slice(head, b.length - tail);
      if (c.length * d.length > MOST_PAIRS) continue;
      const pieces = matched(c, d);
      const kept = pieces.reduce((sum, [kind, text]) => sum + (kind === "same" && text.trim() ? text.length : 0), 0);
      const length = Math.min(c.join("").length, d.join("").length);
      const middle = length && kept / length < 0.25 ? [["gone", c.join("")], ["new", d.join("")]] : pieces;
      return joined([["same", a.slice(0, head).join("")], ...middle, ["same", a.slice(a.length - tail).join("")]]);
    }
    return [["gone", before], ["new", after]];
  }

  function matched(a, b) {
    const wide = b.length + 1, best = new Uint16Array((a.length + 1) * wide);
    for (let i = a.length - 1; i >= 0; i -= 1) {
      for (let j = b.length - 1; j >= 0; j -= 1) {
        best[i * wide + j] = a[i] === b[j] ? best[(i + 1) * wide + j + 1] + 1 : Math.max(best[(i + 1) * wide + j], best[i * wide + j + 1]);
      }
    }
    const pieces = [];
    let i = 0, j = 0;
    while (i < a.length || j < b.length) {
      if (i < a.length && j < b.length && a[i] === b[j]) { pieces.push(["same", a[i]]); i += 1; j += 1; }
      else if (i < a.length && (j === b.length || best[(i + 1) * wide + j] >= best[i * wide + j + 1])) { pieces.push(["gone", a[i]]); i += 1; }
      else { pieces.push(["new", b[j]]); j += 1; }
    }
    return pieces;
  }

  // Neighbours of a kind become one piece; a lone space between two changes belongs to both.
  function joined(pieces) {
    const result = [];
    let gone = "", fresh = "";
    const flush = () => {
      if (gone) result.push(["gone", gone]);
      if (fresh) result.push(["new", fresh]);
      gone = fresh = "";
    };
    pieces.forEach(([kind, text], place) => {
      if (kind === "gone") gone += text;
      else if (kind === "new") fresh += text;
      else if (!text.trim() && !text.includes("\n") && (gone || fresh) && place + 1 < pieces.length && pieces[place + 1][0] !== "same") { gone += text; fresh += text; }
      else {
        flush();
        if (result.length && result[result.length - 1][0] === "same") result[result.length - 1][1] += text;
        else if (text) result.push(["same", text]);
      }
    });
    flush();
    return result;
  }

  function diff(before, after) {
    const tags = { same: "span", gone: "del", new: "ins" };
    return make("div", { class: "diff" }, ...differences(before, after).map(([kind, text]) => make(tags[kind], {}, text)));
  }

  // ---- a case
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
      block.append(make("h4", {}, `[${index}] ${part.role}${title}${mark}`));
      if (text) block.append(...long(text, { class: title.startsWith(" calls") || part.role === "tool" ? "body call" : "body" }));
    });
    return block;
  }

  function transcript(made, pool) {
    const edited = new Set(made.edits.map((edit) => edit.index));
    const fill = (which, marks) => make("div", {}, ...which.map((place, index) => turn(index, pool[place], marks && edited.has(index))));
    const holder = make("div", {}, fill(made.judged, true));
    const choice = make("select", {}, make("option", {}, "as judged"), make("option", {}, "original"));
    choice.setAttribute("aria-label", "which transcript");
    choice.addEventListener("change", () => holder.replaceChildren(choice.selectedIndex ? fill(made.original, false) : fill(made.judged, true)));
    return card("Transcript", edited.size ? make("p", {}, choice) : make("p", { class: "muted" }, "No turn was edited: the judge saw the run as it was recorded."), holder);
  }

  function levels(made) {
    return made.levels.length ? make("ul", {}, ...made.levels.map((level) => make("li", {}, `${level.score}: ${level.label}`))) : null;
  }

  function plan(made) {
    if (!made.plan) return card("Plan", make("p", { class: "muted" }, "There was no plan."));
    const steps = made.plan.steps.map((step) => make("li", {}, make("div", {}, `turn ${step.message_index}: ${step.goal}`), make("div", { class: "muted" }, step.rationale)));
    return card("Plan", prose(made.plan.thesis, "No thesis."), steps.length ? make("ol", { class: "plan" }, ...steps) : make("p", { class: "muted" }, "No edits planned."));
  }

  function verification(made) {
    const said = made.verification;
    const state = made.verified ? "the label was confirmed" : "the label is unverified";
    if (!said) return card("Verification", make("p", { class: "muted" }, `The verifier was not asked: ${state}.`));
    return card("Verification", facts([["verdict", said.verdict], ["score", said.score], ["label", state]]), prose(said.rationale, "No rationale."));
  }

  function edits(made) {
    if (!made.edits.length) return null;
    return card(made.edits.length === 1 ? "The edit" : `The ${made.edits.length} edits`, ...made.edits.flatMap((edit) => [
      make("h3", {}, `turn ${edit.index}`), edit.reason ? make("p", { class: "muted" }, edit.reason) : null,
      edit.before === null ? make("p", { class: "muted" }, "Left out to keep this file small.") : diff(edit.before, edit.after)]));
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
    return other ? make("a", { href: `#case-${other.dataset.key}`, class: by > 0 ? "" : "push", rel: by > 0 ? "next" : "prev" }, label) : make("span", { class: by > 0 ? "muted" : "muted push" }, label);
  }

  function top(row) {
    return make("nav", { class: "bar-top" }, make("a", { href: "#cases" }, "\u2190 all cases"), step(row, -1), step(row, 1));
  }

  function verdict(row, made) {
    const pills = ["outcome", "change"].map((name) => row.querySelector(`td[data-name="${name}"] .pill`)?.cloneNode(true));
    const given = cellOf(row, "given"), right = cellOf(row, "right");
    const meanings = made && !made.levels.length ? { 0: " (satisfied)", 1: " (violated)" } : {};
    const said = given !== "" ? `The judge gave ${given}${meanings[given] || ""}; the right answer is ${right}${meanings[right] || ""}. ` : "";
    return make("p", { class: "verdict" }, ...pills.filter(Boolean).flatMap((pill) => [pill, " "]), said);
  }

  function why(row, result) {
    if (result.reasoning || cellOf(row, "given") !== "") {
      const other = result.minority;
      return card("The judge's reasoning", result.said ? make("p", { class: "muted" }, `Of the repeats, ${result.said}.`) : null, prose(result.reasoning, "No reasoning was given."),
        other ? make("p", { class: "muted" }, `Another repeat gave ${other.score}:`) : null, other ? prose(other.reasoning, "No reasoning was given.") : null);
    }
    return card("Why there is no verdict", prose(result.detail, "The case was made, and not to be judged."));
  }

  function rubric(row, made, result) {
    const text = made ? made.rubric.instructions : "";
    return card(`Rubric ${cellOf(row, "rubric")}`, text ? prose(text) : null, made ? levels(made) : null, result.place ? make("p", { class: "muted" }, result.place) : null);
  }

  function page(row, bodies) {
    const result = bodies && bodies.results[row.dataset.key];
    const made = result && result.made !== null ? bodies.cases[result.made] : null;
    const head = [top(row), make("h1", {}, cellOf(row, "run")), make("p", { class: "muted" }, row.dataset.node), verdict(row, made)];
    if (!result) return [...head, make("p", { class: "warning" }, "The details of this case were left out to keep this file small.")];
    const parts = [make("div", { class: "two" }, why(row, result), rubric(row, made, result))];
    if (made) {
      parts.push(edits(made), made.judged ? transcript(made, bodies.pool) : make("p", { class: "warning" }, "The transcript was left out to keep this file small; the case's JSONL holds it."));
      parts.push(make("div", { class: "two" }, plan(made), verification(made)));
      if (made.summary) parts.push(card("The verifier's summary", prose(made.summary)));
      if (made.notes.length) parts.push(card("Notes", make("ul", {}, ...made.notes.map((note) => make("li", {}, note)))));
    }
    parts.push(make("div", { class: "two" }, card("Cost", money(result)), result.command ? card("Run it again", make("code", { class: "command" }, result.command)) : null));
    return [...head, ...parts];
  }

  let from = 0, asked = "";
  async function route() {
    const key = (/^#case-([0-9a-f]+)$/.exec(location.hash) || [])[1];
    const row = key ? byId(`row-${key}`) : null;
    asked = key || "";
    if (!row) {
      const wasCase = !view.hidden;
      view.hidden = true;
      overview.hidden = false;
      if (wasCase) { view.replaceChildren(); scrollTo(0, from); }
      document.title = title;
      return;
    }
    if (view.hidden) from = scrollY;
    let parts;
    try {
      parts = page(row, await unpack(row.dataset.chunk));
    } catch (error) {
      parts = [top(row), make("p", { class: "warning" }, `This case cannot be shown: ${error.message}. It needs a browser of 2023 or later.`)];
    }
    if (asked !== key) return;
    view.replaceChildren(...parts.filter(Boolean));
    overview.hidden = true;
    view.hidden = false;
    document.title = `${cellOf(row, "run")}: ${title}`;
    scrollTo(0, 0);
  }

  const title = document.title;
  addEventListener("hashchange", route);
  addEventListener("keydown", (event) => {
    const link = { ArrowLeft: "prev", ArrowRight: "next" }[event.key];
    if (link && !view.hidden && !event.target.closest("input, select, textarea")) view.querySelector(`a[rel="${link}"]`)?.click();
  });
  const cut = document.querySelectorAll("script[data-cut]").length;
  if (cut) {
    byId("cut").hidden = false;
    byId("cut").textContent = `To keep this file small, the transcripts of ${cut} source runs were left out.`;
  }
  filter();
  route();
})();

// ---- The overview: blocks as reports have them, and the figures as bars

const small = (title) => make("h2", { class: "small" }, capital(title));
const BLOCKS = {
  Headline: (block) => make("h2", { dir: "auto" }, block.word ? make("span", { class: `word ${block.word}` }, block.word) : null, block.suite ? `${block.suite}: ` : null, block.text),
  Line: (block) => make("div", { class: block.weight }, small(block.title), make("p", { dir: "auto" }, block.text), block.command ? command(block.command) : null),
  Sentence: (block) => make("p", { class: block.weight, dir: "auto" }, block.text),
  Points: (block) => make("ul", {}, block.sentences.map((sentence) => make("li", { dir: "auto" }, sentence))),
  Diff: drawDiff,
  Section: (block) => make("section", {}, make("h2", {}, block.title), drawBlocks(block.blocks)),
  Table: drawTable,
  Cases: drawCases,
};
const drawBlocks = (blocks) => blocks.flatMap((block) => BLOCKS[block.type](block));

// What changed, and the whole text below it.
function drawDiff(block) {
  const pieces = block.pieces.map((piece) => [piece.kind, piece.text]);
  const places = block.places.flatMap(([old, fresh]) => [["gone", old], ["new", fresh]]);
  const changes = make("div", { class: "diff", dir: "auto" }, marked(places.filter(([, text]) => text)));
  const whole = make("details", {}, make("summary", {}, "Whole text with the changes"), make("div", { class: "text", dir: "auto" }, marked(pieces)));
  return make("div", {}, small(block.title), changes, whole);
}

// A name that may be broken behind its underscores and hyphens.
const breakable = (name) => name.split(/(?<=[_/-])/).flatMap((part, place) => (place ? [make("wbr", {}), part] : [part]));

// Cells with a share are bars with their numbers beside them.
const hasShare = (cell) => cell.share !== null;
const someCell = (block, test) => block.rows.some((row) => row.cells.some(test));
const hasBars = (block) => someCell(block, hasShare);

function drawTable(block) {
  const isBar = block.titles.map((_, place) => block.rows.some((row) => hasShare(row.cells[place])));
  const first = block.first ? make("th", { scope: "col" }, block.first) : make("td", {});
  const titles = block.titles.map((title, place) => make("th", { scope: "col", colspan: isBar[place] ? "2" : null, title: block.meanings[place] }, title));
  const lines = block.rows.map((row) => {
    const cells = row.cells.map((cell, place) => drawCell(cell, isBar[place], block.titles[place], row.name));
    return make("tr", { class: row.level }, make("th", { scope: "row", dir: "auto" }, drawName(row)), cells);
  });
  const table = make("table", { class: hasBars(block) ? "bars" : "plain" }, make("thead", {}, make("tr", {}, first, titles)), make("tbody", {}, lines));
  if (hasBars(block)) return table;
  return make("div", { class: "scroll" }, table);
}

function drawCell(cell, isBar, title, name) {
  const colour = cell.weight || (cell.share > 0 ? "bad" : "");
  const range = cell.range && cell.range !== "-" ? make("small", {}, ` (${cell.range})`) : null;
  const number = make("td", { class: `${isBar ? "count" : "alone"} ${colour}`, "data-of": title, title: cell.reason || null }, cell.text, range);
  if (!isBar) return number;
  return [make("td", { class: "bar" }, hasShare(cell) ? drawBar(cell, `${name}, ${title}`) : null), number];
}

function drawCases(block) {
  const lines = block.cases.map((named) => {
    const name = named.key ? make("a", { href: `#case=${named.key}`, title: named.name }, named.title || named.name) : make("code", {}, named.name);
    return make("li", { dir: "auto" }, name, named.why ? make("span", { class: "muted" }, ` ${named.why}`) : null);
  });
  const unnamed = block.number - block.cases.length;
  if (unnamed) lines.push(make("li", { class: "muted" }, `and ${grouped(unnamed)} more`));
  // A sentence says by itself how many cases there are.
  const count = block.title.endsWith(".") ? "" : ` (${grouped(block.number)})`;
  return make("details", {}, make("summary", { class: block.weight }, `${capital(block.title)}${count}`), make("ul", {}, lines));
}

// ---- Bars: of a cell with a share from 0 to 1, its interval, and what it was before

const percent = (share) => `${(share * 100).toFixed(1)}%`;
const dot = (kind, share, radius = 4.5) => draw("circle", { class: kind, cx: share, cy: 9, r: radius });
const band = (x, width) => draw("rect", { class: "interval", x, width, y: 5.5, height: 7, rx: 3.5 });

function drawBar(cell, name) {
  const { share, interval, before } = cell;
  const sure = interval ? `, 95% interval ${percent(interval[0])} to ${percent(interval[1])}` : "";
  const was = before === null ? "" : `, before: ${percent(before)}`;
  const text = `${name}: ${cell.text}${sure}${was}`;
  const bar = draw("svg", { role: "img", "aria-label": text, class: cell.weight || (share > (before ?? 0) ? "bad" : "") }, draw("title", {}, text));
  bar.append(draw("line", { class: "track", x1: 0, x2: "100%", y1: 9, y2: 9 }));
  if (interval) bar.append(band(percent(interval[0]), percent(interval[1] - interval[0])));
  if (before !== null) {
    bar.append(draw("line", { class: "path", x1: percent(before), x2: percent(share), y1: 9, y2: 9 }));
    bar.append(dot("before", percent(before), before === share ? 6.5 : 4.5));
  }
  bar.append(dot("now", percent(share)));
  return bar;
}

// The name of a row, which picks its cases where the list can be filtered by them.
function drawName(row) {
  const [suite, judge, rubric] = row.about;
  const named = { suite, judge, [choices.rubric.includes(rubric) ? "rubric" : "slice"]: rubric };
  const picked = Object.entries(named).filter(([name, value]) => hasSeveral(name) && choices[name].includes(value));
  if (!picked.length || row.level === "total") return breakable(row.name);
  return button("pick", breakable(row.name), () => pickRows(Object.fromEntries(picked)));
}

function legend(tables) {
  const sign = (shape, text) => make("span", {}, draw("svg", { width: 24, height: 18, "aria-hidden": "true" }, shape), text);
  const hasBefore = tables.some((table) => someCell(table, (cell) => cell.before !== null));
  return make("p", { class: "legend" }, sign(dot("now", 12), "now"), hasBefore ? sign(dot("before", 12), "before") : null, sign(band(0, 24), "95% interval"), "each bar: 0 to 100%");
}

// Figures stand at the left, and what they rest on beside them. The cases to read first are those of the list.
const ASIDE = ["Line", "Diff", "Cases", "Points"];
function drawOverview() {
  const { doubts, details } = session.blocks;
  const answer = [...session.blocks.answer], lead = [];
  // Of a single suite the headline is the page's, with the sentences behind it.
  while (answer.length && ((answer[0].type === "Headline" && !answer[0].suite) || (answer[0].type === "Sentence" && !answer[0].weight))) lead.push(answer.shift());
  $("sub").textContent = lead.filter((block) => block.type === "Sentence").map((block) => `${capital(block.text).replace(/\.$/, "")}.`).join(" ");
  const isAside = (block) => ASIDE.includes(block.type);
  const figures = answer.filter((block) => block.type !== "ReadFirst" && !isAside(block));
  const tables = figures.filter((block) => block.type === "Table" && hasBars(block));
  $("figures").replaceChildren(...drawBlocks(figures), ...(tables.length ? [legend(tables)] : []));
  $("doubts").replaceChildren(...drawBlocks([...answer.filter(isAside), ...doubts]));
  if (details.length) $("details").append(make("details", {}, make("summary", {}, "Certainty and sources"), drawBlocks(details)));
  const cut = source.rows.filter((row) => row.block && !document.querySelector(`#${row.block}:not([data-cut])`)).length;
  if (session.of) $("details").append(make("p", { class: "muted" }, `The list shows ${grouped(source.rows.length)} of ${grouped(session.of)} cases: first the regressions, then other wrong verdicts. The figures count all cases.`));
  if (cut) $("details").append(make("p", { class: "muted" }, `To keep this file small, the texts of the last ${counted(cut, "case")} in the list are left out.`));
}

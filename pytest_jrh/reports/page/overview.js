// ---- The overview: blocks as reports have them, and the figures as bars

const BLOCKS = {
  Headline: (block) => make("h2", { dir: "auto" }, block.word ? make("span", { class: `word ${block.word}` }, block.word) : null, block.suite ? `${block.suite}: ` : null, block.text),
  Line: (block) => make("div", { class: block.weight }, make("h2", { class: "small" }, capital(block.title)), make("p", { dir: "auto" }, capital(block.text)), block.command ? command(block.command) : null),
  Sentence: (block) => make("p", { class: block.weight, dir: "auto" }, block.text),
  Points: (block) => make("ul", {}, block.sentences.map((sentence) => make("li", { dir: "auto" }, sentence))),
  Command: (block) => make("div", {}, make("p", {}, block.advice), block.command ? command(block.command) : null),
  Diff: drawDiff,
  Fold: (block) => make("details", { open: block.is_open ? "" : null }, make("summary", {}, block.title), drawBlocks(block.blocks)),
  Section: (block) => make("section", {}, make("h2", {}, block.title), drawBlocks(block.blocks)),
  Table: drawTable,
  Cases: drawCases,
};
const drawBlocks = (blocks) => blocks.flatMap((block) => BLOCKS[block.type](block));

// What changed, without what is the same, until the whole is asked for.
function drawDiff(block) {
  const pieces = block.pieces.map((piece) => [piece.kind, piece.text]);
  const box = make("div", { class: "diff", dir: "auto" }, marked(pieces.filter(([kind]) => kind !== "same")));
  const more = make("button", { type: "button", class: "link" }, "whole change");
  more.addEventListener("click", () => {
    box.classList.add("whole-diff");
    box.replaceChildren(...marked(pieces));
    more.remove();
  });
  return make("div", {}, block.title ? make("h2", { class: "small" }, capital(block.title)) : null, box, more);
}

// A name that may be broken behind its underscores and hyphens.
const breakable = (name) => name.split(/(?<=[_/-])/).flatMap((part, place) => (place ? [make("wbr", {}), part] : [part]));

// Cells with a share are bars with their numbers beside them.
const hasShare = (cell) => cell.share !== null;
const hasBars = (block) => block.rows.some((row) => row.cells.some(hasShare));

function drawTable(block) {
  const isBar = block.titles.map((_, place) => block.rows.some((row) => hasShare(row.cells[place])));
  const first = block.first ? make("th", { scope: "col" }, block.first) : make("td", {});
  const titles = block.titles.map((title, place) => make("th", { scope: "col", colspan: isBar[place] ? "2" : null, title: block.meanings[place] }, title));
  const lines = block.rows.map((row) => {
    const cells = row.cells.map((cell, place) => drawCell(cell, isBar[place], block.titles[place], row.name));
    const isClean = row.cells.every((cell) => /^0(\.00)?( of .*)?$/.test(cell.text) && !cell.before);
    return make("tr", { class: `${row.level}${isClean ? " clean" : ""}` }, make("th", { scope: "row", dir: "auto" }, drawName(row)), cells);
  });
  const caption = block.caption ? make("caption", {}, block.caption) : null;
  const table = make("table", { class: hasBars(block) ? "bars" : "plain" }, caption, make("thead", {}, make("tr", {}, first, titles)), make("tbody", {}, lines));
  if (hasBars(block)) return table;
  const isHot = block.rows.some((row) => row.cells.some((cell) => cell.heat));
  const scroll = make("div", { class: "scroll" }, table);
  return isHot ? [scroll, make("p", { class: "legend" }, "Amber: more than 10% turned. Red: more than half.")] : scroll;
}

function drawCell(cell, isBar, title, name) {
  const colour = cell.share > 0 ? "bad" : cell.weight;
  const range = cell.range && cell.range !== "-" ? make("small", {}, ` (${cell.range})`) : null;
  const number = make("td", { class: `${isBar ? "count" : "alone"} ${colour} heat-${cell.heat}`, "data-of": title, title: cell.reason || null }, cell.text, range);
  if (!isBar) return number;
  return [hasShare(cell) ? drawBar(cell, `${name}, ${title}`) : make("td", { class: "bar" }), number];
}

function drawCases(block) {
  const lines = block.cases.map((named) => {
    const name = named.key ? make("a", { href: `#case=${named.key}`, title: named.name }, named.title || named.name) : make("code", {}, named.name);
    return make("li", { dir: "auto" }, name, named.why ? make("span", { class: "muted" }, ` ${named.why}`) : null);
  });
  if (block.more) lines.push(make("li", { class: "muted" }, `and ${block.more.toLocaleString("en")} more`));
  const count = block.count === null ? "" : ` (${block.count.toLocaleString("en")})`;
  return make("details", {}, make("summary", { class: block.weight }, `${capital(block.title)}${count}`), make("ul", {}, lines));
}

// ---- Bars: of a cell with a share from 0 to 1, its interval, and what it was before

const percent = (share) => `${(share * 100).toFixed(1)}%`;

function drawBar(cell, name) {
  const { share, interval, before } = cell;
  const isWorse = before === null ? share > 0 : share > before;
  const range = interval ? `, interval ${percent(interval[0])} to ${percent(interval[1])}` : "";
  const was = before === null ? "" : `, before ${percent(before)}`;
  const text = `${name}: ${cell.text}${range}${was}`;
  const bar = draw("svg", { role: "img", "aria-label": text, class: isWorse ? "worse" : "" }, draw("title", {}, text));
  bar.append(draw("line", { class: "track", x1: 0, x2: "100%", y1: 9, y2: 9 }));
  for (const at of ["0", "50%", "100%"]) bar.append(draw("line", { class: "tick", x1: at, x2: at, y1: 4, y2: 14 }));
  if (interval) bar.append(draw("rect", { class: "interval", x: percent(interval[0]), width: percent(interval[1] - interval[0]), y: 5.5, height: 7, rx: 3.5 }));
  if (before !== null && before !== share) bar.append(draw("line", { class: "path", x1: percent(before), x2: percent(share), y1: 9, y2: 9 }));
  if (before !== null) bar.append(draw("circle", { class: "before", cx: percent(before), cy: 9, r: before === share ? 6.5 : 4.5 }));
  bar.append(draw("circle", { class: "now", cx: percent(share), cy: 9, r: 4.5 }));
  return make("td", { class: "bar" }, bar);
}

// The name of a row, which picks its cases where the list can be filtered by them.
function drawName(row) {
  const [suite, judge, rubric] = row.about;
  const picked = Object.entries({ suite, judge, rubric }).filter(([name, value]) => value && hasSeveral(name));
  if (!picked.length || row.level === "total") return breakable(row.name);
  return make("button", { type: "button", "data-do": "pick", value: JSON.stringify(Object.fromEntries(picked)) }, breakable(row.name));
}

function legend(tables) {
  const sign = (kind, text) => {
    const shape = kind === "interval" ? draw("rect", { class: kind, x: 0, y: 3, width: 24, height: 7, rx: 3.5 }) : draw("circle", { class: kind, cx: 6, cy: 6, r: 4.5 });
    return make("span", {}, draw("svg", { width: kind === "interval" ? 24 : 12, height: 12, "aria-hidden": "true" }, shape), text);
  };
  const hasBefore = tables.some((table) => table.rows.some((row) => row.cells.some((cell) => cell.before !== null)));
  return make("p", { class: "legend" }, sign("now", "now"), hasBefore ? sign("before", "before") : null, sign("interval", "95% interval"), "0 to 100%");
}

// Figures stand at the left, and what they rest on beside them. The cases to read first are those of the list.
const ASIDE = ["Line", "Diff", "Command", "Cases", "Points"];
function drawOverview() {
  const { answer, doubts, details } = session.blocks;
  const shownBlocks = answer.filter((block) => block.type !== "ReadFirst");
  const tables = shownBlocks.filter((block) => block.type === "Table" && hasBars(block));
  const figures = shownBlocks.filter((block) => !ASIDE.includes(block.type));
  $("figures").replaceChildren(...drawBlocks(figures), ...(tables.length ? [legend(tables)] : []));
  $("doubts").replaceChildren(...drawBlocks([...shownBlocks.filter((block) => ASIDE.includes(block.type)), ...doubts]));
  const more = make("details", {}, make("summary", {}, "How sure, and where it comes from"), drawBlocks(details));
  $("details").replaceChildren(...(details.length ? [more] : []));
  const cut = source.rows.filter((row) => row.block && !document.querySelector(`#${row.block}:not([data-cut])`)).length;
  if (cut) $("details").append(make("p", { class: "muted" }, `To keep this file small, it has no transcripts of ${cut.toLocaleString("en")} cases, the last of the list.`));
}

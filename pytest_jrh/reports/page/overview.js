// ---- The overview: blocks as reports have them, and the figures as bars

const BLOCKS = {
  Sentence: (block) => make("p", { class: block.weight, dir: "auto" }, block.text),
  Points: (block) => make("ul", {}, block.sentences.map((sentence) => make("li", { dir: "auto" }, sentence))),
  Command: (block) => make("div", {}, make("p", {}, block.advice), block.command ? command(block.command) : null),
  Diff: (block) => make("div", { class: "diff", dir: "auto" }, marked(block.pieces.map((piece) => [piece.kind, piece.text]))),
  Fold: (block) => make("details", { open: block.is_open ? "" : null }, make("summary", {}, block.title), drawBlocks(block.blocks)),
  Section: (block) => make("section", {}, make("h2", {}, block.title), drawBlocks(block.blocks)),
  Table: drawTable,
  Cases: drawCases,
};
const drawBlocks = (blocks) => blocks.map((block) => BLOCKS[block.type](block));

function drawTable(block) {
  const titles = [block.first, ...block.titles].map((title, place) => {
    const meaning = place && block.meanings.length ? block.meanings[place - 1] : null;
    return make("th", { scope: "col", title: meaning }, title);
  });
  const lines = block.rows.map((row) => make("tr", { class: row.level }, make("th", { scope: "row", dir: "auto" }, row.name), row.cells.map((cell, place) => drawCell(cell, block.titles[place]))));
  const caption = block.caption ? make("caption", {}, block.caption) : null;
  return make("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": block.caption || `table by ${block.first}` }, make("table", { class: "plain" }, caption, make("thead", {}, make("tr", {}, titles)), make("tbody", {}, lines)));
}

function drawCell(cell, title) {
  const range = cell.range ? make("small", {}, ` ${cell.range}`) : null;
  const heat = cell.heat ? ` heat-${cell.heat}` : "";
  return make("td", { class: `${cell.weight}${heat}`, "data-of": title, title: cell.reason || null }, cell.text, range);
}

function drawCases(block) {
  const lines = block.cases.map((named) => {
    const name = named.key ? make("a", { href: `#case=${named.key}`, title: named.name }, named.title || named.name) : make("code", {}, named.name);
    return make("li", { dir: "auto" }, name, named.why ? make("span", { class: "muted" }, ` ${named.why}`) : null);
  });
  if (block.more) lines.push(make("li", { class: "muted" }, `and ${block.more.toLocaleString("en")} more`));
  const count = block.count === null ? "" : ` (${block.count.toLocaleString("en")})`;
  return make("details", {}, make("summary", { class: block.weight }, `${block.title}${count}`), make("ul", {}, lines));
}

// ---- Bars: `share` is {count, n, lower, upper, before: {count, n} or null}, all of what is wrong

const percent = (share) => `${(share * 100).toFixed(1)}%`;

function drawBar(share, name) {
  if (!share || !share.n) return make("td", { class: "bar" });
  const now = share.count / share.n;
  const before = share.before ? share.before.count / share.before.n : null;
  const isWorse = before === null ? share.count > 0 : now > before;
  const was = share.before ? `, before ${share.before.count} of ${share.before.n}` : "";
  const hasInterval = share.lower !== null;
  const interval = hasInterval ? `, interval ${percent(share.lower)} to ${percent(share.upper)}` : "";
  const text = `${name}: ${share.count} of ${share.n}${interval}${was}`;
  const bar = draw("svg", { role: "img", "aria-label": text, class: isWorse ? "worse" : "" }, draw("title", {}, text));
  bar.append(draw("line", { class: "track", x1: 0, x2: "100%", y1: 9, y2: 9 }));
  for (const at of ["0", "50%", "100%"]) bar.append(draw("line", { class: "tick", x1: at, x2: at, y1: 4, y2: 14 }));
  if (hasInterval) bar.append(draw("rect", { class: "interval", x: percent(share.lower), width: percent(share.upper - share.lower), y: 5.5, height: 7, rx: 3.5 }));
  if (before !== null && before !== now) bar.append(draw("line", { class: "path", x1: percent(before), x2: percent(now), y1: 9, y2: 9 }));
  if (before !== null) bar.append(draw("circle", { class: "before", cx: percent(before), cy: 9, r: before === now ? 6.5 : 4.5 }));
  bar.append(draw("circle", { class: "now", cx: percent(now), cy: 9, r: 4.5 }));
  return make("td", { class: "bar" }, bar);
}

function drawCount(share, title) {
  if (!share || !share.n) return make("td", { class: "count", "data-of": title }, "–");
  const number = make(share.count ? "b" : "span", { class: share.count ? "bad" : null }, `${share.count.toLocaleString("en")} of ${share.n.toLocaleString("en")}`);
  const was = share.before && share.before.count ? make("span", { class: "muted" }, ` was ${share.before.count}`) : null;
  return make("td", { class: "count", "data-of": title }, number, was);
}

// `figures` is {suite, by, titles, rows: [{name, shares: [...]}], total: row or null}.
function drawFigures(figures) {
  const titles = figures.titles.map((title) => make("th", { scope: "col", colspan: "2" }, title));
  const drawRow = (row, isTotal) => {
    const name = isTotal || !(figures.by in PICKS) ? row.name : make("button", { type: "button", "data-pick": figures.by, "data-suite": figures.suite, value: row.name }, row.name);
    const shares = row.shares.flatMap((share, place) => [drawBar(share, `${row.name}, ${figures.titles[place]}`), drawCount(share, figures.titles[place])]);
    return make("tr", {}, make("th", { scope: "row", dir: "auto" }, name), shares);
  };
  const head = make("thead", {}, make("tr", {}, make("th", { scope: "col" }, figures.by), titles));
  const body = make("tbody", {}, figures.rows.map((row) => drawRow(row, false)));
  const foot = figures.total ? make("tfoot", {}, drawRow(figures.total, true)) : null;
  const title = session.figures.length > 1 ? make("h2", { dir: "auto" }, figures.suite) : null;
  return [title, make("table", { class: "bars" }, head, body, foot)];
}

function legend() {
  const sign = (kind, text) => {
    const shape = kind === "interval" ? draw("rect", { class: kind, x: 0, y: 3, width: 24, height: 7, rx: 3.5 }) : draw("circle", { class: kind, cx: 6, cy: 6, r: 4.5 });
    return make("span", {}, draw("svg", { width: kind === "interval" ? 24 : 12, height: 12, "aria-hidden": "true" }, shape), text);
  };
  const shares = session.figures.flatMap((figures) => figures.rows.flatMap((row) => row.shares));
  const hasBefore = shares.some((share) => share?.before);
  return make("p", { class: "legend" }, sign("now", "now"), hasBefore ? sign("before", "before") : null, sign("interval", "95% interval"), "0 to 100%");
}

function drawOverview() {
  $("figures").replaceChildren(...session.figures.flatMap(drawFigures).filter(Boolean), ...(session.figures.length ? [legend()] : []), ...drawBlocks(session.blocks.answer));
  $("doubts").replaceChildren(...drawBlocks(session.blocks.doubts));
  $("details").replaceChildren(...(session.blocks.details.length ? [make("details", {}, make("summary", {}, "How sure, and where it comes from"), drawBlocks(session.blocks.details))] : []));
}

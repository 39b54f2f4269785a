// ---- The list of cases: filters, search, and the rows that match

const MISTAKES = ["missed", "false alarm", "wrong"];
const SIGNS = { missed: "✗", "false alarm": "!", wrong: "✗", turned: "✗", right: "✓", "not judged": "–", "no label": "–" };
const isMistake = (row) => MISTAKES.includes(row.kind);
const hasTag = (tag) => (row) => row.tags.includes(tag);

// What can be shown of the list, the most urgent first: [name in the address, title, test].
const FILTERS = [
  ["regression", "regressions", hasTag("regression")],
  ["wrong", "wrong", isMistake],
  ["missed", "missed", (row) => row.kind === "missed"],
  ["alarm", "false alarms", (row) => row.kind === "false alarm"],
  ["turned", "turned by a probe", (row) => row.kind === "turned"],
  ["doubt", "label in doubt", hasTag("label in doubt")],
  ["unjudged", "not judged", (row) => row.kind === "not judged"],
  ["flicker", "flickering", hasTag("flickers")],
  ["unshown", "not shown to the judge", hasTag("not shown")],
  ["contradicts", "reason contradicts", hasTag("reason contradicts")],
  ["all", "all", () => true],
];

const filterOf = (name) => FILTERS.find(([other]) => other === name);

// By what else rows can be picked: the values that a row has.
const PICKS = {
  suite: (row) => [row.suite],
  rubric: (row) => [session.rubrics[row.rubric].id],
  judge: (row) => row.judges.map((judge) => judge.name),
  probe: (row) => (row.variant ? [row.test] : []),
};

// What is shown; `row` is the open case.
const view = { show: "all", query: "", picked: { suite: "", rubric: "", judge: "", probe: "" }, row: null };
let shown = [];

// Where rows and the bodies of cases come from. A served page puts its own in place of this one.
const source = {
  rows: session.cases,
  body: bodyFromDisk,
};

const rowsByKey = new Map();
const nodes = new WeakMap();
// The values of each of PICKS that the rows have.
const choices = {};
const hasSeveral = (name) => choices[name].length > 1;
function index() {
  rowsByKey.clear();
  for (const name of Object.keys(PICKS)) choices[name] = [...new Set(source.rows.flatMap(PICKS[name]))].filter(Boolean).sort();
  for (const row of source.rows) {
    rowsByKey.set(row.key, row);
    for (const judge of row.judges) if (judge.key) rowsByKey.set(judge.key, row);
  }
}

const rubricOf = (row) => session.rubrics[row.rubric];

// The tags that are shown, with their colour; in the list only those that say more than its filters.
const TAG_KINDS = { regression: "bad", "by flicker": "warn", fix: "good", "label in doubt": "warn", "label checked": "good", flickers: "warn", "not shown": "warn", "reason contradicts": "warn", "expected to fail": "", accepted: "good", edited: "good", rejected: "bad", void: "warn" };
const LISTED_TAGS = ["label in doubt", "label checked", "flickers", "accepted", "edited", "rejected", "void"];
const drawTags = (row, names) => row.tags.filter((tag) => names.includes(tag)).map((tag) => make("span", { class: `tag ${TAG_KINDS[tag]}` }, tag));

// How a row of the list is drawn, in which blind labelling draws less, and what can be done with a turn of a served page.
const look = { row: drawRow, verb: null };

function drawRow(row) {
  const wrong = row.judges.filter((judge) => judge.wrong).map((judge) => judge.name).filter(Boolean);
  const by = wrong.length ? ` by ${wrong.join(", ")}` : "";
  const where = [row.run === row.title ? null : row.run, rubricOf(row).id];
  if (hasSeveral("suite")) where.push(row.suite);
  const tags = drawTags(row, LISTED_TAGS);
  return make("a", { class: row.kind.replace(" ", "-"), href: `#case=${row.key}`, tabindex: "-1" },
    make("span", { class: "sign", "aria-hidden": "true" }, SIGNS[row.kind]),
    make("span", { class: "what", dir: "auto" }, capital(row.title)),
    make("span", { class: "where", dir: "auto" }, tags, row.kind === "right" ? null : `${row.kind}${by} · `, where.filter(Boolean).join(" · ")));
}

function link(row) {
  if (!nodes.has(row)) {
    nodes.set(row, look.row(row));
    if (row === view.row) nodes.get(row).setAttribute("aria-current", "true");
  }
  return nodes.get(row);
}

// ---- Search: in the row, and in the reasons, plans and edits of its case

let texts = null;
async function loadTexts() {
  texts ??= (await unpacked("texts")) ?? {};
}
const haystacks = new WeakMap();
function haystack(row) {
  if (!haystacks.has(row)) {
    const words = [row.title, row.run, rubricOf(row).id, row.suite, row.test, row.variant, row.kind, ...row.tags, ...row.judges.map((judge) => judge.name)];
    haystacks.set(row, [...words, texts?.[row.key] ?? ""].join("\n").toLowerCase());
  }
  return haystacks.get(row);
}

function isPicked(row) {
  for (const [name, value] of Object.entries(view.picked)) {
    if (value && !PICKS[name](row).includes(value)) return false;
  }
  // Of a panel's mistakes those of the judge that is picked.
  const wrong = row.judges.filter((judge) => judge.wrong).map((judge) => judge.name);
  return view.show === "all" || !view.picked.judge || !wrong.length || wrong.includes(view.picked.judge);
}

function matching() {
  const words = view.query.toLowerCase().split(/\s+/).filter(Boolean);
  const [, , test] = filterOf(view.show);
  return source.rows.filter((row) => test(row) && isPicked(row) && words.every((word) => haystack(row).includes(word)));
}

const FIFTY = 50;
function refresh(missing = "") {
  shown = matching();
  // Only what matches is in the document, fifty to a list: those out of sight are not laid out.
  const lists = [];
  for (let start = 0; start < shown.length; start += FIFTY) {
    lists.push(make("ul", {}, shown.slice(start, start + FIFTY).map((row) => make("li", {}, link(row)))));
  }
  $("list").replaceChildren(...lists);
  $("nothing").textContent = missing || "No case matches.";
  $("nothing").hidden = shown.length > 0 && !missing;
  for (const choice of $("filters").children) choice.setAttribute("aria-pressed", String(choice.value === view.show));
  reach(shown.includes(view.row) ? view.row : shown[0]);
  showPlace();
}

// One row takes the focus of the tab key; arrows lead to the others.
function reach(row) {
  document.querySelector("#list a[tabindex='0']")?.setAttribute("tabindex", "-1");
  if (row) link(row).setAttribute("tabindex", "0");
}

function showPlace() {
  const place = shown.indexOf(view.row);
  const title = view.show === "all" ? "cases" : filterOf(view.show)[1];
  $("place").textContent = place < 0 ? "not in this list" : `${place + 1} of ${shown.length.toLocaleString("en")} ${title}`;
}

// The buttons, without those that would show nothing or what another one shows, and the choices.
function drawFilters() {
  const counts = FILTERS.map(([, , test]) => source.rows.filter(test).length);
  const [, wrong, missed, alarms] = counts;
  $("filters").replaceChildren(...FILTERS.flatMap(([name, title], place) => {
    const isTwice = name === "wrong" && (wrong === missed || wrong === alarms);
    if (name !== "all" && (!counts[place] || isTwice)) return [];
    return [make("button", { type: "button", "data-do": "show", value: name, "aria-pressed": "false" }, `${title} `, make("b", {}, counts[place].toLocaleString("en")))];
  }));
  for (const select of $("find").querySelectorAll("select")) select.remove();
  for (const name of Object.keys(PICKS)) {
    if (!hasSeveral(name)) continue;
    const options = choices[name].map((value) => make("option", {}, value));
    const select = make("select", { name, "aria-label": name }, make("option", { value: "" }, `all ${name}s`), options);
    select.value = view.picked[name];
    $("find").append(select);
  }
}

// What the page opens with: what is wrong, else what is to be looked at.
function firstFilter() {
  const has = (test) => source.rows.some(test);
  const kinds = MISTAKES.filter((kind) => has((row) => row.kind === kind));
  if (has(hasTag("regression"))) return "regression";
  if (kinds.length === 1) return { missed: "missed", "false alarm": "alarm", wrong: "wrong" }[kinds[0]];
  if (kinds.length) return "wrong";
  const name = ["turned", "doubt"].find((other) => has(filterOf(other)[2]));
  return name ?? (has(hasTag("no verdict")) ? "unjudged" : "all");
}

// ---- The address holds what is shown

function keep() {
  const address = new URLSearchParams();
  if (view.show !== firstFilter()) address.set("show", view.show);
  for (const [name, value] of Object.entries(view.picked)) if (value) address.set(name, value);
  if (view.query) address.set("q", view.query);
  if (view.row) address.set("case", view.row.key);
  history.replaceState(null, "", `#${address}`);
}

function readAddress() {
  const address = new URLSearchParams(location.hash.slice(1));
  const show = address.get("show");
  view.show = FILTERS.some(([name]) => name === show) ? show : firstFilter();
  view.query = address.get("q") ?? "";
  for (const name of Object.keys(PICKS)) {
    const value = address.get(name) ?? "";
    view.picked[name] = choices[name].includes(value) ? value : "";
  }
  const turn = address.get("turn"), key = address.get("case"), row = rowsByKey.get(key) ?? null;
  if (row && !show && !filterOf(view.show)[2](row)) view.show = "all";
  // The rows of a served page come later.
  const missing = key && !row && source.rows.length ? "This case is not in this report." : "";
  return { row, turn: turn === null ? null : Number(turn), missing };
}

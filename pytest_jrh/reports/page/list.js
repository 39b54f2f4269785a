// ---- The list of cases: filters, search, and the rows that match

const MISTAKES = ["missed", "false alarm", "wrong"];
const SIGNS = { missed: "✗", "false alarm": "!", wrong: "✗", misled: "✗", right: "✓", "not judged": "–", "no label": "–" };
const isMistake = (row) => MISTAKES.includes(row.kind);
const hasTag = (tag) => (row) => row.tags.includes(tag);
const isKind = (kind) => (row) => row.kind === kind;

// What can be shown of the list, the most urgent first: [name in the address, title, test].
const FILTERS = [
  ["regression", "regressions", hasTag("regression")],
  ["wrong", "wrong", isKind("wrong")],
  ["missed", "missed", isKind("missed")],
  ["alarm", "false alarms", isKind("false alarm")],
  ["misled", "misled by a probe", isKind("misled")],
  ["doubt", "label in doubt", hasTag("label in doubt")],
  ["disputed", "people disagree", hasTag("people disagree")],
  ["unjudged", "not judged", isKind("not judged")],
  ["flicker", "flickering", hasTag("flickers")],
  ["unshown", "not shown to the judge", hasTag("not shown")],
  ["all", "all", () => true],
];
const OPENING = ["regression", "wrong", "missed", "alarm", "misled", "doubt"];
const filterOf = (name) => FILTERS.find(([other]) => other === name);

// By what else rows can be picked: the values that a row has.
const PICKS = {
  suite: (row) => [row.suite],
  rubric: (row) => [session.rubrics[row.rubric].id],
  judge: (row) => row.judges.map((judge) => judge.name),
  probe: (row) => (row.variant ? [row.test] : []),
  slice: (row) => row.slices,
};

// What is shown; `row` is the open case.
const NOTHING_PICKED = { suite: "", rubric: "", judge: "", probe: "", slice: "" };
const view = { show: "all", query: "", picked: NOTHING_PICKED, row: null };
let shown = [];

// Where rows and the bodies of cases come from. A served page puts its own in place of this one.
const source = {
  rows: session.cases,
  body: bodyFromDisk,
  words: wordsFromDisk,
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
const wrongJudges = (row) => row.judges.filter((judge) => judge.wrong && judge.name).map((judge) => judge.name);

// The tags that are shown, with their colour; in the list only those that say more than its filters.
const TAG_KINDS = { regression: "bad", "by flicker": "warn", fix: "good", "label in doubt": "warn", "people disagree": "warn", "label checked": "good", flickers: "warn", "not shown": "warn", accepted: "good", edited: "good", rejected: "bad", void: "warn" };
const LISTED_TAGS = ["label in doubt", "people disagree", "label checked", "flickers", "accepted", "edited", "rejected", "void"];
const drawTags = (row, names) => row.tags.filter((tag) => names.includes(tag)).map((tag) => make("span", { class: `tag ${TAG_KINDS[tag]}` }, tag));

// Where a case is from, as far as its title does not say it.
const placesOf = (row) => [row.run === row.title ? null : row.run, hasSeveral("suite") ? row.suite : null].filter(Boolean);

// The names of runs and of probes are as they are written.
const titleOf = (row) => (row.variant || row.title === row.run ? row.title : capital(row.title));

// What a served page does in its own way: how a row of the list is drawn, what can be done with a turn, whether another case may be opened, what follows once it is, and where a page begins that is scrolled to a case.
const look = {
  row: drawRow,
  verb: () => null,
  mayLeave: () => true,
  opened: () => {},
  top: () => $("desk").offsetTop,
};

function drawRow(row) {
  const wrong = wrongJudges(row);
  const kind = `${row.kind}${wrong.length ? ` by ${wrong.join(", ")}` : ""}`;
  const where = [row.kind === "right" ? null : kind, ...placesOf(row), rubricOf(row).id];
  return make("a", { class: row.kind.replace(" ", "-"), href: `#case=${row.key}`, tabindex: "-1" },
    make("span", { class: "sign", "aria-hidden": "true" }, SIGNS[row.kind]),
    make("span", { class: "what", dir: "auto" }, titleOf(row)),
    make("span", { class: "where", dir: "auto" }, drawTags(row, LISTED_TAGS), where.filter(Boolean).join(" · ")));
}

function link(row) {
  if (!nodes.has(row)) nodes.set(row, look.row(row));
  return nodes.get(row);
}

// ---- Which rows match

const wordsOfRow = (row) => [row.title, row.run, rubricOf(row).id, row.suite, row.test, row.variant, row.kind, ...row.slices, ...row.tags, ...row.judges.map((judge) => judge.name)].join("\n").toLowerCase();
const ofRows = new WeakMap();
function wordsOf(row) {
  if (!ofRows.has(row)) ofRows.set(row, wordsOfRow(row));
  return ofRows.get(row);
}

function isPicked(row) {
  for (const [name, value] of Object.entries(view.picked)) {
    if (value && !PICKS[name](row).includes(value)) return false;
  }
  // Of a panel's mistakes those of the judge that is picked.
  const wrong = wrongJudges(row);
  return view.show === "all" || !view.picked.judge || !wrong.length || wrong.includes(view.picked.judge);
}

const searched = () => view.query.toLowerCase().split(/\s+/).filter(Boolean);

function matching(test = filterOf(view.show)[2]) {
  const words = searched();
  const hasWords = (row) => {
    const ofRow = wordsOf(row), inside = texts.get(row.key) ?? [];
    return words.every((word) => ofRow.includes(word) || inside.some((text) => text.includes(word)));
  };
  return source.rows.filter((row) => test(row) && isPicked(row) && (!words.length || hasWords(row)));
}

// The words of cases beside those of their rows, by key; read once, all of them.
const texts = new Map();
let reading = null;
async function readTexts() {
  for await (const [key, words] of source.words()) texts.set(key, words);
  if (view.query) changed({});
}
const learnTexts = () => (reading ??= readTexts());

// Rows stand in lists of fifty, each of which is made when it comes into sight, or is printed.
const FIFTY = 50;
let lists = [];
const sight = new IntersectionObserver((seen) => seen.forEach((one) => one.isIntersecting && fill(one.target)), { rootMargin: "1500px", scrollMargin: "1500px" });
addEventListener("beforeprint", () => lists.forEach(fill));
function fill(list) {
  const start = lists.indexOf(list) * FIFTY;
  if (start < 0 || list.firstChild) return;
  sight.unobserve(list);
  list.append(...shown.slice(start, start + FIFTY).map((row) => make("li", {}, link(row))));
}

function refresh(missing = "") {
  shown = matching();
  sight.disconnect();
  lists = [];
  for (let start = 0; start < shown.length; start += FIFTY) lists.push(make("ul", {}));
  lists.slice(0, 2).forEach(fill);
  $("list").replaceChildren(...lists);
  for (const list of lists.slice(2)) sight.observe(list);
  const others = shown.length || missing ? 0 : matching(() => true).length;
  const showAll = make("button", { type: "button", class: "link", click: () => changed({ show: "all" }) }, `Show ${counted(others, "matching case")} under “all”`);
  $("nothing").replaceChildren(missing || (source.rows.length ? "No case matches the search and filters." : "There is no case to show."), ...(others ? [" ", showAll] : []));
  $("nothing").hidden = shown.length > 0 && !missing;
  for (const choice of $("filters").children) choice.setAttribute("aria-pressed", String(choice.value === view.show));
  showPlace();
}

// The open row takes the focus of the tab key, else the first one; arrows lead to the others.
let reached = null;
function showPlace() {
  const place = shown.indexOf(view.row);
  if (place >= 0) fill(lists[Math.floor(place / FIFTY)]);
  const title = view.show === "all" ? "" : ` (${filterOf(view.show)[1]})`;
  $("place").textContent = place < 0 ? "This case is not in the list" : `Case ${place + 1} of ${grouped(shown.length)}${title}`;
  reached?.removeAttribute("aria-current");
  reached?.setAttribute("tabindex", "-1");
  reached = shown.length ? link(shown[Math.max(place, 0)]) : null;
  reached?.setAttribute("tabindex", "0");
  if (place >= 0) reached.setAttribute("aria-current", "true");
}

// Those that would show something.
function usefulFilters() {
  const counted = FILTERS.map(([name, title, test]) => ({ name, title, count: source.rows.filter(test).length }));
  return counted.filter((filter) => filter.count || filter.name === "all");
}

function drawFilters() {
  $("filters").replaceChildren(...usefulFilters().map(({ name, title, count }) => {
    const click = () => changed({ show: name });
    return make("button", { type: "button", value: name, "aria-pressed": "false", click }, `${title} `, make("b", {}, grouped(count)));
  }));
  for (const select of $("find").querySelectorAll("select")) select.remove();
  for (const name of Object.keys(PICKS).filter(hasSeveral)) {
    const change = (event) => changed({ picked: { ...view.picked, [name]: event.target.value } });
    const options = choices[name].map((value) => make("option", {}, value));
    const select = make("select", { name, "aria-label": name, change }, make("option", { value: "" }, `all ${name}s`), options);
    select.value = view.picked[name];
    $("find").append(select);
  }
}

// The list is another one: on a wide screen its first case is shown, unless the open one is in it.
function changed(changes) {
  Object.assign(view, changes);
  refresh();
  markFound();
  if (!shown.length && look.mayLeave()) close();
  if (isWide() && shown.length && !shown.includes(view.row)) open(shown[0]);
  else keep();
}

// The cases of a row of the figures; once more, all again.
function pickRows(wanted) {
  const isPicked = Object.entries(wanted).every(([name, value]) => view.picked[name] === value);
  view.picked = { ...NOTHING_PICKED, ...(isPicked ? {} : wanted) };
  drawFilters();
  changed(matching().length ? {} : { show: "all" });
  if (!isWide()) $("rail").scrollIntoView();
}

// What the page opens with: what is wrong, else what is to be looked at.
function firstFilter() {
  const useful = usefulFilters().map((filter) => filter.name).filter((name) => OPENING.includes(name));
  // What is wrong comes first, the case to read first before all.
  const first = source.rows.find(isMistake);
  const name = useful.find((other) => first && filterOf(other)[2](first)) ?? useful[0];
  return name ?? (source.rows.some(hasTag("no verdict")) ? "unjudged" : "all");
}

// ---- The address holds the filter and the open case

function keep() {
  history.replaceState(null, "", `#show=${view.show}${view.row ? `&case=${view.row.key}` : ""}`);
}

function readAddress() {
  const address = new URLSearchParams(location.hash.slice(1));
  const show = address.get("show"), key = address.get("case"), row = rowsByKey.get(key) ?? null;
  view.show = filterOf(show) ? show : firstFilter();
  if (row && !show && !filterOf(view.show)[2](row)) view.show = "all";
  // The rows of a served page come later.
  return { row, missing: key && !row && source.rows.length ? "The case in the address is not in this report." : "" };
}

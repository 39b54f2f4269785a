// ---- What buttons and keys do, and the start

Object.assign(actions, {
  back,
  previous: () => step(-1),
  next: () => step(1),
  whole: unfold,
  turn: (mention) => toTurn(mention.value),
  show: (choice) => {
    view.show = choice.value;
    changed();
  },
  pick: pickRow,
});
Object.assign(keys, { j: "next", k: "previous", f: "whole" });

// The list is another one: on a wide screen its first case is shown, unless the open one is in it.
function changed() {
  refresh();
  if (!shown.length && look.mayLeave()) close();
  if (isWide() && shown.length && !shown.includes(view.row)) open(shown[0]);
  else keep();
}

// The cases of a row of the figures; once more, all again.
function pickRow(name) {
  const wanted = Object.entries(JSON.parse(name.value));
  const isPicked = wanted.every(([kind, value]) => view.picked[kind] === value);
  for (const kind of Object.keys(PICKS)) view.picked[kind] = "";
  if (!isPicked) for (const [kind, value] of wanted) view.picked[kind] = value;
  drawFilters();
  if (!matching().length) view.show = "all";
  changed();
  if (!isWide()) $("rail").scrollIntoView();
}

// What was said of the last action goes with the next one, but for words typed into a transcript.
for (const kind of ["click", "keydown"]) addEventListener(kind, (event) => event.target.closest(".editor") || toast(), true);

document.addEventListener("click", (event) => {
  const target = event.target.closest("[data-do], a[href^='#case=']");
  if (!target || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  if (target.dataset.do) return actions[target.dataset.do]?.(target);
  const row = rowsByKey.get(target.hash.slice("#case=".length));
  // A click that a key has made brings the focus into the case.
  if (row) open(row, event.detail === 0 || !isWide() || !target.closest("#list") ? "title" : "row");
});

document.addEventListener("keydown", (event) => {
  if (event.altKey || event.metaKey || event.ctrlKey || document.querySelector("dialog[open]")) return;
  if (event.target.closest("input, textarea, select")) {
    if (event.key === "Escape") toRow();
    return;
  }
  if (event.key === "Escape") return isWide() ? toRow() : back();
  let name = keys[event.key];
  if (event.target.closest("#list")) name ??= { ArrowDown: "next", ArrowUp: "previous" }[event.key];
  if (event.key === "/") $("search").focus();
  else if (name) actions[name]();
  else return;
  event.preventDefault();
});

function toRow() {
  reached?.focus({ preventScroll: true });
}

$("search").addEventListener("input", () => {
  view.query = $("search").value;
  changed();
});
$("find").addEventListener("change", (event) => {
  if (!(event.target.name in PICKS)) return;
  view.picked[event.target.name] = event.target.value;
  changed();
});
addEventListener("popstate", () => {
  if (!location.hash.includes("case=") && view.row && !isWide()) back();
  else start();
});

// Shows what the address asks for.
async function start() {
  const { row, missing } = readAddress();
  refresh(missing);
  // The way back from a case that a link has opened leads to the list, too.
  if (row && !view.row && !isWide()) keep();
  if (row) await open(row, "title");
  else if (missing) close();
  else if (isWide() && shown.length) await open(shown[0]);
  root.dataset.ready = "yes";
}

// Rows that are new, or others than before: those of a served page come as they are made.
function put(rows) {
  const focused = document.activeElement?.closest("#list a")?.hash;
  for (const row of rows) {
    if (!rowsByKey.has(row.key)) source.rows.push(row);
    else source.rows[source.rows.indexOf(rowsByKey.get(row.key))] = row;
    if (view.row?.key === row.key) view.row = row;
  }
  index();
  drawFilters();
  refresh();
  if (focused) document.querySelector(`#list a[href="${focused}"]`)?.focus({ preventScroll: true });
}

index();
drawOverview();
drawFilters();
start();
unpacked("texts").then((loaded) => Object.assign(texts, loaded));

// ---- the table of cases: what is shown of it, in which order, and both in the address
const table = document.querySelector("table.cases"), body = table.tBodies[0];
const rows = Array.from(body.rows);
const known = new Map(rows.map((row) => [row, {
  cells: Object.fromEntries(Array.from(row.cells, (cell) => [cell.dataset.name, cell.textContent.trim()])),
  first: (row.dataset.first || "").split(" "),
  text: `${row.dataset.node} ${row.textContent}`.toLowerCase(),
}]));
const cellOf = (row, name) => known.get(row).cells[name] ?? "";
const controls = Array.from(form.elements).filter((control) => control.name);
let shown = rows, order = "";

// What cases are searched for lies compressed beside them: reasoning, edits and rubrics.
const searchable = unpack("search").then((found) => {
  for (const row of rows) {
    const [rubric, text] = (found && found.cases[row.dataset.key]) || [-1, ""];
    known.get(row).text += ` ${text} ${rubric < 0 ? "" : found.rubrics[rubric]}`.toLowerCase();
  }
  filter();
}, () => {});

function state() {
  return new URLSearchParams(controls.filter((control) => control.value).map((control) => [control.name, control.value]));
}

function filter() {
  const wanted = state();
  const words = (wanted.get("text") || "").toLowerCase().split(/\s+/).filter(Boolean);
  const first = wanted.get("first");
  const exact = [...wanted].filter(([name]) => name !== "text" && name !== "sort" && name !== "first");
  for (const row of rows) {
    const own = known.get(row);
    const fits = exact.every(([name, value]) => own.cells[name] === value.trim()) && (!first || own.first.includes(first));
    row.hidden = !(fits && words.every((word) => own.text.includes(word)));
  }
  for (const button of document.querySelectorAll("button[data-first]")) {
    button.setAttribute("aria-pressed", String(button.dataset.first === (first || "")));
  }
  count();
}

function count() {
  shown = Array.from(body.rows).filter((row) => !row.hidden);
  const all = rows.length.toLocaleString("en");
  byId("shown").textContent = shown.length === rows.length ? `${all} cases` : `${shown.length.toLocaleString("en")} of ${all} cases`;
}

function compared(a, b, numeric) {
  if ((a === "") !== (b === "")) return a === "" ? 1 : -1;
  return numeric ? a - b : a.localeCompare(b, "en", { numeric: true });
}

// By a column, from its other end behind a "-"; by the most urgent first without one.
function sort() {
  const name = form.elements.sort.value.replace("-", ""), descending = form.elements.sort.value.startsWith("-");
  if (form.elements.sort.value === order) return;
  order = form.elements.sort.value;
  const number = (text) => (text === "" ? "" : Number(text.replace(/[$,]/g, "")));
  const value = { "": (row, place) => place, collected: (row) => Number(row.dataset.place) }[name];
  const numeric = Boolean(value) || rows.every((row) => !Number.isNaN(number(cellOf(row, name))));
  const keyed = rows.map((row, place) => ({ row, place, key: value ? value(row, place) : numeric ? number(cellOf(row, name)) : cellOf(row, name) }));
  keyed.sort((a, b) => {
    const order = compared(a.key, b.key, numeric);
    return (descending && a.key !== "" && b.key !== "" ? -order : order) || a.place - b.place;
  });
  body.append(...keyed.map(({ row }) => row));
  for (const head of table.tHead.rows[0].cells) {
    if (name && head.dataset.sort === name) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    else head.removeAttribute("aria-sort");
  }
}

// Shows what an address asks for; an address that names a case alone leaves the table as it is.
function apply(wanted) {
  for (const control of controls) {
    const value = wanted.get(control.name) || "";
    control.value = value;
    if (control.value !== value) control.value = "";
  }
  // A hidden field takes any value, and one that no button shows could not be taken back.
  const { first } = form.elements;
  if (!Array.from(document.querySelectorAll("button[data-first]")).some((button) => button.dataset.first === first.value)) first.value = "";
  sort();
  filter();
}

function changed() {
  sort();
  filter();
  history.replaceState(null, "", `#${state()}`);
}

for (const head of table.tHead.rows[0].cells) {
  const { sort: name } = head.dataset;
  form.elements.sort.append(make("option", { value: name }, head.textContent), make("option", { value: `-${name}` }, `${head.textContent}, from the end`));
  head.querySelector("button").addEventListener("click", () => {
    form.elements.sort.value = head.getAttribute("aria-sort") === "ascending" ? `-${name}` : name;
    changed();
  });
}
form.addEventListener("input", changed);
form.addEventListener("submit", (event) => event.preventDefault());
for (const button of document.querySelectorAll("button[data-first]")) {
  button.addEventListener("click", () => { form.elements.first.value = button.dataset.first; changed(); });
}
body.addEventListener("click", (event) => {
  const row = event.target.closest("tr");
  if (row && !event.target.closest("a") && !String(getSelection())) location.hash = address(row);
});
body.addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (link) link.hash = address(link.closest("tr"));
});

// The address of a case, with what the table shows, so that both are there after a reload.
function address(row) {
  const wanted = String(state());
  return `#case-${row.dataset.key}${wanted ? `&${wanted}` : ""}`;
}

// ---- What clicks and keys do, and the start

// What was said of the last action goes with the next one, but for words typed into a transcript.
for (const kind of ["click", "keydown"]) addEventListener(kind, (event) => event.key === "Tab" || event.target.closest(".editor, #toast") || toast(), true);

$("back").addEventListener("click", back);
$("previous").addEventListener("click", () => step(-1));
$("next").addEventListener("click", () => step(1));
$("search").addEventListener("input", (event) => changed({ query: event.target.value }));
$("search").addEventListener("focus", learnTexts);

document.addEventListener("click", (event) => {
  const target = event.target.closest("a[href^='#case=']");
  if (!target || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const row = rowsByKey.get(target.hash.slice("#case=".length));
  // A click that a key has made brings the focus into the case.
  if (row) open(row, event.detail === 0 || !isWide() || !target.closest("#list") ? "title" : "row");
});

// A key presses the button, or leads to the field, that names it.
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.metaKey || event.ctrlKey || document.querySelector("dialog[open]")) return;
  const isTyped = event.target.closest("input, textarea, select");
  if (event.key === "Escape") return isTyped || isWide() ? reached?.focus({ preventScroll: true }) : back();
  let key = event.key;
  if (event.target.closest("#list")) key = { ArrowDown: "j", ArrowUp: "k" }[key] ?? key;
  if (event.key.length === 1 && !letters.checked) return;
  const target = isTyped ? null : document.querySelector(`[data-key="${CSS.escape(key)}"]`);
  // One that is held down goes through the list, and decides about one case.
  if (!target || (event.repeat && !["j", "k"].includes(key))) return;
  event.preventDefault();
  if (target.matches("input")) target.focus();
  else target.click();
});

// Whoever speaks to a machine, or strikes keys by accident, switches single ones off. A page from disk may have no storage.
function keepKeys(areOn) {
  try {
    if (areOn !== undefined) localStorage.setItem("jrh-keys", areOn ? "on" : "off");
    return localStorage.getItem("jrh-keys") !== "off";
  } catch {
    return true;
  }
}

// What can be pressed now.
const keysList = make("dl", { id: "keys-list" });
const letters = make("input", { type: "checkbox", id: "letters", checked: "", change: () => drawKeys(keepKeys(letters.checked)) });
const keysDialog = dialog("keys-dialog", "Keys", keysList, make("p", {}, make("label", {}, letters, " Single letters work as keys. Switch this off if you control the computer by voice, or press keys by accident.")), make("form", { method: "dialog", class: "steps" }, make("button", { autofocus: "" }, "Close")));
function drawKeys(areOn) {
  letters.checked = areOn;
  root.classList.toggle("no-letters", !areOn);
  const lines = [["↑ ↓", "Move through the list"], ["Esc", "Go back to the list"]];
  for (const node of document.querySelectorAll("[data-key]")) {
    const { key } = node.dataset;
    if (areOn) node.setAttribute("aria-keyshortcuts", key);
    else node.removeAttribute("aria-keyshortcuts");
    const text = [...node.childNodes].filter((child) => child.nodeName !== "KBD").map((child) => child.textContent).join("");
    if (areOn && key !== "?" && node.checkVisibility()) lines.push([key, node.ariaLabel || node.labels?.[0]?.textContent || text]);
  }
  keysList.replaceChildren(...lines.flatMap(([key, text]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, text)]));
}
drawKeys(keepKeys());
$("keys").addEventListener("click", () => {
  drawKeys(letters.checked);
  keysDialog.showModal();
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
    texts.delete(row.key);
  }
  index();
  reading = null;
  drawFilters();
  refresh();
  if (focused) document.querySelector(`#list a[href="${focused}"]`)?.focus({ preventScroll: true });
}

index();
drawOverview();
drawFilters();
// What is drawn before all has been read would move.
$("answer").hidden = $("desk").hidden = false;
start();
// From disk all is there: the first word that is typed finds it.
if (!session.served) setTimeout(learnTexts, 300);

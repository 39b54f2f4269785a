// ---- which of both is shown: the address says so
const title = document.title;
let from = 0, open = null;

function addressed() {
  const [head, ...rest] = location.hash.slice(1).split("&");
  const key = (/^case-([0-9a-f]+)$/.exec(head) || [])[1];
  const wanted = new URLSearchParams(key ? rest.join("&") : location.hash.slice(1));
  const turn = wanted.get("turn");
  wanted.delete("turn");
  return { row: key ? byKey.get(key) : null, turn: /^\d{1,4}$/.test(turn) ? Number(turn) : null, wanted };
}

function close(wanted) {
  view.hidden = true;
  overview.hidden = false;
  document.title = title;
  if (open) {
    view.replaceChildren();
    scrollTo(0, from);
    reveal(open);
    open = null;
  } else if (String(wanted)) byId("cases").scrollIntoView();
}

async function route() {
  const { row, turn, wanted } = addressed();
  if (row && row === open && turn !== null && !view.hidden) {
    toTurn(turn);
    return;
  }
  if (!row || String(wanted) || !parts.length) apply(wanted);
  if (!row) {
    close(wanted);
    return;
  }
  if (view.hidden) from = scrollY;
  open = row;
  let content;
  try {
    await parsed;
    content = page(row, await unpack(row.chunk));
  } catch (error) {
    content = [top(row), make("h1", { tabindex: "-1" }, row.cells.run), make("p", { class: "warning" }, `This case cannot be shown: ${error.message}. It needs a browser of 2023 or later.`)];
  }
  if (open !== row) return;
  view.replaceChildren(...content.filter(Boolean));
  overview.hidden = true;
  view.hidden = false;
  document.title = `${row.cells.run}: ${title}`;
  scrollTo(0, 0);
  view.querySelector("h1").focus({ preventScroll: true });
  if (turn !== null) toTurn(turn);
}

addEventListener("keydown", (event) => {
  const link = { ArrowLeft: "prev", ArrowRight: "next", Escape: "up" }[event.key];
  const plain = !event.altKey && !event.ctrlKey && !event.metaKey && !event.shiftKey;
  if (link && plain && !view.hidden && !event.target.closest("input, select, textarea")) view.querySelector(`a[rel="${link}"]`)?.click();
});

// On paper nothing is folded.
let opened = [];
addEventListener("beforeprint", () => {
  for (const button of document.querySelectorAll("main:not([hidden]) .more")) button.click();
  opened = Array.from(document.querySelectorAll("main:not([hidden]) details:not([open])"));
  for (const fold of opened) fold.open = true;
});
addEventListener("afterprint", () => { for (const fold of opened) fold.open = false; });

// The list is ready before the data blocks of the cases are read, which stand below it.
const parsed = new Promise((done) => {
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", done);
  else done();
});
parsed.then(() => {
  const cut = document.querySelectorAll("script[data-cut]").length;
  if (!cut) return;
  byId("cut").hidden = false;
  byId("cut").textContent = `To keep this file small, the transcripts of ${cut} source runs were left out.`;
});
unpack("rows").then((data) => {
  begin(data);
  route();
  addEventListener("hashchange", route);
  return parsed.then(() => unpack("search")).then(searchBy);
}, (error) => { byId("shown").textContent = `The list cannot be filtered, nor a case be opened: ${error.message}. It needs a browser of 2023 or later.`; });

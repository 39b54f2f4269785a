// ---- which of both is shown: the address says so
const title = document.title;
let from = 0, open = null;

function addressed() {
  const [head, ...rest] = location.hash.slice(1).split("&");
  const key = (/^case-([0-9a-f]+)$/.exec(head) || [])[1];
  const wanted = new URLSearchParams(key ? rest.join("&") : location.hash.slice(1));
  return { row: key ? byId(`row-${key}`) : null, wanted };
}

function close(wanted) {
  view.hidden = true;
  overview.hidden = false;
  document.title = title;
  if (open) {
    view.replaceChildren();
    scrollTo(0, from);
    open.querySelector("a").focus({ preventScroll: true });
    open = null;
  } else if (String(wanted)) byId("cases").scrollIntoView();
}

async function route() {
  const { row, wanted } = addressed();
  if (!row || String(wanted)) apply(wanted);
  if (!row) {
    close(wanted);
    return;
  }
  if (view.hidden) from = scrollY;
  open = row;
  let parts;
  try {
    parts = page(row, await unpack(row.dataset.chunk));
  } catch (error) {
    parts = [top(row), make("h1", { tabindex: "-1" }, cellOf(row, "run")), make("p", { class: "warning" }, `This case cannot be shown: ${error.message}. It needs a browser of 2023 or later.`)];
  }
  if (open !== row) return;
  view.replaceChildren(...parts.filter(Boolean));
  overview.hidden = true;
  view.hidden = false;
  document.title = `${cellOf(row, "run")}: ${title}`;
  scrollTo(0, 0);
  view.querySelector("h1").focus({ preventScroll: true });
}

addEventListener("hashchange", route);
addEventListener("keydown", (event) => {
  const link = { ArrowLeft: "prev", ArrowRight: "next", Escape: "up" }[event.key];
  const plain = !event.altKey && !event.ctrlKey && !event.metaKey && !event.shiftKey;
  if (link && plain && !view.hidden && !event.target.closest("input, select, textarea")) view.querySelector(`a[rel="${link}"]`)?.click();
});
const cut = document.querySelectorAll("script[data-cut]").length;
if (cut) {
  byId("cut").hidden = false;
  byId("cut").textContent = `To keep this file small, the transcripts of ${cut} source runs were left out.`;
}
filter();
route();

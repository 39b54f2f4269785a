// Everything from outside reaches the page as text nodes alone. Bodies of cases lie compressed in data blocks, one for
// each source run, and are unpacked when one of their cases is opened.
const byId = (id) => document.getElementById(id);
const overview = byId("overview"), view = byId("case"), form = byId("filters");
const LONGEST = 6000;
const TAGS = { same: "span", gone: "del", new: "ins" };

function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "class") node.className = value;
    else if (name === "on") node.addEventListener("click", value);
    else node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

async function unpack(id) {
  const block = byId(id);
  if (!block) return null;
  const bytes = Uint8Array.from(atob(block.textContent.trim()), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

// A command with the button that copies it. Where a page from disk may not write to the clipboard, the command is selected.
function copyable(code) {
  const button = make("button", { type: "button", class: "copy" }, "copy");
  const done = () => { button.textContent = "copied"; setTimeout(() => { button.textContent = "copy"; }, 2000); };
  button.addEventListener("click", () => {
    const select = () => {
      getSelection().selectAllChildren(code);
      if (document.execCommand("copy")) done();
    };
    if (navigator.clipboard) navigator.clipboard.writeText(code.textContent).then(done, select);
    else select();
  });
  return make("div", { class: "copyable" }, code, button);
}

for (const code of document.querySelectorAll("code.command")) {
  const place = document.createComment("");
  code.replaceWith(place);
  place.replaceWith(copyable(code));
}

// Parts of a row are folded into it: variants into their probe, and where there are several judges, rubrics into
// their judge.
const LEVELS = ["total", "rubric", "test"];
for (const table of document.querySelectorAll("#figures table.figures")) {
  const rows = Array.from(table.tBodies[0].rows, (element) => ({ element, level: LEVELS.indexOf(element.className), parts: [] }));
  const judges = rows.filter((row) => row.level === 0).length;
  let above = [];
  for (const row of rows) {
    above = above.filter((other) => other.level < row.level);
    const whole = row.level === 2 || judges > 1 ? above.at(-1) : null;
    if (whole) whole.parts.push(row);
    above.push(row);
  }
  for (const row of rows) if (row.parts.length) row.element.cells[0].prepend(foldButton(row));
}

function foldButton(row) {
  const button = make("button", { type: "button", class: "fold", "aria-expanded": "false", "aria-label": `parts of ${row.element.cells[0].textContent}` });
  row.show = (isOpen) => {
    button.setAttribute("aria-expanded", String(isOpen));
    for (const part of row.parts) {
      part.element.hidden = !isOpen;
      if (!isOpen && part.show) part.show(false);
    }
  };
  button.addEventListener("click", () => row.show(button.getAttribute("aria-expanded") === "false"));
  row.show(false);
  return button;
}

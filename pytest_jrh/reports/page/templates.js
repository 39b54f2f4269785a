// ---- The agents' templates: a draft, its difference from the default, and what is wrong with it

let template = null;
let templates = [];
const draft = make("textarea", { id: "draft", spellcheck: "false", autocomplete: "off", "aria-label": "Text of the template", input: check });
const templateList = make("select", { id: "template", "aria-label": "Template", change: choose });
const templateFile = make("code", { id: "template-file" });
const variables = make("p", { id: "variables" });
const difference = make("div", { id: "difference", tabindex: "0", role: "group", "aria-label": "Difference from the default" });
const problems = make("ul", { id: "problems", class: "problem" });
const templateStatus = make("span", { id: "template-status", role: "status" });
const saving = button("saveTemplate", "Save", () => keepTemplate("", { text: draft.value }, "Saved. The text is used from the next session on."));
const revert = button("revertTemplate", "Revert to the default", () => confirm("Delete the override and use the default again?") && keepTemplate("/revert", {}, "The default is used again."));
saving.classList.add("primary");
const templateDialog = dialog("templates", "Agent Templates",
  make("p", {}, "The planner and the editor make the edits with these prompts. A text that you save is used from the next session on, and only for the chosen test."),
  make("p", {}, templateList, " ", templateFile), variables,
  make("div", { class: "beside" }, draft, difference), make("div", { role: "alert" }, problems),
  make("p", { class: "steps" }, templateStatus, revert, button("closeTemplates", "Close", () => mayClose() && templateDialog.close()), saving));
templateDialog.addEventListener("cancel", (event) => mayClose() || event.preventDefault());

const mayClose = () => template === null || draft.value === template.text || confirm("Discard your changes to this template?");

async function loadTemplates() {
  templates = (await ask("/templates")) ?? templates;
  templateList.replaceChildren(...templates.map((one) => make("option", { value: one.key },
    `${one.stage} ${one.test} · ${one.suite}${one.overridden ? " (override)" : ""}`)));
  drawTemplate(templates.find((one) => one.key === template?.key) ?? templates[0]);
}

function choose() {
  if (mayClose()) drawTemplate(templates.find((one) => one.key === templateList.value));
  else templateList.value = template.key;
}

function drawTemplate(chosen) {
  template = chosen;
  templateList.value = chosen.key;
  templateFile.textContent = `${chosen.overridden ? "Override" : "Default; Save writes an override to"} ${chosen.file}`;
  // As the browser keeps them, line ends included, so that "unsaved" means that somebody typed.
  for (const name of ["default", "text"]) {
    draft.value = chosen[name];
    template[name] = draft.value;
  }
  variables.replaceChildren(...chosen.variables.map((name) => make("code", {}, `{{ ${name} }}`, chosen.required.includes(name) ? " required" : "")));
  revert.disabled = !chosen.overridden;
  check();
}

function check() {
  const text = draft.value, isDefault = text === template.default;
  templateStatus.textContent = text === template.text ? "" : "not saved";
  difference.replaceChildren(...(isDefault ? ["The text is the same as the default."] : marked(differences(template.default, text))));
  difference.querySelector("ins, del")?.scrollIntoView({ block: "nearest" });
  showProblems([]);
}

function showProblems(found) {
  problems.replaceChildren(...found.map((one) => make("li", {}, one.line ? `line ${one.line}: ` : "", one.message, one.hint ? make("div", { class: "muted" }, one.hint) : null)));
  draft.setAttribute("aria-invalid", String(found.length > 0));
}

async function keepTemplate(path, data, text) {
  const refused = (answer) => (answer.problems?.length ? showProblems(answer.problems) : toast(answer.error));
  if (!(await ask(`/templates/${template.key}${path}`, data, refused))) return;
  await loadTemplates();
  templateStatus.textContent = text;
}

$("actions").prepend(button("templates", "Agent Templates", () => {
  templateDialog.showModal();
  loadTemplates();
}));

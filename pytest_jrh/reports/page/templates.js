// ---- The agents' templates: a draft, its difference from the default, and what is wrong with it

let template = null;
let templates = [];
const draft = make("textarea", { id: "draft", spellcheck: "false", autocomplete: "off", "aria-label": "Override" });
const templateList = make("select", { id: "template", "aria-label": "Template" });
const templateFile = make("code", { id: "template-file" });
const variables = make("p", { id: "variables" });
const difference = make("div", { id: "difference", tabindex: "0", role: "group", "aria-label": "Difference from the default" });
const problems = make("ul", { id: "problems", class: "problem" });
const templateStatus = make("span", { id: "template-status", role: "status" });
const templateDialog = dialog("templates", "Agent Templates",
  make("p", {}, "The prompts that plan and write the edits. What you save counts from the next run on, for this module and test alone."),
  make("p", {}, templateList, " ", templateFile), variables,
  make("div", { class: "beside" }, draft, difference), make("div", { role: "alert" }, problems),
  make("p", { class: "steps" }, templateStatus, button("revertTemplate", "Revert to the default"), button("closeTemplates", "Close"),
    make("button", { type: "button", class: "primary", "data-do": "saveTemplate" }, "Save")));

const isUnsaved = () => template !== null && draft.value !== template.text;
const mayLeave = () => !isUnsaved() || confirm("Leave this template without saving it?");

async function loadTemplates(key) {
  templates = await ask("/templates");
  const several = new Set(templates.map((one) => one.suite)).size > 1;
  templateList.replaceChildren(...templates.map((one) => make("option", { value: one.key },
    `${one.stage} ${one.test}${several ? ` · ${one.suite}` : ""}${one.overridden ? " (override)" : ""}`)));
  drawTemplate(templates.find((one) => one.key === key) ?? templates[0]);
}

function drawTemplate(chosen) {
  template = chosen;
  templateList.value = chosen.key;
  templateFile.textContent = `${chosen.file}, ${chosen.overridden ? "override" : "default"}`;
  // As the browser keeps them, line ends included, so that "unsaved" means that somebody typed.
  for (const name of ["default", "text"]) {
    draft.value = chosen[name];
    template[name] = draft.value;
  }
  variables.replaceChildren(...chosen.variables.map((name) => make("code", {}, `{{ ${name} }}`, chosen.required.includes(name) ? " required" : "")));
  templateDialog.querySelector("[data-do=revertTemplate]").disabled = !chosen.overridden;
  templateStatus.textContent = "";
  check();
}

// A slow answer to an older draft must not replace a newer one's.
let checks = 0;
async function check() {
  const number = ++checks;
  const pieces = template.default === draft.value ? ["The draft is the default."] : marked(differences(template.default, draft.value));
  difference.replaceChildren(...pieces);
  difference.querySelector("ins, del")?.scrollIntoView({ block: "nearest" });
  const answer = await tried(() => ask(`/templates/${template.key}/check`, { text: draft.value }));
  if (answer && number === checks) showProblems(answer.problems);
}

function showProblems(found) {
  problems.replaceChildren(...found.map((one) => make("li", {}, one.line ? `line ${one.line}: ` : "", one.message, one.hint ? make("div", { class: "muted" }, one.hint) : null)));
  draft.setAttribute("aria-invalid", String(found.length > 0));
  templateDialog.querySelector("[data-do=saveTemplate]").disabled = found.length > 0;
}

const change = (address, data, done) => tried(async () => {
  const { key } = await ask(address, data);
  await loadTemplates(key);
  templateStatus.textContent = done;
}, (error) => (error.problems?.length ? showProblems(error.problems) : toast(error.message)));

let checkTimer;
draft.addEventListener("input", () => {
  clearTimeout(checkTimer);
  templateStatus.textContent = "not saved";
  checkTimer = setTimeout(check, 250);
});
templateList.addEventListener("change", () => {
  const wanted = templates.find((one) => one.key === templateList.value);
  if (mayLeave()) drawTemplate(wanted);
  else templateList.value = template.key;
});
templateDialog.addEventListener("cancel", (event) => mayLeave() || event.preventDefault());

Object.assign(actions, {
  templates: () => {
    templateDialog.showModal();
    tried(() => loadTemplates(template?.key));
  },
  saveTemplate: () => change(`/templates/${template.key}`, { text: draft.value }, "Saved: used from the next run on."),
  revertTemplate: () => confirm("Delete the override and go back to the default?") && change(`/templates/${template.key}/revert`, {}, "Reverted."),
  closeTemplates: () => mayLeave() && templateDialog.close(),
});
$("actions").prepend(button("templates", "Agent Templates"));

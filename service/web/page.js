// The page's one program. All text from outside becomes text, never markup; the panel is drawn and escaped by the server.

const at = (id) => document.getElementById(id);
const KEPT = "opsleuth-token";
let token = sessionStorage.getItem(KEPT);
let shown = null; // the run that is looked at: its id, and what stops its stream

function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null).map((child) => (typeof child === "string" ? visible(child) : child)));
  return element;
}

// Characters that turn the order of a text around are shown by their numbers: they could hide what is approved.
function visible(text) {
  return text.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (sign) => `\u27e8U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}\u27e9`);
}

async function ask(path, options = {}) {
  const headers = { Authorization: `Bearer ${token}`, ...options.headers };
  const answer = await fetch(path, { ...options, headers, cache: "no-store" });
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({}));
    throw new Error(problem.message || `the server answered ${answer.status}`);
  }
  return answer;
}

const get = async (path) => (await ask(path)).json();
const post = async (path, body) =>
  (await ask(path, { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } })).json();

function say(text) {
  at("said").textContent = visible(text);
}

async function guarded(work) {
  try {
    return await work();
  } catch (error) {
    if (error.name !== "AbortError") say(error.message);
    return undefined;
  }
}

// --- runs ------------------------------------------------------------------------------------------------------

const pages = []; // the run that each page of the list begins behind; none: the newest
let sought = ""; // the text that the listed runs hold; empty: all runs are listed

async function listRuns() {
  const before = pages.at(-1) ? `&before=${pages.at(-1)}` : "";
  const search = sought ? `&search=${encodeURIComponent(sought)}` : "";
  const { tasks, next } = await get(`/api/tasks?limit=100${before}${search}`);
  at("older").hidden = next === null;
  at("older").value = next ?? "";
  at("newer").hidden = pages.length === 0;
  const list = at("runs");
  const focused = list.contains(document.activeElement) ? document.activeElement.dataset.task : null;
  list.replaceChildren(...tasks.map(runEntry));
  if (focused) list.querySelector(`[data-task="${focused}"]`)?.focus();
}

function runEntry(task) {
  const current = shown !== null && shown.id === task.task_id;
  const button = make("button", { type: "button", "data-task": task.task_id, "aria-current": String(current), onclick: () => open(task.task_id) });
  button.append(make("strong", {}, task.status), ` ${task.question}`);
  return make("li", {}, button);
}

const BECAME = { started: "started", linked: "started another run:", joined: "joined", repeated: "repeated:", escalated: "told to", flapping: "told to" };

async function listAlerts() {
  const { alerts } = await get("/api/alerts?limit=50");
  at("alerts").replaceChildren(...alerts.map(alertEntry));
}

function alertEntry(alert) {
  const what = [alert.name || "an entry", alert.service, alert.severity].filter(Boolean).join(" \u00b7 ");
  const where = alert.task_id ? make("button", { type: "button", onclick: () => open(alert.task_id) }, alert.task_id) : null;
  return make("li", {}, make("strong", {}, what), ` ${BECAME[alert.outcome] ?? alert.outcome} `, where, ` ${alert.reason}`);
}

async function enter() {
  await listRuns();
  sessionStorage.setItem(KEPT, token);
  at("enter").hidden = true;
  at("inside").hidden = false;
  say("");
  setInterval(() => guarded(listRuns), 5000);
  at("alerts-shown").addEventListener("toggle", () => at("alerts-shown").open && guarded(listAlerts));
}

// --- one run ---------------------------------------------------------------------------------------------------

async function open(id) {
  shown?.stop.abort();
  shown = { id, stop: new AbortController(), due: null };
  const mine = shown;
  at("events").replaceChildren();
  at("panel").replaceChildren();
  await guarded(() => look(mine));
  at("run").focus();
  guarded(listRuns);
  guarded(() => follow(mine));
}

async function look(run) {
  const [task, { approvals }, panel] = await Promise.all([
    get(`/api/tasks/${run.id}`),
    get(`/api/tasks/${run.id}/approvals`),
    ask(`/api/tasks/${run.id}/panel`).then((answer) => answer.text()),
  ]);
  if (run !== shown) return;
  at("run-title").textContent = visible(task.question);
  const reason = task.stop_reason ? ` (${task.stop_reason})` : "";
  at("standing").textContent = `${task.task_id}: ${task.status}${reason}, turn ${task.turn}, alerts ${task.alerts}`;
  const drawn = new DOMParser().parseFromString(panel, "text/html");
  at("panel").replaceChildren(...drawn.body.childNodes);
  showAsked(approvals.filter((asked) => asked.status === "pending"));
}

function later(run) {
  clearTimeout(run.due);
  run.due = setTimeout(() => guarded(() => look(run)), 300);
}

async function follow(run) {
  let last = 0;
  while (run === shown) {
    const answer = await ask(`/api/tasks/${run.id}/events?after=${last}`, { signal: run.stop.signal });
    const over = await readStream(answer.body, (part) => {
      if (part.id) last = Number(part.id);
      if (part.event !== "end") showEvent(run, JSON.parse(part.data));
    });
    later(run);
    if (over) return;
    await new Promise((done) => setTimeout(done, 1000));
  }
}

async function readStream(body, hear) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return false;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const text of parts) {
      const part = Object.fromEntries(text.split("\n").filter((line) => !line.startsWith(":")).map((line) => [line.slice(0, line.indexOf(": ")), line.slice(line.indexOf(": ") + 2)]));
      if (part.event) hear(part);
      if (part.event === "end") return true;
    }
  }
}

const WORDS = ["headline", "message", "reason", "text", "question", "status", "detail"];

function showEvent(run, event) {
  if (run !== shown) return;
  const words = WORDS.map((name) => event.data[name]).filter((word) => typeof word === "string").slice(0, 2);
  const what = [event.data.tool, ...words].filter(Boolean).join(" · ");
  at("events").append(make("li", { value: event.seq }, make("strong", {}, event.type), ` ${what}`));
  later(run);
}

// --- what a person is asked ------------------------------------------------------------------------------------

function showAsked(approvals) {
  const place = at("asked");
  const key = approvals.map((asked) => asked.id).join();
  place.hidden = approvals.length === 0;
  if (place.dataset.key === `${shown.id} ${key}`) return; // what is being typed there stays
  place.dataset.key = `${shown.id} ${key}`;
  place.replaceChildren(...approvals.map(askedEntry));
}

function askedEntry(asked) {
  const name = `${asked.id}-title`;
  const facts = make("dl");
  for (const { name: term, value, level, untrusted } of asked.shown) {
    const label = untrusted ? `${term} (untrusted)` : term;
    facts.append(make("dt", { class: `level-${level}` }, label), make("dd", { class: term === "digest" && level === 0 ? "digest" : "shown" }, value));
  }
  return make(
    "article",
    { "aria-labelledby": name },
    make("h3", { id: name }, `${asked.id}: ${asked.tool ?? asked.about}`),
    facts,
    ...(asked.about === "call" ? [yes(asked), no(asked)] : [resolution(asked)]),
  );
}

function answer(asked, verb, body) {
  return guarded(async () => {
    const done = await post(`/api/tasks/${asked.task_id}/approvals/${asked.id}/${verb}`, { digest: asked.digest, ...body });
    say(`${asked.id} is ${done.status}`);
    at("run").focus();
    await look(shown);
  });
}

function answering(children, submit) {
  const form = make("form", {}, ...children);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit(new FormData(form));
  });
  return form;
}

function field(asked, name, label) {
  const id = `${asked.id}-${name}`;
  return [make("label", { for: id }, label), make("input", { id, name, required: true, maxlength: 1000 })];
}

function yes(asked) {
  const target = asked.risk === "irreversible" ? field(asked, "target", "Type the target's name") : [];
  const button = make("button", { "aria-describedby": `${asked.id}-title` }, `Approve ${asked.id}`);
  return answering([...target, button], (given) => answer(asked, "approve", target.length ? { confirm_target: given.get("target") } : {}));
}

function no(asked) {
  const button = make("button", {}, `Deny ${asked.id}`);
  return answering([...field(asked, "reason", "Reason"), button], (given) => answer(asked, "deny", { reason: given.get("reason") }));
}

function resolution(asked) {
  const buttons = ["happened", "absent"].map((word) => make("button", { value: word, name: "outcome" }, `It ${word === "absent" ? "did not happen" : word}`));
  const form = make("form", {}, ...field(asked, "reason", "How do you know"), ...buttons);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    answer(asked, "resolve", { outcome: event.submitter.value, reason: new FormData(form).get("reason") });
  });
  return form;
}

// --- start -----------------------------------------------------------------------------------------------------

at("enter").addEventListener("submit", (event) => {
  event.preventDefault();
  token = at("token").value.trim();
  at("token").value = "";
  guarded(enter);
});

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  guarded(async () => {
    const task = await post("/api/tasks", { question: at("question").value });
    at("question").value = "";
    await open(task.task_id);
  });
});

at("find").addEventListener("submit", (event) => {
  event.preventDefault();
  sought = at("sought").value.trim();
  pages.length = 0;
  guarded(async () => {
    await listRuns();
    say(at("runs").children.length || !sought ? "" : `none of the newest 10,000 runs holds ${sought}`);
  });
});

at("older").addEventListener("click", () => {
  pages.push(at("older").value);
  guarded(listRuns);
});

at("newer").addEventListener("click", () => {
  pages.pop();
  guarded(listRuns);
});

if (token) guarded(enter);

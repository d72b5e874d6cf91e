import { byId, element, factList, textBlock, timeElement, usedBy, withSession } from "/pages/session.js";

const runId = location.pathname.split("/").at(-1);
const isOver = ({ status }) => status !== "queued" && status !== "running";
const seconds = (from, to) => `${((new Date(to) - new Date(from)) / 1000).toFixed(1)} s`;

const badge = (text, kind) => element("span", `badge ${kind}`, text);

function showAbout(run) {
  document.title = `${run.agentName}: ${run.status}`;
  const { verified, entries, head, breach } = run.integrity;
  const chain = verified
    ? [badge("intact", "good"), ` ${entries} entries, head `, element("code", "", head)]
    : [badge("broken", "bad"), ` at entry ${breach?.seq}: ${breach?.problem}`];
  const kind = run.status === "completed" ? "good" : "bad";
  const facts = factList(
    ["Agent", `${run.agentName}, version ${run.agentVersion}`],
    ["Status", badge(run.status, isOver(run) ? kind : "busy"), run.stopReason ? ` ${run.stopReason}` : ""],
    ["Accepted", timeElement(run.createdAt)],
    run.finishedAt && run.startedAt && ["Took", seconds(run.startedAt, run.finishedAt)],
    ["Used", usedBy(run)],
    ["Audit chain", ...chain],
  );
  byId("about").replaceChildren(facts, element("h2", "", "Question"), textBlock(run.input, "The question"));
}

function toCall({ action, actionInput, observation, isError, runId: inner, finishedAt }) {
  const link = inner === undefined ? undefined : element("a", "", "its own run");
  if (link) link.href = `/runs/${inner}`;
  return element(
    "div",
    "call",
    element("h4", "", action, isError ? badge("failed", "bad") : undefined),
    textBlock(JSON.stringify(actionInput, null, 2), "The input"),
    link,
    finishedAt === undefined ? element("p", "busy-note", "running …") : textBlock(observation, "Result"),
  );
}

function toStep(step) {
  const isAnswer = step.action === "final_answer"; // which the page shows below all steps
  const calls = isAnswer ? [] : (step.actions ?? [step]);
  const took = step.finishedAt ? `, ${seconds(step.startedAt, step.finishedAt)}` : "";
  const head = element("p", "meta", timeElement(step.startedAt), `${took}, ${step.model}, ${step.tokens} tokens`);
  const title = element("h3", "", isAnswer ? "Answer" : step.action);
  const thought = step.thought === "" || isAnswer ? undefined : element("p", "thought", step.thought);
  return element("li", step.isError ? "failed" : "", title, head, thought, ...calls.map(toCall));
}

function show(run) {
  showAbout(run);
  byId("steps").replaceChildren(...run.steps.map(toStep));
  byId("state").textContent = isOver(run) ? "" : "The run is in progress; this page follows it.";
  byId("end").replaceChildren();
  if (!isOver(run)) return;
  byId("end").append(element("h2", "", run.status === "completed" ? "Answer" : `Ended as ${run.status}`));
  if (run.error) byId("end").append(element("p", "problem", run.error.message));
  byId("end").append(textBlock(run.finalOutput || "(nothing)", "The answer"));
}

withSession(async (session) => {
  const load = async () => {
    const run = await session.get(`/runs/${runId}/trail`);
    show(run);
    return run;
  };
  const run = await load();
  if (!isOver(run)) follow(session, run.jobId, load);
});

/** Shows each step as it comes; reopens a stream that breaks off, a few times with growing pauses. */
async function follow(session, jobId, load) {
  for (let attempt = 0; attempt < 8; attempt += 1) {
    try {
      for await (const { event } of session.events(`/jobs/${jobId}/events`)) {
        const run = await load();
        if (event === "end" && isOver(run)) return;
        attempt = 0;
      }
      if (isOver(await load())) return;
    } catch (error) {
      byId("state").textContent = `Not live right now: ${error.message}`;
    }
    await new Promise((resolve) => setTimeout(resolve, 500 * 2 ** attempt));
  }
  byId("state").textContent = "This page no longer follows the run: reload it.";
}

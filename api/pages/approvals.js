import { byId, element, factList, textBlock, timeElement, usedBy, withSession } from "/pages/session.js";

/** How often the page checks for new approvals, in ms. */
const POLL_MS = 5_000;

const kinds = { approved: "good", completed: "good", pending: "busy", awaiting_approval: "busy", retrying: "busy" };
const badge = (text) => element("span", `badge ${kinds[text] ?? "bad"}`, text.replace("_", " "));
const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

function toStep({ id, type, status, output, error, attempts, finishedAt, tokensUsed }) {
  const facts = [
    type,
    ...(attempts > 1 ? [`${attempts} attempts`] : []),
    ...(tokensUsed ? [`${tokensUsed.toLocaleString()} tokens`] : []),
  ];
  const when = finishedAt === undefined ? [] : [timeElement(finishedAt), ", "];
  return element(
    "li",
    status === "failed" ? "failed" : "",
    element("h3", "", id, " ", ...(status === "completed" ? [] : [badge(status)])),
    element("p", "meta", ...when, facts.join(", ")),
    error === undefined ? undefined : element("p", "problem", error.message),
    output === undefined ? undefined : textBlock(shown(output), "The output"),
  );
}

/** The run so far: what the decision is about. */
function showRun({ run }) {
  const facts = factList(
    ["Run", element("code", "", run.runId)],
    ["Status", badge(run.status)],
    ["Workflow", `${run.workflowName}, version ${run.version}`],
    ["Started", timeElement(run.createdAt)],
    ["Used", usedBy(run)],
  );
  const input = run.input === undefined ? [] : [element("h4", "", "Input"), textBlock(shown(run.input), "The input")];
  return [facts, ...input, element("h4", "", "Steps so far"), element("ol", "timeline", ...run.steps.map(toStep))];
}

function decisionForm(session, approval, onDecided) {
  const comment = element("textarea", "");
  const label = element("label", "", "Comment (optional)");
  comment.id = label.htmlFor = `comment-${approval.approvalId}`;
  comment.maxLength = 4_000;
  comment.rows = 2;
  const note = element("p", "problem");
  note.setAttribute("role", "alert");
  const button = (text, decision) => {
    const node = element("button", decision, text);
    node.type = "button";
    node.addEventListener("click", async () => {
      for (const each of buttons) each.disabled = true;
      note.textContent = "";
      try {
        const body = { decision, ...(comment.value.trim() === "" ? {} : { comment: comment.value.trim() }) };
        onDecided(await session.post(`/workflows/approvals/${approval.approvalId}/decide`, body));
      } catch (error) {
        note.textContent = error.message;
        for (const each of buttons) each.disabled = error.code === "wrong_state";
      }
    });
    return node;
  };
  const buttons = [button("Approve", "approved"), button("Reject", "rejected")];
  return element("form", "decision", label, comment, element("div", "actions", ...buttons), note);
}

/** One approval; when it is opened it fetches the run that waits for it. */
function toCard(session, approval) {
  const { approvalId, workflowName, stepId, status, assigneeRole, message, createdAt, expiresAt } = approval;
  const { decidedBy, decidedAt, comment } = approval;
  const forWhom = assigneeRole === "owner" ? "an owner" : "an admin or owner";
  const facts = factList(
    ["For", forWhom],
    ["Requested", timeElement(createdAt)],
    status === "pending" && ["Until", timeElement(expiresAt)],
    decidedBy && ["Decided", timeElement(decidedAt), ` by ${decidedBy}`],
    comment && ["Comment", comment],
  );
  const run = element("details", "", element("summary", "", "The run so far, and the decision"));
  const title = element("h2", "", workflowName, ": ", stepId, " ", badge(status));
  const card = element("article", "card", title, message ? textBlock(message, "The message") : undefined, facts, run);
  card.dataset.id = approvalId;
  const onDecided = ({ runStatus, ...now }) => {
    const next = toCard(session, now);
    next.append(element("p", "meta", runStatus === "rejected" ? "The run has ended." : "The run continues."));
    card.replaceWith(next);
    next.tabIndex = -1;
    next.focus();
  };
  run.addEventListener(
    "toggle",
    async () => {
      const place = element("div", "", element("p", "busy-note", "loading …"));
      run.append(place);
      try {
        const detail = await session.get(`/workflows/approvals/${approvalId}`);
        const form = detail.mayDecide ? decisionForm(session, detail, onDecided) : undefined;
        const why = detail.status === "pending" ? `Your key may not decide this: it is for ${forWhom}.` : "";
        place.replaceChildren(...showRun(detail), form ?? element("p", "hint", why));
      } catch (error) {
        place.replaceChildren(element("p", "problem", error.message));
      }
    },
    { once: true },
  );
  return card;
}

withSession(async (session) => {
  let cursor;
  const fetchPage = (after) => {
    const query = new URLSearchParams({
      status: byId("status").value,
      limit: "50",
      ...(after ? { cursor: after } : {}),
    });
    return session.get(`/workflows/approvals?${query}`);
  };
  const showState = () => {
    const isEmpty = byId("list").childElementCount === 0;
    byId("state").textContent = !isEmpty
      ? ""
      : byId("status").value === "pending"
        ? "Nothing waits for a decision."
        : "None.";
    byId("more").hidden = !cursor;
  };
  const load = async () => {
    const { data, nextCursor } = await fetchPage();
    byId("list").replaceChildren(...data.map((one) => toCard(session, one)));
    cursor = nextCursor;
    showState();
  };
  /** Adds new approvals on top and leaves the others as they are, so that no open form changes while it is used. */
  const poll = async () => {
    if (document.hidden || byId("status").value !== "pending") return;
    const { data } = await fetchPage();
    const known = new Set([...byId("list").children].map(({ dataset }) => dataset.id));
    byId("list").prepend(...data.filter(({ approvalId }) => !known.has(approvalId)).map((one) => toCard(session, one)));
    showState();
  };
  byId("status").addEventListener("change", load);
  byId("more").addEventListener("click", async () => {
    const { data, nextCursor } = await fetchPage(cursor);
    byId("list").append(...data.map((one) => toCard(session, one)));
    cursor = nextCursor;
    showState();
  });
  await load();
  setInterval(() => {
    poll().catch((error) => {
      byId("state").textContent = `Not up to date: ${error.message}`;
    });
  }, POLL_MS);
});

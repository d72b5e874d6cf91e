import { execFile } from "node:child_process";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Disposables } from "../../../src/lib/disposables.ts";
import { type ApiClient, makeApiClient } from "./api-client.ts";
import { openBrowser, openWindow, showLast, type Window } from "./browser.ts";
import { type Desk, openDesk } from "./desk.ts";
import { fillUsage } from "./fill-store.ts";
import * as forms from "./forms.ts";
import { findOne, goAround, outliveSession, outliveStore } from "./hold.ts";
import { chatInWidget, lookAtHostileTexts, plantHostileTexts } from "./hostile.ts";
import { findPlaces, lookAround, type Places } from "./look-around.ts";
import * as many from "./many.ts";
import { readReference } from "./reference.ts";
import { visitShop } from "./shop.ts";
import { standStorm } from "./storm.ts";
import { doTasks } from "./tasks.ts";
import { seeTree } from "./tree.ts";
import * as walk from "./walk.ts";
import { beMember, seeNothing } from "./walls.ts";

/** What the program that makes a tenant may take, in ms. */
const TENANT_TIMEOUT_MS = 120_000;

const windowNames = ["owner", "approver", "busy", "member", "stranger", "guarded", "operator", "editor"] as const;

/** Responses that are no faults: what another tenant has is not there, and an operator signs in. */
const expectedIn: Partial<Record<(typeof windowNames)[number], { status: number; path: RegExp }[]>> = {
  busy: [
    { status: 401, path: /^\// }, // its session ends, and the store stops
    { status: 503, path: /^\// },
  ],
  editor: [
    { status: 400, path: /^\/agents$/ }, // a field that is not known is refused, as the form has warned
    { status: 401, path: /^\// }, // its session ends
    { status: 409, path: /^\/agents\// }, // another version was saved meanwhile
  ],
  stranger: [{ status: 404, path: /_[0-9A-Z]{26}/ }],
  operator: [
    { status: 401, path: /^\/operator\// },
    { status: 503, path: /^\/operator\/workers$/ }, // where Redis does not respond in time, which the screen shows
  ],
};

/** Does in a browser what a person does in the console. Returns what is wrong, each as a line. @throws NoBrowser */
export async function checkConsole(disposables: Disposables, { pictures }: { pictures?: string }): Promise<string[]> {
  const desk = await openDesk(disposables);
  const { dataDir, url, apiKey, adminToken, provider, call } = desk;
  const browser = await openBrowser(disposables);
  const opened = windowNames.map(async (name) => {
    return [name, await openWindow(browser, { url, name, expected: expectedIn[name] ?? [] })] as const;
  });
  const windows = Object.fromEntries(await Promise.all(opened)) as Record<(typeof windowNames)[number], Window>;
  const { owner, approver, busy, member, stranger, guarded, operator, editor } = windows;
  const faults: string[] = [];
  let shots: string | undefined;
  const step: Step = async (name, work) => {
    const startedAt = performance.now();
    try {
      await work();
    } catch (error) {
      shots ??= await mkdtemp(join(tmpdir(), "switchyard-console-failed-"));
      const folder = shots;
      const last = Object.values(windows).map((window) => showLast(window, { folder, step: name }));
      faults.push([`${name}: ${(error as Error).message}`, ...(await Promise.all(last))].join("\n"));
    }
    console.log(`  ${name}, ${((performance.now() - startedAt) / 1_000).toFixed(1)} s`);
  };
  let places: Places = { lists: [], details: [] };
  await step("sign in", () => walk.signIn(owner, apiKey));
  await step("sign in in a second window", () => walk.signIn(approver, apiKey));
  await step("drop three documents", () => walk.dropDocuments(owner));
  await step("replace a document", () => walk.replaceDocument(owner));
  await step("ask in the playground", () => walk.askInPlayground(owner, provider));
  await step("make an agent and watch it run", () => walk.runAgent(owner, provider));
  await step("approve a workflow in a second window", () => walk.approveWorkflow(owner, approver));
  await step("look into the runs within a run", () => seeTree(owner, call));
  await step("approve one of two calls", () => walk.approveCalls(approver, { call, provider }));
  await step("see the spend by model and key", () => walk.seeSpend(owner));
  await begin(editor, { desk, apiKey, step, pictures });
  await step("find every screen", async () => {
    places = await findPlaces(owner);
  });
  await step("look at every screen", async () => {
    faults.push(...(await lookAround(owner, [...places.lists, ...places.details], pictures)));
  });
  await step("be the operator", async () => {
    await walk.signInAsOperator(operator, adminToken);
    await walk.manageAsOperator(operator);
    await walk.refreshAsOperator(operator, desk);
    faults.push(...(await lookAround(operator, ["/console/operator"], pictures)));
  });
  await edit(editor, { desk, step });
  await step("make and revoke a key", () => walk.makeAndRevokeKey(owner, url));
  await step("do twenty tasks", async () => void faults.push(...(await doTasks(owner, { provider, call }))));
  await step("be a member", async () => {
    await walk.signIn(member, await makeKey(call));
    await beMember(member);
  });
  await step("be another tenant, and see nothing", async () => {
    await walk.signIn(stranger, await makeTenant(dataDir, "other"));
    await seeNothing(stranger, places);
  });
  await step("show hostile texts", async () => {
    const key = await makeTenant(dataDir, "third");
    const { places: hostile, widgetKey } = await plantHostileTexts(makeApiClient(url, key), provider);
    await walk.signIn(guarded, key);
    faults.push(...(await lookAtHostileTexts(guarded, { places: hostile, provider })));
    faults.push(...(await chatInWidget(guarded, { widgetKey, provider })));
  });
  await step("chat on a page of another origin", async () => {
    faults.push(...(await visitShop(browser, { disposables, url, call, provider, pictures })));
  });
  await outlive(busy, { desk, apiKey, step });
  await step("read the reference", async () => void faults.push(...(await readReference(approver))));
  await step("sign out", () => walk.signOut(owner, url));
  return [...faults, ...Object.values(windows).flatMap((window) => window.faults)];
}

type Step = (name: string, work: () => Promise<unknown>) => Promise<void>;

type Beginning = { desk: Desk; apiKey: string; step: Step; pictures: string | undefined };

/** Makes what the pictures of lists and pages show best. */
async function begin(editor: Window, { desk, apiKey, step, pictures }: Beginning) {
  if (pictures) await step("be there for thirty days", () => fillUsage(desk));
  await step("nest the steps of a workflow", async () => {
    await walk.signIn(editor, apiKey);
    await forms.nestSteps(editor);
  });
  await step("rate an answer, and open what it cites", () => many.rateAnswer(editor, desk));
  await step("keep what was typed into schedules, and make them", () => forms.keepSchedules(editor, desk));
}

/** Writes definitions by their forms, and handles much at once. */
async function edit(editor: Window, { desk, step }: { desk: Desk; step: Step }) {
  await step("try the draft of a workflow", () => forms.tryDraft(editor));
  await step("be warned before saving", () => forms.warnBeforeSaving(editor));
  await step("settle a conflict of two versions", () => forms.settleConflict(editor, desk));
  await step("keep what was typed into forms", () => forms.keepForms(editor, desk));
  await step("retry a failed document", () => many.retryDocument(editor, desk));
  await step("retry and cancel many runs", () => many.handleMany(editor, desk));
}

/** Works on while much happens, a session ends and the store is away. */
async function outlive(busy: Window, { desk, apiKey, step }: { desk: Desk; apiKey: string; step: Step }) {
  await step("stand a storm of jobs", async () => {
    await walk.signIn(busy, apiKey);
    await standStorm(busy, desk);
  });
  await step("go back to the same place, and by keys", () => goAround(busy));
  await step("find one run of many", () => findOne(busy));
  await step("outlive a session while typing", () => outliveSession(busy, desk));
  await step("outlive an outage of the store", () => outliveStore(busy, desk));
}

/** Makes a key with a person behind it. */
async function makeKey(call: ApiClient): Promise<string> {
  return String((await call("POST", "/keys", { body: { role: "member", subject: "mia@acme.io" } })).key);
}

/** Another tenant's key, made as an operator does. */
async function makeTenant(dataDir: string, tenant: string): Promise<string> {
  const command = ["scripts/keys.ts", "create", "--tenant", tenant, "--role", "owner", "--subject", "eve@other.io"];
  const env = { ...process.env, DATA_DIR: dataDir, STORE_TIMEOUT_MS: "60000" };
  const { stdout } = await promisify(execFile)(process.execPath, command, { env, timeout: TENANT_TIMEOUT_MS });
  return /sk_\w{32}/.exec(stdout)?.[0] ?? "";
}

import { LRUCache } from "lru-cache";
import { ChildLost } from "../isolation/child.ts";
import { makeChildPool } from "../isolation/child-pool.ts";
import type { Memory } from "../isolation/memory.ts";
import { AppError, invalidRequest } from "../lib/errors.ts";
import {
  type CheckDefinition,
  type CheckGiven,
  type CheckInput,
  type Evaluation,
  evaluate,
  type Fill,
  NotHere,
  type Place,
} from "./evaluate.ts";
import type { ChildResponse, ChildWork } from "./evaluate-in-child.ts";
import type { Expression, RuleName } from "./expressions.ts";
import { findRead, noScope, type ScopeTexts, toJsonValue } from "./scope-texts.ts";
import { type StepField, textsOf } from "./step-texts.ts";
import { makeParsedTexts, type ParsedTexts } from "./templates.ts";
import { isOutOfTime, Starved, withOwnTimeout } from "./with-timeout.ts";

/** How long one step's expressions, or one check, may hold up everything else of this process, in ms. */
const INLINE_MS = 10;
/** Attempts at that while others have the processor. */
const INLINE_ATTEMPTS = 4;
/** How long it may take in a child process, in ms: much more than it needs, since others may have the processor. */
const FILL_MS = 2_000;
const CHECK_MS = 1_000;
/** A child that does not even stop at its limit is killed then, in ms. */
const KILL_MS = 6_000;
/** Children at the same time; one tenant has one. */
const CHILDREN = 2;
/** In MB. A process has some 60 before its first work; V8 frees garbage of earlier work when the heap's bound is near. */
const MEMORY = { heapMb: 96, rssMb: 200 };
/** Evaluation of one tenant that waits for a child in this process: steps, which can come back later, and checks of requests. */
const MAX_STEPS_WAITING = 4;
const MAX_CHECKS_WAITING = 30;
/** How long work that took too long twice is not attempted inline again, in ms; and how many such works are remembered. */
const SLOW_TTL_MS = 60_000;
const MAX_SLOW = 1_000;
const TRY_AGAIN_MS = 1_000;
/** Each further work of the tenant that was refused of late prolongs that, in ms, up to a limit: thousands of runs shall not ask each second. */
const LONGER_MS = 100;
const MAX_TRY_AGAIN_MS = 20_000;
/** Work that was refused counts for this long, in ms. */
const REFUSED_MS = 20_000;
/** Longest wait for a child and its answer together, in ms. */
const WAIT_MS = 30_000;

/** The tenant that work is done for. `key` is the same for the same texts, as the id of a workflow with its version. */
export type Asker = { tenantId: string; key?: string; signal?: AbortSignal };

/** The tenant has as much work in the child processes as it may have. */
export class EvaluatorBusy extends AppError {
  constructor(retryAfterMs = TRY_AGAIN_MS) {
    super("too_many_concurrent", "Too many expressions or checks of this tenant are being evaluated; try again.", {
      retryable: true,
      retryAfterMs,
    });
  }
}

/** When work is worth a further attempt, by how much of its tenant's was refused of late. */
export function makeRetryTimes(now: () => number = () => performance.now()) {
  const refusals = new LRUCache<string, { count: number; at: number }>({ max: MAX_SLOW });
  return (tenantId: string): number => {
    const { count = 0, at = 0 } = refusals.get(tenantId) ?? {};
    const counted = Math.max(0, count * (1 - (now() - at) / REFUSED_MS));
    refusals.set(tenantId, { count: counted + 1, at: now() });
    return Math.min(TRY_AGAIN_MS + counted * LONGER_MS, MAX_TRY_AGAIN_MS);
  };
}

type RuleValues = Readonly<Partial<Record<RuleName, unknown>>>;
/** A condition in the field `when` of `field`, and what it may read. */
type Rule = { field: string; rule: string; values: RuleValues };
/** An expression in a field that may have any value, and what it may read. */
type ValueRule = { at: string; expression: string; values: RuleValues };

const fieldsOf = (rule: string): StepField[] => [{ at: "when", value: rule, kind: "rule" }];
const valueFieldOf = ({ at, expression }: Omit<ValueRule, "values">): StepField => ({
  at,
  value: expression,
  kind: "rule-value",
});

const toCheck = (rule: Omit<ValueRule, "values">): CheckDefinition => ({
  kind: "check-definition",
  steps: [{ field: "rule", fields: [valueFieldOf(rule)], known: [] }],
});

const toValues = (values: RuleValues): ScopeTexts => ({
  ...noScope,
  values: Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, toJsonValue(JSON.stringify(value))] as const),
  ),
});

export type Evaluator = ReturnType<typeof makeEvaluator>;

/**
 * Evaluates what tenants have written: expressions, templates, JSON Schemas with their regular expressions. None of it holds
 * up the process by more than a few ms: work that is not known to be quick, or turns out not to be, runs in a child process,
 * which can be killed. All throw AppError `invalid_request`, `param` naming the field; `unavailable`; EvaluatorBusy; the
 * signal's reason.
 */
export function makeEvaluator(shared: Memory) {
  const pool = makeChildPool<ChildWork, ChildResponse>({
    entry: new URL("./evaluate-in-child.ts", import.meta.url),
    size: CHILDREN,
    perOwner: 1,
    timeoutMs: KILL_MS,
    memory: MEMORY,
    shared,
  });
  const parsed = makeParsedTexts();
  const slow = new LRUCache<string, number>({ max: MAX_SLOW, ttl: SLOW_TTL_MS });
  const inChild = new Map<string, number>();
  const retryAfterMs = makeRetryTimes();

  /** The answer, or the work that is left for a child. */
  const tryInline = (work: Evaluation, key: string | undefined): { answer: unknown } | { left: Evaluation } => {
    const timesSlow = key === undefined ? 0 : (slow.get(key) ?? 0);
    const place: Place = { parsed, allows: timesSlow > 1 ? "nothing" : "quick", at: "", left: work };
    try {
      if (work.kind === "fill" && isInstant(work, parsed)) return { answer: evaluate(work, place) };
      return { answer: withOwnTimeout(INLINE_MS, INLINE_ATTEMPTS, () => evaluate(work, place)) };
    } catch (error) {
      if (!isOutOfTime(error) && !(error instanceof NotHere || error instanceof Starved)) throw error;
      if (isOutOfTime(error) && key !== undefined) slow.set(key, timesSlow + 1);
      return { left: place.left };
    }
  };
  const sendToChild = async (work: Evaluation, { tenantId, signal }: Asker) => {
    const others = inChild.get(tenantId) ?? 0;
    if (others > (work.kind === "fill" ? MAX_STEPS_WAITING : MAX_CHECKS_WAITING))
      throw new EvaluatorBusy(retryAfterMs(tenantId));
    inChild.set(tenantId, others + 1);
    const limitMs = work.kind === "check-input" || work.kind === "check-given" ? CHECK_MS : FILL_MS;
    const inTime = AbortSignal.timeout(WAIT_MS);
    const both = signal ? AbortSignal.any([signal, inTime]) : inTime;
    try {
      return toAnswer(await answerOf(pool.run({ work, limitMs }, { owner: tenantId, signal: both })));
    } catch (error) {
      signal?.throwIfAborted();
      if (inTime.aborted) throw new EvaluatorBusy(retryAfterMs(tenantId));
      throw error instanceof ChildLost ? toAppError(error, { work, limitMs }) : error;
    } finally {
      const left = (inChild.get(tenantId) ?? 1) - 1;
      if (left > 0) inChild.set(tenantId, left);
      else inChild.delete(tenantId);
    }
  };
  const run = async (asker: Asker, work: Evaluation) => {
    const done = tryInline(work, asker.key === undefined ? undefined : `${work.kind} ${asker.key}`);
    return "answer" in done ? done.answer : sendToChild(done.left, asker);
  };

  return {
    /** The values of the fields, by their names. */
    fill: async (asker: Asker, work: Omit<Fill, "kind">) =>
      (await run(asker, { kind: "fill", ...work })) as Record<string, unknown>, // what `fill` of evaluate.ts returns
    checkDefinition: async (asker: Asker, work: Omit<CheckDefinition, "kind">) =>
      void (await run(asker, { kind: "check-definition", ...work })),
    /** Whether a rule is true of these values, by their names. */
    async holds(asker: Asker, { field, rule, values }: Rule): Promise<boolean> {
      const work: Fill = { kind: "fill", field, fields: fieldsOf(rule), scope: toValues(values) };
      const { when } = Object(await run(asker, work));
      if (typeof when === "boolean") return when;
      throw invalidRequest(`${field}.when`, "The rule's value is neither true nor false.");
    },
    /** The value of an expression over these values, by their names. */
    async valueOf(asker: Asker, { values, ...rule }: ValueRule): Promise<unknown> {
      const work: Fill = { kind: "fill", field: "rule", fields: [valueFieldOf(rule)], scope: toValues(values) };
      return Object(await run(asker, work))[rule.at];
    },
    /** Checks an expression that may have any value. */
    checkValue: async (asker: Asker, rule: Omit<ValueRule, "values">) => void (await run(asker, toCheck(rule))),
    /** Checks rules, each by its field. */
    checkRules: async (asker: Asker, rules: readonly Omit<Rule, "values">[]) => {
      const steps = rules.map(({ field, rule }) => ({ field, fields: fieldsOf(rule), known: [] }));
      if (steps.length > 0) await run(asker, { kind: "check-definition", steps });
    },
    checkInput: async (asker: Asker, work: Omit<CheckInput, "kind">) =>
      void (await run(asker, { kind: "check-input", ...work })),
    checkGiven: async (asker: Asker, work: CheckGiven) => void (await run(asker, work)),
    /** Ends the child processes. */
    close: () => pool.close(),
  };
}

/** The one part of a child's answer. To leave the child's parts before their end is to end the child. */
async function answerOf(parts: AsyncGenerator<ChildResponse, void>): Promise<ChildResponse | undefined> {
  let response: ChildResponse | undefined;
  for await (const part of parts) {
    if (part.isWorn) return part;
    response = part;
  }
  return response;
}

function toAnswer(found: ChildResponse | undefined): unknown {
  if (!found?.problem) return found?.answer;
  const { message, param, details } = found.problem;
  throw new AppError("invalid_request", message, { param, details });
}

/** A child that is lost by time or memory is lost by its work, and would be again. */
function toAppError(lost: ChildLost, { work, limitMs }: ChildWork): AppError {
  if (lost.reason === "crash") {
    return new AppError("unavailable", "It could not be evaluated.", { retryable: true, cause: lost });
  }
  const message = lost.reason === "time" ? `It takes longer than ${limitMs} ms.` : "It takes more memory than it may.";
  return new AppError("invalid_request", message, { param: firstFieldOf(work), cause: lost });
}

function firstFieldOf(work: Evaluation): string {
  if (work.kind === "fill") return [work.field, ...work.fields.slice(0, 1).map(({ at }) => at)].join(".");
  if (work.kind === "check-given") return `${work.field}.input`;
  return work.kind === "check-input" ? "input" : "steps";
}

/** Characters of the values that such a step reads, at most. */
const MAX_VALUES = 10_000;
/** Characters that all of its operations may look at; so its fields have 700 at most. The slowest that was found takes 2 ms. */
const MAX_READ = 500_000;

/**
 * Whether a step's expressions take so little time, whatever their values are, that none need watch over it: a watch is a thread
 * for each step, which takes 0.4 ms. Their texts are parsed already. Without loops an expression has no more operations than
 * characters; each looks at its values once, and these are no longer than all that is read, added up.
 */
export function isInstant({ fields, scope }: Pick<Fill, "fields" | "scope">, parsed: ParsedTexts): boolean {
  if (!fields.every(({ value }) => typeof value === "string")) return false;
  const expressions: Expression[] = [];
  const own = scope.values ? parsed.within(Object.keys(scope.values)) : parsed;
  for (const { text, parsedAs } of fields.flatMap(textsOf)) {
    const known = own[parsedAs].known(text);
    if (!known) return false;
    expressions.push(...("expressions" in known ? known.expressions : [known]));
  }
  if (expressions.some(({ repeats }) => repeats)) return false;
  const additions = expressions.reduce((sum, one) => sum + one.additions, 0);
  const length = fields.reduce((sum, { value }) => sum + String(value).length, 0);
  const { characters } = findRead(scope, expressions);
  return characters <= MAX_VALUES && (additions + 1) * length * (characters + length) <= MAX_READ;
}

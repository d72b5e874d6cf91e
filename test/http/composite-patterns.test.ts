import { expect } from "chai";
import { type ApiClient, type ApiResponse, makeClient } from "../support/http-client.ts";
import {
  type Script,
  type ScriptedUpstream,
  startScriptedUpstream,
  type UpstreamCall,
} from "../support/scripted-upstream.ts";
import { startPlatform, type TestPlatform } from "../support/start-platform.ts";

const [a, b, c, d, e] = ["gpt-5.4-mini", "gpt-5.4-nano", "gpt-5.4", "gpt-5.2", "gpt-4.1"] as const;
const question = "Which cache should we use, and why?";
const failure = { status: 400 };

/** What a call is for, by the task in its instructions. */
const tasks: [RegExp, string][] = [
  [/step by step\. Number/, "reason"],
  [/the reasoning leads to/, "extract"],
  [/Review the draft/, "feedback"],
  [/Rewrite the draft/, "refine"],
  [/Criticise the draft/, "criticise"],
  [/Revise your draft/, "revise"],
  [/A or B\?/, "compare"],
  [/from the candidates/, "fuse"],
  [/do not agree\. Weigh/, "discuss"],
  [/"confidence"/, "opinion"],
  [/say the same in substance/, "cluster"],
  [/those of the other agents/, "rebut"],
  [/judge of a debate/, "judge"],
  [/Pick the 2 experts/, "gate"],
  [/from that point of view/, "expert"],
  [/Synthesise one answer/, "aggregate"],
];
const taskOf = ({ system }: UpstreamCall) => tasks.find(([pattern]) => pattern.test(system))?.[1] ?? "answer";

/** Resolves for all once `count` calls are there: calls that come one after the other never get an answer. */
function makeGate(count: number): () => Promise<void> {
  let waiting: (() => void)[] = [];
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve);
      if (waiting.length < count) return;
      for (const open of waiting) open();
      waiting = [];
    });
}

describe("the transcript of a composite pattern", () => {
  let upstream: ScriptedUpstream;
  let test: TestPlatform;
  let member: ApiClient;
  before(async () => {
    upstream = await startScriptedUpstream();
    test = await startPlatform({
      env: { OPENAI_API_KEY: "sk-test", OPENAI_BASE_URL: upstream.url, PROVIDER_MAX_ATTEMPTS: "1" },
    });
    member = makeClient({ url: test.url, key: test.keys.member });
  });
  after(async () => {
    await test.close();
    await upstream.close();
  });

  const run = (pattern: string, models: readonly string[] | undefined, script: Script): Promise<ApiResponse> => {
    upstream.play(script);
    return member.post("/composite/execute", {
      pattern,
      profile: "coding",
      input: question,
      ...(models ? { models } : {}),
    });
  };
  const transcript = () => upstream.calls.map((call) => `${taskOf(call)} ${call.model}`);
  const callsOf = (task: string) => upstream.calls.filter((call) => taskOf(call) === task);
  const warningsOf = (answer: ApiResponse) => JSON.stringify(answer.at("warnings") ?? []);

  describe("chain-of-thought", () => {
    it("reasons, then extracts from the reasoning, and keeps the reasoning in the trace", async () => {
      const answer = await run("chain-of-thought", [a], (call) =>
        taskOf(call) === "reason" ? "1. Data is hot.\n2. It fits." : "Use Redis.",
      );
      expect(transcript()).to.deep.equal([`reason ${a}`, `extract ${a}`]);
      expect(upstream.calls[0]?.user).to.equal(question);
      expect(upstream.calls[1]?.user).to.include("1. Data is hot.\n2. It fits.").and.include(question);
      expect([answer.at("output"), answer.at("stepsExecuted")]).to.deep.equal(["Use Redis.", 2]);
      const trace = await member.get(`/composite/executions/${answer.string("executionId")}`);
      expect(trace.at("steps[0].output")).to.include("Data is hot");
    });

    it("answers with the last paragraph when the extraction fails", async () => {
      const answer = await run("chain-of-thought", [a], (call) =>
        taskOf(call) === "reason" ? "1. Data is hot.\n\nSo it is Redis." : failure,
      );
      expect([answer.at("output"), answer.at("stepsExecuted")]).to.deep.equal(["So it is Redis.", 2]);
      expect(warningsOf(answer)).to.include("could not be extracted");
    });
  });

  describe("self-reflection", () => {
    const scripted = (scores: readonly string[]): Script => {
      let feedbacks = 0;
      let refinements = 0;
      return (call) => {
        if (taskOf(call) === "feedback") return scores[feedbacks++] ?? "STOP";
        if (taskOf(call) === "refine") return `draft after refinement ${++refinements}`;
        return "first draft";
      };
    };

    it("drafts, then takes feedback and refines up to three times, always on the latest draft", async () => {
      const answer = await run(
        "self-reflection",
        [a],
        scripted(["Score: 3/10 be specific", "Score: 5/10", "Score: 6/10"]),
      );
      const round = [`feedback ${a}`, `refine ${a}`];
      expect(transcript()).to.deep.equal([`answer ${a}`, ...round, ...round, ...round]);
      expect(callsOf("feedback")[1]?.user).to.include("draft after refinement 1");
      expect(callsOf("refine")[0]?.user).to.include("first draft").and.include("be specific");
      expect([answer.at("output"), answer.at("stepsExecuted")]).to.deep.equal(["draft after refinement 3", 7]);
    });

    it("stops when the critic is satisfied", async () => {
      const answer = await run("self-reflection", [a], scripted(["Score: 4/10", "Score: 9/10\nSTOP"]));
      expect([answer.at("output"), answer.at("stepsExecuted")]).to.deep.equal(["draft after refinement 1", 4]);
    });

    it("takes the best-scored draft, not the last", async () => {
      const answer = await run("self-reflection", [a], scripted(["Score: 5/10", "Score: 9/10", "Score: 2/10\nSTOP"]));
      expect(answer.at("output")).to.equal("draft after refinement 1");
    });

    it("keeps the best draft when the feedback fails", async () => {
      const answer = await run("self-reflection", [a], (call) =>
        taskOf(call) === "feedback" ? failure : "first draft",
      );
      expect([answer.at("output"), answer.at("stepsExecuted")]).to.deep.equal(["first draft", 2]);
      expect(warningsOf(answer)).to.include("no feedback");
    });
  });

  describe("critique", () => {
    it("drafts by A, criticises by B by the profile's criteria, revises by A", async () => {
      const answer = await run(
        "critique",
        [a, b],
        (call) => ({ criticise: "Name the costs.", revise: "Redis; it costs X." })[taskOf(call)] ?? "Redis.",
      );
      expect(transcript()).to.deep.equal([`answer ${a}`, `criticise ${b}`, `revise ${a}`]);
      expect(upstream.calls[1]?.system).to.include("edge cases");
      expect(upstream.calls[1]?.user).to.include("Redis.").and.include(question);
      expect(upstream.calls[2]?.user).to.include("Redis.").and.include("Name the costs.");
      expect([answer.at("output"), answer.at("stepsExecuted")]).to.deep.equal(["Redis; it costs X.", 3]);
    });

    it("returns the draft, with a warning, when the critique fails", async () => {
      const answer = await run("critique", [a, b], (call) => (taskOf(call) === "criticise" ? failure : "Redis."));
      expect([answer.at("output"), answer.at("stepsExecuted")]).to.deep.equal(["Redis.", 2]);
      expect(warningsOf(answer)).to.include(b);
    });
  });

  describe("ensemble", () => {
    it("asks all in parallel and lets discrete answers vote", async () => {
      const gate = makeGate(3);
      const answer = await run("ensemble", [a, b, c], async ({ model }) => {
        await gate();
        return model === b ? "I looked at it.\nAnswer: Memcached" : "It persists.\nAnswer: **Redis**";
      });
      expect(transcript()).to.have.members([`answer ${a}`, `answer ${b}`, `answer ${c}`]);
      expect(answer.string("output")).to.include("Redis");
      expect([answer.at("stepsExecuted"), answer.at("agreement")]).to.deep.equal([3, 0.67]);
      expect(answer.at("dissent[0].models")).to.deep.equal([b]);
    });

    const prose = (name: string) => `${name} is what I would take here, since it has served this load well for years.`;

    it("judges free texts in pairs and both orders in one bubble pass, and fuses the best three", async () => {
      const order = [d, c, b, a]; // the judge's taste: the last one asked is the best
      const answer = await run("ensemble", [a, b, c, d], (call) => {
        if (taskOf(call) === "fuse") return "the fused answer";
        if (taskOf(call) !== "compare") return prose(call.model);
        const [first, second] = [...call.user.matchAll(/(gpt-\S+) is what/g)].map(([, name = ""]) =>
          order.indexOf(name as typeof a),
        );
        return `{"better": "${(first ?? 0) < (second ?? 0) ? "A" : "B"}"}`;
      });
      const compared = callsOf("compare").map((call) =>
        [...call.user.matchAll(/(gpt-\S+) is what/g)].map(([, name]) => name),
      );
      expect(compared.map((pair) => pair.toSorted().join())).to.deep.equal(
        [
          [c, d],
          [c, d],
          [b, d],
          [b, d],
          [a, d],
          [a, d],
        ].map((pair) => pair.toSorted().join()),
      );
      for (const place of [0, 2, 4]) expect(compared[place]).to.deep.equal(compared[place + 1]?.toReversed());
      const [fusion] = callsOf("fuse");
      expect([...(fusion?.user.matchAll(/(gpt-\S+) is what/g) ?? [])].map(([, name]) => name)).to.deep.equal([d, a, b]);
      expect([answer.at("output"), answer.at("stepsExecuted")]).to.deep.equal(["the fused answer", 4 + 6 + 1]);
      expect(callsOf("compare").every(({ model }) => model === a)).to.equal(true);
    });

    it("counts a judge that changes its mind with the order as a tie", async () => {
      await run("ensemble", [a, b], (call) => (taskOf(call) === "compare" ? '{"better": "A"}' : prose(call.model)));
      expect(
        [...(callsOf("fuse")[0]?.user.matchAll(/(gpt-\S+) is what/g) ?? [])].map(([, name]) => name),
      ).to.deep.equal([a, b]);
    });

    it("leaves a failed member out, and returns the one that is left", async () => {
      const two = await run("ensemble", [a, b, c], ({ model }) => (model === c ? failure : "Answer: Redis"));
      expect(warningsOf(two)).to.include(c);
      expect(two.at("agreement")).to.equal(1);
      const one = await run("ensemble", [a, b, c], ({ model }) => (model === a ? "Answer: Redis" : failure));
      expect([one.at("output"), one.at("stepsExecuted")]).to.deep.equal(["Answer: Redis", 3]);
    });
  });

  describe("consensus", () => {
    const opinion = (answer: string, confidence: number, reasoning = `for ${answer}`) =>
      JSON.stringify({ reasoning, answer, confidence });

    it("stops at once when all agree", async () => {
      const gate = makeGate(3);
      const answer = await run("consensus", [a, b, c], async () => {
        await gate();
        return opinion("Redis", 0.8);
      });
      expect([answer.at("output"), answer.at("stepsExecuted"), answer.at("agreement")]).to.deep.equal(["Redis", 3, 1]);
    });

    it("shows the grouped answers with reasons and confidences, until all agree", async () => {
      const answer = await run("consensus", [a, b, c], (call) =>
        taskOf(call) === "discuss" || call.model !== b
          ? opinion("Redis", 0.8)
          : opinion("Memcached", 0.95, "it is simpler"),
      );
      expect(transcript().slice(3)).to.have.members([`discuss ${a}`, `discuss ${b}`, `discuss ${c}`]);
      for (const { user } of callsOf("discuss")) {
        expect(user)
          .to.match(/2 models answer\]\nRedis/)
          .and.match(/1 model answers\]\nMemcached/);
        expect(user).to.include("(confidence 0.95) it is simpler").and.include(question);
      }
      expect([answer.at("output"), answer.at("stepsExecuted")]).to.deep.equal(["Redis", 6]);
    });

    it("discusses up to twice, then votes by recalibrated confidence", async () => {
      const answer = await run("consensus", [a, b, c], ({ model }) =>
        model === c ? opinion("Memcached", 1) : opinion("Redis", 0.6),
      );
      expect(answer.at("stepsExecuted")).to.equal(9);
      // 1 counts 1; two of 0.6 count 0.1 each
      expect(answer.at("output")).to.equal("Memcached");
      expect(answer.at("agreement")).to.equal(0.33);
      expect(answer.at("dissent[0].models")).to.deep.equal([a, b]);
    });

    it("lets a judge group free texts", async () => {
      const long = (name: string) =>
        `We should take ${name} because it fits the load that was measured in the last year best.`;
      const answer = await run("consensus", [a, b, c], (call) =>
        taskOf(call) === "cluster"
          ? '{"groups": [[1, 3], [2]]}'
          : opinion(long(call.model), call.model === c ? 0.95 : 0.7),
      );
      expect(callsOf("cluster")).to.have.length(3);
      expect(answer.at("stepsExecuted")).to.equal(9 + 3);
      expect(answer.at("output")).to.equal(long(c));
      expect(answer.at("agreement")).to.equal(0.67);
    });

    it("continues with two of three, and fails with one", async () => {
      const two = await run("consensus", [a, b, c], ({ model }) => (model === c ? failure : opinion("Redis", 0.8)));
      expect([two.status, two.at("output"), two.at("stepsExecuted")]).to.deep.equal([200, "Redis", 3]);
      expect(warningsOf(two)).to.include(c);
      const one = await run("consensus", [a, b, c], ({ model }) => (model === a ? opinion("Redis", 0.8) : failure));
      expect([one.status, one.at("error.code")]).to.deep.equal([400, "provider_rejected"]);
      expect(one.at("error.details")).to.deep.include({ needed: 2, got: 1 });
    });
  });

  describe("debate", () => {
    it("gives each agent the last answers of all the others, and takes the majority", async () => {
      const gate = makeGate(3);
      const answer = await run("debate", [a, b, c], async (call) => {
        await gate();
        if (taskOf(call) === "answer")
          return `${call.model} first says so.\nAnswer: ${call.model === b ? "Memcached" : "Redis"}`;
        return `I weighed it.\nAnswer: ${call.model === c ? "Memcached" : "Redis"}`;
      });
      expect(transcript().slice(0, 3)).to.have.members([`answer ${a}`, `answer ${b}`, `answer ${c}`]);
      expect(transcript().slice(3)).to.have.members([`rebut ${a}`, `rebut ${b}`, `rebut ${c}`]);
      for (const { user, model } of callsOf("rebut")) {
        for (const other of [a, b, c]) expect(user).to.include(`${other} first says so.`);
        expect(user).to.include(`[Your last answer]\n${model} first`).and.include(question);
      }
      expect(answer.string("output")).to.include("Redis");
      expect([answer.at("stepsExecuted"), answer.at("agreement")]).to.deep.equal([6, 0.67]);
      expect(answer.at("dissent[0].models")).to.deep.equal([c]);
    });

    it("has a judge write from the transcript if answers are free texts", async () => {
      const answer = await run("debate", [a, b, c], (call) =>
        taskOf(call) === "judge"
          ? "judged"
          : `${taskOf(call)} of ${call.model}: there is much to say for either of the two.`,
      );
      const [judge] = callsOf("judge");
      for (const model of [a, b, c])
        expect(judge?.user).to.include(`answer of ${model}`).and.include(`rebut of ${model}`);
      expect([answer.at("output"), answer.at("stepsExecuted")]).to.deep.equal(["judged", 7]);
    });

    it("has a judge decide a tie", async () => {
      const answer = await run("debate", [a, b], (call) =>
        taskOf(call) === "judge" ? "judged" : `Answer: ${call.model === a ? "Redis" : "Memcached"}`,
      );
      expect([answer.at("output"), answer.at("stepsExecuted"), answer.at("agreement")]).to.deep.equal([
        "judged",
        5,
        0.5,
      ]);
    });

    it("leaves out an agent that fails, in the next round too", async () => {
      const answer = await run("debate", [a, b, c], ({ model }) => (model === b ? failure : "Answer: Redis"));
      expect(callsOf("rebut").map(({ model }) => model)).to.have.members([a, c]);
      expect([answer.at("stepsExecuted"), answer.at("agreement")]).to.deep.equal([5, 1]);
    });

    it("counts the round before when fewer than two answer again", async () => {
      const answer = await run("debate", [a, b, c], (call) =>
        taskOf(call) === "rebut" && call.model !== a
          ? failure
          : `Answer: ${taskOf(call) === "rebut" ? "Memcached" : "Redis"}`,
      );
      expect(answer.string("output")).to.include("Redis");
      expect(warningsOf(answer)).to.include("round before");
    });
  });

  describe("mixture-of-experts", () => {
    const picks = '{"experts": [{"id": "tester", "weight": 0.25}, {"id": "architect", "weight": 0.75}]}';

    it("asks the selected experts in parallel with their roles, and aggregates by weight", async () => {
      const gate = makeGate(2);
      const answer = await run("mixture-of-experts", [a, b], async (call) => {
        if (taskOf(call) === "gate") return picks;
        if (taskOf(call) === "aggregate") return "aggregated";
        await gate();
        return /architect/.test(call.system) ? "Draw boxes." : "Test it.";
      });
      expect(transcript()[0]).to.equal(`gate ${a}`);
      expect(upstream.calls[0]?.system).to.include("architect:").and.include("security-engineer:");
      expect(
        callsOf("expert").map(({ system }) => /You are a (software architect|test engineer)/.exec(system)?.[1]),
      ).to.have.members(["software architect", "test engineer"]);
      const [aggregation] = callsOf("aggregate");
      expect(aggregation?.user).to.match(
        /Architect, weight 0\.75\]\nDraw boxes\.[\s\S]*Tester, weight 0\.25\]\nTest it\./,
      );
      expect([answer.at("output"), answer.at("stepsExecuted")]).to.deep.equal(["aggregated", 4]);
    });

    it("asks all experts when the gate fails", async () => {
      const answer = await run("mixture-of-experts", [a, b, c, d], (call) =>
        taskOf(call) === "gate" ? failure : "ok then",
      );
      expect(callsOf("expert").map(({ model }) => model)).to.have.members([a, b, c, d]);
      expect(answer.at("stepsExecuted")).to.equal(1 + 4 + 1);
      expect(warningsOf(answer)).to.include("gate");
    });

    it("returns the answer of the expert that is left", async () => {
      const answer = await run("mixture-of-experts", [a, b], (call) => {
        if (taskOf(call) === "gate") return picks;
        return /architect/.test(call.system) ? "Draw boxes." : failure;
      });
      expect([answer.at("output"), answer.at("stepsExecuted")]).to.deep.equal(["Draw boxes.", 3]);
    });
  });

  describe("its models", () => {
    it("are different ones of the profile's by default", async () => {
      const answer = await run("consensus", undefined, () => "Answer: Redis");
      const asked = new Set(upstream.calls.map(({ model }) => model));
      expect(asked.size).to.equal(3);
      expect(answer.at("models")).to.have.members([...asked]);
    });

    it("are those that the caller names, and no others", async () => {
      const answer = await run("ensemble", [e, d, c, b, a, a, b, c], () => "Answer: Redis");
      expect(upstream.calls).to.have.length(8);
      expect(answer.at("models")).to.deep.equal([e, d, c, b, a, a, b, c]);
    });

    it("are not called when the budget is spent, unless they are free", async () => {
      const { tenancy, gateway } = test.platform;
      const tenantId = await tenancy.ensureTenant("first");
      await gateway.setBudget(tenantId, 0);
      const priced = await run("critique", [a, b], () => "ok");
      expect([priced.status, priced.at("error.code")]).to.deep.equal([402, "budget_exhausted"]);
      expect(upstream.calls).to.deep.equal([]);
      expect((await run("critique", ["meta-llm", "meta-llm"], () => "ok")).status).to.equal(200);
      await gateway.setBudget(tenantId, null);
    });

    it("are all called once more if too few answered, and the caller learns why", async () => {
      const answer = await run("chain-of-thought", [a], () => failure);
      expect(answer.status).to.equal(400);
      expect(upstream.calls).to.have.length(2);
      expect(answer.string("error.message")).to.match(/last failure/);
    });
  });
});

import { expect } from "chai";
import type { Message } from "../../src/gateway/messages.ts";
import { completingOffline, offlineModelId, toParts } from "../../src/gateway/providers/edge/offline-chat.ts";
import type {
  CompletionRequest,
  CompletionResult,
  StreamPart,
  ToolChoice,
  ToolDefinition,
} from "../../src/gateway/providers/provider.ts";
import { cpuTimeOf } from "../support/cpu-time.ts";
import { pictureOf } from "../support/media.ts";

const passages = `The pump moves water through the engine.
Bearings of the pump last about 4,000 hours.
Invoices are paid within thirty days. The office opens at nine.`;

const user = (content: string): Message => ({ role: "user", content });
const system = (content: string): Message => ({ role: "system", content });
function completeOffline(request: CompletionRequest): CompletionResult {
  const work = completingOffline(request);
  let step = work.next();
  while (!step.done) step = work.next();
  return step.value;
}
const ask = (messages: Message[], more: Partial<CompletionRequest> = {}) =>
  completeOffline({ model: offlineModelId, messages, ...more });

function streamed(request: CompletionRequest): StreamPart[] {
  return [...toParts(completeOffline(request))].flat();
}

describe("the offline model's answers", () => {
  it("quote the sentences of the passages that fit the question", () => {
    const result = ask([system(`Answer from these passages.\n${passages}`), user("How long do bearings last?")]);
    expect(result.text).to.equal("Bearings of the pump last about 4,000 hours.");
    expect(result).to.include({ finishReason: "stop", model: offlineModelId });
    expect(result.usage?.inputTokens).to.be.greaterThan(40);
    expect(result.usage?.outputTokens).to.be.within(5, 20);
  });

  it("find passages in the question's own message, and in earlier turns", () => {
    expect(ask([user(`${passages}\n\nWhen does the office open?`)]).text).to.contain("The office opens at nine.");
    const turns: Message[] = [user("My boat is called Merlin."), { role: "assistant", content: "Noted." }];
    expect(ask([...turns, user("What is my boat called?")]).text).to.contain("Merlin");
  });

  it("say so when nothing fits, instead of quoting something else", () => {
    const { text } = ask([system(passages), user("Who discovered penicillin?")]);
    expect(text).to.contain("find nothing about that");
    expect(text).not.to.match(/pump|invoice|office/i);
  });

  it("say what they come from when there is no context at all", () => {
    expect(ask([user("Who discovered penicillin?")]).text).to.contain("switchyard-offline");
    expect(ask([user("Who are you?")]).text).to.contain("switchyard-offline");
    expect(ask([]).text).to.contain("switchyard-offline");
  });

  it("are the same for the same request", () => {
    const messages = [system(passages), user("How long do bearings last?")];
    expect(ask(messages)).to.deep.equal(ask(messages));
  });

  it("end with `length` where maxTokens cuts them, between characters", () => {
    const messages = [system("The pump 🙂🙂🙂🙂🙂🙂 moves water."), user("What does the pump move?")];
    const whole = ask(messages);
    const cut = ask(messages, { maxTokens: 3 });
    expect(cut.finishReason).to.equal("length");
    expect(whole.text.startsWith(cut.text)).to.equal(true);
    expect(cut.text.length).to.be.within(1, 12);
    expect(cut.usage?.outputTokens).to.be.at.most(3);
    for (const maxTokens of [1, 2, 3, 4, 5, 6]) {
      expect(ask(messages, { maxTokens }).text.isWellFormed()).to.equal(true);
    }
    expect(ask(messages, { maxTokens: 1_000 })).to.include({ finishReason: "stop", text: whole.text });
  });

  it("stay quick over 400,000 characters, and over ones made to be slow", function () {
    this.timeout(5_000);
    const long = `${"Pipes carry oil to the tank. ".repeat(14_000)}\nBearings last about 4,000 hours.`;
    expect(ask([system(long), user("How long do bearings last?")]).text).to.contain("4,000 hours");
    for (const piece of [" ", ". ", "a", "?!", "bearings ", ":'", "\n", "# ", "[", "Bearings. "]) {
      const text = piece.repeat(Math.floor(400_000 / piece.length));
      expect(ask([system(text), user("How long do bearings last?")]).finishReason).to.equal("stop");
      expect(ask([user(text)]).finishReason).to.equal("stop");
    }
  });
});

describe("the offline model's pictures", () => {
  const withPictures = (...urls: string[]): Message => ({
    role: "user",
    content: [
      { type: "text", text: "What does the quay have?" },
      ...urls.map((url) => ({ type: "image" as const, url })),
    ],
  });

  it("are described by their format and size, beside what the conversation says", () => {
    const { text } = ask([system("The quay has two cranes."), withPictures(pictureOf(32, 20))]);
    expect(text).to.match(/^The picture is a PNG of 32 by 20 pixels\. .*do not see.* The quay has two cranes\.$/);
    expect(ask([withPictures(pictureOf(32, 20))]).text).to.match(/^The picture is a PNG of 32 by 20 pixels\./);
  });

  it("are named one by one, and none is opened that is behind a link", () => {
    const urls = [pictureOf(4, 4), "https://pictures.example/quay.png?key=secret", "data:image/webp;base64,AAAA"];
    const { text } = ask([withPictures(...urls)]);
    expect(text).to.include("There are 3 pictures. Picture 1 is a PNG of 4 by 4 pixels.");
    expect(text).to.include("Picture 2 is behind a link to pictures.example, which I do not open.");
    expect(text).to.include("Picture 3 is a WebP of a size that it does not report.");
    expect(text).not.to.include("secret");
  });

  it("of earlier turns are no part of the answer", () => {
    const turns: Message[] = [withPictures(pictureOf(4, 4)), { role: "assistant", content: "Noted." }];
    expect(ask([...turns, user("Who are you?")]).text).not.to.include("pixels");
  });
});

describe("the offline model's JSON", () => {
  const read = (schema: Record<string, unknown>, messages: Message[]) => {
    const responseFormat = { type: "json_schema" as const, json_schema: { name: "answer", schema } };
    return JSON.parse(ask(messages, { responseFormat }).text) as unknown;
  };
  it("has the answer as its texts", () => {
    const properties = {
      answer: { anyOf: [{ type: "null" }, { type: "string" }] },
      source: { $ref: "#/$defs/source" },
    };
    const source = { type: "object", properties: { date: { format: "date" }, page: { type: "integer" } } };
    const messages = [system(passages), user("How long do bearings last?")];
    expect(read({ type: "object", properties, $defs: { source } }, messages)).to.deep.equal({
      answer: "Bearings of the pump last about 4,000 hours.",
      source: { date: "1970-01-01", page: 0 },
    });
  });

  it("is the smallest value that the schema allows", () => {
    const properties = {
      count: { type: "integer", minimum: 3, maximum: 5 },
      when: { type: "string", format: "date-time" },
      kind: { const: "pump" },
      level: { enum: ["low", "high"] },
      tags: { type: "array", items: { enum: ["a", "b"] }, minItems: 2, maxItems: 2 },
      code: { type: "string", minLength: 4, maxLength: 6 },
      open: { type: "boolean" },
      nothing: { type: "null" },
    };
    const schema = { type: "object", properties, required: [...Object.keys(properties), "free"] };
    const hello = [system("Hello there, and welcome."), user("Hello there?")];
    expect(read(schema, hello)).to.deep.equal({
      count: 3,
      when: "1970-01-01T00:00:00Z",
      kind: "pump",
      level: "low",
      tags: ["a", "a"],
      code: "Hello ",
      open: false,
      nothing: null,
      free: "Hello there, and welcome.",
    });
  });

  it("is any JSON where no schema is asked for", () => {
    const { text } = ask([system(passages), user("How long do bearings last?")], {
      responseFormat: { type: "json_object" },
    });
    expect(JSON.parse(text)).to.deep.equal({ answer: "Bearings of the pump last about 4,000 hours." });
  });

  it("ends, quickly, for schemas made to be slow", function () {
    this.timeout(20_000);
    const text = user("Bearings is a. ".repeat(26_000));
    const many = (count: number, schema: object) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`bearings ${n}`, schema]));
    const schemas: Record<string, unknown>[] = [
      { $ref: "#" },
      { anyOf: [{ $ref: "#" }] },
      { type: "array", items: { $ref: "#" }, minItems: 1_000_000 },
      { type: "object", properties: many(1_500, { type: "string", format: "email" }) },
      { enum: Array.from({ length: 4_000 }, (_, n) => `x${n}`) },
      { type: "object", properties: many(1_500, { const: "x".repeat(100_000) }) },
      levels(1_000, (references) => ({ allOf: references })),
      levels(1_000, (references) => ({ anyOf: references })),
      levels(1_000, (references) => ({ type: "object", properties: { ...references } })),
      levels(1_000, (references) => ({ type: "array", minItems: 1_000, items: references[0] })),
      wide(1_000),
    ];
    for (const schema of schemas) {
      expect(cpuTimeOf(() => read(schema, [user("Hello")]))).to.be.below(100);
    }
    expect(() => read({ type: "object", properties: many(1_500, { type: "string" }) }, [text])).not.to.throw();
  });

  /** Five levels of schemas, each with `count` references to the next. */
  const levels = (count: number, refer: (references: object[]) => object) => {
    const references = (level: number) => Array.from({ length: count }, () => ({ $ref: `#/$defs/l${level}` }));
    const inner = [1, 2, 3, 4].map((level) => [`l${level}`, refer(references(level + 1))] as const);
    const $defs = Object.fromEntries([...inner, ["l5", { type: "object", properties: { a: { type: "string" } } }]]);
    return { ...refer(references(1)), $defs };
  };

  /** Many schemas that each take over the many properties of one. */
  const wide = (count: number) => {
    const names = Array.from({ length: count }, (_, n) => `n${n}`);
    const properties = Object.fromEntries(names.map((name) => [name, { type: "string" }]));
    const copies = names.map((name) => [name, { allOf: [{ $ref: "#/$defs/all" }] }] as const);
    return {
      allOf: names.map((name) => ({ $ref: `#/$defs/${name}` })),
      $defs: { all: { properties }, ...Object.fromEntries(copies) },
    };
  };
});

describe("the offline model's work on long conversations", () => {
  it("lets others have their turn", () => {
    const sentence = (n: number) => `The pump of station ${n} is loud when it rains. `;
    const passages = Array.from({ length: 8_000 }, (_, n) => sentence(n)).join("");
    const work = completingOffline({
      model: offlineModelId,
      messages: [system(passages), user("Which pump is loud?")],
    });
    let turns = 0;
    while (!work.next().done) turns += 1;
    expect(turns).to.be.at.least(5);
  });

  it("takes the end of a question for what is asked, however many tools there are", () => {
    const tools = Array.from({ length: 1_000 }, (_, n) => ({
      name: `tool_${n}`,
      description: n === 7 ? "weather" : "",
    }));
    const filler = "wo ".repeat(100_000);
    expect(ask([user(`${filler}What is the weather?`)], { tools }).toolCalls[0]?.name).to.equal("tool_7");
    expect(ask([user(`What is the weather? ${filler}`)], { tools }).toolCalls).to.deep.equal([]);
  });
});

describe("the offline model's streams", () => {
  for (const [name, more] of Object.entries({ whole: {}, cut: { maxTokens: 5 } })) {
    it(`give the same as the ${name} answer, word by word`, () => {
      const request = { model: offlineModelId, messages: [system(passages), user("What does the pump do?")], ...more };
      const { text, usage, finishReason } = completeOffline(request);
      const parts = streamed(request);
      const words = parts.flatMap((part) => (part.type === "text-delta" ? [part.text] : []));
      expect(words.join("")).to.equal(text);
      expect(words.length).to.be.greaterThan(2);
      expect(parts.slice(words.length)).to.deep.equal([
        { type: "usage", usage },
        { type: "end", finishReason },
      ]);
    });
  }

  it("give tool calls as the whole answer does", () => {
    const request: CompletionRequest = {
      model: offlineModelId,
      messages: [user("What is the weather in Oslo?")],
      tools: [{ name: "get_weather", description: "The weather of a city" }],
    };
    const [call] = completeOffline(request).toolCalls;
    expect(streamed(request)[0]).to.deep.equal({
      type: "tool-call-delta",
      index: 0,
      id: call?.id,
      name: "get_weather",
      argumentsDelta: call?.arguments,
    });
    expect(streamed(request).at(-1)).to.deep.equal({ type: "end", finishReason: "tool_calls" });
  });
});

describe("the offline model's tool calls", () => {
  const weather: ToolDefinition = {
    name: "get_weather",
    description: "The weather of a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  };
  const clock: ToolDefinition = { name: "read_clock", description: "What time it is" };
  const question = user("What is the weather in Oslo?");
  const calls = (messages: Message[], toolChoice?: ToolChoice, tools = [clock, weather]) =>
    ask(messages, { tools, ...(toolChoice === undefined ? {} : { toolChoice }) }).toolCalls;

  it("ask for the tool that fits, once, and then answer from its result", () => {
    const first = ask([question], { tools: [clock, weather] });
    expect(first).to.include({ text: "", finishReason: "tool_calls" });
    const [call] = first.toolCalls;
    if (!call) throw new Error("no call");
    expect(call.name).to.equal("get_weather");
    expect(JSON.parse(call.arguments)).to.deep.equal({ city: "What is the weather in Oslo?" });
    const after: Message[] = [
      question,
      { role: "assistant", content: "", toolCalls: [call] },
      { role: "tool", toolCallId: call.id, content: "The weather in Oslo is sunny." },
    ];
    for (const toolChoice of ["auto", "required", { name: "get_weather" }] as const) {
      const second = ask(after, { tools: [clock, weather], toolChoice });
      expect(second).to.deep.include({ toolCalls: [], finishReason: "stop", text: "The weather in Oslo is sunny." });
    }
    expect(
      calls([...after, { role: "assistant", content: "Sunny." }, user("And the weather in Rome?")]),
    ).to.have.length(1);
  });

  it("ask for none when none fits, or none is allowed", () => {
    expect(calls([user("Tell me about penguins")])).to.deep.equal([]);
    expect(calls([question], "none")).to.deep.equal([]);
    expect(calls([question], "required", [])).to.deep.equal([]);
  });

  it("ask for one when one is required, and for the named one", () => {
    expect(calls([user("Tell me about penguins")], "required")).to.have.length(1);
    expect(calls([question], { name: "read_clock" }).map(({ name }) => name)).to.deep.equal(["read_clock"]);
    expect(calls([question], { name: "unknown" })).to.deep.equal([]);
  });

  it("fill the arguments of any number of fields with a megabyte at most", () => {
    const required = Array.from({ length: 1_000 }, (_, n) => `field${n}`);
    const properties = Object.fromEntries(required.map((name) => [name, { type: "string" }]));
    const tool = { name: "keep", parameters: { properties, required } };
    const [call] = calls([user("word ".repeat(100_000))], { name: "keep" }, [tool]);
    expect(call?.arguments.length).to.be.below(1.1 * 2 ** 20);
    expect(Object.keys(JSON.parse(call?.arguments ?? ""))).to.deep.equal(required);
  });

  it("fill arguments by their types, and take schemas of any shape", () => {
    const fill = (parameters: Record<string, unknown>, content = "Add 2 and 40 in celsius") => {
      const [call] = calls([user(content)], "required", [{ name: "add", parameters }]);
      return JSON.parse(call?.arguments ?? "null") as unknown;
    };
    const properties = {
      a: { type: "number" },
      b: { type: "integer" },
      unit: { enum: ["kelvin", "celsius"] },
      exact: { type: "boolean" },
    };
    expect(fill({ properties, required: ["a", "b", "unit", "exact"] })).to.deep.equal({
      a: 2,
      b: 40,
      unit: "celsius",
      exact: true,
    });
    expect(fill({ properties: null, required: null })).to.deep.equal({});
    expect(fill({ properties: [], required: "a" })).to.deep.equal({});
    expect(fill({ properties: { a: null, b: { enum: "x" } }, required: ["a", "b", 3] }, "hi 5")).to.have.keys("a", "b");
  });
});

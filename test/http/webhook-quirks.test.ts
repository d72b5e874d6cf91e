import { expect } from "chai";
import { openWorkflowHarness, stepsOf, type WorkflowHarness } from "../support/workflow-harness.ts";

const big =
  '{"id":12345678901234567890,"small":9007199254740993,"safe":9007199254740991,"price":10.0,"e":1e30,"list":[-9007199254740995]}';

describe("webhooks to receivers with ways of their own", function () {
  this.timeout(60_000);
  let harness: WorkflowHarness;
  before(async () => {
    harness = await openWorkflowHarness();
    const { site } = harness;
    site.on("/big", (_, response) => void response.writeHead(200, { "content-type": "application/json" }).end(big));
    site.on(
      "/echo",
      ({ body }, response) => void response.writeHead(200, { "content-type": "application/json" }).end(body),
    );
    for (const [path, type, bytes] of [
      ["/latin1", "application/json; charset=iso-8859-1", Buffer.from('{"name":"Größe"}', "latin1")],
      ["/cp1252", "text/plain; charset=windows-1252", Buffer.from([0x47, 0x72, 0xf6, 0xdf, 0x65, 0x20, 0x80])],
      ["/utf16", 'text/plain; charset="UTF-16LE"', Buffer.from("Größe", "utf16le")],
      ["/sjis", "text/plain;charset=Shift_JIS", Buffer.from([0x93, 0xfa, 0x96, 0x7b])],
      ["/odd", "text/plain; charset=no-such", Buffer.from("Größe")],
      ["/none", "text/plain", Buffer.from("Größe")],
      ["/bom", "application/json", Buffer.from('\ufeff{"a":1}')],
    ] as const) {
      site.on(path, (_, response) => void response.writeHead(200, { "content-type": type }).end(bytes));
    }
  });
  after(() => harness?.close());

  const hook = (path: string, more: object = {}) => ({
    type: "webhook",
    url: `${harness.site.origin}${path}`,
    method: "POST",
    ...more,
  });

  it("keep the digits of whole numbers through answers, expressions, bodies and inputs", async () => {
    const { member, site } = harness;
    const copy = (value: string) => `{{ ${value} }}`;
    const of = "steps.first.output.body";
    const body = {
      id: copy(`${of}.id`),
      small: copy(`${of}.small`),
      safe: copy(`${of}.safe`),
      all: copy(of),
      mine: copy("input.id"),
      written: 0,
    };
    const steps = [hook("/big", { id: "first" }), hook("/echo", { body })];
    const raw = JSON.stringify({ name: "Digits", steps }).replace('"written":0', '"written":9007199254740997');
    const headers = { "content-type": "application/json" };
    const made = await member.request("POST", "/workflows", { raw, headers });
    expect(made.status, made.text).to.equal(201);
    const started = await member.request("POST", `/workflows/${made.string("workflowId")}/execute`, {
      raw: '{"input":{"id":9007199254740999,"n":7.0}}',
      headers,
    });
    const run = await harness.reach(made.string("workflowId"), started.string("runId"), "completed", "failed");
    expect(run.at("status"), run.text).to.equal("completed");
    const sent = site.requests.filter(({ path }) => path === "/echo").at(-1)?.body ?? "";
    for (const digits of [
      "12345678901234567890",
      "9007199254740993",
      "9007199254740997",
      "9007199254740999",
      "-9007199254740995",
    ]) {
      expect(sent).to.contain(digits);
    }
    expect(JSON.parse(sent)).to.include({ id: "12345678901234567890", safe: 9007199254740991 });
    expect(run.at("steps[0].output.body.list")).to.deep.equal(["-9007199254740995"]);
    expect(run.at("input.id")).to.equal("9007199254740999");
  });

  for (const [path, body] of [
    ["/latin1", { name: "Größe" }],
    ["/cp1252", "Größe €"],
    ["/utf16", "Größe"],
    ["/sjis", "日本"],
    ["/odd", "Größe"],
    ["/none", "Größe"],
    ["/bom", { a: 1 }],
  ] as const) {
    it(`read an answer in its own charset: ${path.slice(1)}`, async () => {
      const run = await harness.run([hook(path)]);
      expect(run.at("steps[0].output.body"), run.text).to.deep.equal(body);
    });
  }

  it("say which host does not answer, and why", async () => {
    const { host } = harness.site;
    const errorOf = async (url: string, input?: unknown) => {
      const made = await harness.create([
        { type: "webhook", url, method: "GET", retry: { attempts: 1, backoffMs: 0 } },
      ]);
      const run = await harness.reach(made, await harness.start(made, input), "failed", "completed");
      return stepsOf(run)[0]?.error?.message;
    };
    harness.site.on("/cut", (_, response) => void response.socket?.destroy());
    harness.site.on("/gone", (_, response) => void response.writeHead(410).end());
    expect(await errorOf("https://no-such-host.invalid/x")).to.match(/no-such-host\.invalid/);
    expect(await errorOf(`http://${host}/cut`)).to.equal(
      `${host} closed the connection before its answer was complete.`,
    );
    expect(await errorOf(`http://${host}/gone`)).to.equal(`The receiver, ${host}, answered 410.`);
    expect(await errorOf(`http://${host}/orders/{{ input.id }}`, { id: ".." })).to.match(/\.\./);
  });
});

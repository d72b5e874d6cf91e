import { setImmediate } from "node:timers/promises";
import { expect } from "chai";
import { guardKinds } from "../../src/guards/guard.ts";
import { makePresence } from "../../src/isolation/pace.ts";
import { makeGuardPolicies, takeBy } from "../../src/tenancy/guard-policies.ts";

const rules = Object.fromEntries(guardKinds.map((kind) => [kind, { input: "mask", output: "mask", log: "mask" }]));
const line = "The pump was bled on 2024-03-12, and once more on 2024-05-02; ask 4111 or 4112 about it.\n";

describe("a tenant's own guards", () => {
  const presence = makePresence();
  const tenant = { name: "t", createdAt: new Date(), guards: { rules } };
  const policies = makeGuardPolicies(
    { find: async (_id: string) => ({ _id, ...tenant }), setGuards: async () => undefined },
    { presence },
  );
  const guardOf = async (tenantId: string) => {
    const guard = await policies.forCall({ tenantId });
    if (guard === undefined) throw new TypeError("nothing is guarded");
    return guard;
  };

  it("let others have their turn while they read a long text", async () => {
    const guard = await guardOf("ten_a");
    let turns = 0;
    let isOver = false;
    const others = (async () => {
      while (!isOver) {
        await setImmediate();
        turns += 1;
      }
    })();
    const text = line.repeat(Math.ceil(400_000 / line.length));
    const [taken, whole] = await Promise.all([
      takeBy(guard, "input", { text, more: [`${text}219-09-9999`] }),
      guard.take([{ place: "output", field: "text", text }]),
    ]);
    isOver = true;
    await others;
    expect(taken.more[0]?.endsWith("[SSN_1]")).to.equal(true);
    expect(whole[0]?.length).to.equal(text.length);
    expect(turns).to.be.above(100);
  }).timeout(30_000);

  it("read the texts of a tenant that sends many in its own turns, while another works here", async () => {
    presence.begins("ten_a");
    presence.begins("ten_b");
    const long = line.repeat(Math.ceil(60_000 / line.length));
    const ended: string[] = [];
    const read = async (tenantId: string, text: string) => {
      await (await guardOf(tenantId)).take([{ place: "input", field: "text", text }]);
      ended.push(tenantId);
    };
    await Promise.all([...Array.from({ length: 12 }, () => read("ten_a", long)), read("ten_b", long.slice(0, 20_000))]);
    expect(ended.indexOf("ten_b")).to.be.at.most(2);
  }).timeout(30_000);

  it("read what a log keeps of a text, however long that is, and hide the value at its end", async () => {
    const guard = await guardOf("ten_a");
    const text = `${line.repeat(300).slice(0, 19_990)} 219-09-9999 ${line.repeat(20_000)}`;
    const logged = guard.toLogged(text, "toolOutput", { most: 20_000 });
    expect(logged).to.match(/ \[SSN_\d\]?$/);
    expect(logged).not.to.include("219-");
    expect(guard.toLogged("219-09-9999", "input", { isGuarded: true })).to.equal("219-09-9999");
  });
});

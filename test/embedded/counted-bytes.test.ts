import { expect } from "chai";
import { openStore } from "../../src/store/store.ts";
import { inFolder, quiet, startIn } from "./support.ts";

const later = new Date(Date.now() + 30 * 86_400_000);

describe("bytes that are counted later", () => {
  const opening = async (work: (open: () => ReturnType<typeof openStore>) => Promise<void>) =>
    inFolder(async (folder) => {
      const server = await startIn(folder);
      try {
        await work(() => openStore({ url: server.url, db: "counted", timeoutMs: 5_000, logger: quiet }));
      } finally {
        await server.close();
      }
    });

  it("are in the next sum of their tenant, with those that were counted at once", async () => {
    await opening(async (open) => {
      const { use, close } = await open();
      const add = (tenantId: string, bytes: number, expiresAt?: Date) =>
        use.addLater({ tenantId, kind: "sources", bytes, ...(expiresAt && { expiresAt }) });
      add("ten_1", 100, later);
      await use.settled();
      add("ten_1", 20, later);
      add("ten_2", 3, later);
      add("ten_1", 4);
      expect(await use.bytes("ten_1", "sources")).to.equal(124);
      expect(await use.bytes("ten_2", "sources")).to.equal(3);
      await use.add({ tenantId: "ten_1", kind: "sources", bytes: -100, expiresAt: later });
      expect(await use.bytes("ten_1", "sources")).to.equal(24);
      await close();
    });
  });

  it("are written before the store is closed", async () => {
    await opening(async (open) => {
      const first = await open();
      for (const bytes of [100, 20]) {
        first.use.addLater({ tenantId: "ten_1", kind: "sources", bytes, expiresAt: later });
        if (bytes === 100) await first.use.settled(); // so that the other waits for its turn
      }
      await first.close();
      const second = await open();
      expect(await second.use.bytes("ten_1", "sources")).to.equal(120);
      await second.close();
    });
  });
});

import { once } from "node:events";
import Koa from "koa";

/** The anchor of the idle API: Koa that responds, and nothing else. */
const app = new Koa();
app.use((ctx) => {
  ctx.body = "idle";
});
const server = app.listen(0);
await once(server, "listening");
process.send?.({ type: "ready" });
process.on("SIGTERM", () => process.exit(0));
process.on("disconnect", () => process.exit(0));

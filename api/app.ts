import Koa from "koa";
import type { Platform } from "../src/platform.ts";
import { allRoutes } from "./all-routes.ts";
import type { RequestState } from "./context.ts";
import { answerErrors } from "./middleware/errors.ts";
import { requestScope } from "./middleware/request-id.ts";
import { mountRoutes } from "./mount.ts";
import { serveOperatorPages } from "./operator-pages.ts";
import type { AnyRoute } from "./route.ts";
import { documentationRoutes } from "./routes/documentation.ts";

/** The HTTP application over a platform, without a listening socket. `routes` defaults to all of the product's. */
export function createApp(platform: Platform, options: { routes?: readonly AnyRoute[] } = {}): Koa<RequestState> {
  const { logger } = platform;
  const routes = options.routes ?? allRoutes;
  const app = new Koa<RequestState>();
  app.on("error", (error: unknown) => logger.debug({ err: error }, "the connection failed")); // the response is already written
  app.use(requestScope(platform));
  app.use(answerErrors(logger));
  app.use(serveOperatorPages(platform));
  mountRoutes(app, platform, [...routes, ...documentationRoutes(routes)]);
  return app;
}

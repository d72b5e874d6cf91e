import { startMongoServer } from "../../src/embedded/mongo/server.ts";
import { quiet } from "./support.ts";

/** A process of its own that hosts the server, for tests that kill it: `node host-process.ts DATA_FILE SOCKET`. */
const [dataFile, socketPath] = process.argv.slice(2);
if (dataFile === undefined || socketPath === undefined) throw new TypeError("needs a data file and a socket");
const { url } = await startMongoServer({ dataFile, socketPath, logger: quiet });
process.send?.({ url });

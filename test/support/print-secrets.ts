import { openServiceSecrets } from "../../src/embedded/service-secrets.ts";

/** A process that opens the secrets of a data folder, sends them to its parent, and ends. */
process.send?.(await openServiceSecrets(process.argv[2] ?? ""), () => process.disconnect());

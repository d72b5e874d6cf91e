import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

/** Where this process and those that it starts keep compiled modules: starting a worker takes two thirds of the time. */
const folder = fileURLToPath(new URL("../../node_modules/.cache/switchyard-tests", import.meta.url));

enableCompileCache(folder);
process.env.NODE_COMPILE_CACHE ??= folder;

/** The environment of a process that is to have nothing of this one's but the programs and the compiled modules. */
export const bareEnvironment = { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE };

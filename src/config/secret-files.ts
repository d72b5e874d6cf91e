import { readFileSync } from "node:fs";

type Environment = Record<string, string | undefined>;

const secrets = /_API_KEY$|_HEADERS$|^(ADMIN_TOKEN|MASTER_KEY|MONGODB_URL|REDIS_URL)$/;

/** The variable that names the file of a setting that holds a secret; undefined for other settings. */
export const fileSettingOf = (name: string) => (secrets.test(name) ? `${name}_FILE` : undefined);

/**
 * The environment with the secrets among these settings that it names files for, as an orchestrator mounts them. A value of
 * the setting itself goes first, so that a process can hand it to those that it starts. Spaces and line ends around it are not
 * part of a secret. `problems`: a sentence for each file that cannot be read or is empty.
 */
export function withSecretFiles(env: Environment, names: readonly string[]) {
  const problems: string[] = [];
  const read = (name: string): [string, string][] => {
    const setting = fileSettingOf(name);
    const path = setting && env[setting];
    if (!path || env[name]) return [];
    try {
      const text = readFileSync(path, "utf8").trim();
      if (text === "") problems.push(`${setting}: ${path} is empty`);
      return [[name, text]];
    } catch (error) {
      if (!(error instanceof Error && "code" in error)) throw error;
      problems.push(`${setting}: ${path} cannot be read (${error.code})`);
      return [];
    }
  };
  return { env: { ...env, ...Object.fromEntries(names.flatMap(read)) } as Environment, problems };
}

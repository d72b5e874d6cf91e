import { InvalidArgumentError } from "commander";

/** How questions are searched: a setting of the command, as `hybrid,rewrite=gpt-5-mini,rerank`. */
export type Setting = {
  name: string;
  mode: string;
  rewrite?: true | { model: string };
  rerank?: true | { model: string };
  minCoverage: number;
};

const modes = ["hybrid", "vector", "lexical"];

/** @throws InvalidArgumentError for a setting that cannot be. */
export function toSetting(name: string): Setting {
  const setting: Setting = { name, mode: "hybrid", minCoverage: 0 };
  for (const part of name.split(",")) {
    const [word = "", value] = part.trim().split("=");
    if (modes.includes(word)) setting.mode = word;
    else if (word === "rewrite" || word === "rerank") setting[word] = value === undefined ? true : { model: value };
    else if (word === "minCoverage" && Number(value) >= 0 && Number(value) <= 1) setting.minCoverage = Number(value);
    else
      throw new InvalidArgumentError(
        `${part}: take ${modes.join(", ")}, rewrite[=model], rerank[=model], minCoverage=0.5`,
      );
  }
  return setting;
}

/** What must hold of the last setting, as `recall@5=0.8`. */
export type Least = { name: string; value: number };

/** @throws InvalidArgumentError for anything else. */
export function toLeast(text: string, former: Least[] = []): Least[] {
  const [name = "", value] = text.split("=");
  if (!(Number(value) >= 0 && Number(value) <= 1) || !/^(?:recall@(?:1|5|10|30)|mrr|kept|refused|correct)$/.test(name))
    throw new InvalidArgumentError(
      "give recall@1, recall@5, recall@10, recall@30, mrr, kept, refused or correct, and a share",
    );
  return [...former, { name, value: Number(value) }];
}

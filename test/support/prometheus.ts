export type Sample = { name: string; labels: Record<string, string>; value: number };
export type Scrape = {
  /** The type of each metric by its name. */
  types: Map<string, string>;
  samples: Sample[];
  /** The sum of the samples of a name whose labels include these; 0 when there are none. */
  sum(name: string, labels?: Record<string, string>): number;
  text: string;
};

/** Reads Prometheus' text format 0.0.4, and throws at a line that is not of it. */
export function parseMetrics(text: string): Scrape {
  const types = new Map<string, string>();
  const samples: Sample[] = [];
  for (const line of text.split("\n")) {
    const type = /^# TYPE (\S+) (counter|gauge|histogram|summary)$/.exec(line);
    if (type?.[1] && type[2]) types.set(type[1], type[2]);
    if (line === "" || line.startsWith("#")) continue;
    const sample = /^([a-z_:][\w:]*)(?:\{(.*)\})? (\S+)$/i.exec(line);
    if (!sample?.[1]) throw new Error(`not a sample: ${line}`);
    const pairs = [...(sample[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)];
    const labels = Object.fromEntries(pairs.map(([, name, value]) => [name, value]));
    samples.push({ name: sample[1], labels, value: Number(sample[3]) });
  }
  const sum = (name: string, labels: Record<string, string> = {}) =>
    samples
      .filter(
        (each) => each.name === name && Object.entries(labels).every(([key, value]) => each.labels[key] === value),
      )
      .reduce((total, { value }) => total + value, 0);
  return { types, samples, sum, text };
}

/** Scrapes a URL; `token` is the operator's. */
export async function scrape(url: string, token?: string): Promise<Scrape> {
  const response = await fetch(url, { headers: token === undefined ? {} : { authorization: `Bearer ${token}` } });
  if (response.status !== 200) throw new Error(`${url} answered ${response.status}`);
  const type = response.headers.get("content-type");
  if (type !== "text/plain; version=0.0.4; charset=utf-8") throw new Error(`${url} is of the type ${type}`);
  return parseMetrics(await response.text());
}

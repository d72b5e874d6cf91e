import { type Attack, flood } from "../attack.ts";

/** Attacks with the key that stands in the victim's own page. */
export const widgetAttacks: readonly Attack[] = [
  {
    name: "widget-flood",
    about: "a widget key, 100 calls a second from one address",
    run: ({ visitor, signal }) => flood(signal, 16, () => visitor.call("POST", "/ai/chat", { json: {} })),
  },
  {
    name: "widget-large",
    about: "a widget key with bodies of 3.8 MB",
    async run({ visitor, signal }) {
      const properties = Object.fromEntries(Array.from({ length: 330_000 }, (_, n) => [`k${n}`, 1]));
      const json = {
        messages: [{ role: "user", content: "Hello." }],
        tools: [{ type: "function", function: { name: "t", parameters: { properties } } }],
      };
      await flood(signal, 4, () => visitor.call("POST", "/ai/chat", { json }));
    },
  },
];

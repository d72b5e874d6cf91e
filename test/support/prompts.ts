import type { Message } from "../../src/gateway/messages.ts";

/** Paragraphs as people write them: mostly plain sentences, with a name, a number or a quotation here and there. */
const paragraphs = [
  "The garden behind the house had been left alone for years. Brambles covered the old path, and nobody could say where the beds had once been. We began by cutting a way through to the back wall. The work was slow, since every root seemed to hold on to another one. In the end it took 14 weekends. What came to light was better than anyone had hoped. A row of pear trees stood there, still bearing fruit. The soil under the leaves was dark and loose, and it smelled of rain.",
  "A good kitchen knife is kept sharp and dry. Most people wait far too long before they sharpen theirs. A dull edge slips, and a slipping edge is what cuts fingers. It helps to draw the blade over a steel before each use. The steel does not take anything away; it only straightens the edge again. Twice a year the knife wants a real stone. Begin with the coarse side and end with the fine one. Keep the angle steady, which matters more than the angle itself. Wipe the blade afterwards and never leave it in the sink.",
  "The team met every morning in the small room at the end of the corridor. Nobody sat down, because sitting made the meetings longer. Each person said what had been done and what stood in the way. Problems were not solved there; they were given to whoever could solve them. Maria Lindqvist wrote them on the board in green. After a few weeks the board filled up more slowly. People had begun to talk to each other before the meeting. That was, she said later, what the meeting had been for all along.",
  "Trains in the mountains run late in winter. Snow collects in the cuttings and has to be cleared by hand where the machines cannot reach. The crews start long before daylight. They carry shovels, lamps and a radio, and they walk along the line in pairs. An avalanche gives little warning in the dark. The last great one came down in 1951 and closed the valley for a month. Since then there are galleries over the worst places. They were expensive, and nobody has regretted them.",
  "Bread needs little: flour, water, salt and time. Time is the part that most recipes leave out. A dough that rests overnight tastes of more than one that is hurried. The gluten forms by itself while it waits, so that there is hardly any kneading to do. The crust wants a hot oven and some steam. A heavy pot with a lid gives both. Let the loaf cool before it is cut, however hard that is. Warm bread tears, and the crumb turns to paste under the knife.",
  "Libraries were once quiet because talking was forbidden. They are quiet now because people want them to be. Where else can one sit for a whole day without buying anything? The new branch on the harbour has a workshop, a studio and a room for children. It also has long tables by the windows, and these are taken first. Some come to study and some come to be warm. The staff make no difference between them. A library, they say, is a place and not a pile of books.",
  "Small boats are handled by feeling as much as by rule. The wind tells what it is about to do by the look of the water. Dark patches move across the surface and arrive a moment later as gusts. A sailor who watches them is ready in time. One who watches the sail is always a little late. It is the same with steering: look far ahead, and the hand follows. The beginners of our club learn this on a dinghy of 3.5 metres. It forgives nearly everything, and it teaches quickly.",
  "Old maps are wrong in ways that tell a great deal. A coast that nobody had walked is drawn with confidence, and a lake appears where there was only a rumour. The makers copied from each other, errors and all. Islands were seen once in fog and stayed on paper for centuries. To correct a map was to doubt the man who had drawn it. The changes came with instruments and with patience. Jorge Almeida showed us one with a mountain that does not exist. It had been climbed, according to its legend, twice.",
  "Repairing things has gone out of fashion and is coming back. In many towns there are evenings where people bring what is broken. Others bring tools and the patience to use them. Most lamps need only a new cord. Most toasters need only to be emptied of crumbs. What cannot be mended is taken apart, so that at least one learns how it was made. Children are especially fond of that. The organisers count what was saved, but they say that the talking matters more.",
  "Learning an instrument late in life is not hopeless. The fingers are slower, but the mind is more patient. A grown person practises with intention, and a child mostly does not. Short sessions are better than long ones. The piece that seemed impossible on Monday is merely difficult by the end of the week. Nobody has to perform in front of an audience. The neighbours may disagree. What remains is an hour in the day that belongs to no one else, and that is worth the noise.",
];

const followUps = [
  "Thank you. Could you go on and tell me a little more about that, please?",
  "I see. That makes sense to me. And what would you say comes after that?",
  "Interesting. I had always thought of it in another way. Please go on.",
];

const question = "What should I remember of all this, in one sentence?";

const code = `def settle(call, usage):
    # one record a call, however it ended
    if call.settled:
        return call.record
    cost = usage.input * 0.25 + usage.output * 1.25
    call.record = {"tokens": usage.input + usage.output, "cost": round(cost, 6)}
    call.settled = True
    return call.record
`;

const table = (rows: number) =>
  [
    "| port | ships | tonnes |",
    "|---|---|---|",
    ...Array.from({ length: rows }, (_, n) => `| harbour ${n} | ${n * 7 + 3} | ${n * 991} |`),
  ].join("\n");

const json = (items: number) =>
  JSON.stringify(
    Array.from({ length: items }, (_, n) => ({
      id: n,
      name: `item ${n}`,
      tags: ["a", "b"],
      price: n * 1.5,
      ok: n % 2 === 0,
    })),
    null,
    2,
  );

export type TestPrompt = { name: string; kind: "prose" | "history" | "code" | "table" | "json"; messages: Message[] };

const user = (content: string): Message => ({ role: "user", content });
const assistant = (content: string): Message => ({ role: "assistant", content });
const pick = (from: number, count: number) =>
  Array.from({ length: count }, (_, n) => paragraphs[(from + n * 3) % paragraphs.length] ?? "");

/** Long prompts of five kinds, each with a system prompt and a question at its end. */
export const longPrompts: readonly TestPrompt[] = [
  ...paragraphs.map((_, n): TestPrompt => {
    const text = pick(n, 5 + (n % 3)).join(n % 2 === 0 ? "\n\n" : "\n\n\n\n");
    return { name: `prose ${n}`, kind: "prose", messages: toChat([user(text), assistant("I have read it.")]) };
  }),
  ...paragraphs.map((_, n): TestPrompt => {
    const turns = pick(n, 7).flatMap((text, turn) => [user(followUps[turn % followUps.length] ?? ""), assistant(text)]);
    return { name: `history ${n}`, kind: "history", messages: toChat(turns) };
  }),
  ...[8, 14, 20, 30].map((copies, n): TestPrompt => {
    const blocks = Array.from({ length: copies }, (_, k) => code.replaceAll("settle", `settle_${n}_${k}`)).join("\n");
    return {
      name: `code ${n}`,
      kind: "code",
      messages: toChat([user(`Here is the module:\n\`\`\`python\n${blocks}\`\`\`\n`)]),
    };
  }),
  ...[30, 60, 90].map(
    (rows): TestPrompt => ({
      name: `table of ${rows}`,
      kind: "table",
      messages: toChat([user(`The figures:\n${table(rows)}\n`)]),
    }),
  ),
  ...[20, 40, 60].map(
    (items): TestPrompt => ({
      name: `json of ${items}`,
      kind: "json",
      messages: toChat([user(`The data:\n${json(items)}\n`)]),
    }),
  ),
];

function toChat(turns: Message[]): Message[] {
  return [{ role: "system", content: "You answer   briefly.\n\n\n\nYou never guess." }, ...turns, user(question)];
}

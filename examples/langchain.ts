// Asks Switchyard through LangChain: passages by a retriever, a chat by ChatOpenAI, vectors by OpenAIEmbeddings.
// npm start, npm run ingest -- examples/manuals, and then: URL=… KEY=… node examples/langchain.ts "When is the P-100 bled?"
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
import { SwitchyardRetriever } from "./retriever.ts";

const { URL: url = "http://127.0.0.1:3000", KEY: apiKey = "" } = process.env;
const embeddingModel = process.env.EMBEDDING_MODEL ?? "switchyard-offline-embedding";
const question = process.argv[2] ?? "When is the P-100 bled?";
const client = { apiKey, configuration: { baseURL: `${url}/v1` } };

const passages = await new SwitchyardRetriever({ url, apiKey, topK: 3 }).invoke(question);
for (const { metadata } of passages) console.log(`${metadata.score.toFixed(3)}  ${metadata.heading ?? metadata.title}`);

const context = passages.map(({ pageContent }) => pageContent).join("\n\n");
const chat = new ChatOpenAI({ ...client, model: "meta-llm" });
const answer = await chat.invoke([
  ["system", `Answer from these passages only.\n\n${context}`],
  ["user", question],
]);
const { total_tokens: tokens }: { total_tokens?: number } = answer.usage_metadata ?? {};
console.log(`\n${answer.text}\n${tokens} tokens, ${answer.id}`);

const embeddings = new OpenAIEmbeddings({ ...client, model: embeddingModel });
const [asked = [], found = []] = await embeddings.embedDocuments([question, passages[0]?.pageContent ?? ""]);
const likeness = asked.reduce((sum, value, at) => sum + value * (found[at] ?? 0), 0);
console.log(`\nQuestion and first passage, as vectors of ${asked.length} numbers: ${likeness.toFixed(3)} alike`);

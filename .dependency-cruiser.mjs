/** Import directions; `test/architecture` runs the same rules. Each comment names what to import instead. */
const areas = "agents|automation|batches|composite|definitions|gateway|mcp-tools|rag|surfaces|tenancy|workflows";
/** Files of the gateway's folders that other areas call, besides its top level. */
const gatewayDoors = "chat/(request|response)|money/budget";

/** The rooms of the house from the ground up. A file imports from its own room and from rooms on lower floors. */
const floors = [
  ["src/lib/"],
  ["src/observe/", "src/isolation/", "src/run-process.ts", "src/guards/"],
  ["src/net/", "src/store/", "src/embedded/"],
  ["src/config/"],
  ["src/jobs/", "src/tenancy/"],
  ["src/gateway/"],
  ["src/definitions/"],
  ["src/rag/", "src/composite/", "src/webhooks/"],
  ["src/workflows/", "src/vector-stores/"],
  ["src/agents/"],
  ["src/approvals/", "src/automation/"],
  ["src/run-models/"],
  ["src/surfaces/"],
  ["src/batches/"],
  ["src/areas.ts"],
  ["src/platform.ts"],
  ["src/mcp-tools/", "workers/", "scripts/"],
  ["api/"],
];
const anyOf = (rooms) => `^(${rooms.join("|").replaceAll(".", "\\.")})`;

/** A rule for each room: nothing on its own floor but itself, and nothing above. */
const roomsImportDownwards = floors.flatMap((floor, index) =>
  floor.map((room) => ({
    name: "rooms-import-downwards",
    comment: "Pass the value in from above, or declare what both rooms share in the lower one.",
    severity: "error",
    from: { path: anyOf([room]) },
    to: {
      path: anyOf(
        floors
          .slice(index)
          .flat()
          .filter((other) => other !== room),
      ),
    },
  })),
);

export default {
  forbidden: [
    ...roomsImportDownwards.filter(({ to }) => to.path !== anyOf([])),
    {
      name: "no-cycles",
      comment: "Move what both need into a file of its own; a type makes a cycle too.",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "api-and-workers-apart",
      comment: "Put what both hosts need into src.",
      severity: "error",
      from: { path: "^(api|workers)/" },
      to: { path: "^(api|workers|scripts|test)/", pathNot: "^$1/" },
    },
    {
      name: "nobody-imports-scripts-or-tests",
      comment: "Put what is shared into src. The domain is called by its hosts: pass what it needs as an argument.",
      severity: "error",
      from: { path: "^(src|api|workers)/" },
      to: { path: "^(scripts|test)/" },
    },
    {
      name: "koa-under-api",
      comment: "Return a Reply from a route's handler (api/route.ts).",
      severity: "error",
      from: { path: "^(src|workers)/" },
      to: { path: "node_modules/(koa|@koa|@bull-board)/" },
    },
    {
      name: "bullmq-in-its-places",
      comment: "Use src/jobs/jobs.ts to submit, and workers/run-job.ts to run.",
      severity: "error",
      from: { path: "^(src|api|workers)/", pathNot: "^(src/jobs/queue-client\\.ts|workers/)" },
      to: { path: "node_modules/bullmq/", dependencyTypesNot: ["type-only"] },
    },
    {
      name: "mongodb-under-store",
      comment: "Add a function to the collection's file in src/store.",
      severity: "error",
      from: { path: "^(src|api|workers)/", pathNot: "^src/store/" },
      to: { path: "node_modules/mongodb/", dependencyTypesNot: ["type-only"] },
    },
    {
      name: "bson-where-bytes-are",
      comment: "The stores of src/store hide BSON.",
      severity: "error",
      from: { path: "^(src|api|workers)/", pathNot: "^src/(store|embedded)/" },
      to: { path: "node_modules/bson/", dependencyTypesNot: ["type-only"] },
    },
    {
      name: "langchain-in-its-places",
      comment: "Agents run on LangChain; a tool gets its `tool` handed in.",
      severity: "error",
      from: { path: "^(src|api|workers)/", pathNot: "^src/agents/" },
      to: { path: "node_modules/(langchain|@langchain)/" },
    },
    {
      name: "metrics-in-their-place",
      comment: "Add a function to src/observe/metrics, and count by it.",
      severity: "error",
      from: { path: "^(src|api|workers)/", pathNot: "^src/observe/metrics/" },
      to: { path: "node_modules/prom-client/" },
    },
    {
      name: "traces-in-their-place",
      comment: "Use src/observe/tracing.ts.",
      severity: "error",
      from: { path: "^(src|api|workers)/", pathNot: "^src/observe/(start-)?tracing\\.ts$" },
      to: { path: "node_modules/@opentelemetry/" },
    },
    {
      name: "areas-keep-their-inner-folders",
      comment: "Import a top-level file of the other area, or a door of the gateway that is named above.",
      severity: "error",
      from: { path: `^src/(${areas})/`, pathNot: "^src/(surfaces|batches)/" },
      to: {
        path: `^src/(${areas})/[^/]+/`,
        pathNot: ["^src/$1/", `^src/gateway/(${gatewayDoors})\\.ts$`, "^src/(surfaces|batches)/[^/]+/[^/]+\\.ts$"],
        dependencyTypesNot: ["type-only"],
      },
    },
    {
      name: "config-is-read-by-roots",
      comment: "Take the part of Config that you need as an argument; its type is free to import.",
      severity: "error",
      from: { path: "^(src|api|workers)/", pathNot: "^(src/run-process\\.ts|api/server\\.ts|workers/main\\.ts)$" },
      to: { path: "^src/config/config\\.ts$", dependencyTypesNot: ["type-only"] },
    },
    {
      name: "embedded-behind-the-platform",
      comment: "Open the platform: it finds the services (src/platform.ts).",
      severity: "error",
      from: { path: "^(src|api|workers)/", pathNot: "^src/(platform\\.ts|embedded/)" },
      to: { path: "^src/embedded/" },
    },
    {
      name: "no-orphans",
      comment: "Delete it, or import it where it is used.",
      severity: "error",
      from: { orphan: true, path: "^(src|api|workers)/", pathNot: "^api/pages/" }, // which browsers load
      to: {},
    },
  ],
  options: {
    parser: "swc",
    tsPreCompilationDeps: true, // imports of types too,
    doNotFollow: { path: "node_modules" },
    exclude: { path: "^(scripts/demo/documents)" },
    enhancedResolveOptions: { extensions: [".ts", ".mjs", ".js"], conditionNames: ["import", "node", "default"] },
  },
};

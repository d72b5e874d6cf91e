# The API and the workers, from one image: TypeScript runs as it is, so there is nothing to build.
# The Node of the image is the one that package.json pins; a test holds the two together.
ARG NODE_VERSION=24.21.0

FROM node:${NODE_VERSION}-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# As locked, without what only developers need. No install scripts: native parts come prebuilt, and Node is there already.
RUN npm install --no-save --omit=dev --ignore-scripts --no-audit --no-fund --loglevel=error

FROM node:${NODE_VERSION}-bookworm-slim
ENV NODE_ENV=production \
    HOST=0.0.0.0 \
    PORT=3000 \
    METRICS_PORT=9464
WORKDIR /app
COPY --from=packages /app/node_modules ./node_modules
COPY package.json ./
COPY src ./src
COPY api ./api
COPY workers ./workers
COPY scripts ./scripts
# What the processes load in the place of the TypeScript, while the tree can still be written.
RUN node scripts/start/stripped-types.mjs
USER node
EXPOSE 3000 9464
HEALTHCHECK --interval=10s CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.METRICS_PORT}/healthz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# A worker is the same image with the command `node --import=./scripts/start/stripped-types.mjs --initial-old-space-size=200 workers/main.ts`.
CMD ["node", "--import=./scripts/start/stripped-types.mjs", "--max-semi-space-size=16", "--initial-old-space-size=200", "--v8-pool-size=0", "api/server.ts"]

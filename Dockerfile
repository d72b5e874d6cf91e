# The API and the workers, from one image: TypeScript runs as it is, so there is nothing to build.
# The Node of the image is the one that package.json pins; a test holds the two together.
ARG NODE_VERSION=24.21.0

FROM node:${NODE_VERSION}-bookworm-slim AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# As locked, without what only developers need. No install scripts: native parts come prebuilt, and Node is there already.
# Without `--omit=optional` npm keeps developers' packages that others name as optional peers: TypeScript, openai.
# What no process loads goes too: types, source maps, and js-tiktoken's tables, of which langchain loads the `lite` part alone.
RUN npm install --no-save --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund --loglevel=error && \
    find node_modules -type f \( -name "*.d.ts" -o -name "*.d.mts" -o -name "*.d.cts" -o -name "*.map" \) -delete && \
    rm -rf node_modules/js-tiktoken/dist/ranks node_modules/js-tiktoken/dist/index.*

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
USER node
EXPOSE 3000 9464
# By bash alone, since a Node for each check takes more processor time than an idle worker. A start may wait for the store's
# indexes and for another process that changes the data.
HEALTHCHECK --interval=5s --timeout=5s --start-period=600s CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/$METRICS_PORT && printf 'GET /healthz HTTP/1.0\\r\\n\\r\\n' >&3 && read -r line <&3 && [[ $line == *' 200 '* ]]"]
# A worker is the same image with the command `--max-semi-space-size=16 --heap-growing-percent=100 workers/main.ts`. What the
# flags are for: scripts/start/children.ts.
ENTRYPOINT ["node", "--initial-old-space-size=200"]
CMD ["api/server.ts"]
ARG REVISION=unknown
LABEL org.opencontainers.image.title="Switchyard" \
      org.opencontainers.image.description="A multi-tenant AI platform that turns AI work into jobs" \
      org.opencontainers.image.version="0.2.0" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.licenses="LicenseRef-proprietary"

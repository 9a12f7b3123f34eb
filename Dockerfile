# The platform in a container. It needs the engine's socket and a volume at /data: see docker-compose.yml.
ARG BASE=node:20-bookworm-slim

FROM ${BASE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY core core
COPY embedded-postgres embedded-postgres
COPY sdk sdk
COPY plugins plugins
COPY scripts scripts
COPY test/lab test/lab
RUN node scripts/build.mjs && npm prune --omit=dev --no-audit --no-fund

FROM ${BASE}
# git fetches the sources of applications
RUN command -v git >/dev/null || { apt-get update && apt-get install -y --no-install-recommends git ca-certificates && rm -rf /var/lib/apt/lists/*; }
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules node_modules
COPY --from=build /app/dist dist
RUN mkdir -p /data && chown node:node /data
ENV NODE_ENV=production BUSBAR_DIR=/data HOST=0.0.0.0 PORT=8080 LOG_FORMAT=json
VOLUME /data
EXPOSE 8080
# access to the engine's socket comes with its group, not with root
USER node
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/healthz`).then(r => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# An expression that a stranger's text makes backtrack for ever goes on in linear time instead.
CMD ["node", "--max-semi-space-size=4", "--enable-experimental-regexp-engine-on-excessive-backtracks", "dist/core/main.js"]

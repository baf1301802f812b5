# An image of the gateway: docs/how-to/run-as-a-service.md says how to run it. test/contract/docker.long.test.ts plays
# these steps without Docker.

FROM node:22-slim AS build
WORKDIR /build
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY build.js tsconfig.json tsconfig.build.json CHANGELOG.md LICENSE README.md SECURITY.md ./
COPY src src
COPY web web
RUN npm pack && mv catenary-*.tgz catenary.tgz

FROM node:22-slim
COPY --from=build /build/catenary.tgz /opt/
RUN npm install --global --ignore-scripts --no-audit --no-fund /opt/catenary.tgz && rm /opt/catenary.tgz
USER node
WORKDIR /home/node
# A volume on it gets this owner.
RUN mkdir -p .local/state
EXPOSE 3000
# The gateway ends servers and calls in flight on SIGTERM. `docker run --init` collects what servers leave behind.
STOPSIGNAL SIGTERM
HEALTHCHECK CMD ["node", "-e", "fetch('http://127.0.0.1:3000/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["catenary"]
CMD ["up", "/config/catenary.json", "--http", "0.0.0.0:3000", "--log-format", "json"]

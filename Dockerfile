# The image of the API and of the workers; which of them runs is the command (serve, api, worker).
FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Nothing compiles at install, so no package's script is run.
RUN npm ci --ignore-scripts
COPY . .
# The Node that npm brings for machines without one is left behind: the image has its own.
RUN npm run build && npm prune --omit=dev --ignore-scripts && rm -rf node_modules/node-linux-* node_modules/node-win-*
# What is optional, in the versions that the tests use: with --build-arg LOCAL_MODEL=true what OM_EMBEDDINGS=local runs a model with, with
# --build-arg TRACING=true what OM_TRACING=otlp sends traces with. In one install, as a second would remove what the first brought.
ARG LOCAL_MODEL=false
ARG TRACING=false
RUN mkdir -p /local/node_modules && packages=$(node -p "Object.entries(require('./package.json').devDependencies) \
      .filter(([name]) => process.env.LOCAL_MODEL === 'true' && ['onnxruntime-web', '@huggingface/tokenizers'].includes(name) \
        || process.env.TRACING === 'true' && name.startsWith('@opentelemetry/')) \
      .map((entry) => entry.join('@')).join(' ')") \
  && if [ -n "$packages" ]; then npm install --prefix /local --no-save --ignore-scripts --no-audit --no-fund $packages; fi

FROM node:24-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app/package.json /app/README.md /app/ARCHITECTURE.md ./
COPY --from=build /app/node_modules ./node_modules
# Found by whatever lies in /app, and empty unless one of the two is true.
COPY --from=build /local/node_modules /node_modules
COPY --from=build /app/bin ./bin
COPY --from=build /app/dist ./dist
COPY --from=build /app/docs ./docs
RUN mkdir /data && chown node:node /data
USER node
VOLUME /data
ENV OM_DB_PATH=/data/cairn.sqlite
EXPOSE 8080
ENTRYPOINT ["node", "bin/cairn.cjs"]
CMD ["serve"]

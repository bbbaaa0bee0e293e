# The image of the API and of the workers; which of them runs is the command (serve, api, worker).
FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
# Nothing compiles at install, so no package's script is run.
RUN npm ci --ignore-scripts
COPY . .
# The Node that npm brings for machines without one is left behind: the image has its own.
RUN npm run build && npm prune --omit=dev --ignore-scripts && rm -rf node_modules/node-linux-* node_modules/node-win-*

FROM node:24-bookworm-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app/package.json /app/README.md /app/ARCHITECTURE.md ./
COPY --from=build /app/node_modules ./node_modules
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

/**
 * OpenMemory's own server, from a built checkout that CAIRN_PEER_OPENMEMORY names: the folder that holds
 * dist/server/index.js. It runs with its offline vectors of 768 dimensions and SQLite, without telemetry and without a
 * limit of requests. It has no request for several adds, so a load sends them one after the other. While it is measured
 * it listens on all addresses of the machine, which no setting changes.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { freePort } from '../../../test/support/free-port.ts';
import type { OpenSystem } from '../system.ts';

const KEY = 'bench-of-peers';
const START_MS = 30_000;

export const open: OpenSystem = async (folder) => {
  const port = await freePort();
  const server = spawn(process.execPath, [path.join(process.env.CAIRN_PEER_OPENMEMORY!, 'dist/server/index.js')], {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'inherit'],
    env: {
      PATH: process.env.PATH,
      OM_PORT: String(port),
      OM_DB_PATH: path.join(folder, 'openmemory.sqlite'),
      OM_API_KEY: KEY,
      OM_TIER: 'hybrid',
      OM_EMBEDDINGS: 'synthetic',
      OM_VEC_DIM: '768',
      OM_METADATA_BACKEND: 'sqlite',
      OM_VECTOR_BACKEND: 'sqlite',
      OM_TELEMETRY: 'false',
      OM_RATE_LIMIT_ENABLED: 'false',
    },
  });
  const url = `http://127.0.0.1:${port}`;
  const post = async (route: string, body: object) => {
    const headers = { 'content-type': 'application/json', 'x-api-key': KEY };
    const reply = await fetch(url + route, { method: 'POST', headers, body: JSON.stringify(body) });
    if (!reply.ok) throw new Error(`${route} answered ${reply.status}: ${await reply.text()}`);
    return (await reply.json()) as { readonly matches?: readonly { readonly content: string }[] };
  };
  const add = async (texts: readonly string[]) => {
    for (const content of texts) await post('/memory/add', { content, user_id: 'bench' });
  };
  await untilHealthy(`${url}/health`);
  return {
    load: add,
    // An add is answered when its vectors are stored.
    finishLoading: async () => {},
    async ask(query) {
      const { matches } = await post('/memory/query', { query, k: 10, user_id: 'bench' });
      return matches!.map(({ content }) => content);
    },
    add,
    adding: { atOnce: 2, together: 1, everyMs: 0 },
    processIds: () => [server.pid!],
    async close() {
      const ended = once(server, 'exit');
      server.kill('SIGTERM');
      await ended;
    },
  };
};

async function untilHealthy(url: string): Promise<void> {
  const until = performance.now() + START_MS;
  for (;;) {
    const reply = await fetch(url).catch((error: Error) => error);
    if (!(reply instanceof Error) && reply.ok) return;
    if (performance.now() > until)
      throw new Error(`OpenMemory did not start in ${START_MS / 1000} s`, { cause: reply });
    await pause(100);
  }
}

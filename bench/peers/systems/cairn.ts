/**
 * Cairn as its users run it: `cairn serve` with its default settings, over HTTP. A load sends 100 adds a request over
 * four connections and ends when no job is left; an add that arrives alone is a request of its own.
 */
import path from 'node:path';
import { startProcess, untilIdle } from '../../load.ts';
import { RawClient } from '../../raw-client.ts';
import type { Ask, OpenSystem } from '../system.ts';

const BATCH = 100;
const LOADING_CONNECTIONS = 4;
const ADDING_CONNECTIONS = 32;
/** Pause after which a connection is opened anew: the service ends connections that were idle for 5 s. */
const IDLE_MS = 3_000;

export const open: OpenSystem = async (folder) => {
  const service = await startProcess('serve', {
    OM_DB_PATH: path.join(folder, 'cairn.sqlite'),
    OM_PORT: '0',
    OM_LOG_LEVEL: 'info',
  });
  const loading = Array.from({ length: LOADING_CONNECTIONS }, () => connect(service.url));
  const idle = Array.from({ length: ADDING_CONNECTIONS }, () => connect(service.url));
  let count = 0;
  const item = (content: string) => ({
    content,
    user_id: 'bench',
    session_id: `s${Math.floor(count++ / 20)}`,
  });
  const openClient = (): Ask => {
    const post = connect(service.url);
    return async (query) => {
      const { matches } = await post('/memory/query', { query, user_id: 'bench', k: 10 });
      return (matches as readonly { readonly content: string }[]).map(({ content }) => content);
    };
  };
  return {
    async load(texts) {
      const items = texts.map(item);
      let next = 0;
      await Promise.all(
        loading.map(async (post) => {
          while (next < items.length) await post('/memory/add/batch', { items: items.slice(next, (next += BATCH)) });
        }),
      );
    },
    finishLoading: () => untilIdle(service.url),
    ask: openClient(),
    openClients: async (clients) => Array.from({ length: clients }, openClient),
    async add([text]) {
      const post = idle.pop()!;
      await post('/memory/add', item(text!));
      idle.push(post);
    },
    adding: { atOnce: ADDING_CONNECTIONS, together: 1, everyMs: 0 },
    processIds: () => [service.child.pid!],
    async close() {
      await untilIdle(service.url);
      await service.stop();
    },
  };
};

type Post = (route: string, body: unknown) => Promise<Readonly<Record<string, unknown>>>;

function connect(url: string): Post {
  let client: RawClient | undefined;
  let usedAt = 0;
  return async (route, body) => {
    if (client === undefined || performance.now() - usedAt > IDLE_MS) {
      client?.close();
      client = new RawClient(url);
    }
    const { status, body: reply } = await client.request('POST', route, JSON.stringify(body));
    usedAt = performance.now();
    if (status !== 200 && status !== 202) throw new Error(`${route} answered ${status}: ${reply}`);
    return JSON.parse(reply) as Readonly<Record<string, unknown>>;
  };
}

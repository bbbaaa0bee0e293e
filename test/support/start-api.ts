import { createApp } from '../../src/api/app.ts';
import type { Readiness } from '../../src/api/route.ts';
import { LIMITS } from '../../src/api/schemas/value-limits.ts';
import { listen } from '../../src/api/server.ts';
import { readConfig } from '../../src/engine/config.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { openEngine } from '../../src/engine/open-engine.ts';
import { type Clock, silentLogger, systemClock, type Logger } from '../../src/engine/ports.ts';
import { keepActivity } from '../../src/activity.ts';
import { joinMetrics } from '../../src/join-metrics.ts';
import { startEmbeddedWorker } from '../../src/workers/embedded.ts';
import { watchReplies } from './check-reply.ts';
import { requestByClient, type ReceivedReply } from './client-request.ts';
import { storeSettings } from './store-settings.ts';

export interface Reply {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly body: ReplyBody;
}

/** Fields that replies of various routes have; each reply has only some of them. A body that is not JSON has none. */
interface ReplyBody {
  readonly [field: string]: unknown;
  readonly id: string;
  readonly job_id: string;
  readonly token: string;
  readonly state: string;
  readonly primary_sector: string;
  readonly sectors: readonly string[];
  readonly code: string;
  readonly detail: string;
  readonly errors: readonly string[];
  readonly results: readonly { readonly id: string; readonly line: number }[];
  readonly items: readonly { readonly id: string; readonly content: string }[];
  readonly matches: readonly {
    readonly id: string;
    readonly content: string;
    readonly score: number;
    readonly raw_score: number;
  }[];
  readonly total: number;
  readonly deleted: number;
  readonly salience: number;
  readonly version: number;
  readonly metadata: object;
  readonly removed: object;
  readonly counts: object;
  readonly configs: Readonly<Record<string, object>>;
}

interface RequestOptions {
  /** Body of the request: a string is sent unchanged, anything else as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Key that is sent as a bearer token; by default that of the admin. With null, no key is sent. */
  readonly key?: string | null;
}

export interface TestApi extends AsyncDisposable {
  readonly engine: Engine;
  readonly url: string;
  readonly port: number;
  request(method: string, path: string, options?: RequestOptions): Promise<Reply>;
  /** Adds one memory and returns the reply's body. */
  add(item: object, key?: string): Promise<ReplyBody>;
  setReadiness(readiness: Readiness): void;
  /** Ends the server and the engine. The files are kept. */
  stop(): Promise<void>;
}

export interface StartApiOptions {
  /** Folder of the database files. The caller removes it. */
  readonly folder: string;
  readonly settings?: Readonly<Record<string, string>>;
  readonly workers?: boolean;
  readonly logger?: Logger;
  /** Clock of the engine; by default that of the system. With a clock, the engine has no threads. */
  readonly clock?: Clock;
  /**
   * False to commit and to answer queries on this thread, which makes a start ten times as fast. Use it for a test that
   * starts a server of its own, if other tests of its file use the threads. True by default.
   */
  readonly threads?: boolean;
}

/** Asks a request to wait for its work as long as it may. */
const LONGEST_WAIT = `?wait=${LIMITS.waitMs}`;

export const ADMIN_KEY = 'k7-Vq2-Xw9-Rt4-Zp6-Bn3-Lj8';

/**
 * Starts the real engine and the real server on a free port, as `main.ts` does; with workers if a test needs finished
 * memories. `request` sends requests by the client if possible (`requestByClient`). Every reply of the server must
 * agree with the description of its route; otherwise `request` or `stop` throws.
 */
export async function startApi({
  folder,
  settings = {},
  workers = false,
  logger,
  clock,
  threads = clock === undefined,
}: StartApiOptions): Promise<TestApi> {
  const config = readConfig({
    OM_DB_PATH: `${folder}/cairn.sqlite`,
    OM_PORT: '0',
    OM_API_KEY: ADMIN_KEY,
    OM_LOG_LEVEL: 'silent',
    // On a machine that does much else a query would go on without its vector, and give another answer.
    OM_QUERY_EMBED_TIMEOUT_MS: '60000',
    // Many tests send wrong keys, all from one address.
    OM_MAX_WRONG_KEYS: '1000000',
    ...settings,
    ...(await storeSettings(folder, settings)),
  });
  const worker = workers ? startEmbeddedWorker({ config, logger: logger ?? silentLogger, alone: true }) : undefined;
  void worker?.died.then((error) => console.error('the worker thread died', error));
  const engine = await openEngine({
    config,
    ...(logger === undefined ? {} : { logger }),
    clock: clock ?? systemClock,
    writer: threads ? 'thread' : 'inline',
    ...(worker === undefined ? {} : { dispatcher: worker.dispatcher }),
  });
  const stop = new AbortController();
  let readiness: Readiness = { ready: true, reasons: [] };
  const metricsText = async () => joinMetrics(engine.metrics.registry, [(await worker?.metricsJson()) ?? []]);
  const activity = keepActivity(metricsText);
  const app = createApp({
    engine,
    ready: () => readiness,
    metricsText,
    activity: () => activity.read(),
    version: '0.0.0-test',
    stop: stop.signal,
  });
  const watch = watchReplies(app);
  const { url, port, closed } = await listen(watch.app, engine, stop.signal);
  const stopAll = async () => {
    stop.abort();
    activity.stop();
    await closed;
    await worker?.drain();
    await engine.close();
    if (watch.problems.size > 0) throw new Error([...watch.problems.values()].join('\n'));
  };
  const request = async (method: string, path: string, options: RequestOptions = {}): Promise<Reply> => {
    const { body, headers = {}, key = config.OM_API_KEY ?? null } = options;
    const reply =
      (await requestByClient({ url, method, path, body, headers, key })) ??
      (await requestRaw(url, method, path, { body, headers, key }));
    await watch.requireDescribed(reply.headers.get('x-request-id'));
    const read = parseReply(reply.text);
    // The longest wait that a request may ask for may be too short on a machine that does much else.
    if (
      reply.status === 202 &&
      path.endsWith(LONGEST_WAIT) &&
      options.key === undefined &&
      workers &&
      read.token !== undefined
    )
      await (await engine.tenant('default')).waitFor(read.token, 10 * LIMITS.waitMs);
    return { ...reply, body: read };
  };
  return {
    engine,
    url,
    port,
    request,
    async add(item, key) {
      const reply = await request('POST', '/memory/add', { body: item, ...(key === undefined ? {} : { key }) });
      if (reply.status !== 202) throw new Error(`add answered ${reply.status}: ${reply.text}`);
      return reply.body;
    },
    setReadiness: (next) => void (readiness = next),
    stop: stopAll,
    [Symbol.asyncDispose]: stopAll,
  };
}

async function requestRaw(
  url: string,
  method: string,
  path: string,
  { body, headers, key }: Required<RequestOptions>,
): Promise<ReceivedReply> {
  const isText = typeof body === 'string' || body instanceof Uint8Array;
  const content = isText ? (body as NonNullable<RequestInit['body']>) : JSON.stringify(body);
  const response = await fetch(url + path, {
    method,
    headers: {
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(key === null ? {} : { authorization: `Bearer ${key}` }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: content }),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

function parseReply(text: string): ReplyBody {
  try {
    return JSON.parse(text) as ReplyBody;
  } catch {
    return {} as ReplyBody;
  }
}

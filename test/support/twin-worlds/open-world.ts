import { v7 as uuidv7 } from 'uuid';
import type { BatchContext } from '../../../src/engine/batches/batch-context.ts';
import { runNextQuestions } from '../../../src/engine/batches/reason.ts';
import { runBatch } from '../../../src/engine/batches/run-batch.ts';
import { runNextDocument } from '../../../src/engine/batches/run-document.ts';
import { readRetrievalDefaults } from '../../../src/engine/control/retrieval-defaults.ts';
import { createMetrics } from '../../../src/engine/metrics.ts';
import { openParts } from '../../../src/engine/parts/engine-parts.ts';
import { silentLogger } from '../../../src/engine/ports.ts';
import { languageModelOf } from '../../../src/engine/providers/language-model-of.ts';
import { runDueSchedules } from '../../../src/engine/upkeep/schedules.ts';
import { createManualClock, type ManualClock, START } from '../engine-fixture.ts';
import { sharedParser } from '../shared-parser.ts';
import { ADMIN_KEY, type Reply, startApi, type TestApi } from '../start-api.ts';
import { tempFolder } from '../temp-folder.ts';
import type { Plan } from './deeds.ts';

/** Who sends a request: the bound key whose view is compared, the admin of its tenant, or that of another tenant. */
export type Sender = 'key' | 'admin' | 'stranger';

interface SendOptions {
  readonly body?: unknown;
  readonly by?: Sender;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A service of its own, whose clock and jobs move only when the test says so. */
export interface World extends AsyncDisposable {
  readonly clock: ManualClock;
  /** Ids of what was stored, by the names that requests use in braces. */
  readonly ids: Map<string, string>;
  /** Public ids of the keys, which differ between worlds. */
  readonly keyIds: readonly string[];
  /** Sends a request in which names in braces are replaced by ids; an unknown name by an id that nothing has. */
  send(method: string, path: string, options?: SendOptions): Promise<Reply>;
  /** Waits until what answered queries change is written. */
  flush(): Promise<void>;
  /** Runs all jobs that are due. */
  work(): Promise<void>;
  /** Runs the schedules that are due, such as the removal of what has expired. */
  tend(): Promise<void>;
}

/** A well-formed id that nothing has. */
const ABSENT = '01a1fe30-e25b-7576-a0c2-3c4e3646bd72';
/** The tenant of strangers. */
const OTHER_TENANT = 'umbrella';

/** Starts a service with a key that is bound as the plan says. */
export async function openWorld({ bound, hasVectors }: Plan): Promise<World> {
  const clock = createManualClock(START);
  const settings = {
    ...(hasVectors ? { OM_VEC_DIM: '256', OM_CONTRADICTIONS: 'forms' } : { OM_EMBEDDINGS: 'none' }),
    OM_URL_INGEST: 'false',
  };
  const folder = tempFolder();
  const api = await startApi({ folder, clock, settings });
  const { control, config } = api.engine;
  control.createTenant(OTHER_TENANT);
  const { secret, record } = control.createKey({ tenantId: 'default', role: 'write', ...bound.key });
  const stranger = control.createKey({ tenantId: OTHER_TENANT, role: 'admin' });
  const secrets = { key: secret, admin: ADMIN_KEY, stranger: stranger.secret };
  const ids = new Map([
    ['adminKey', 'environment'],
    ['ownKey', record.id],
  ]);
  const named = (text: string) => text.replace(/\{(\w+)\}/g, (_, name: string) => ids.get(name) ?? ABSENT);
  const worker = openWorker(api, clock);
  const [own, other] = [config.paths.defaultTenant, control.findTenantPath(OTHER_TENANT)!];
  const send: World['send'] = (method, path, { body, by = 'key', headers } = {}) =>
    api.request(method, named(path), {
      key: secrets[by],
      ...(body === undefined ? {} : { body: JSON.parse(named(JSON.stringify(body))) as unknown }),
      ...(headers === undefined ? {} : { headers }),
    });
  return {
    clock,
    ids,
    keyIds: [record.id, stranger.record.id],
    send,
    async flush() {
      await send('GET', '/recalls?limit=1', { by: 'admin' });
    },
    async work() {
      for (const path of [own, other]) await worker.drain(path);
    },
    async tend() {
      for (const path of [own, other]) await worker.tend(path);
    },
    async [Symbol.asyncDispose]() {
      await api[Symbol.asyncDispose]();
      await worker.close();
    },
  };
}

/** Opens what runs the jobs and schedules of a service on this thread, as a worker does, whenever it is told to. */
function openWorker({ engine }: TestApi, clock: ManualClock) {
  const { config, control } = engine;
  const metrics = createMetrics();
  const parts = openParts({ config, clock, metrics, role: 'worker', onCall: () => {} });
  const contextOf = (path: string): BatchContext => ({
    open: () => parts.pool.get(path),
    ...{ config, clock, metrics, logger: silentLogger },
    embedder: parts.embedder,
    gatherer: parts.gatherer,
    sourceOf: parts.sourceOf,
    languageModel: languageModelOf(path, parts.languageModel),
    documentParser: sharedParser(config),
    pageFetcher: null,
    newId: uuidv7,
    owner: 'test worker',
    defaults: () => readRetrievalDefaults(control, 'default'),
  });
  return {
    async drain(path: string) {
      const context = contextOf(path);
      for (;;) {
        if (await runNextDocument(context, { alone: false, onClaimed: () => {} })) continue;
        const asked = await runNextQuestions(context, { alone: false });
        const { claimed } = await runBatch(context, 64);
        if (claimed + asked.claimed === 0) return;
      }
    },
    tend: (path: string) => runDueSchedules({ ...contextOf(path), metrics, config, clock, logger: silentLogger }),
    async close() {
      await parts.pageFetcher?.close();
      parts.pool.close();
      parts.budget.close();
    },
  };
}

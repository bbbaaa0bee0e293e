/** A reader thread: it runs read commands on connections of its own. */

import { parentPort, workerData } from 'node:worker_threads';
import { createIndexMemory } from '../adapters/following-index/index-memory.ts';
import { useMasterKey } from '../control/data-keys.ts';
import { placeOf } from '../control/place-of.ts';
import { standbyOf } from '../control/standby-of.ts';
import { assert, reviveError, serialiseError } from '../errors.ts';
import { type LanguageModel, type Logger, systemClock } from '../ports.ts';
import { giveWay, NICENESS } from '../give-way.ts';
import { releaseMemoryAfterStart } from '../release-memory.ts';
import { type FieldText, packResult, unpackInput } from '../store/packed-json.ts';
import { openTenant } from '../tenant-file/open-tenant.ts';
import { createTenantPool } from '../tenant-file/tenant-pool.ts';
import type {
  FromThread,
  Outcome,
  ProviderCall,
  ProviderResults,
  ReaderThreadData,
  ToThread,
} from '../readers/messages.ts';
import { hasLater, runCommand } from '../readers/readers.ts';
import { createSpanRecorder } from '../readers/span-recorder.ts';
import { ofKey, type StandbyReport } from '../readers/standby-reads.ts';
import { createSharedReading } from './shared-reading.ts';
import { createStandbyReading } from './standby-reading.ts';
import { createThreadQuerySources } from './thread-query-sources.ts';

const { config, identity, primary, languageModel, threads, reader } = workerData as ReaderThreadData;
const port = parentPort;
assert(port !== null, 'a reader thread has a parent');
const post = (message: FromThread) => port.postMessage(message);

giveWay(NICENESS.questions);
releaseMemoryAfterStart();
useMasterKey(config);
const logger = forwardingLogger();
const indexMemory = createIndexMemory(config.OM_INDEX_MEMORY_MB * 1024 * 1024);
const pool = createTenantPool(config.OM_OPEN_TENANTS, (key) => {
  const { path, isStandby } = ofKey(key);
  return openTenant(path, {
    place: isStandby ? standbyOf(config, path) : placeOf(config, path),
    isStandby,
    role: 'reader',
    identity,
    now: systemClock.now(),
    indexMemory,
    vectorIndex: config.OM_VECTOR_INDEX,
    wordIndex: config.OM_WORD_INDEX,
    shared: sharing.of(key),
    onUnknownWordFormat: () => post({ kind: 'unknownWordFormat', path }),
  });
});
const sharing = createSharedReading({
  reader,
  pool,
  ask: (path, spaces) => post({ kind: 'share', path, spaces }),
  lose: (path, no) => post({ kind: 'lost', path, no }),
});
const standbyReading = createStandbyReading({ config, primary, pool, sharing });
const querySourcesOf = createThreadQuerySources(config, logger);
const running = new Map<number, AbortController>();
const calls = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>();
let called = 0;

port.on('message', (message: ToThread) => {
  switch (message.kind) {
    case 'read':
      return void run(message);
    case 'cancel':
      return running.get(message.id)?.abort();
    case 'called': {
      const { callId, outcome } = message;
      const call = calls.get(callId);
      calls.delete(callId);
      return outcome.ok ? call?.resolve(outcome.value) : call?.reject(reviveError(outcome.error));
    }
    case 'shared':
      return sharing.put(message.path, message.file);
    case 'forget':
      return sharing.forget(message.path);
    case 'close':
      pool.close();
      standbyReading.close();
      return post({ kind: 'closed' });
  }
});

async function run({ id, path, name, input, isTraced, standby }: Extract<ToThread, { kind: 'read' }>): Promise<void> {
  const startedAt = performance.now();
  const controller = new AbortController();
  const { signal } = controller;
  running.set(id, controller);
  const recorder = isTraced ? createSpanRecorder() : null;
  const context = {
    ...{ config, logger, threads, clock: systemClock, tracing: recorder?.tracing ?? null },
    querySourceOf: querySourcesOf(path, (space, text) => call(id, { kind: 'embed', space, text })),
    languageModel: languageModelOf(id),
  };
  let later: Promise<unknown> | null = null;
  let texts: readonly FieldText[] = [];
  let report: StandbyReport | null = null;
  /**
   * Runs the command on a tenant. `key` is what the pool opens it by: the path of its file, or that path marked for the
   * standby (`standbyKey`).
   */
  const read = async (key: string): Promise<unknown> => {
    // What an answer that is not used still computes concerns nobody.
    later?.catch(() => {});
    [later, texts] = [null, []];
    const value: unknown = await runCommand(
      { ...context, open: () => pool.get(key) },
      name,
      unpackInput(input) as never,
      signal,
    );
    const isPartial = hasLater(value);
    if (isPartial) ({ later } = value);
    const packed = packResult(isPartial ? { ...value, later: null } : value);
    ({ texts } = packed);
    return packed.result;
  };
  const outcome = await outcomeOf(
    standby === null
      ? sharing.run(path, () => read(path))
      : standbyReading.run({ ...standby, path, signal, read, onReport: (latest) => void (report = latest) }),
  );
  running.delete(id);
  const ms = performance.now() - startedAt;
  const spans = recorder?.spans ?? [];
  post({ kind: 'done', id, outcome, texts, ms, spans, hasMore: later !== null, standby: report });
  if (later !== null) post({ kind: 'later', id, outcome: await outcomeOf(later) });
}

async function outcomeOf(result: Promise<unknown>): Promise<Outcome> {
  try {
    return { ok: true, value: await result };
  } catch (error) {
    return { ok: false, error: serialiseError(error) };
  }
}

/**
 * Lets the process call a provider for the read `id`, since the process holds the limits and the cache. Resolves with
 * the result.
 */
function call<K extends ProviderCall['kind']>(
  id: number,
  call: ProviderCall & { readonly kind: K },
): Promise<ProviderResults[K]> {
  const callId = ++called;
  return new Promise<ProviderResults[K]>((resolve, reject) => {
    calls.set(callId, { resolve: resolve as (value: unknown) => void, reject });
    post({ kind: 'call', id, callId, call });
  });
}

function languageModelOf(id: number): LanguageModel | null {
  return languageModel && { ...languageModel, complete: (request) => call(id, { kind: 'complete', request }) };
}

function forwardingLogger(): Logger {
  const forward = (level: keyof Logger) => (fields: object, event: string) =>
    post({ kind: 'log', level, fields, event });
  return { debug: forward('debug'), info: forward('info'), warn: forward('warn'), error: forward('error') };
}

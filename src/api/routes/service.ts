import { DEFAULT_TENANT } from '../../engine/control/open-control-database.ts';
import type { Engine } from '../../engine/engine.ts';
import { sectorPatterns } from '../../engine/sectors/classify.ts';
import { SECTOR_PROFILES } from '../../engine/sectors/profiles.ts';
import { decayLambdaOf } from '../../engine/dynamics.ts';
import { SECTORS } from '../../engine/types.ts';
import { sendJson } from '../reply.ts';
import type { Call, Route, TenantCall } from '../route.ts';

/** What operators and their tools ask. Metrics speak of all tenants, so `OM_PUBLIC_READS` does not open them. */
export const serviceRoutes: readonly Route[] = [
  { method: 'get', path: '/health', access: 'anyone', handle: health },
  { method: 'get', path: '/ready', access: 'anyone', handle: ready },
  { method: 'get', path: '/metrics', access: 'key', handle: metrics },
  { method: 'get', path: '/sectors', access: 'read', handle: sectors },
  { method: 'get', path: '/stats', access: 'read', handle: stats },
];

function health({ api, response }: Call): void {
  const { embedder } = api.engine;
  sendJson(response, 200, {
    ok: true,
    version: api.version,
    embedding: {
      provider: embedder?.provider ?? 'none',
      model: embedder?.model ?? null,
      dimensions: embedder?.dimensions ?? null,
      configured: embedder !== null,
      ...modelsOf(api.engine),
    },
  });
}

function ready({ api, response }: Call): void {
  const { ready, reasons } = api.ready();
  const ledger = readLedger(api.engine);
  const isReady = ready && ledger !== undefined;
  sendJson(response, isReady ? 200 : 503, {
    ready: isReady,
    reasons: ledger === undefined ? [...reasons, 'the database cannot be read'] : reasons,
    ...(ledger === undefined ? {} : { jobs: ledger }),
    queues: queuesOf(api.engine),
    embedding: modelsOf(api.engine),
  });
}

/** Which model answers the default tenant's queries while the configured one is another. Words alone answer, so nobody is unready. */
function modelsOf(engine: Engine) {
  try {
    const { live, degraded } = engine.tenant(DEFAULT_TENANT).embedding();
    return { live, degraded: degraded !== null, ...(degraded === null ? {} : { reason: degraded }) };
  } catch {
    return {}; // `ready` says what is the matter with the file.
  }
}

/** A Redis that is down makes nobody unready: adds are accepted and wait in the ledger. */
function queuesOf(engine: Engine) {
  const state = engine.queueState();
  return state.mode === 'embedded' ? { mode: 'embedded' } : { mode: 'redis', redis: state.isUp ? 'up' : 'down' };
}

/**
 * undefined if the ledger of the default tenant cannot be read: that is what this route is asked for. Anyone may ask, so only what
 * waits is counted and not the finished jobs, of which there may be millions.
 */
function readLedger(engine: Engine) {
  try {
    const ledger = engine.tenant(DEFAULT_TENANT);
    const oldest = ledger.oldestWaitingJobAt();
    return {
      waiting: ledger.countWaitingJobs(),
      active: ledger.countActiveJobs(),
      oldest_age_ms: oldest === null ? null : Math.max(0, engine.clock.now() - oldest),
    };
  } catch (error) {
    engine.logger.warn({ message: error instanceof Error ? error.message : String(error) }, 'ledger_unreadable');
    return undefined;
  }
}

async function metrics({ api, response }: Call): Promise<void> {
  const text = await api.metricsText();
  response.setHeader('content-type', 'text/plain; version=0.0.4; charset=utf-8');
  response.end(text);
}

function sectors({ api, tenant, response }: TenantCall): void {
  const model = api.engine.embedder?.model ?? null;
  const patterns = sectorPatterns();
  const configs = SECTORS.map((sector) => {
    const decay = decayLambdaOf(sector, api.engine.config.OM_DECAY_LAMBDA);
    return [
      sector,
      { model, decay_lambda: decay, weight: SECTOR_PROFILES[sector].weight, patterns: patterns[sector] },
    ] as const;
  });
  const stats = tenant
    .sectorStats()
    .map(({ sector, count, averageSalience }) => ({ sector, count, avg_salience: averageSalience }));
  sendJson(response, 200, { sectors: SECTORS, configs: Object.fromEntries(configs), stats });
}

function stats({ tenant, response }: TenantCall): void {
  const { memories, byState, vectors, waypoints, jobs, databaseBytes, walBytes } = tenant.stats();
  const { live, configured, degraded } = tenant.embedding();
  sendJson(response, 200, {
    memories,
    by_state: byState,
    vectors,
    waypoints,
    jobs,
    database_bytes: databaseBytes,
    wal_bytes: walBytes,
    embedding: { live, configured, degraded },
  });
}

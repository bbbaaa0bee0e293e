import { z } from 'zod';
import {
  decayLambdaOf,
  DEFAULT_TENANT,
  type Engine,
  type ErrorCode,
  isBound,
  isEngineError,
  type Sector,
  SECTOR_PROFILES,
  sectorPatterns,
  SECTORS,
} from '../../engine/index.ts';
import { recentAnswer } from '../recent-answer.ts';
import { type Call, openRoute, route, type Route } from '../route.ts';
import { healthReply, readyReply, sectorsReply, statsReply } from '../schemas/service.ts';

const eachSector = <Value>(valueOf: (sector: Sector) => Value) =>
  Object.fromEntries(SECTORS.map((sector) => [sector, valueOf(sector)])) as Record<Sector, Value>;

const MODEL = { provider: 'synthetic', model: 'hashed-v1', dimensions: 768 };
const SECTORS_EXAMPLE = {
  sectors: SECTORS,
  configs: eachSector((sector) => ({
    model: MODEL.model,
    decay_lambda: SECTOR_PROFILES[sector].decayLambda,
    weight: SECTOR_PROFILES[sector].weight,
    patterns: [{ pattern: 'in <year>', weight: 1 }],
  })),
  stats: [{ sector: 'procedural', count: 1, avg_salience: 0.5 }],
};

/** Routes for operators and their tools. Metrics cover all tenants, so `OM_PUBLIC_READS` does not open them. */
export const serviceRoutes: readonly Route[] = [
  openRoute({
    method: 'get',
    path: '/health',
    name: 'getHealth',
    summary: 'Shows that the process answers, with its version and its embedder',
    replies: { 200: { description: 'The process answers.', json: healthReply } },
    async handle({ api, send }) {
      const { embedder } = api.engine;
      send(200, {
        ok: true,
        version: api.version,
        embedding: {
          provider: embedder?.provider ?? 'none',
          model: embedder?.model ?? null,
          dimensions: embedder?.dimensions ?? null,
          configured: embedder !== null,
          ...(await recentModels(api.engine)),
        },
      });
    },
  }),
  openRoute({
    method: 'get',
    path: '/ready',
    name: 'getReadiness',
    summary: 'Shows whether this server should be sent requests',
    description:
      'Every caller gets `ready` and `reasons`. The other fields are shown to the holder of a key of the default ' +
      'tenant, and to callers on this machine while no key is configured. A request with a wrong key is answered, ' +
      'too.',
    replies: {
      200: { description: 'The server should be sent requests.', json: readyReply },
      503: {
        description:
          "The server stops, or the default tenant's file cannot be read. The reply is not a problem document.",
        json: readyReply,
        example: {
          ready: false,
          reasons: ['draining'],
        },
      },
    },
    async handle({ api, admit, send }) {
      const { ready, reasons } = api.ready();
      const isShown = await mayReadDefaultTenant(admit);
      const ledger = await (isShown ? readLedger(api.engine) : recentlyReadable(api.engine));
      const isReady = ready && ledger !== undefined;
      const standby = api.engine.standbyState();
      send(isReady ? 200 : 503, {
        ready: isReady,
        reasons: ledger === undefined ? [...reasons, 'the database cannot be read'] : reasons,
        ...(isShown
          ? {
              ...(ledger ? { jobs: ledger } : {}),
              queues: queuesOf(api.engine),
              ...(standby === null ? {} : { standby }),
              embedding: await modelsOf(api.engine),
            }
          : {}),
      });
    },
  }),
  route({
    method: 'get',
    path: '/metrics',
    name: 'getMetrics',
    access: 'metrics',
    summary: "Sends the metrics in Prometheus's text format",
    description:
      'The metrics cover all tenants together, so this needs an admin key of the default tenant, or ' +
      '`OM_METRICS_KEY`, which opens nothing else. `OM_METRICS_HOST` serves them at another address without a key. ' +
      'Worker processes serve their own metrics at `OM_WORKER_METRICS_PORT`.',
    replies: {
      200: {
        description: 'The metrics.',
        media: [
          {
            type: 'text/plain',
            schema: z.string(),
            example: '# TYPE cairn_http_requests_total counter\ncairn_http_requests_total{route="/health"} 2\n',
          },
        ],
      },
    },
    async handle({ api, response }) {
      const text = await api.metricsText();
      response.setHeader('content-type', 'text/plain; version=0.0.4; charset=utf-8');
      response.end(text);
    },
  }),
  route({
    method: 'get',
    path: '/sectors',
    name: 'listSectors',
    access: 'read',
    summary: 'Shows the five sectors: their decay, their patterns and the number of their memories',
    description: 'Each sector has its own `decay_lambda`, unless `OM_DECAY_LAMBDA` replaces all of them.',
    replies: { 200: { description: 'The sectors.', json: sectorsReply, example: SECTORS_EXAMPLE } },
    async handle({ api, tenant, send }) {
      const model = api.engine.embedder?.model ?? null;
      const patterns = sectorPatterns();
      const configOf = (sector: Sector) => ({
        model,
        decay_lambda: decayLambdaOf(sector, api.engine.config.OM_DECAY_LAMBDA),
        weight: SECTOR_PROFILES[sector].weight,
        patterns: patterns[sector],
      });
      const stats = (await tenant.sectorStats()).map(({ sector, count, averageSalience }) => ({
        sector,
        count,
        avg_salience: averageSalience,
      }));
      send(200, { sectors: SECTORS, configs: eachSector(configOf), stats });
    },
  }),
  route({
    method: 'get',
    path: '/stats',
    name: 'getStats',
    access: 'read',
    summary: 'Counts the contents of a tenant, archived memories included',
    replies: {
      200: {
        description: 'The counts.',
        json: statsReply,
        example: {
          memories: 2,
          by_state: { queued: 0, ready: 2, failed: 0 },
          vectors: 2,
          waypoints: 0,
          jobs: { queued: 0, active: 0, failed: 0, done: 2, dead: 0, cancelled: 0 },
          database_bytes: 4096,
          wal_bytes: 646872,
          embedding: { live: MODEL, configured: MODEL, degraded: null },
        },
      },
    },
    async handle({ tenant, send }) {
      const { memories, byState, vectors, waypoints, jobs, databaseBytes, walBytes } = await tenant.stats();
      const { live, configured, degraded } = await tenant.embedding();
      send(200, {
        memories,
        by_state: byState,
        vectors,
        waypoints,
        jobs,
        database_bytes: databaseBytes,
        wal_bytes: walBytes,
        embedding: { live, configured, degraded },
      });
    },
  }),
];

/**
 * Returns the embedding model that answers the default tenant's queries, and whether these are degraded (by words only,
 * without vectors). If the tenant's file cannot be read, it returns an empty object. A server whose queries are
 * degraded still counts as ready, since they find memories by words.
 */
async function modelsOf(engine: Engine) {
  try {
    const { live, degraded } = await (await engine.tenant(DEFAULT_TENANT)).embedding();
    return { live, degraded: degraded !== null, ...(degraded === null ? {} : { reason: degraded }) };
  } catch {
    return {}; // `/ready` reports that the file cannot be read.
  }
}

/** Returns what `modelsOf` returns, or returned at most 0.1 s ago, for callers who need no key. */
const recentModels = recentAnswer(modelsOf);

const REFUSALS: ReadonlySet<ErrorCode> = new Set(['unauthenticated', 'forbidden', 'rate_limited']);

/**
 * Tells whether the caller may read the whole default tenant. A caller whose key is wrong may not, and is not refused:
 * a load balancer that sends a wrong key still gets its answer.
 */
async function mayReadDefaultTenant(admit: Call['admit']): Promise<boolean> {
  try {
    const holder = await admit('read');
    return holder.tenantId === DEFAULT_TENANT && !isBound(holder);
  } catch (error) {
    if (isEngineError(error) && REFUSALS.has(error.code)) return false;
    throw error;
  }
}

/**
 * Returns which server has the queues, if any, and whether it takes jobs. If it does not, this server still counts as
 * ready, since memories are accepted and their jobs wait in the ledger.
 */
function queuesOf(engine: Engine) {
  const state = engine.queueState();
  if (state.mode === 'embedded') return { mode: 'embedded' } as const;
  const isUp = state.isUp ? 'up' : 'down';
  return state.mode === 'redis'
    ? ({ mode: 'redis', redis: isUp } as const)
    : ({ mode: 'postgres', queues: isUp } as const);
}

/**
 * Counts the waiting and the active jobs of the default tenant, with the age in ms of the oldest of them all (null if
 * there is none). If the job table cannot be read, it logs that and returns undefined.
 */
async function readLedger(engine: Engine) {
  try {
    const ledger = await engine.tenant(DEFAULT_TENANT);
    const oldest = await ledger.oldestWaitingJobAt();
    return {
      waiting: await ledger.countWaitingJobs(),
      active: await ledger.countActiveJobs(),
      oldest_age_ms: oldest === null ? null : Math.max(0, engine.clock.now() - oldest),
    };
  } catch (error) {
    return noteUnreadable(engine, error);
  }
}

/**
 * Tells whether the job table of the default tenant could be read within the last 0.1 s: null if it could, undefined if
 * not. It is for callers who may not see the numbers of `readLedger`, of whom there may be many: it counts only the
 * active jobs, which are few, as counting a million waiting ones is slow.
 */
const recentlyReadable = recentAnswer(async (engine: Engine) => {
  try {
    await (await engine.tenant(DEFAULT_TENANT)).countActiveJobs();
    return null;
  } catch (error) {
    return noteUnreadable(engine, error);
  }
});

function noteUnreadable(engine: Engine, error: unknown): undefined {
  engine.logger.warn({ message: error instanceof Error ? error.message : String(error) }, 'ledger_unreadable');
}

/**
 * Activity of the service within the last hour, for operators who run no Prometheus. It is computed from the metrics of
 * all processes, which are read once a minute.
 */

/** Time between two readings of the metrics (ms), the same as for a Prometheus that scrapes once a minute. */
const LOOK_MS = 60_000;
/** Greatest number of readings that are kept: 60 make an hour, and the one before them is their base. */
const LOOKS = 61;
const KINDS = ['add', 'query', 'documents', 'read', 'write'] as const;
type ActivityKind = (typeof KINDS)[number];

/** What happened between two successive readings of the metrics. */
export interface ActivityMinute {
  /** Time of the later reading, Unix ms. */
  readonly at: number;
  /**
   * Time between the two readings (ms): about a minute, and more if a reading failed in between. The latest entry
   * counts from the last kept reading, so it is shorter unless that is the reading that failed.
   */
  readonly ms: number;
  /**
   * Number of requests by kind, and their mean duration (ms), which is null if there was no request. Event streams and
   * monitoring are not counted.
   */
  readonly requests: Readonly<Record<ActivityKind, { readonly count: number; readonly meanMs: number | null }>>;
  /** Estimated median of the time that a query took inside the engine (ms); null if there was no query. */
  readonly queryP50Ms: number | null;
  /** Estimated 95th percentile of the time that a query took inside the engine (ms); null if there was no query. */
  readonly queryP95Ms: number | null;
  readonly jobsDone: number;
  readonly jobsDead: number;
  /** Tokens of provider calls that completed, read and written, for vectors and by the language model together. */
  readonly tokens: number;
  /** Cost of the provider calls that completed, by the price table (`OM_PRICES`), in US dollars. */
  readonly costUsd: number;
}

/** State of an embedding or language-model provider, which all processes of the service share. */
interface ProviderState {
  readonly service: 'embedding' | 'language_model';
  /** Sector that the provider embeds, where sectors have embedding models of their own; else null. */
  readonly sector: string | null;
  /** Whether the provider's circuit breaker is open: after repeated failures it gets no calls, or only probes. */
  readonly isOpen: boolean;
  /**
   * Number of calls that had to wait or were put off since the service started, by reason. The count is per `service`,
   * not per sector.
   */
  readonly heldBack: Readonly<Record<string, number>>;
}

export interface Activity {
  /**
   * One entry for each minute of the last hour, the oldest first, and one for the time since the last reading. A minute
   * whose reading failed is part of the next entry. Empty until the metrics were read once before.
   */
  readonly minutes: readonly ActivityMinute[];
  readonly providers: readonly ProviderState[];
}

export interface ActivityKeeper {
  read(): Promise<Activity>;
  stop(): void;
}

/** Values of the metrics by series. A series is written as in Prometheus' text format, with its labels. */
type Values = ReadonlyMap<string, number>;
interface Look {
  readonly at: number;
  readonly values: Values;
}

/**
 * Begins to read the metrics once a minute and keeps the readings of the last hour. `read` takes one more reading for
 * its last entry, and throws if that fails. `stop` ends the readings.
 * @param readMetrics reads the metrics of the whole service in Prometheus' text format
 * @param now the clock, Unix ms
 */
export function keepActivity(readMetrics: () => Promise<string>, now: () => number = Date.now): ActivityKeeper {
  const looks: Look[] = [];
  const look = async (): Promise<Look> => ({ values: valuesOf(await readMetrics()), at: now() });
  const keep = async () => {
    // A look that fails is left out: the next one then stands for two minutes.
    const taken = await look().catch(() => undefined);
    if (taken !== undefined) looks.push(taken);
    if (looks.length > LOOKS) looks.shift();
  };
  void keep();
  const timer = setInterval(() => void keep(), LOOK_MS).unref();
  return {
    async read() {
      const latest = await look();
      const all = [...looks, latest];
      const minutes = all.slice(1).map((taken, at) => minuteBetween(all[at]!, taken));
      return { minutes, providers: providersIn(latest.values) };
    },
    stop: () => clearInterval(timer),
  };
}

function valuesOf(text: string): Values {
  const lines = text.matchAll(/^(cairn_\w+(?:\{[^}]*\})?) (\S+)$/gm);
  return new Map([...lines].map(([, series, value]) => [series!, Number(value)]));
}

function minuteBetween(from: Look, to: Look): ActivityMinute {
  const rise = (series: string) => Math.max(0, (to.values.get(series) ?? 0) - (from.values.get(series) ?? 0));
  const riseOfAll = (name: string) =>
    [...to.values.keys()].filter((series) => series.startsWith(`${name}{`)).reduce((sum, key) => sum + rise(key), 0);
  const requestsOf = (kind: ActivityKind) => {
    const name = 'cairn_http_request_duration_seconds';
    const count = rise(`${name}_count{kind="${kind}"}`);
    const ms = rise(`${name}_sum{kind="${kind}"}`) * 1000;
    return { count, meanMs: count === 0 ? null : ms / count };
  };
  const buckets = bucketsOf(to.values, rise);
  return {
    at: to.at,
    ms: to.at - from.at,
    requests: Object.fromEntries(KINDS.map((kind) => [kind, requestsOf(kind)])) as ActivityMinute['requests'],
    queryP50Ms: quantile(buckets, 0.5),
    queryP95Ms: quantile(buckets, 0.95),
    jobsDone: rise('cairn_jobs_finished_total{state="done"}'),
    jobsDead: rise('cairn_jobs_finished_total{state="dead"}'),
    tokens: riseOfAll('cairn_provider_tokens_total'),
    costUsd: riseOfAll('cairn_provider_cost_usd_total'),
  };
}

interface Bucket {
  readonly ms: number;
  /** Number of queries that took `ms` or less. */
  readonly count: number;
}

function bucketsOf(values: Values, rise: (series: string) => number): Bucket[] {
  return [...values.keys()].flatMap((series) => {
    const bound = /^cairn_query_duration_seconds_bucket\{le="([^"]+)"\}$/.exec(series)?.[1];
    if (bound === undefined) return [];
    return [{ ms: bound === '+Inf' ? Infinity : Number(bound) * 1000, count: rise(series) }];
  });
}

/**
 * Estimates a quantile (ms) as Prometheus does, by linear interpolation within the bucket. It is null if there was no
 * query, and the highest finite bound if it lies beyond that.
 */
function quantile(buckets: readonly Bucket[], share: number): number | null {
  const total = Math.max(0, ...buckets.map(({ count }) => count));
  if (total === 0) return null;
  const wanted = share * total;
  let below: Bucket = { ms: 0, count: 0 };
  for (const bucket of buckets.toSorted((a, b) => a.ms - b.ms)) {
    if (bucket.count >= wanted) {
      if (bucket.ms === Infinity) return below.ms;
      return below.ms + ((bucket.ms - below.ms) * (wanted - below.count)) / (bucket.count - below.count);
    }
    below = bucket;
  }
  return below.ms;
}

function providersIn(values: Values): ProviderState[] {
  return [...values].flatMap(([series, value]) => {
    const labels = /^cairn_provider_breaker_open\{(.*)\}$/.exec(series)?.[1];
    if (labels === undefined) return [];
    const service = labelOf(labels, 'service') as ProviderState['service'];
    return [{ service, sector: labelOf(labels, 'sector'), isOpen: value === 1, heldBack: heldBackOf(values, service) }];
  });
}

function heldBackOf(values: Values, service: string): Record<string, number> {
  const held = [...values].flatMap(([series, value]): [string, number][] => {
    const labels = /^cairn_provider_calls_held_back_total\{(.*)\}$/.exec(series)?.[1];
    return labels === undefined || labelOf(labels, 'service') !== service ? [] : [[labelOf(labels, 'reason')!, value]];
  });
  return Object.fromEntries(held);
}

function labelOf(labels: string, name: string): string | null {
  return new RegExp(`(?:^|,)${name}="([^"]*)"`).exec(labels)?.[1] ?? null;
}

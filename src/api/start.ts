import type { Express } from 'express';
import { loadHttpClient } from '../engine/adapters/index.ts';
import { type Engine, VERSION } from '../engine/index.ts';
import type { Activity } from '../activity.ts';
import type { MetricsSource } from '../join-metrics.ts';
import { createApp } from './app.ts';
import { runEvalsByScheduleUntil } from './run-evals.ts';
import { tendStandingUntil } from './run-standing.ts';
import { listen } from './server.ts';

export interface StartApiOptions {
  readonly engine: Engine;
  /** Reads the metrics of the whole service in Prometheus' text format, for `GET /metrics`. */
  readonly metricsText: () => Promise<string>;
  /** Returns the activity of the whole service within the last hour, for `GET /admin/activity`. */
  readonly activity: () => Promise<Activity>;
}

export interface RunningApi {
  /** Address at which clients on this machine reach the server. */
  readonly url: string;
  /**
   * Returns the sources of the metrics of the other processes that serve HTTP. They change as processes are replaced.
   */
  readonly metrics: () => readonly MetricsSource[];
  /**
   * Makes `/ready` answer 503 and stops the server. Resolves when all requests in flight are answered; after
   * OM_SHUTDOWN_MS the connections of the unanswered ones are closed.
   */
  stop(): Promise<void>;
}

/**
 * Serves an engine over HTTP in this process.
 * @throws EngineError `forbidden` while no key is configured, if OM_HOST is not a loopback address or OM_CORS_ORIGINS
 *   is set; `unavailable` if the server cannot listen at the address
 */
export async function startApi(options: StartApiOptions): Promise<RunningApi> {
  warnOfShortKey(options.engine);
  const stop = new AbortController();
  const app = await prepareApp(options, stop.signal);
  const server = await listen(app, options.engine, stop.signal).catch((error: unknown) => {
    // What the app does in the background ends before the caller closes the engine.
    stop.abort();
    throw error;
  });
  return {
    url: server.url,
    metrics: () => [],
    async stop() {
      stop.abort();
      await server.closed;
    },
  };
}

/**
 * Makes the Express app of an engine that is ready to serve without delay. Also starts the work in the background:
 * scheduled evaluation sets, standing queries and webhooks. When `signal` aborts, this work ends, and `/ready` answers
 * 503.
 */
export async function prepareApp(
  { engine, metricsText, activity }: StartApiOptions,
  signal: AbortSignal,
): Promise<Express> {
  const app = createApp({
    engine,
    ready: () => (signal.aborted ? { ready: false, reasons: ['draining'] } : { ready: true, reasons: [] }),
    metricsText,
    activity,
    version: VERSION,
    stop: signal,
  });
  // Prepared before anything is served, since loading a package of hundreds of files blocks everything else.
  await engine.prepare();
  if (engine.control.federation.hasAny()) await loadHttpClient();
  void runEvalsByScheduleUntil(signal, engine);
  void tendStandingUntil(signal, engine);
  return app;
}

/** Length from which OM_API_KEY causes no warning, in characters: 24 random ones are about 144 bits in base64. */
const GOOD_KEY_CHARACTERS = 24;

function warnOfShortKey({ config, logger }: Engine): void {
  if ((config.OM_API_KEY?.length ?? GOOD_KEY_CHARACTERS) >= GOOD_KEY_CHARACTERS) return;
  logger.warn({ message: `OM_API_KEY: better ${GOOD_KEY_CHARACTERS} characters or more` }, 'api_key_is_short');
}

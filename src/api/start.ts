import { type Engine, VERSION } from '../engine/index.ts';
import { createApp } from './app.ts';
import { listen } from './server.ts';

export interface RunningApi {
  /** Address at which clients on this machine reach the server. */
  readonly url: string;
  /**
   * Makes `/ready` answer 503 and stops the server; resolves when all requests in flight are answered or, after
   * OM_SHUTDOWN_MS, cut.
   */
  stop(): Promise<void>;
}

/** Serves an engine over HTTP. @throws EngineError as `listen` does */
export async function startApi({
  engine,
  metricsText,
}: {
  engine: Engine;
  metricsText: () => Promise<string>;
}): Promise<RunningApi> {
  const stop = new AbortController();
  const app = createApp({
    engine,
    ready: () => (stop.signal.aborted ? { ready: false, reasons: ['draining'] } : { ready: true, reasons: [] }),
    metricsText,
    version: VERSION,
    stop: stop.signal,
  });
  // Prepared before the server listens, since loading a package of hundreds of files blocks everything else.
  await engine.prepare();
  const server = await listen(app, engine, stop.signal);
  return {
    url: server.url,
    async stop() {
      stop.abort();
      await server.closed;
    },
  };
}

import { type Engine, VERSION } from '../engine/index.ts';
import { createApp } from './app.ts';
import { listen } from './server.ts';

export interface RunningApi {
  readonly url: string;
  /** Readiness turns 503; resolves when every request in flight is answered. */
  stop(): Promise<void>;
}

/** Serves an engine over HTTP. */
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
  // Before anybody is heard: to load a package of hundreds of files holds up everything else.
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

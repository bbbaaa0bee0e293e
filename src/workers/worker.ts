import fs from 'node:fs';
import type { Config } from '../engine/config.ts';
import { openControlDatabase } from '../engine/control/open-control-database.ts';
import type { Metrics } from '../engine/metrics.ts';
import { openParts } from '../engine/open-engine.ts';
import { systemClock, type Logger } from '../engine/ports.ts';
import { appendEmbedLog, type EmbedLogEntry } from '../engine/store/embeddings.ts';
import type { Tracing } from '../engine/tracing.ts';
import { startRunner, type Runner } from './runner.ts';

export interface WorkerOptions {
  readonly config: Config;
  readonly logger: Logger;
  readonly metrics: Metrics;
  readonly tracing?: Tracing | null | undefined;
  /** True where this is the only worker of the data folder. */
  readonly alone: boolean;
}

/** A worker with files of its own: on a thread beside the API, or as a process. */
export function startWorker({ config, logger, metrics, tracing = null, alone }: WorkerOptions): Runner {
  const clock = systemClock;
  const control = openControlDatabase(config, clock);
  const calls: EmbedLogEntry[] = [];
  const { embedder, gatherer, sourceOf, languageModel, pool, budget, documentParser, pageFetcher } = openParts({
    config,
    clock,
    metrics,
    tracing,
    role: 'worker',
    onCall: (entry) => void calls.push(entry),
  });
  const runner = startRunner({
    config,
    clock,
    logger,
    metrics,
    tracing,
    embedder,
    gatherer,
    sourceOf,
    languageModel,
    documentParser,
    pageFetcher,
    pool,
    alone,
    // A tenant that was never used has no file, and gets none by being looked at.
    listPaths: () =>
      control
        .listTenants()
        .flatMap(({ id }) => control.findTenantPath(id) ?? [])
        .filter((file) => fs.existsSync(file)),
    afterBatch(path) {
      const entries = calls.splice(0);
      if (entries.length === 0) return;
      const { store } = pool.get(path);
      store.write(() => {
        for (const entry of entries) appendEmbedLog(store, entry);
      });
    },
  });
  return {
    wake: runner.wake,
    async drain() {
      await runner.drain();
      await Promise.all([documentParser?.close(), pageFetcher?.close()]);
      budget?.close();
      control.close();
      await tracing?.close();
    },
  };
}

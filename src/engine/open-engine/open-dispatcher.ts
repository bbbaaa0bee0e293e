import { openStepQueues } from '../adapters/bullmq-queues.ts';
import type { Config } from '../config.ts';
import type { ControlDatabase } from '../control/control-database.ts';
import { createDispatcher } from '../dispatch/dispatcher.ts';
import { createTenantFinder, ledgerOverWriter } from '../dispatch/ledgers.ts';
import { openLedgerPoller } from '../dispatch/open-poller.ts';
import type { Engine } from '../engine.ts';
import type { Metrics } from '../metrics.ts';
import type { Clock, JobDispatcher, Logger } from '../ports.ts';
import type { Tracing } from '../tracing.ts';
import type { Writer } from '../writer/writer.ts';

/**
 * Opens the dispatcher over the queues that `queuesAt` names. If `queuesAt` is null, the dispatcher does nothing, and
 * workers find due jobs when they next read the ledgers. The caller closes it.
 * @throws EngineError of `openQueueLink`, if the queues are in PostgreSQL
 */
export async function openDispatcher({
  config,
  clock,
  logger,
  metrics,
  tracing,
  control,
  queuesAt,
  writer,
}: {
  config: Config;
  clock: Clock;
  logger: Logger;
  metrics: Metrics;
  tracing: Tracing | null;
  control: ControlDatabase;
  queuesAt: Engine['queuesAt'];
  writer: Writer;
}): Promise<JobDispatcher> {
  if (queuesAt === null) return { dispatch() {}, close: async () => {} };
  const queues = await openStepQueues({ place: queuesAt, logger });
  metrics.watchQueues(() => queues.counts());
  return createDispatcher({
    ledger: ledgerOverWriter({
      control,
      poller: openLedgerPoller({ config, clock, logger, metrics }),
      clock,
      embedsHere: config.embedsHere,
      writer,
    }),
    queues,
    server: queuesAt.kind,
    logger,
    metrics,
    tracing,
    leads: true,
    tenantOf: createTenantFinder(control),
  });
}

import { onTestFinished } from 'vitest';
import type { DispatchLedger, StepQueues } from '../../src/engine/dispatch/dispatch-ports.ts';
import { createDispatcher } from '../../src/engine/dispatch/dispatcher.ts';
import { createMetrics } from '../../src/engine/metrics.ts';
import { silentLogger, type JobDispatcher } from '../../src/engine/ports.ts';

const NO_LEDGER: DispatchLedger = {
  look: async () => ({ statuses: [], failures: [], isComplete: true }),
  listUnfinished: async () => [],
  together: null,
  take: async () => undefined,
  giveBack: async () => {},
  forget: async () => 0,
  recover: async () => ({ requeued: 0, dead: 0 }),
  close: () => {},
};
const EMPTY_QUEUES: StepQueues = {
  waiting: async () => ({ interactive: 0, bulk: 0 }),
  add: async () => {},
  haveForgotten: async () => false,
  lead: async () => {},
  haveLeader: async () => true,
  areMaintained: async () => true,
  isUp: () => true,
  close: async () => {},
};

/**
 * Starts a dispatcher that leads, between parts of a ledger and of queues; the other parts hold nothing. A tenant's
 * path is its id. The end of the test closes it.
 */
export function dispatchOver(ledger: Partial<DispatchLedger>, queues: Partial<StepQueues> = {}): JobDispatcher {
  const dispatcher = createDispatcher({
    ledger: { ...NO_LEDGER, ...ledger },
    queues: { ...EMPTY_QUEUES, ...queues },
    ...{ server: 'postgres', leads: true, logger: silentLogger, metrics: createMetrics(), tenantOf: (path) => path },
  });
  onTestFinished(() => dispatcher.close());
  return dispatcher;
}

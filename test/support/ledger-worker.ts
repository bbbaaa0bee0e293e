import { createExecutor, type ExecutorOptions } from '../../src/workers/executor.ts';
import { createLedgerSource } from '../../src/workers/ledger-source.ts';

/**
 * Starts an executor of jobs on this thread, which takes its jobs from the tenants' job tables. It must be the only
 * worker of its data folder.
 */
export function startLedgerWorker(options: ExecutorOptions): { drain(): Promise<void> } {
  const executor = createExecutor(options);
  const source = createLedgerSource({ ...options, readers: 1 });
  const started = executor.recover({ everyOwner: true }).then(() => source.start(executor.run));
  return {
    async drain() {
      await source.pause();
      await executor.drain();
      await started;
      await source.close();
    },
  };
}

import { deleteExpired, ERASE_SLICE } from '../commands/erase.ts';
import { firstExpiry } from '../store/expiry.ts';
import { type MaintenanceContext, yieldTurn, writeContextOf } from './maintenance-context.ts';

/**
 * Erases expired memories, which no read returns any more, in short commits, and hides expired documents, which
 * `tendDocuments` erases later.
 * @returns the number of memories erased, reflections on expired ones included
 */
export async function expireMemories(context: MaintenanceContext): Promise<number> {
  let erased = 0;
  for (;;) {
    const { store } = context.open();
    if (firstExpiry(store) > context.clock.now()) break;
    const { receipt, isDone } = store.write(() => deleteExpired(writeContextOf(context), { limit: ERASE_SLICE }));
    erased += receipt.memories;
    if (isDone) break;
    await yieldTurn(context);
  }
  context.metrics.expiredMemories.inc(erased);
  return erased;
}

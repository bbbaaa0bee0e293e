import { deleteExpired, ERASE_SLICE, type ErasedSlice } from '../commands/erase.ts';
import type { WriteContext } from '../commands/write-context.ts';
import { appendAudit } from '../store/audit-chain.ts';
import { firstExpiry } from '../store/expiry.ts';
import { type MaintenanceContext, yieldTurn, writeContextOf } from './maintenance-context.ts';

/**
 * Erases expired memories, which no read returns any more, in short commits, and hides expired documents, which
 * `tendDocuments` erases later. Each commit that erases memories appends a record to the audit log, unless `OM_AUDIT`
 * is `off`.
 * @returns the number of memories erased, reflections on expired ones included
 */
export async function expireMemories(context: MaintenanceContext): Promise<number> {
  let erased = 0;
  for (;;) {
    const { store } = context.open();
    if (firstExpiry(store) > context.clock.now()) break;
    const { receipt, isDone } = store.write(() => expireSlice(writeContextOf(context)));
    erased += receipt.memories;
    if (isDone) break;
    await yieldTurn(context);
  }
  context.metrics.expiredMemories.inc(erased);
  return erased;
}

/** Erases one slice of expired memories, and records it in the audit log. */
function expireSlice(context: WriteContext): ErasedSlice {
  const slice = deleteExpired(context, { limit: ERASE_SLICE });
  const { memories, documents } = slice.receipt;
  if (memories + documents > 0 && context.config.OM_AUDIT !== 'off') {
    const detail = { memories, documents };
    appendAudit(context.store, { at: context.now, keyId: null, action: 'memory.expire', detail });
  }
  return slice;
}

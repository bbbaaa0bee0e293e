import { addReceipts, EMPTY_RECEIPT, ERASE_SLICE } from '../commands/erase.ts';
import type { UndoneChanges } from '../commands/undo-writer.ts';
import type { Tenant } from '../engine.ts';
import { EngineError } from '../errors.ts';
import { listMatchingDocuments } from '../store/documents.ts';
import type { MatchingSlice } from '../store/memories.ts';
import type { DeleteReceipt, ErasureFilter, ErasureReceipt, OpenErasure } from '../types.ts';
import type { Erasure } from './tenant-erasure.ts';
import { withReceipt } from './tenant-erasures.ts';
import type { TenantOptions } from './tenant-options.ts';
import { eraseLogItems } from './tenant-session-logs.ts';

/**
 * Makes the method that erases all memories and documents that match a filter. They are searched as reads, and the
 * writer erases what was found in commits of at most `ERASE_SLICE`.
 */
export function createEraseMatching(
  options: TenantOptions,
  { eraseAbandoned, writeDelete }: Erasure,
): Tenant['deleteMemories'] {
  const { path, readers, writer, dispatcher } = options;
  const store = () => options.open().store;
  /** A delete of users erases what evaluation sets and standing queries ask about them; a narrower one leaves it. */
  const eraseQuestions = async ({ userIds, withinTags = [], ...others }: ErasureFilter) => {
    if (userIds === undefined || withinTags.length > 0 || !Object.entries(others).every(saysNothing)) return;
    await writer.write(path, 'eraseEvalItems', { userIds });
    await writer.write(path, 'eraseStanding', { userIds });
  };
  return async (filter) => {
    if (Object.entries(filter).every(saysNothing)) {
      throw new EngineError('invalid', 'a delete needs a filter: user_id, session_id, tags, files or written_by');
    }
    return withReceipt(options, describe(filter), (erasure) => eraseAll(filter, erasure));
  };

  async function eraseAll(filter: ErasureFilter, erasure: OpenErasure): Promise<ErasureReceipt> {
    let receipt: ErasureReceipt = EMPTY_RECEIPT;
    const write = async (command: () => Promise<DeleteReceipt>) => {
      const slice = await writeDelete(command, () => listMatchingDocuments(store(), filter, ERASE_SLICE));
      receipt = addReceipts(receipt, slice);
      return slice;
    };
    const hide = () => writer.write(path, 'hideMatching', { filter, limit: ERASE_SLICE });
    while ((await write(hide)).documents === ERASE_SLICE);
    while ((await writer.write(path, 'abandonLogs', { filter, limit: ERASE_SLICE })) === ERASE_SLICE);
    await eraseQuestions(filter);
    let logItems = 0;
    for (let items = 1; items > 0; logItems += items) {
      items = await writer.write(path, 'eraseItemsOfWriters', { filter });
    }
    logItems += await eraseLogItems(options);
    // What waits to be logged was asked before the erasure.
    await options.recalls.flush();
    while ((await writer.write(path, 'eraseRecalls', { filter, limit: ERASE_SLICE })) === ERASE_SLICE);
    for (let after: number | null = 0; after !== null;) {
      const found: MatchingSlice = await readers.read(path, 'listMatching', { filter, after, limit: ERASE_SLICE });
      const { memoryNos } = found;
      if (memoryNos.length > 0) await write(() => writer.write(path, 'deleteMatching', { filter, memoryNos, erasure }));
      after = found.next;
    }
    receipt = addReceipts(receipt, await eraseAbandoned(null, erasure));
    if (asksForWriterAlone(filter)) {
      for (const writtenBy of filter.writtenBy ?? []) receipt = await undoWriter(options, writtenBy, receipt);
      dispatcher.dispatch(path, 'encode');
    }
    dispatcher.dispatch(path, 'link');
    return { ...receipt, logItems };
  }
}

/** Says for the receipt what a delete was about: its conditions by name, and the names that go with them. */
function describe(filter: ErasureFilter) {
  const { userIds = [], sessionIds = [] } = filter;
  const by = Object.entries(filter).flatMap((field) => (saysNothing(field) ? [] : [field[0]]));
  return { kind: 'memories', by, names: [...userIds, ...sessionIds] } as const;
}

/** Takes back what a key did to memories that others wrote: its links and its changes. */
async function undoWriter(
  { path, writer }: TenantOptions,
  writtenBy: string,
  receipt: ErasureReceipt,
): Promise<ErasureReceipt> {
  let edges = 0;
  for (let slice = ERASE_SLICE; slice === ERASE_SLICE; edges += slice) {
    slice = (await writer.write(path, 'undoLinks', { writtenBy, limit: ERASE_SLICE })).edges;
  }
  let { restored = 0, unrestored = 0 } = receipt;
  for (let after: number | null = 0; after !== null;) {
    const slice: UndoneChanges = await writer.write(path, 'undoChanges', { writtenBy, after, limit: ERASE_SLICE });
    restored += slice.restored;
    unrestored += slice.unrestored;
    after = slice.last;
  }
  return { ...receipt, edges: receipt.edges + edges, restored, unrestored };
}

/** Whether a filter names a writer and nothing else: only then all that the writer did is taken back. */
function asksForWriterAlone({ writtenBy, ...others }: ErasureFilter): boolean {
  return writtenBy !== undefined && Object.entries(others).every(saysNothing);
}

/**
 * Whether a filter's field, given with its name, asks for nothing, because it is left out or an empty list of tags. A
 * delete whose fields all ask for nothing would empty the tenant.
 */
function saysNothing([name, condition]: [string, unknown]): boolean {
  if (condition === undefined) return true;
  return (name === 'tags' || name === 'metadata') && Object.keys(condition as object).length === 0;
}

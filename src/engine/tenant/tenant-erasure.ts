import { setTimeout as pause } from 'node:timers/promises';
import { addReceipts, EMPTY_RECEIPT, ERASE_SLICE, type ErasedSlice } from '../commands/erase.ts';
import { removeUpload } from '../documents/uploads.ts';
import { EngineError, isEngineError } from '../errors.ts';
import type { DeleteReceipt, OpenErasure } from '../types.ts';
import type { TenantOptions } from './tenant-options.ts';

/** Pause between two looks at documents that another delete is erasing (ms). */
const LOOK_EVERY_MS = 250;
/** Longest time for which a delete waits for documents that another delete is erasing (ms); a client waits for both. */
const WAIT_MOST_MS = 25_000;

/** Operations that the deletes of memories, documents and jobs share. */
export interface Erasure {
  /**
   * Erases the documents that an erasure has hidden, in several commits, and records that in its receipt; resolves once
   * nothing is left. Without an erasure, erases what is left of replaced and cancelled documents.
   * @param last `memoryNo` of parts that are erased after the others of their document, as the parameter `last` of the
   *   command `eraseAbandoned`
   * @returns counts of what was erased
   */
  eraseAbandoned(erasure?: OpenErasure, last?: readonly number[]): Promise<DeleteReceipt>;
  /**
   * Writes a delete. If the disk is full, it removes the uploaded files of the documents that are to be deleted and
   * tries once more.
   * @param write writes the delete; may be called twice
   * @param documents finds the `documentNo` of each document that is to be deleted; called only if the disk is full
   * @throws EngineError what `write` throws; `storage_full` only after the second try
   */
  writeDelete<Reply>(write: () => Promise<Reply>, documents: () => Promise<readonly number[]>): Promise<Reply>;
  /**
   * Waits until none of these documents is being erased by another delete that is under way: each is gone, or free for
   * the caller's delete. Nothing is held between two looks.
   * @param documentNos `documentNo` of each document
   * @throws EngineError `unavailable` after 25 s
   */
  waitForOthers(documentNos: readonly number[]): Promise<void>;
}

/**
 * Repeats a delete, of which each call of `write` erases a part, until nothing is left to erase.
 * @param write writes a part; `last` is the result of the call before, and undefined in the first call
 * @returns counts of everything that was erased
 */
export async function inSlices<Slice extends ErasedSlice>(
  write: (last: Slice | undefined) => Promise<Slice>,
): Promise<DeleteReceipt> {
  let sum = EMPTY_RECEIPT;
  for (let last: Slice | undefined; last?.isDone !== true;) {
    last = await write(last);
    sum = addReceipts(sum, last.receipt);
  }
  return sum;
}

/** Makes the operations that a tenant's deletes share. */
export function createErasure({ path, readers, writer, dispatcher, clock }: TenantOptions): Erasure {
  return { eraseAbandoned, writeDelete, waitForOthers };

  /**
   * Writes a delete, a second time if the disk is full, since a delete needs room as well. The uploaded files of the
   * documents can be removed without a commit, which makes room. If even that is not enough, the documents remain
   * without their files.
   */
  async function writeDelete<Reply>(
    write: () => Promise<Reply>,
    documents: () => Promise<readonly number[]>,
  ): Promise<Reply> {
    try {
      return await write();
    } catch (error) {
      if (!isEngineError(error, 'storage_full')) throw error;
      const documentNos = await documents();
      for (const upload of await readers.readFew(path, 'listUploads', { documentNos })) removeUpload(path, upload);
      return write();
    }
  }

  async function eraseAbandoned(erasure?: OpenErasure, last?: readonly number[]): Promise<DeleteReceipt> {
    for (let receipt = EMPTY_RECEIPT; ;) {
      const slice = await writeDelete(
        () => writer.write(path, 'eraseAbandoned', { limit: ERASE_SLICE, erasure, last }),
        async () => [], // The command has removed the files itself by then.
      );
      receipt = addReceipts(receipt, slice.receipt);
      if (!slice.isDone) continue;
      dispatcher.dispatch(path, 'link');
      return receipt;
    }
  }

  async function waitForOthers(documentNos: readonly number[]): Promise<void> {
    const until = clock.now() + WAIT_MOST_MS;
    for (let left = documentNos; left.length > 0;) {
      const few = left.slice(0, ERASE_SLICE);
      const others = await readers.readFew(path, 'listUnderWay', { documentNos: few });
      if (others.length === 0) {
        left = left.slice(ERASE_SLICE);
        continue;
      }
      if (clock.now() > until)
        throw new EngineError('unavailable', 'another delete is erasing these documents', { retryAfterMs: 5_000 });
      await pause(LOOK_EVERY_MS);
    }
  }
}

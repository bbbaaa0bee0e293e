import { addReceipts, EMPTY_RECEIPT, ERASE_BYTES, ERASE_SLICE, type LeftToOthers } from '../commands/erase.ts';
import type { MatchingSlice } from '../store/memories.ts';
import type { DeleteReceipt, ErasureFilter, OpenErasure } from '../types.ts';
import { type Erasure, inSlices } from './tenant-erasure.ts';
import type { TenantOptions } from './tenant-options.ts';

/** What the documents or the memories that match have come to. */
interface ErasedPart extends LeftToOthers {
  readonly receipt: DeleteReceipt;
}

/** Erases one of the two parts of what matches a filter. */
type ErasePart = (filter: ErasureFilter, erasure: OpenErasure) => Promise<ErasedPart>;

/** Makes what erases the documents, and the memories, that match a filter. */
export function createEraseParts(
  { path, readers, writer }: Pick<TenantOptions, 'path' | 'readers' | 'writer'>,
  { eraseAbandoned, writeDelete }: Erasure,
): { readonly eraseDocuments: ErasePart; readonly eraseMemories: ErasePart } {
  return { eraseDocuments, eraseMemories };

  /**
   * Erases the documents that match, at once: while a delete records nothing for some seconds, the documents that it
   * has hidden are free for others.
   */
  async function eraseDocuments(filter: ErasureFilter, erasure: OpenErasure): Promise<ErasedPart> {
    let receipt = EMPTY_RECEIPT;
    const others: number[] = [];
    for (let after: number | null = 0; after !== null;) {
      const documentNos = await listDocuments(filter, erasure, after);
      after = documentNos.length === ERASE_SLICE ? documentNos.at(-1)! : null;
      if (documentNos.length === 0) break;
      const hidden = await writeDelete(
        () => writer.write(path, 'hideMatching', { filter, documentNos, erasure }),
        async () => documentNos,
      );
      receipt = addReceipts(receipt, hidden.receipt);
      others.push(...hidden.others);
    }
    if (receipt.documents > 0) receipt = addReceipts(receipt, await eraseAbandoned(erasure));
    return { receipt, others };
  }

  /** Erases the memories that match, and the documents of which they are parts. */
  async function eraseMemories(filter: ErasureFilter, erasure: OpenErasure): Promise<ErasedPart> {
    let receipt = EMPTY_RECEIPT;
    const others: number[] = [];
    let hasHidden = false;
    for (let after: number | null = 0; after !== null;) {
      const found: MatchingSlice = await readers.read(path, 'listMatching', {
        ...{ filter, after, limit: ERASE_SLICE, bytes: ERASE_BYTES },
      });
      const { memoryNos } = found;
      const remove = async () => {
        const slice = await writer.write(path, 'deleteMatching', { filter, memoryNos, erasure });
        others.push(...slice.others);
        // Noted here, as a later slice may fail.
        hasHidden ||= slice.receipt.documents > 0;
        return slice;
      };
      const documents = () => listDocuments(filter, erasure, 0);
      if (memoryNos.length > 0) receipt = addReceipts(receipt, await writeDelete(() => inSlices(remove), documents));
      // At once, and the parts that match last: if this breaks off, a repeated delete finds the document by them.
      if (hasHidden) receipt = addReceipts(receipt, await eraseAbandoned(erasure, memoryNos));
      hasHidden = false;
      after = found.next;
    }
    return { receipt, others };
  }

  function listDocuments(filter: ErasureFilter, { id }: OpenErasure, after: number): Promise<number[]> {
    return readers.read(path, 'listMatchingDocuments', { filter, except: id, after, limit: ERASE_SLICE });
  }
}

/** Receipts of deletes: records of what a delete erased, which are kept in a chain of hashes and hold no text. */
import type { DeleteReceipt } from './memory.ts';

/**
 * The kinds of deletes that leave a receipt: of one memory, of memories by a filter, of a document, of an item, of a
 * namespace.
 */
export const ERASURE_KINDS = ['memory', 'memories', 'document', 'item', 'namespace'] as const;
export type ErasureKind = (typeof ERASURE_KINDS)[number];

/**
 * The receipt of a delete that is still running, to which each of its commits adds. `salt` is known only to whoever
 * asked for the delete.
 */
export interface OpenErasure {
  readonly id: string;
  readonly kind: ErasureKind;
  /** Salt of the receipt's hashes, 16 random bytes in base64url. It is not stored. */
  readonly salt: string;
}

/** Receipt of a delete. It holds ids, counts and salted hashes, but no text. */
export interface Erasure {
  readonly id: string;
  readonly kind: ErasureKind;
  /** Public id of the key that asked for the delete; null without a key. */
  readonly keyId: string | null;
  /** Time at which the delete began, Unix ms. */
  readonly begunAt: number;
  /** Time at which the delete ended, Unix ms; null while it is running, or if it was interrupted and not repeated. */
  readonly closedAt: number | null;
  /** Names of the filter's conditions, if it was a delete by filter; empty otherwise. */
  readonly by: readonly string[];
  /** Numbers of erased things, by their kind (see `DeleteReceipt`); empty while the receipt is open. */
  readonly counts: Readonly<Record<string, number>>;
  /**
   * Names of the places from which the delete removed the memories, such as `word index`; empty while the receipt is
   * open.
   */
  readonly searched: readonly string[];
  /**
   * Hash of the receipt's id and its salt, by which a wrong salt is recognised; null while the delete is running, and
   * in receipts of earlier versions.
   */
  readonly salted: string | null;
  /** Ids of the erased memories, the first 1,000 (`ERASURE_IDS`). */
  readonly ids: readonly string[];
  /**
   * Salted hashes of the words of the erased texts, each 12 hexadecimal digits. If there are more than 1,024
   * (`ERASURE_HASHES`), only the lowest are kept. Of each text at most the first 16,384 characters count, and at most
   * 49,152 of all texts that one commit erased.
   */
  readonly words: readonly string[];
  /**
   * Salted hashes of the phrases of four words of the erased texts, each 12 hexadecimal digits; bounded like `words`.
   */
  readonly phrases: readonly string[];
  /** Position of the receipt in the chain of closed receipts, from 1; null while it is open. */
  readonly chainNo: number | null;
  /**
   * SHA-256 over the hash of the receipt before it and this receipt's own values, as 64 hexadecimal digits; null while
   * it is open.
   */
  readonly hash: string | null;
}

/**
 * Greatest number of memory ids in a receipt; further ids are left out. `ERASURE_HASHES` bounds the hashes of words,
 * and those of phrases, in the same way.
 */
export const ERASURE_IDS = 1_000;
export const ERASURE_HASHES = 1_024;

/**
 * Counts of a delete with `erasure`, the id and the salt of its receipt joined by a dot. The salt is returned only
 * here. `erasure` is absent if no receipt was made, and `cachedEmbeddings` for a caller that does not reach the whole
 * tenant: the count tells whether any other memory of the tenant has the text of an erased one.
 */
export type Receipted<Receipt extends DeleteReceipt = DeleteReceipt> = Omit<Receipt, 'cachedEmbeddings'> &
  Partial<Pick<DeleteReceipt, 'cachedEmbeddings'>> & { readonly erasure?: string };

/** Receipt of a delete in a list: `words` and `phrases` are the numbers of its hashes. */
export interface ErasureSummary extends Omit<Erasure, 'ids' | 'words' | 'phrases' | 'salted'> {
  readonly words: number;
  readonly phrases: number;
}

/** The methods of a tenant that read receipts of deletes. */
export interface Erasures {
  /** Lists receipts, those begun last first; `total` counts all receipts. */
  listErasures(page: { readonly limit: number; readonly offset: number }): Promise<{
    readonly items: readonly ErasureSummary[];
    readonly total: number;
  }>;
  /** Returns the receipt with this id. @throws EngineError `not_found` */
  getErasure(id: string): Promise<Erasure>;
}

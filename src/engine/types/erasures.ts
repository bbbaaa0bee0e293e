/** Receipts of deletes. */
import type { DeleteReceipt } from './memory.ts';

/** What a delete was about. */
export const ERASURE_KINDS = ['memory', 'memories', 'document', 'item', 'namespace'] as const;
export type ErasureKind = (typeof ERASURE_KINDS)[number];

/** Names a receipt that is being made, and its secret. */
export interface OpenErasure {
  readonly id: string;
  readonly kind: ErasureKind;
  /** Salt of its hashes, which is stored nowhere: 16 bytes in base64url. */
  readonly salt: string;
}

/** A receipt of a delete. It holds no text. */
export interface Erasure {
  readonly id: string;
  readonly kind: ErasureKind;
  /** Public id of the key that asked for the delete; null for none. */
  readonly keyId: string | null;
  /** Unix ms. */
  readonly begunAt: number;
  /** Unix ms; null for a delete that has not come to its end. */
  readonly closedAt: number | null;
  /** Names of the conditions of a delete by filter. */
  readonly by: readonly string[];
  /** What was erased, by kind. */
  readonly counts: Readonly<Record<string, number>>;
  /** What was searched for traces, and erased there. */
  readonly searched: readonly string[];
  /** Ids of erased memories, at most `ERASURE_IDS`. */
  readonly ids: readonly string[];
  /** Salted hashes of words, each 12 hex digits; the lowest ones, at most `ERASURE_HASHES`. */
  readonly words: readonly string[];
  /** Salted hashes of phrases of four words, chosen as those of the words. */
  readonly phrases: readonly string[];
  /** Place in the chain, from 1; null while open. */
  readonly chainNo: number | null;
  /** SHA-256 over the hash of the receipt before it and the columns of this one, as hex digits; null while open. */
  readonly hash: string | null;
}

/** Most ids, and most hashes of words and of phrases, in a receipt. */
export const ERASURE_IDS = 1_000;
export const ERASURE_HASHES = 1_024;

/** A delete's counts, and the name of its receipt with its salt: `id.salt`, which is given this once. */
export type Receipted<Receipt extends DeleteReceipt = DeleteReceipt> = Receipt & { readonly erasure?: string };

/** Receipts of deletes in a tenant. */
export interface Erasures {
  /** Lists receipts, newest first. */
  listErasures(page: { readonly limit: number; readonly offset: number }): Promise<{
    readonly items: readonly Erasure[];
    readonly total: number;
  }>;
  /** Returns a receipt. @throws EngineError `not_found` */
  getErasure(id: string): Promise<Erasure>;
}

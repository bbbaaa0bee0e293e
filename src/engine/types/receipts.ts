import type { DocumentWarning } from './documents.ts';

/** Reasons for which characters of a file are not in its extracted text, or in no memory. */
export const OMISSION_REASONS = [
  'running_head',
  'boilerplate',
  'hidden_text',
  'front_matter',
  'control_characters',
  'redacted',
  'no_text',
] as const;

/**
 * Why characters were left out: repeated heads, feet and page numbers of a PDF (`running_head`); what a page has around
 * its article (`boilerplate`); text that markup hides (`hidden_text`); the data at the start of a Markdown file, which
 * became metadata (`front_matter`); control characters (`control_characters`); values that the privacy policy replaced
 * by markers (`redacted`); a text of blanks alone, of which no memory is made (`no_text`).
 */
export type OmissionReason = (typeof OMISSION_REASONS)[number];

/** What was left out of a document for one reason. It never holds content. */
export interface Omission {
  readonly reason: OmissionReason;
  /** Number of lines, parts, characters or values that were left out. */
  readonly count: number;
  /** Characters that were left out, in UTF-16 units; without blanks for parts of web pages. */
  readonly characters: number;
}

/** Where a part of a document's text is held. Offsets are UTF-16 units of the extracted text, ends excluded. */
export interface HeldSpan {
  readonly memoryId: string;
  /** Number of the chunk, from 0. */
  readonly chunk: number;
  readonly startOffset: number;
  /** First character that no earlier chunk holds: what lies before it repeats the end of the chunk in front. */
  readonly ownOffset: number;
  readonly endOffset: number;
  /** Whether the memory was taken over from an earlier reading, in which its title and text were equal. */
  readonly isKept: boolean;
  /** Whether the memory holds just these characters now; false if a redaction changed it since. */
  readonly isIntact: boolean;
}

/** Accounts for every character of a document's extracted text, as it was read and as memories hold it now. */
export interface TextReceipt {
  readonly documentId: string;
  /** Id of the memory that stands for the whole document; null for an empty one. */
  readonly rootMemoryId: string | null;
  /** Length of the extracted text, in UTF-16 units. */
  readonly characters: number;
  /** Characters that memories hold unchanged, each counted once. */
  readonly held: number;
  /** SHA-256 of the extracted text as it was read, hexadecimal; null if that was not noted. */
  readonly sha256: string | null;
  /** SHA-256 of the text that the memories hold now, joined without what they repeat, hexadecimal. */
  readonly heldSha256: string;
  /** Whether each character is held or named in `omissions`, and what is held is the text that was read. */
  readonly isComplete: boolean;
  /** Chunks that are new, were kept from the reading before, and were removed with it. */
  readonly stored: number;
  readonly kept: number;
  readonly removed: number;
  /** One page of the spans, in the order of the text. */
  readonly spans: readonly HeldSpan[];
  /** Number of all spans. */
  readonly total: number;
  readonly omissions: readonly Omission[];
  readonly warnings: readonly DocumentWarning[];
}

// ── Batches ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * What became of an item of a batch: a memory of its own (`stored`), one that was there and says the same (`merged`),
 * or none (`refused`).
 */
export const ITEM_FATES = ['stored', 'merged', 'refused'] as const;
export type ItemFate = (typeof ITEM_FATES)[number];

/** Most items of one receipt. */
export const MAX_RECEIPT_ITEMS = 100_000;

/** An item of a batch, to be noted right after it was answered. */
export interface NotedItem {
  /** Number of the item in its batch, from 1. */
  readonly item: number;
  readonly fate: ItemFate;
  /** The memory that holds it; null for an item that was refused. */
  readonly memoryId: string | null;
  /** Text of the item as it was sent; null for an item that was refused. */
  readonly content: string | null;
  /** Why it was refused; null for others. */
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** What a receipt says of an item. */
export interface ReceiptItemState {
  readonly item: number;
  readonly fate: ItemFate;
  /** The memory that holds it; null for an item that was refused, and for a memory that is gone. */
  readonly memoryId: string | null;
  /** Length of its text, in UTF-16 units; 0 for an item that was refused. */
  readonly characters: number;
  /**
   * Whether the memory holds its text now, white space apart. false where the memory is gone or was changed, and where
   * the privacy policy replaced a part of the text; null for an item that was refused.
   */
  readonly isHeld: boolean | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** Accounts for every item of a batch. */
export interface BatchReceipt {
  readonly id: string;
  /** Time of the batch, Unix ms. */
  readonly createdAt: number;
  /** Number of items by what became of them. */
  readonly counts: Readonly<Record<ItemFate, number>>;
  /** Length of the texts of all items that were not refused, and how much of it memories hold now. */
  readonly characters: number;
  readonly held: number;
  /** Whether every number from 1 to `total` has its item, and each is held or was refused with a reason. */
  readonly isComplete: boolean;
  /** One page of the items, by their numbers. */
  readonly items: readonly ReceiptItemState[];
  readonly total: number;
}

/** Receipts of batches of a tenant. */
export interface BatchReceipts {
  /**
   * Notes what became of items of a batch, and compares the text that each memory holds with what was sent.
   * @param id the receipt that the items belong to; a new one if left out
   * @returns the id of the receipt
   */
  noteBatch(items: readonly NotedItem[], id?: string): Promise<string>;
  /**
   * Returns a receipt with a page of its items.
   * @param options.writtenBy only if the key of this id sent the batch
   * @throws EngineError `not_found`, also for a receipt that is older than `OM_RECEIPT_DAYS`
   */
  batchReceipt(
    id: string,
    options: { readonly limit: number; readonly offset: number; readonly writtenBy?: string | undefined },
  ): Promise<BatchReceipt>;
}

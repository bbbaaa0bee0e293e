import type { DocumentWarning } from './documents.ts';

/**
 * The reasons why characters of a file are not in its extracted text, or are in no memory; `OmissionReason` says what
 * each means.
 */
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
 * Says why characters were left out. `running_head`: repeated headers, footers and page numbers of a PDF.
 * `boilerplate`: the parts of a web page around its article. `hidden_text`: text that markup hides. `front_matter`:
 * data at the start of a Markdown file, which became metadata. `control_characters`: control characters. `redacted`:
 * values that the privacy policy replaced by markers. `no_text`: a text that is only white space; no memory is made of
 * it.
 */
export type OmissionReason = (typeof OMISSION_REASONS)[number];

/** What was left out of a document for one reason, without any content. */
export interface Omission {
  readonly reason: OmissionReason;
  /** Number of lines, parts, characters or values that were left out, depending on the reason. */
  readonly count: number;
  /**
   * Number of characters that were left out, in UTF-16 code units; for parts of web pages, white space is not counted.
   */
  readonly characters: number;
}

/**
 * The part of a document's text that one memory holds. Offsets are UTF-16 code units of the extracted text; ends are
 * excluded.
 */
export interface HeldSpan {
  readonly memoryId: string;
  /** Index of the chunk in the document, from 0. */
  readonly chunk: number;
  readonly startOffset: number;
  /**
   * Offset of the first character that no earlier chunk holds; the characters before it repeat the end of the chunk
   * before.
   */
  readonly ownOffset: number;
  readonly endOffset: number;
  /** Whether the memory was kept when the document was read again, because the earlier reading had an equal chunk. */
  readonly isKept: boolean;
  /**
   * Whether the memory's text still has the length of this part and the hash that was stored with it, and begins with
   * the end of the part before where the two overlap. A change of kinds of white space alone is not noticed here, only
   * by `TextReceipt.heldSha256`.
   */
  readonly isIntact: boolean;
}

/** Account of every character of a document's extracted text: whether memories hold it as it was read. */
export interface TextReceipt {
  readonly documentId: string;
  /** Id of the memory that stands for the whole document; null for a document without text. */
  readonly rootMemoryId: string | null;
  /** Length of the extracted text, in UTF-16 code units. */
  readonly characters: number;
  /** Number of these characters in parts that are intact (see `HeldSpan.isIntact`), each counted once. */
  readonly held: number;
  /**
   * SHA-256 of the extracted text as UTF-8, as it was read, hexadecimal; null for a document read by a version that did
   * not store it.
   */
  readonly sha256: string | null;
  /** SHA-256 of the text that memories hold now, joined without overlaps, hexadecimal. */
  readonly heldSha256: string;
  /**
   * Whether memories hold every character (white space of the omission `no_text` aside), and `heldSha256` equals
   * `sha256`. The hashes are not compared for a document without chunks, or if `sha256` is null.
   */
  readonly isComplete: boolean;
  /**
   * Number of chunks that this reading of the document stored anew; `kept` of chunks that it kept from the reading
   * before; `removed` of chunks that were removed with that reading.
   */
  readonly stored: number;
  readonly kept: number;
  readonly removed: number;
  /** One page of the parts of the text that memories hold, in the order of the text. */
  readonly spans: readonly HeldSpan[];
  /** Number of all spans of the text, on whichever page. */
  readonly total: number;
  readonly omissions: readonly Omission[];
  readonly warnings: readonly DocumentWarning[];
}

// ── Batches ──────────────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * The results that an item of a batch can have: `stored` as a new memory, `merged` with a stored memory that says the
 * same, or `refused`.
 */
export const ITEM_FATES = ['stored', 'merged', 'refused'] as const;
export type ItemFate = (typeof ITEM_FATES)[number];

/** Greatest number of items in one receipt. */
export const MAX_RECEIPT_ITEMS = 100_000;

/** An item of a batch request to record in a receipt, right after it was added or refused. */
export interface NotedItem {
  /** Number of the item in its batch, from 1. */
  readonly item: number;
  readonly fate: ItemFate;
  /** Id of the memory that holds the item; null if the item was refused. */
  readonly memoryId: string | null;
  /** Text of the item as it was sent; null if the item was refused. */
  readonly content: string | null;
  /** Why the item was refused; null if it was not. */
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** An item in a receipt, with what became of its memory since. */
export interface ReceiptItemState {
  readonly item: number;
  readonly fate: ItemFate;
  /** Id of the memory that holds the item; null if the item was refused, or if the memory was erased since. */
  readonly memoryId: string | null;
  /** Length of the item's text, in UTF-16 code units; 0 if the item was refused. */
  readonly characters: number;
  /**
   * Whether the memory has held the sent text ever since, white space apart. False if the memory was erased, if its
   * text was changed, even if it is the sent one again, and if the privacy policy redacted the text; null if the item
   * was refused.
   */
  readonly isHeld: boolean | null;
  readonly error: { readonly code: string; readonly message: string } | null;
}

/** Account of every item of a batch: whether memories hold its text as it was sent. */
export interface BatchReceipt {
  readonly id: string;
  /** Time of the batch, Unix ms. */
  readonly createdAt: number;
  /** Number of items of the batch by result. */
  readonly counts: Readonly<Record<ItemFate, number>>;
  /**
   * Number of characters (UTF-16 code units) of all items that were not refused; `held` counts those of items whose
   * memories still hold them.
   */
  readonly characters: number;
  readonly held: number;
  /** Whether the batch came to its end; false while its lines arrive, and if they broke off. */
  readonly hasEnded: boolean;
  /**
   * Whether the batch has ended, the receipt has every item from 1 to `total`, and each is held by a memory or was
   * refused with a reason.
   */
  readonly isComplete: boolean;
  /** One page of the items, by their numbers. */
  readonly items: readonly ReceiptItemState[];
  /** Number of all items of the batch that the receipt has, on whichever page. */
  readonly total: number;
}

/** The results of a part of a batch, to be recorded in the receipt of the batch. */
export interface NotedPart {
  /** The items of the part, in the order of their numbers; none if the batch only ends. */
  readonly items: readonly NotedItem[];
  /** Number of the first item, or of the item that would follow if there are no items; from 1. */
  readonly first: number;
  /** Id of the receipt to which the part is added; a new receipt is made if left out. */
  readonly id?: string | undefined;
  /** Whether the batch ends with this part. */
  readonly isLast: boolean;
}

/** The methods of a tenant for receipts of batches. */
export interface BatchReceipts {
  /**
   * Records the results of a part of a batch, after comparing the text that each memory holds with the text that was
   * sent. It also deletes some of the receipts that are older than `OM_RECEIPT_DAYS` or, if there are very many, the
   * oldest.
   * @returns the id of the receipt
   */
  noteBatch(part: NotedPart): Promise<string>;
  /**
   * Returns a receipt, compared with the memories as they are now, with a page of its items.
   * @param options.writtenBy returns the receipt only if the key with this public id sent the batch
   * @throws EngineError `not_found`, also for a receipt that was deleted because of its age or number, see `noteBatch`
   */
  batchReceipt(
    id: string,
    options: { readonly limit: number; readonly offset: number; readonly writtenBy?: string | undefined },
  ): Promise<BatchReceipt>;
}

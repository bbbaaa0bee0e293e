import { EngineError } from '../errors.ts';

/**
 * A write receipt: the first and last job that one write added to the ledger, and the file that the ledger is in. The
 * API's field `token` holds it as a text.
 */
export interface WriteReceipt {
  readonly storeId: string;
  /** Number in the ledger (`jobNo`) of the first job that the write added. */
  readonly first: number;
  /** Number in the ledger (`jobNo`) of the last job that the write added; equal to `first` for a single job. */
  readonly last: number;
}

/** Writes a receipt as the text that the API's field `token` holds: three parts with dots between them. */
export function encodeReceipt({ storeId, first, last }: WriteReceipt): string {
  return `${storeId}.${first.toString(36)}.${last.toString(36)}`;
}

/**
 * Parses a write receipt. It checks form and file only, not whether the file has the jobs.
 * @param storeId id of the tenant's file
 * @throws EngineError `invalid` for a text of another form, or of another file
 */
export function decodeReceipt(token: string, storeId: string): WriteReceipt {
  const match = /^([0-9a-f]{8})\.([0-9a-z]{1,11})\.([0-9a-z]{1,11})$/.exec(token);
  const [first, last] = [parseInt(match?.[2] ?? '', 36), parseInt(match?.[3] ?? '', 36)];
  if (match?.[1] !== storeId || !(first <= last) || !Number.isSafeInteger(last)) {
    throw new EngineError('invalid', 'token: not one that an add of this tenant gave out');
  }
  return { storeId, first, last };
}

/**
 * Makes one receipt (`token`) that covers two writes, the earlier one first; it also covers everything that the tenant
 * wrote in between. null stands for a write without background work; if one of the two is null, returns the other.
 */
export function spanningReceipt(before: string | null, next: string | null): string | null {
  if (before === null || next === null) return before ?? next;
  const { storeId, first, last } = decodeReceipt(before, before.slice(0, before.indexOf('.')));
  const other = decodeReceipt(next, storeId);
  // The later write may name an earlier job: a document that is unchanged answers with the job that still reads it.
  return encodeReceipt({ storeId, first: Math.min(first, other.first), last: Math.max(last, other.last) });
}

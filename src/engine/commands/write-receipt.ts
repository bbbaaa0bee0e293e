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

import { EngineError } from '../errors.ts';

/** What a write token stands for: the ledger rows of one write, in the file that gave it out. */
export interface WriteToken {
  readonly storeId: string;
  readonly first: number;
  readonly last: number;
}

export function encodeToken({ storeId, first, last }: WriteToken): string {
  return `${storeId}.${first.toString(36)}.${last.toString(36)}`;
}

/** @throws EngineError `invalid` for anything this tenant did not give out */
export function decodeToken(token: string, storeId: string): WriteToken {
  const match = /^([0-9a-f]{8})\.([0-9a-z]{1,11})\.([0-9a-z]{1,11})$/.exec(token);
  const [first, last] = [parseInt(match?.[2] ?? '', 36), parseInt(match?.[3] ?? '', 36)];
  if (match?.[1] !== storeId || !(first <= last) || !Number.isSafeInteger(last)) {
    throw new EngineError('invalid', 'token: not one that an add of this tenant gave out');
  }
  return { storeId, first, last };
}

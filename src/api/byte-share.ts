/** Sum of the bytes that requests in one state hold: for each API key that holds any, and in total. */
export interface ByteShare {
  readonly ofKey: Map<string, number>;
  total: number;
}

/** Adds bytes to the share of a key and to the total; a negative number takes them off. */
export function addTo(share: ByteShare, key: string, bytes: number): void {
  const own = (share.ofKey.get(key) ?? 0) + bytes;
  if (own === 0) share.ofKey.delete(key);
  else share.ofKey.set(key, own);
  share.total += bytes;
}

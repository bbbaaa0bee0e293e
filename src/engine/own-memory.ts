/**
 * Returns these bytes in memory of which they are at least half: the piece itself, or else a copy. A smaller part keeps
 * the whole from being freed: a byte that came over a connection keeps the 64 KiB that were read together, and a few
 * bytes of Node's pool keep the pool. The bytes of `piece` must not change as long as the result is in use.
 */
export function inOwnMemory(piece: Buffer): Buffer {
  if (2 * piece.length >= piece.buffer.byteLength) return piece;
  const own = Buffer.allocUnsafeSlow(piece.length);
  piece.copy(own);
  return own;
}
